//! Front ends: the program serves the threads of an engine over HTTP.

use std::path::PathBuf;
use std::time::Duration;

use reqwest::{Client, Method, RequestBuilder, StatusCode};
use serde_json::{Value, json};

use crate::cluster::run;
use crate::processes::{Cluster, Process, free_ports, is_open, until};

/// A descriptor: front ends need the names of the agents alone.
const DESCRIPTOR: &str = "runtime: { entry_agent: clerk }\nagent_defaults: { model: scripted }\nagents:\n  clerk:\n    instructions: You order tea.\n";

/// The program, which a build of the workspace puts beside this one.
fn program() -> PathBuf {
    let folder = std::env::current_exe().unwrap().parent().and_then(|deps| deps.parent()).unwrap().to_owned();
    let program = folder.join(format!("harness{}", std::env::consts::EXE_SUFFIX));
    assert!(program.is_file(), "build it with `cargo build -p harness-cli`");
    program
}

/// A process that serves, and a client of it.
pub(crate) struct Front {
    process: Process,
    reader: Reader,
}

/// A client of a front end that may be gone at any moment.
#[derive(Clone)]
pub(crate) struct Reader {
    url: String,
    client: Client,
}

impl Reader {
    /// Whether the front end answers.
    pub(crate) async fn answers(self) -> bool {
        let asked = self.client.get(format!("{}/front-plain.none/status", self.url)).send().await;
        asked.is_ok_and(|response| response.status() == StatusCode::NOT_FOUND)
    }

    /// Creates a thread and sends its first prompt. Whether both were accepted, now or before.
    pub(crate) async fn prompt(self, thread: String, text: &str) -> bool {
        self.post(String::new(), json!({ "id": thread })).await
            && self.post(format!("/{thread}/prompt"), json!({ "text": text })).await
    }

    async fn post(&self, path: String, body: Value) -> bool {
        let asked = self.client.post(format!("{}{path}", self.url)).json(&body).send().await;
        asked.is_ok_and(|asked| asked.status().is_success() || asked.status() == StatusCode::CONFLICT)
    }

    /// Reads events behind one, as long as the connection holds. Their numbers, and whether a run ended.
    pub(crate) async fn read(self, thread: String, after: Option<u64>) -> (Vec<u64>, bool) {
        let mut request = self.client.get(format!("{}/{thread}/events?from=replay", self.url));
        if let Some(after) = after {
            request = request.header("last-event-id", after.to_string());
        }
        let (mut seen, mut text) = (Vec::new(), String::new());
        let Ok(mut response) = request.send().await else { return (seen, false) };
        while let Ok(Some(chunk)) = response.chunk().await {
            text.push_str(std::str::from_utf8(&chunk).unwrap());
            while let Some(end) = text.find("\n\n") {
                let frame = frame_of(&text[..end]);
                text.drain(..end + 2);
                let Some(frame) = frame else { continue };
                seen.extend(frame.id);
                if is_end(&frame) {
                    return (seen, true);
                }
            }
        }
        (seen, false)
    }
}

/// An event of a stream: `id`, `event` and `data`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Frame {
    pub(crate) id: Option<u64>,
    pub(crate) event: String,
    pub(crate) data: Value,
}

impl Front {
    pub(crate) async fn start(cluster: &Cluster) -> Self {
        Self::with(cluster, &[]).await
    }

    /// Starts a front end to which workers that start later send deltas.
    pub(crate) async fn with_relay(cluster: &Cluster) -> Self {
        let [port] = free_ports();
        let relay = format!("127.0.0.1:{port}");
        cluster.relay_to(format!("http://{relay}"));
        Self::with(cluster, &["--relay-listen", &relay]).await
    }

    async fn with(cluster: &Cluster, options: &[&str]) -> Self {
        let [port] = free_ports();
        let folder = cluster.folder();
        std::fs::write(folder.join("harness.yaml"), DESCRIPTOR).unwrap();
        let listen = format!("127.0.0.1:{port}");
        let engines: Vec<&str> = cluster.ingress().iter().flat_map(|url| ["--engine", url]).collect();
        let words = [&["serve", "harness.yaml", "--listen", &listen], &*engines, options].concat();
        let process = Process::start(&program(), folder, &words);
        until("a front end", || is_open(port)).await;
        let client = Client::builder().no_proxy().build().unwrap();
        Self { process, reader: Reader { url: format!("http://{listen}/v1/threads"), client } }
    }

