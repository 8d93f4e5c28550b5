//! `harness serve`, over HTTP.

use std::os::unix::fs::PermissionsExt as _;

use reqwest::Method;
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::signal::started;
use crate::support::{Answer, Project, Reply, Running, Server, within};

/// A started `harness serve`, and who asks it.
struct Served {
    running: Running,
    url: String,
    runtime: tokio::runtime::Runtime,
    token: Option<&'static str>,
}

impl Served {
    #[track_caller]
    fn start(project: &Project, model: &Server, more: &[&str]) -> Self {
        Self::start_with(project, &[&["--base-url", &model.url], more].concat())
    }

    /// A front end of an engine, whose workers have the models.
    #[track_caller]
    fn start_with(project: &Project, options: &[&str]) -> Self {
        let arguments = ["serve", "harness.yaml", "--listen", "127.0.0.1:0"];
        let running = Running::start(project.command(&[&arguments, options].concat()));
        let (running, line) = running.line("the address of the server");
        let Some(url) = line.trim().strip_prefix("listening on ") else {
            panic!("the server says {line:?}: {:?}", running.end());
        };
        let url = url.to_owned();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        Self { running, url, runtime, token: None }
    }

    fn request(&self, method: Method, path: &str) -> reqwest::RequestBuilder {
        let client = reqwest::Client::builder().no_proxy().build().unwrap();
        let request = client.request(method, format!("{}{path}", self.url));
        match self.token {
            Some(token) => request.bearer_auth(token),
            None => request,
        }
    }

    /// The status and the JSON of an answer.
    fn send(&self, request: reqwest::RequestBuilder) -> (u16, Value) {
        let patience = std::time::Duration::from_mins(1);
        self.runtime.block_on(async {
            let response = request.timeout(patience).send().await.unwrap();
            let (status, text) = (response.status().as_u16(), response.text().await.unwrap());
            (status, serde_json::from_str(&text).unwrap_or(Value::String(text)))
        })
    }

    fn get(&self, path: &str) -> Value {
        let (status, body) = self.send(self.request(Method::GET, path));
        assert_eq!(status, 200, "{path}: {body}");
        body
    }

    fn post(&self, path: &str, body: Value) -> (u16, Value) {
        self.send(self.request(Method::POST, path).json(&body))
    }

    /// Grants a call of a list of approvals.
    fn grant(&self, approval: &Value) -> (u16, Value) {
        let [id, thread] = ["id", "thread"].map(|key| approval[key].as_str().unwrap());
        let body = json!({ "decision": "granted", "digest": approval["digest"] });
        self.post(&format!("/v1/threads/{thread}/approvals/{id}"), body)
    }

    /// Asks until something is so.
    fn wait_for(&self, path: &str, so: impl Fn(&Value) -> bool) -> Value {
        for _ in 0..100_000 {
            let found = self.get(path);
            if so(&found) {
                return found;
            }
            std::thread::yield_now();
        }
        panic!("{path} was never so");
    }

    /// Ctrl-C, and its end in order.
    fn stop(self) -> crate::support::Output {
        self.running.signal(Signal::INT);
        let output = self.running.end();
        assert_eq!(output.code, Some(0), "{}", output.stderr);
        output
    }
}

const EVENTS: &str = "/v1/threads/t/events?from=turn&until=run_end";

#[test]
fn each_run_of_a_server_leaves_a_record_or_a_message() {
    let model = Server::start([Reply::text("One."), Reply::text("Two.")]);
    let project = Project::plain();
    let served = Served::start(&project, &model, &["--run-record", "records"]);
    served.post("/v1/threads", json!({ "id": "t" }));
    let ask = |text: &str| served.post("/v1/threads/t/prompt?wait", json!({ "text": text }));
    assert_eq!(ask("first").0, 200);
    let output = project.harness(&["inspect", "records", "--json"]);
    let record: Value = serde_json::from_str(&output.stdout).unwrap();
    assert_eq!((&record["question"], &record["threadId"]), (&json!("first"), &json!("t")));

    std::fs::remove_dir_all(project.path().join("records")).unwrap();
    project.write("records", "a file");
    assert_eq!(ask("second"), (200, served.get("/v1/threads/t/response")), "the run is unaffected");
    let output = served.stop();
    assert!(
        output.stderr.contains("run record not written: cannot write run record `records/"),
        "{}",
        output.stderr
    );
}

