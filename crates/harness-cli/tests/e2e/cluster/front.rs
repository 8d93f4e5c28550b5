//! A front end of the engine: lists, approvals, and the routes of other protocols.

use reqwest::Method;
use rustix::process::Signal;
use serde_json::{Value, json};

use super::{Cluster, LONG, open};
use crate::support::{Answer, Gate, Reply, Running, Server, until};

/// A front end, and who asks it.
pub(super) struct Front {
    running: Running,
    url: String,
    runtime: tokio::runtime::Runtime,
}

impl Front {
    fn of(cluster: &Cluster) -> Self {
        Self::with(cluster, &[])
    }

    /// The front end to which the worker sends deltas.
    fn of_worker(cluster: &Cluster) -> Self {
        let relay = cluster.url(4);
        Self::with(cluster, &["--relay-listen", relay.trim_start_matches("http://")])
    }

    fn with(cluster: &Cluster, options: &[&str]) -> Self {
        let (engine, admin) = (cluster.url(1), cluster.url(2));
        let words =
            ["serve", "harness.yaml", "--listen", "127.0.0.1:0", "--engine", &engine, "--admin", &admin];
        let command = cluster.project.command(&[&words, options].concat());
        let (running, line) = Running::start(command).line("the address of the front end");
        Self::at(running, line.trim().strip_prefix("listening on ").unwrap())
    }

    /// The front end at a URL, of this process.
    pub(super) fn at(running: Running, url: &str) -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        Self { running, url: url.to_owned(), runtime }
    }

    /// The status and the text of an answer.
    pub(super) fn text(&self, method: Method, path: &str, body: Option<&Value>) -> (u16, String) {
        let client = reqwest::Client::builder().no_proxy().build().unwrap();
        let mut request = client.request(method, format!("{}{path}", self.url)).timeout(LONG);
        if let Some(body) = body {
            request = request.json(body);
        }
        self.runtime.block_on(async {
            let response = request.send().await.unwrap();
            (response.status().as_u16(), response.text().await.unwrap())
        })
    }

    /// The text of a streamed response. `then` is called once, when what came is as wanted.
    fn stream(&self, path: &str, body: &Value, is_so: impl Fn(&str) -> bool, then: impl FnOnce()) -> String {
        let client = reqwest::Client::builder().no_proxy().build().unwrap();
        let request = client.post(format!("{}{path}", self.url)).timeout(LONG).json(body);
        self.runtime.block_on(async {
            let (mut response, mut text, mut then) =
                (request.send().await.unwrap(), String::new(), Some(then));
            while let Some(chunk) = response.chunk().await.unwrap() {
                text.push_str(std::str::from_utf8(&chunk).unwrap());
                if is_so(&text)
                    && let Some(then) = then.take()
                {
                    then();
                }
            }
            assert!(then.is_none(), "{path}: {text}");
            text
        })
    }

    fn get(&self, path: &str) -> Value {
        let (status, text) = self.text(Method::GET, path, None);
        assert_eq!(status, 200, "{path}: {text}");
        serde_json::from_str(&text).unwrap()
    }

    pub(super) fn post(&self, path: &str, body: &Value) -> (u16, Value) {
        let (status, text) = self.text(Method::POST, path, Some(body));
        (status, serde_json::from_str(&text).unwrap_or(Value::String(text)))
    }

    pub(super) fn running(self) -> Running {
        self.running
    }

    fn stop(self) {
        self.running.signal(Signal::TERM);
        let ended = self.running.end_in(LONG);
        assert_eq!(ended.code, Some(0), "{ended:?}");
    }
}

/// Ids and titles of a list of threads.
fn names(list: &Value) -> Vec<[&str; 2]> {
    let lines = list["threads"].as_array().unwrap().iter();
    lines.map(|line| ["id", "title"].map(|key| line[key].as_str().unwrap_or("-"))).collect()
}