    /// Kills it as `kill -9` does.
    pub(crate) fn kill(&mut self) {
        self.process.kill();
    }

    pub(crate) fn reader(&self) -> Reader {
        self.reader.clone()
    }

    /// A request about threads.
    pub(crate) fn request(&self, method: Method, path: &str) -> RequestBuilder {
        let Reader { url, client } = &self.reader;
        client.request(method, format!("{url}{path}"))
    }

    async fn send(&self, method: Method, path: &str, body: Option<Value>) -> (u16, Value) {
        let mut request = self.request(method, path);
        if let Some(body) = body {
            request = request.json(&body);
        }
        let response = request.send().await.unwrap();
        let (status, text) = (response.status().as_u16(), response.text().await.unwrap());
        (status, serde_json::from_str(&text).unwrap_or(Value::String(text)))
    }

    pub(crate) async fn get(&self, path: &str) -> (u16, Value) {
        self.send(Method::GET, path, None).await
    }

    pub(crate) async fn post(&self, path: &str, body: Value) -> (u16, Value) {
        self.send(Method::POST, path, Some(body)).await
    }

    /// Reads events until one is wanted. `after` is the `Last-Event-ID`.
    async fn follow(&self, thread: &str, after: Option<u64>, is_last: impl Fn(&Frame) -> bool) -> Vec<Frame> {
        let Reader { url, client } = &self.reader;
        let mut request = client.get(format!("{url}/{thread}/events?from=replay"));
        if let Some(after) = after {
            request = request.header("last-event-id", after.to_string());
        }
        let mut response = request.send().await.unwrap();
        assert_eq!(response.status(), StatusCode::OK);
        let (mut frames, mut text) = (Vec::new(), String::new());
        let reads = async {
            while let Some(chunk) = response.chunk().await.unwrap() {
                text.push_str(std::str::from_utf8(&chunk).unwrap());
                while let Some(end) = text.find("\n\n") {
                    frames.extend(frame_of(&text[..end]));
                    text.drain(..end + 2);
                    if frames.last().is_some_and(&is_last) {
                        return;
                    }
                }
            }
        };
        tokio::time::timeout(Duration::from_mins(1), reads).await.unwrap();
        frames
    }
}

pub(crate) fn frame_of(text: &str) -> Option<Frame> {
    let field = |name: &str| text.lines().find_map(|line| line.strip_prefix(name));
    let data = serde_json::from_str(field("data: ")?).unwrap();
    let id = field("id: ").map(|id| id.parse().unwrap());
    Some(Frame { id, event: field("event: ")?.to_owned(), data })
}

fn is_end(frame: &Frame) -> bool {
    frame.event == "run_ended"
}

/// Events that a log holds; those of held calls come and go.
fn numbered(frames: Vec<Frame>) -> Vec<Frame> {
    frames.into_iter().filter(|frame| frame.id.is_some()).collect()
}

pub(crate) fn a_front_end_serves_threads() {
    run(async {
        let cluster = Cluster::start(1, 1).await;
        let (front, other) = (Front::start(&cluster).await, Front::start(&cluster).await);
        let thread = "front-steer.1";
        assert_eq!(front.get(&format!("/{thread}")).await.0, 404);
        let created = front.post("", json!({ "id": thread, "user": "ada" })).await;
        assert_eq!((created.0, &created.1["user"], &created.1["messages"]), (201, &json!("ada"), &json!(0)));
        let (status, started) =
            front.post(&format!("/{thread}/prompt"), json!({ "text": "Order tea." })).await;
        assert_eq!((status, &started["run"]), (202, &json!("front-steer.1-1")));
        let (status, busy) = other.post(&format!("/{thread}/prompt"), json!({ "text": "More." })).await;
        assert_eq!((status, &busy["error"]["kind"]), (409, &json!("runtime.busy")));
        let (status, _) = other.post(&format!("/{thread}/steer"), json!({ "text": "And milk." })).await;
        assert_eq!(status, 202);
        // A client reads some events, loses the connection, and continues at the other front end.
        let first = front.follow(thread, None, |frame| frame.event == "run_started").await;
        let after = first.last().unwrap().id;
        let second = other.follow(thread, after, is_end).await;
        let read = numbered([first, second].concat());
        let whole = numbered(front.follow(thread, None, is_end).await);
        assert_eq!(read, whole);
        assert!(whole.is_sorted_by(|one, next| one.id < next.id), "{whole:?}");
        let report = &whole.last().unwrap().data["report"];
        assert_eq!((&report["text"], &report["from"]), (&json!("Tea and milk."), &json!(0)));
        let (_, messages) = other.get(&format!("/{thread}/messages")).await;
        let messages = messages["messages"].as_array().unwrap();
        let said: Vec<_> = messages.iter().filter(|message| message["role"] == "user").collect();
        let said: Vec<_> = said.iter().map(|message| &message["content"][0]["text"]).collect();
        assert_eq!(said, ["Order tea.", "And milk."]);
        let (status, response) = front.get(&format!("/{thread}/response")).await;
        assert_eq!((status, &response["outcome"]), (200, &json!("completed")));
    });
}