#[test]
fn trace_has_the_runs_before_a_restart_or_says_why_not() {
    let model = Server::start(["One.", "Two.", "Three."].map(Reply::text));
    let project = Project::plain();
    let start = |more: &[&str]| Served::start(&project, &model, &[&["--sessions", "threads"], more].concat());
    let records = ["--run-record", "records"];
    let ask = |served: &Served, text: &str| {
        let (status, report) = served.post("/v1/threads/t/prompt?wait", json!({ "text": text }));
        assert_eq!(status, 200, "{report}");
    };
    let trace = |served: &Served| served.get("/v1/threads/t/trace").as_str().unwrap().to_owned();
    let served = start(&records);
    served.post("/v1/threads", json!({ "id": "t" }));
    ask(&served, "first");
    served.stop();

    let served = start(&records);
    assert!(trace(&served).contains("<h1>1 run</h1>"), "{}", trace(&served));
    ask(&served, "second");
    // Its records are complete before it is killed.
    served.running.kill();

    let served = start(&records);
    let page = trace(&served);
    assert!(["<h1>2 runs</h1>", "first", "second"].iter().all(|text| page.contains(text)), "{page}");
    served.stop();

    let served = start(&[]);
    ask(&served, "third");
    let page = trace(&served);
    assert!(page.contains("<h1>1 run</h1>") && page.contains("harness serve --run-record DIR"), "{page}");
    served.stop();
}

/// Instructions of the agent in each run so far.
fn instructions(model: &Server) -> Vec<String> {
    let of = |request: Value| request["messages"][0]["content"].as_str().unwrap().to_owned();
    model.requests().into_iter().map(of).collect()
}

#[test]
fn threads_have_context_that_survives_a_restart_and_prompts_have_their_own() {
    let model = Server::start(["One.", "Two.", "Three.", "Four."].map(Reply::text));
    let project = Project::plain();
    let context = "context:\n  fields:\n    shop: { type: string, default: none }\n  references:\n    shop: { type: string }\n";
    let descriptor = project.read("harness.yaml").replace("You are the desk.", "You serve {{context.shop}}.");
    project.write("harness.yaml", &format!("{context}{descriptor}"));
    let start = || Served::start(&project, &model, &["--sessions", "threads", "--context", "shop=all"]);
    let served = start();
    served.post("/v1/threads", json!({ "id": "t", "context": { "shop": "tents" } }));
    served.post("/v1/threads", json!({ "id": "other" }));
    let ask = |served: &Served, thread: &str, body: Value| {
        let (status, report) = served.post(&format!("/v1/threads/{thread}/prompt?wait"), body);
        assert_eq!((status, &report["outcome"]), (200, &json!("completed")), "{report}");
    };
    ask(&served, "other", json!({ "text": "hello" }));
    ask(&served, "t", json!({ "text": "hello", "context": { "shop": "boats" } }));
    served.stop();
    let served = start();
    ask(&served, "t", json!({ "text": "hello" }));
    served.post("/v1/threads/t/messages", json!({ "text": "queued" }));
    assert_eq!(served.get("/v1/threads/t/response")["text"], "Four.");
    assert_eq!(
        instructions(&model),
        ["You serve all.", "You serve boats.", "You serve tents.", "You serve tents."]
    );
    served.stop();
}

#[test]
fn a_conversation_with_an_approval_steering_and_an_abort() {
    let model = Server::start([
        Reply::Stream(Answer::call("pay-1", "pay", &json!({}))),
        Reply::text("It is paid."),
        Reply::Stream(Answer::call("look-1", "look", &json!({}))),
        Reply::text("I hurried."),
        Reply::Stream(Answer::call("look-2", "look", &json!({}))),
        Reply::text("Here I am again."),
    ]);
    let project = Project::new(
        "exec 3>alive; echo started >&3; read -r line <release; echo '{\"seen\":1}'",
        "echo '{}'",
    )
    .with_pay("    requires_approval: true\n");
    project.pipe("alive");
    project.pipe("release");
    let served = Served::start(&project, &model, &[]);
    let (status, thread) = served.post("/v1/threads", json!({ "id": "t" }));
    assert_eq!((status, &thread["status"]["state"]), (201, &json!("idle")));

    // An approval.
    let (status, begun) = served.post("/v1/threads/t/prompt", json!({ "text": "pay" }));
    assert_eq!(status, 202);
    let held = served.wait_for("/v1/threads/t/approvals", |held| held["approvals"][0]["state"] == "held");
    assert_eq!((&held["approvals"][0]["tool"], &held["approvals"][0]["run"]), (&json!("pay"), &begun["run"]));
    let (status, answer) = served.grant(&held["approvals"][0]);
    assert_eq!(status, 204, "{answer}");
    assert_eq!(served.get("/v1/threads/t/response")["text"], "It is paid.");
    let (_, events) = served.send(served.request(Method::GET, EVENTS));
    let events = events.as_str().unwrap();
    for expected in
        ["event: run_started\n", "approval_requested", "event: delta\n", "event: run_ended\n", "event: end\n"]
    {
        assert!(events.contains(expected), "{expected} in {events}");
    }

    // Steering during a call.
    served.post("/v1/threads/t/prompt", json!({ "text": "look" }));
    drop(started(&project));
    served.post("/v1/threads/t/steer", json!({ "text": "hurry" }));
    let release = project.path().join("release");
    within("the end of the call", move || std::fs::write(release, "go\n").unwrap());
    assert_eq!(served.get("/v1/threads/t/response")["text"], "I hurried.");
    let last = model.requests().pop().unwrap();
    assert_eq!(last["messages"].as_array().unwrap().last().unwrap()["content"], "hurry");

    // An abort during a call.
    served.post("/v1/threads/t/prompt", json!({ "text": "look again" }));
    drop(started(&project));
    let (status, aborted) = served.post("/v1/threads/t/abort?wait", json!({}));
    assert_eq!((status, aborted), (202, json!({ "stopped": true })));
    let (_, report) = served.post("/v1/threads/t/prompt?wait", json!({ "text": "are you there?" }));
    assert_eq!(report["text"], "Here I am again.");
    let output = served.stop();
    assert!(output.stderr.contains("stopping; press Ctrl-C again to exit immediately"), "{}", output.stderr);
}