#[test]
fn threads_and_approvals_of_an_engine_are_listed() {
    let cluster = Cluster::parking_after("5m", "    requires_approval: true\n");
    open(cluster.project.path());
    let front = Front::of(&cluster);
    assert_eq!(front.get("/v1/threads"), json!({ "threads": [] }));
    for (thread, text) in [("bob", "Look  here."), ("ada", "Look there."), ("cy", "Please pay.")] {
        let created = json!({ "id": thread, "user": thread, "metadata": { "of": thread } });
        assert_eq!(front.post("/v1/threads", &created).0, 201);
        let wait = if thread == "cy" { "" } else { "?wait" };
        let (status, report) =
            front.post(&format!("/v1/threads/{thread}/prompt{wait}"), &json!({ "text": text }));
        assert!(status == 200 || status == 202, "{report}");
    }
    let list = front.get("/v1/threads");
    assert_eq!(names(&list), [["ada", "Look there."], ["bob", "Look here."], ["cy", "Please pay."]]);
    let ada = &list["threads"][0];
    assert_eq!((&ada["user"], &ada["metadata"]["of"]), (&json!("ada"), &json!("ada")), "{ada}");
    assert!(ada["createdAt"].is_string() && ada["updatedAt"].is_string(), "{ada}");
    let page = front.get("/v1/threads?limit=2");
    assert_eq!((names(&page).len(), &page["next"]), (2, &json!("bob")), "{page}");
    let rest = front.get("/v1/threads?limit=2&after=bob");
    assert_eq!((names(&rest), &rest["next"]), (vec![["cy", "Please pay."]], &Value::Null), "{rest}");

    let mut approvals = Value::Null;
    until(LONG, "a held call", || {
        approvals = front.get("/v1/approvals");
        approvals["approvals"][0].is_object()
    });
    let held = &approvals["approvals"][0];
    assert_eq!((&held["thread"], held["id"].is_string()), (&json!("cy"), true), "{held}");
    let path = format!("/v1/threads/cy/approvals/{}", held["id"].as_str().unwrap());
    let decided = front.post(&path, &json!({ "decision": "granted", "digest": held["digest"] }));
    assert_eq!(decided.0, 204, "{}", decided.1);
    assert_eq!(cluster.finished("cy").unwrap().answer.as_deref(), Some("Done."));
    assert_eq!(front.get("/v1/approvals"), json!({ "approvals": [] }));

    // A thread that is forgotten is not listed.
    assert_eq!(front.text(Method::DELETE, "/v1/threads/ada", None).0, 204);
    assert_eq!(names(&front.get("/v1/threads")).len(), 2);
    front.stop();
}

#[test]
fn one_of_two_prompts_at_the_same_moment_starts_the_run() {
    let cluster = Cluster::start("");
    let fronts = [Front::of(&cluster), Front::of(&cluster)];
    for at in 0..8 {
        let path = format!("/v1/threads/t{at}/prompt");
        assert_eq!(fronts[0].post("/v1/threads", &json!({ "id": format!("t{at}") })).0, 201);
        let mut statuses = std::thread::scope(|scope| {
            let path = &path;
            let sent = fronts
                .each_ref()
                .map(|front| scope.spawn(move || front.post(path, &json!({ "text": "Please pay." })).0));
            sent.map(|sent| sent.join().unwrap())
        });
        statuses.sort_unstable();
        assert_eq!(statuses, [202, 409]);
        let waiting = fronts[0].get(&format!("/v1/threads/t{at}/queue"));
        let waits = |entry: &Value| entry["state"] == "waiting";
        assert!(!waiting["entries"].as_array().unwrap().iter().any(waits), "{waiting}");
    }
    open(cluster.project.path());
    for at in 0..8 {
        assert_eq!(cluster.finished(&format!("t{at}")).unwrap().answer.as_deref(), Some("Done."));
    }
    fronts.into_iter().for_each(Front::stop);
}