pub(crate) fn a_front_end_compacts_a_thread() {
    run(async {
        let cluster = Cluster::start(1, 1).await;
        let (front, other) = (Front::start(&cluster).await, Front::start(&cluster).await);
        let thread = "front-plain.1";
        let compact = async |front: &Front, keep: &str| {
            front.post(&format!("/{thread}/compact"), json!({ "instructions": keep })).await
        };
        front.post("", json!({ "id": thread })).await;
        let say = async |text: &str| {
            front.post(&format!("/{thread}/prompt"), json!({ "text": text })).await;
            front.get(&format!("/{thread}/response")).await.1
        };
        say("Order tea.").await;
        let (status, done) = compact(&other, "tea").await;
        assert_eq!((status, &done["compacted"]), (200, &json!(false)), "{done}");
        say("And milk.").await;
        let (status, error) = compact(&other, "fail").await;
        assert_eq!((status, &error["error"]["kind"]), (409, &json!("runtime.compaction")), "{error}");
        assert_eq!(
            error["error"]["message"],
            json!("the transcript could not be made shorter: compactor: no summary")
        );
        let (status, done) = compact(&other, "tea").await;
        assert_eq!((status, &done["compacted"]), (200, &json!(true)), "{done}");
        say("And sugar.").await;
        let (_, messages) = other.get(&format!("/{thread}/messages")).await;
        let messages = messages["messages"].as_array().unwrap();
        let said: Vec<_> = messages.iter().filter(|message| message["role"] == "user").collect();
        let said: Vec<_> = said.iter().map(|message| &message["content"][0]["text"]).collect();
        assert_eq!(said, ["[tea]", "And milk.", "And sugar."]);
        // A compaction that does not end is stopped as a run is, and says so while it is at work.
        let (waits, stopped) = tokio::join!(compact(&front, "wait"), async {
            until("a compaction", async || {
                other.get(&format!("/{thread}/status")).await.1["state"] == "compacting"
            })
            .await;
            let busy = compact(&other, "tea").await;
            assert_eq!((busy.0, &busy.1["error"]["kind"]), (409, &json!("runtime.busy")));
            other.post(&format!("/{thread}/abort?wait=true"), json!({})).await
        });
        assert_eq!((waits.0, &waits.1["error"]["kind"]), (409, &json!("runtime.compaction")), "{waits:?}");
        assert_eq!(stopped.1["stopped"], json!(true));
    });
}

pub(crate) fn an_approval_outlives_its_front_end() {
    run(async {
        let cluster = Cluster::start(1, 1).await;
        let front = Front::start(&cluster).await;
        let thread = "front-approval.1";
        front.post("", json!({ "id": thread })).await;
        front.post(&format!("/{thread}/prompt"), json!({ "text": "Order tea." })).await;
        let path = format!("/{thread}/approvals");
        let is_pending = || async { front.get(&path).await.1["approvals"][0].is_object() };
        until("a pending call", is_pending).await;
        let shown = front.get(&path).await.1["approvals"][0].clone();
        assert_eq!((&shown["tool"], &shown["arguments"]), (&json!("sign"), &json!({ "what": "tea" })));
        drop(front);
        let front = Front::start(&cluster).await;
        let again = front.get(&path).await.1["approvals"][0].clone();
        assert_eq!((&again["id"], &again["digest"]), (&shown["id"], &shown["digest"]));
        let path = format!("{path}/{}", shown["id"].as_str().unwrap());
        let decide = |decision: &str, digest: &Value| {
            let (front, path) = (&front, &path);
            let body = json!({ "decision": decision, "digest": digest });
            async move { front.post(path, body).await }
        };
        let (status, error) = decide("granted", &json!("another")).await;
        assert_eq!((status, &error["error"]["kind"]), (409, &json!("runtime.other_call")));
        // What is put off waits for another decision.
        assert_eq!(decide("later", &shown["digest"]).await.0, 204);
        let is_parked = || async {
            front.get(&format!("/{thread}/approvals")).await.1["approvals"][0]["state"] == "parked"
        };
        until("a parked call", is_parked).await;
        for _ in 0..2 {
            assert_eq!(decide("granted", &shown["digest"]).await.0, 204);
        }
        let (status, error) = decide("denied", &shown["digest"]).await;
        assert_eq!((status, &error["error"]["kind"]), (409, &json!("runtime.decided")));
        let (status, response) = front.get(&format!("/{thread}/response")).await;
        assert_eq!((status, &response["text"]), (200, &json!("Signed.")));
        assert_eq!(cluster.ledger(thread).iter().filter(|line| line.starts_with("begun sign")).count(), 1);
    });
}