/// A thread whose call waits for approval, after the server has ended in the given way and come back.
fn comes_back(end: impl FnOnce(Served)) {
    let model =
        Server::start([Reply::Stream(Answer::call("pay-1", "pay", &json!({}))), Reply::text("It is paid.")]);
    let project = Project::plain().with_pay("    requires_approval: true\n");
    let sessions = ["--sessions", "threads"];
    let served = Served::start(&project, &model, &sessions);
    served.post("/v1/threads", json!({ "id": "t" }));
    served.post("/v1/threads/t/prompt", json!({ "text": "pay" }));
    served.wait_for("/v1/threads/t/approvals", |held| held["approvals"][0]["state"] == "held");
    end(served);

    let served = Served::start(&project, &model, &sessions);
    let listed = served.get("/v1/threads");
    assert_eq!((&listed["threads"][0]["id"], &listed["threads"][0]["title"]), (&json!("t"), &json!("pay")));
    let parked = served.get("/v1/threads/t/approvals");
    assert_eq!(
        (&parked["approvals"][0]["callId"], &parked["approvals"][0]["state"]),
        (&json!("pay-1"), &json!("parked"))
    );
    let (status, answer) = served.grant(&parked["approvals"][0]);
    assert_eq!(status, 204, "{answer}");
    assert_eq!(served.get("/v1/threads/t/response")["text"], "It is paid.");
    let messages = served.get("/v1/threads/t/messages");
    assert_eq!(messages["total"], 4, "{messages}");
    served.stop();
}

#[test]
fn a_server_that_was_stopped_comes_back_with_its_threads_and_approvals() {
    comes_back(|served| drop(served.stop()));
}

#[test]
fn a_server_that_was_killed_comes_back_with_its_threads_and_approvals() {
    comes_back(|served| served.running.kill());
}

#[test]
fn fault_33_a_server_continues_threads_of_another_descriptor_only_by_choice() {
    let model = Server::start(["one", "two"].map(Reply::text));
    let project = Project::plain();
    let more = ["--sessions", "sessions"];
    let served = Served::start(&project, &model, &more);
    assert_eq!(served.post("/v1/threads", json!({ "id": "t" })).0, 201);
    let prompt = |served: &Served| served.post("/v1/threads/t/prompt?wait", json!({ "text": "hello" }));
    assert_eq!(prompt(&served).1["text"], "one");
    served.stop();
    project.write("harness.yaml", &project.read("harness.yaml").replace("the desk", "another desk"));
    let served = Served::start(&project, &model, &more);
    let (status, body) = prompt(&served);
    assert_eq!((status, &body["error"]["kind"]), (409, &json!("session.other_descriptor")), "{body}");
    served.stop();
    let served = Served::start(&project, &model, &[&more[..], &["--allow-changed"]].concat());
    assert_eq!(prompt(&served).1["text"], "two");
    served.stop();
}

fn private(project: &Project, name: &str, text: &str) {
    project.write(name, text);
    let mode = std::fs::Permissions::from_mode(0o600);
    std::fs::set_permissions(project.path().join(name), mode).unwrap();
}