#[test]
fn clients_of_other_protocols_use_an_engine() {
    let cluster = Cluster::start("");
    let front = Front::of(&cluster);
    let models = front.get("/v1/models");
    assert_eq!(models["data"][0]["id"], "harness", "{models}");

    let ask = json!({ "model": "harness", "messages": [{ "role": "user", "content": "Look." }] });
    let (status, chat) = front.post("/v1/chat/completions", &ask);
    assert_eq!((status, &chat["choices"][0]["message"]["content"]), (200, &json!("Done.")), "{chat}");
    let (status, streamed) = front.post("/v1/chat/completions", &with(&ask, "stream", true));
    let streamed = streamed.as_str().unwrap();
    assert!(
        status == 200 && streamed.contains("Done.") && streamed.ends_with("data: [DONE]\n\n"),
        "{streamed}"
    );

    let (status, one) = front.post("/v1/responses", &json!({ "model": "harness", "input": "Look." }));
    assert_eq!((status, &one["status"]), (200, &json!("completed")), "{one}");
    let next = json!({ "model": "harness", "input": "Again.", "previous_response_id": one["id"] });
    let (status, two) = front.post("/v1/responses", &next);
    assert_eq!((status, &two["status"]), (200, &json!("completed")), "{two}");

    let run = json!({
        "threadId": "ag", "runId": "run-1", "state": {}, "tools": [], "context": [], "forwardedProps": {},
        "messages": [{ "id": "m1", "role": "user", "content": "Look." }],
    });
    let (status, events) = front.post("/v1/ag-ui", &run);
    let events = events.as_str().unwrap();
    assert!(status == 200 && events.contains("RUN_FINISHED") && events.contains("Done."), "{events}");
    // Conversations of one completion do not stay.
    let list = front.get("/v1/threads");
    let ids: Vec<_> = names(&list).iter().map(|[id, _]| id.split('-').next().unwrap().to_owned()).collect();
    assert_eq!(ids.iter().filter(|id| *id == "ag").count(), 1, "{list}");
    front.stop();
}

#[test]
fn a_history_a_schema_and_no_message_at_all_reach_the_worker() {
    let cluster = Cluster::with("1s", "", Server::by(|_| Reply::text("Done.")));
    let front = Front::of(&cluster);
    let said = |role: &str, text: &str| json!({ "role": role, "content": text });
    let messages = [said("user", "Hello?"), said("assistant", "What can I do?"), said("user", "Look.")];
    let (status, chat) =
        front.post("/v1/chat/completions", &json!({ "model": "harness", "messages": messages }));
    assert_eq!((status, &chat["choices"][0]["message"]["content"]), (200, &json!("Done.")), "{chat}");
    let asked = cluster.model.requests().pop().unwrap().to_string();
    assert!(asked.contains("What can I do?"), "{asked}");

    front.post("/v1/threads", &json!({ "id": "s" }));
    let ask = json!({ "text": "Look.", "outputSchema": { "type": "object" } });
    let (status, report) = front.post("/v1/threads/s/prompt?wait", &ask);
    assert_eq!((status, &report["stopReason"]), (200, &json!("invalid_output")), "{report}");
    let (status, report) = front.post("/v1/threads/s/continue?wait", &json!({}));
    assert_eq!((status, &report["text"]), (200, &json!("Done.")), "{report}");
    front.stop();
}

/// An answer that stops behind its second word until the gate opens.
const ANSWER: &str = "Your order is on its way.";

/// The texts of the events of a stream, by a JSON pointer, joined.
fn texts(stream: &str, pointer: &str) -> String {
    let data = stream.lines().filter_map(|line| line.strip_prefix("data: "));
    let values = data.filter_map(|data| serde_json::from_str::<Value>(data).ok());
    values.filter_map(|value| value.pointer(pointer)?.as_str().map(str::to_owned)).collect()
}

#[test]
fn clients_of_other_protocols_see_an_answer_of_an_engine_while_it_comes() {
    let (gate, _arrivals) = Gate::closed();
    let own = gate.clone();
    // The first chunk is the role.
    let paused = move |_: &Value| Reply::Paused { answer: Answer::text(ANSWER), after: 3, gate: own.clone() };
    let cluster = Cluster::with("1s", "", Server::by(paused));
    let front = Front::of_worker(&cluster);
    let messages = json!([{ "id": "m1", "role": "user", "content": "Look." }]);
    let chat = json!({ "model": "harness", "stream": true, "messages": messages });
    let response = json!({ "model": "harness", "stream": true, "input": "Look." });
    let run = json!({ "threadId": "ag", "runId": "run-1", "state": {}, "tools": [], "context": [], "forwardedProps": {},
        "messages": messages });
    for (path, body, pointer) in [
        ("/v1/chat/completions", chat, "/choices/0/delta/content"),
        ("/v1/responses", response, "/delta"),
        ("/v1/ag-ui", run, "/delta"),
    ] {
        let is_half = |stream: &str| texts(stream, pointer) == "Your order ";
        let whole = front.stream(path, &body, is_half, || gate.open());
        assert_eq!(texts(&whole, pointer), ANSWER, "{path}: {whole}");
    }
    front.stop();
}

fn with(body: &Value, key: &str, value: impl Into<Value>) -> Value {
    let mut body = body.clone();
    body[key] = value.into();
    body
}