/// Two calls of a sub-agent are decided over AG-UI, after a restart of the server, the worker and the front end.
pub(crate) fn a_parked_sub_agent_outlives_everything() {
    run(async {
        let cluster = Cluster::start(1, 1).await;
        let front = Front::start(&cluster).await;
        let thread = "front-task.1";
        let mut body = json!({
            "threadId": thread, "runId": "r1", "state": {}, "tools": [], "context": [], "forwardedProps": {},
            "messages": [{ "id": "m1", "role": "user", "content": "Order tea." }],
        });
        let (status, events) = front.post("/../ag-ui", body.clone()).await;
        let interrupts = last_event(&events)["outcome"]["interrupts"].as_array().cloned().unwrap_or_default();
        assert_eq!((status, interrupts.len()), (200, 2), "{events}");
        drop(front);
        cluster.kill(0);
        cluster.kill_server(0);
        cluster.restart_server(0);
        cluster.restart(0);
        let front = Front::start(&cluster).await;
        let path = format!("/{thread}/approvals");
        until("the engine", || async { front.get(&path).await.1["approvals"].is_array() }).await;
        let (_, listed) = front.get(&path).await;
        let shown = &listed["approvals"][0];
        assert_eq!((&shown["state"], &shown["tool"]), (&json!("parked"), &json!("sign")));
        assert_eq!(shown["reason"], "needs a signature");
        body["runId"] = json!("r2");
        let approved = json!({ "approved": true });
        let resumed = interrupts
            .iter()
            .map(|asked| json!({ "interruptId": asked["id"], "status": "resolved", "payload": approved }));
        body["resume"] = resumed.collect();
        let (status, events) = front.post("/../ag-ui", body).await;
        let last = last_event(&events);
        assert_eq!(
            (status, &last["type"], &last["outcome"]["type"]),
            (200, &json!("RUN_FINISHED"), &json!("success"))
        );
        let (_, response) = front.get(&format!("/{thread}/response")).await;
        assert_eq!(response["text"], "Done.");
        let inside = cluster.ledger(&format!("{thread}/c-task"));
        assert_eq!(inside.iter().filter(|line| line.starts_with("begun sign")).count(), 2, "{inside:?}");
    });
}

/// The last event of a response of server-sent events.
fn last_event(events: &Value) -> Value {
    let last =
        events.as_str().and_then(|text| text.lines().rev().find_map(|line| line.strip_prefix("data: ")));
    last.map_or(Value::Null, |data| serde_json::from_str(data).unwrap())
}

pub(crate) fn a_front_end_aborts_a_run() {
    run(async {
        let cluster = Cluster::start(1, 1).await;
        let front = Front::start(&cluster).await;
        let thread = "front-abort.1";
        front.post("", json!({ "id": thread })).await;
        front.post(&format!("/{thread}/prompt"), json!({ "text": "Order tea." })).await;
        let (_, status) = front.get(&format!("/{thread}/status")).await;
        assert_eq!(status["state"], "generating");
        let (status, aborted) = front.post(&format!("/{thread}/abort?wait"), json!({})).await;
        assert_eq!((status, aborted), (202, json!({ "stopped": true })));
        let (_, response) = front.get(&format!("/{thread}/response")).await;
        assert_eq!(response["stopReason"], "cancelled");
        let (_, thread) = front.get(&format!("/{thread}")).await;
        assert_eq!((&thread["status"]["state"], &thread["waiting"]), (&json!("idle"), &json!(0)));
    });
}