#[test]
fn a_token_is_needed_elsewhere_and_honoured_here() {
    const TOKEN: &str = "0123456789abcdef-secret";
    let model = Server::start([Reply::text("Hello.")]);
    let project = Project::plain();
    let refused =
        project.harness(&["serve", "harness.yaml", "--listen", "0.0.0.0:0", "--base-url", &model.url]);
    assert_eq!((refused.code, refused.stdout.as_str()), (Some(2), ""));
    assert_eq!(
        refused.stderr,
        "error: cannot listen on 0.0.0.0:0 without a bearer token: any client on the network could use it\n  hint: pass \
         `--token-file FILE`, or listen on 127.0.0.1\n"
    );

    private(&project, "token", &format!("{TOKEN}\n"));
    let mut served = Served::start(&project, &model, &["--token-file", "token", "--log", "info"]);
    let (status, fault) = served.post("/v1/threads", json!({ "id": "t" }));
    assert_eq!((status, &fault["error"]["kind"]), (401, &json!("server.token")));
    served.token = Some(TOKEN);
    assert_eq!(served.post("/v1/threads", json!({ "id": "t" })).0, 201);
    let (_, report) = served.post("/v1/threads/t/prompt?wait", json!({ "text": "a secret prompt" }));
    assert_eq!(report["text"], "Hello.");
    let log = served.stop().stderr;
    assert!(log.contains("path=\"/v1/threads/t/prompt\" status=200"), "{log}");
    assert!(!log.contains(TOKEN) && !log.contains("a secret prompt"), "{log}");
}

#[track_caller]
fn check_refused(arguments: &[&str], kind: &str) {
    let project = Project::plain();
    private(&project, "weak", "1234");
    project.write("open", "0123456789abcdef");
    std::fs::set_permissions(project.path().join("open"), std::fs::Permissions::from_mode(0o644)).unwrap();
    let start = ["serve", "harness.yaml", "--listen", "127.0.0.1:0"];
    let refused = project.harness(&[&start, arguments].concat());
    assert_eq!((refused.code, refused.stdout.as_str()), (Some(2), ""), "{}", refused.stderr);
    assert!(refused.stderr.contains(kind), "{}", refused.stderr);
}

#[test]
fn what_would_not_protect_is_refused_at_the_start() {
    check_refused(&["--token-file", "weak"], "the token has fewer than 16 characters");
    check_refused(&["--token-file", "open"], "invalid token file open: other users can access it (mode 644)");
    check_refused(&["--token-file", "missing"], "invalid token file missing: cannot read it");
    check_refused(&["--allow-origin", "*"], "invalid origin `*`");
    check_refused(&["--engine", "engine"], "`engine` is not the URL of an engine");
    let front = ["--engine", "http://127.0.0.1:8080", "--relay-listen"];
    check_refused(
        &[&front[..], &["0.0.0.0:0"]].concat(),
        "pass `--relay-token-file FILE`, also to the workers",
    );
    check_refused(
        &[&front[..], &["127.0.0.1:0", "--relay-token-file", "weak"]].concat(),
        "the relay token has fewer than 16 characters",
    );
    check_refused(&["--relay-listen", "127.0.0.1:0"], "--engine <URL>");
    check_refused(
        &["--engine", "http://127.0.0.1:8080", "--max-turns", "2", "--model", "demo"],
        "pass `--model` and `--max-turns` to `harness worker`",
    );
}

#[test]
fn an_engine_that_does_not_respond_is_named() {
    let project = Project::plain();
    // Nothing can listen on port 0.
    let served = Served::start_with(&project, &["--engine", "http://127.0.0.1:0"]);
    assert_eq!(served.get("/v1/health")["status"], "ok");
    let models = served.get("/v1/models");
    let ids: Vec<_> = models["data"].as_array().unwrap().iter().map(|model| &model["id"]).collect();
    assert_eq!(ids, ["harness", "harness:desk", "harness:expert"]);
    let (status, error) = served.send(served.request(Method::GET, "/v1/threads/a"));
    assert_eq!((status, &error["error"]["kind"]), (503, &json!("engine.unreachable")), "{error}");
    let hint = error["error"]["hint"].as_str().unwrap();
    assert!(hint.starts_with("check that the engine runs, and that `--engine`"), "{error}");
    for list in ["/v1/threads", "/v1/approvals"] {
        let (status, error) = served.send(served.request(Method::GET, list));
        assert_eq!((status, &error["error"]["kind"]), (501, &json!("engine.no_admin")), "{error}");
        assert!(error["error"]["hint"].as_str().unwrap().contains("`--admin URL`"), "{error}");
    }
    served.stop();
}

#[test]
fn an_address_that_is_taken_is_told() {
    let model = Server::start([]);
    let project = Project::plain();
    let served = Served::start(&project, &model, &[]);
    let address = served.url.trim_start_matches("http://");
    let refused = project.harness(&["serve", "harness.yaml", "--listen", address, "--base-url", &model.url]);
    assert_eq!(refused.code, Some(2));
    assert!(refused.stderr.contains(&format!("cannot listen on {address}: ")), "{}", refused.stderr);
    served.stop();
}
