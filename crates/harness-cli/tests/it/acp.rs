//! `harness acp` as an editor starts it.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

use serde_json::{Value, json};

use crate::support::{Project, Reply, Running, Server, harness, root, within};

const EXAMPLE: &str = "fixtures/examples/customer-support/harness.yaml";

/// An editor that speaks line by line.
struct Editor {
    child: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
    asked: u64,
}

impl Editor {
    fn start(arguments: &[&str]) -> Self {
        Self::with(EXAMPLE, arguments)
    }

    fn with(descriptor: &str, arguments: &[&str]) -> Self {
        let arguments: Vec<&str> = ["acp", descriptor].iter().chain(arguments).copied().collect();
        let mut command = harness(&root(), &arguments);
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let to = child.stdin.take().unwrap();
        let from = BufReader::new(child.stdout.take().unwrap());
        let mut editor = Self { child, to, from, asked: 0 };
        let told = editor.ask("initialize", json!({ "protocolVersion": 1 }));
        assert_eq!(told.answer["result"]["protocolVersion"], 1);
        assert_eq!(told.answer["result"]["agentInfo"]["name"], "harness");
        editor
    }

    fn write(&mut self, line: &Value) {
        writeln!(self.to, "{line}").unwrap();
    }

    fn read(&mut self) -> Value {
        let mut line = String::new();
        self.from.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap_or_else(|_| panic!("not the protocol: `{line}`"))
    }

    /// Asks, and gives the answer with what was told before it.
    fn ask(&mut self, method: &str, params: Value) -> Told {
        self.asked += 1;
        let id = self.asked;
        self.write(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
        let mut updates = Vec::new();
        loop {
            let line = self.read();
            if line["id"] == id && line.get("method").is_none() {
                return Told { answer: line, updates };
            }
            updates.push(line["params"]["update"].clone());
        }
    }

    fn session(&mut self) -> String {
        let told = self.ask("session/new", json!({ "cwd": root(), "mcpServers": [] }));
        told.answer["result"]["sessionId"].as_str().unwrap().to_owned()
    }

    fn prompt(&mut self, session: &str, text: &str) -> Told {
        let prompt = json!([{ "type": "text", "text": text }]);
        self.ask("session/prompt", json!({ "sessionId": session, "prompt": prompt }))
    }

    /// Closes the editor's end, and gives the exit code.
    fn end(self) -> Option<i32> {
        let Self { mut child, to, from, .. } = self;
        drop((to, from));
        child.wait().unwrap().code()
    }
}

struct Told {
    answer: Value,
    updates: Vec<Value>,
}

impl Told {
    fn said(&self) -> String {
        let chunks = self.updates.iter().filter(|update| update["sessionUpdate"] == "agent_message_chunk");
        chunks.filter_map(|update| update["content"]["text"].as_str()).collect()
    }

    fn kinds(&self) -> Vec<&str> {
        self.updates.iter().filter_map(|update| update["sessionUpdate"].as_str()).collect()
    }
}

#[test]
fn the_example_answers_an_editor_without_a_key() {
    let code = within("a conversation", || {
        let mut editor = Editor::start(&[]);
        let session = editor.session();
        let told = editor.prompt(&session, "Where is my order 1042?");
        assert_eq!(told.answer["result"]["stopReason"], "end_turn", "{}", told.answer);
        assert!(told.said().contains("NP-77342"), "{}", told.said());
        assert!(told.kinds().contains(&"tool_call") && told.kinds().contains(&"tool_call_update"));
        editor.end()
    });
    assert_eq!(code, Some(0));
}

#[test]
fn an_editor_is_told_of_templates_and_a_second_question_is_answered() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("where.md"), "Where is my order $1?\n").unwrap();
    let templates = folder.path().to_str().unwrap().to_owned();
    within("a conversation", move || {
        let mut editor = Editor::start(&["--templates", &templates]);
        let session = editor.session();
        let told = editor.prompt(&session, "/where 1042");
        assert!(told.said().contains("NP-77342"), "{}", told.said());
        let commands = told.updates.iter().find(|told| told["sessionUpdate"] == "available_commands_update");
        assert_eq!(commands.unwrap()["availableCommands"][0]["name"], "where");
        // The conversation was handed over, and is handed over once more.
        let told = editor.prompt(&session, "Please refund order 1041.");
        assert!(told.said().contains("refunded already"), "{}", told.said());
        assert_eq!(editor.end(), Some(0));
    });
}

#[test]
fn a_conversation_is_opened_again_by_another_process() {
    let folder = tempfile::tempdir().unwrap();
    let kept = folder.path().join("sessions").to_str().unwrap().to_owned();
    within("two conversations", move || {
        let mut editor = Editor::start(&["--sessions", &kept]);
        let session = editor.session();
        editor.prompt(&session, "Where is my order 1042?");
        assert_eq!(editor.end(), Some(0));

        let mut editor = Editor::start(&["--sessions", &kept]);
        let load = |session: &str| json!({ "sessionId": session, "cwd": root(), "mcpServers": [] });
        let told = editor.ask("session/load", load(&session));
        assert!(told.answer.get("error").is_none(), "{}", told.answer);
        assert!(told.said().contains("NP-77342"), "{:?}", told.updates);
        assert_eq!(editor.ask("session/load", load("nobody")).answer["error"]["code"], -32002);
        assert_eq!(editor.end(), Some(0));
    });
}

#[test]
fn fault_33_an_editor_continues_sessions_of_another_descriptor_only_by_choice() {
    let model = Server::start(["one", "two"].map(Reply::text));
    let project = Project::plain();
    let path = |name: &str| project.path().join(name).to_str().unwrap().to_owned();
    let (descriptor, sessions, url) = (path("harness.yaml"), path("sessions"), model.url.clone());
    within("three conversations", move || {
        let common = ["--sessions", &sessions, "--base-url", &url];
        let mut editor = Editor::with(&descriptor, &common);
        let session = editor.session();
        assert_eq!(editor.prompt(&session, "hello").said(), "one");
        assert_eq!(editor.end(), Some(0));
        project.write("harness.yaml", &project.read("harness.yaml").replace("the desk", "another desk"));

        let load = json!({ "sessionId": session, "cwd": root(), "mcpServers": [] });
        let mut editor = Editor::with(&descriptor, &common);
        editor.ask("session/load", load.clone());
        let refused = editor.prompt(&session, "hello").answer;
        let message = refused["error"]["message"].as_str().unwrap();
        assert!(message.contains("the session was started under descriptor sha256:"), "{refused}");
        assert_eq!(editor.end(), Some(0));

        let mut editor = Editor::with(&descriptor, &[&common[..], &["--allow-changed"]].concat());
        editor.ask("session/load", load);
        assert_eq!(editor.prompt(&session, "hello").said(), "two");
        assert_eq!(editor.end(), Some(0));
    });
}

#[test]
fn what_is_no_message_is_answered_and_the_program_goes_on() {
    within("a conversation", || {
        let mut editor = Editor::start(&["--model", "demo/fail"]);
        editor.to.write_all(b"what?\n").unwrap();
        assert_eq!(editor.read()["error"]["code"], -32700);
        let session = editor.session();
        let servers = json!([{ "name": "files", "command": "/bin/false", "args": [], "env": [] }]);
        let told = editor.ask("session/new", json!({ "cwd": root(), "mcpServers": servers }));
        assert!(told.answer.get("error").is_none(), "{}", told.answer);
        let unknown = editor.prompt(&session, "What is the meaning of this?");
        assert!(unknown.answer["error"]["message"].is_string(), "{}", unknown.answer);
        assert_eq!(editor.end(), Some(0));
    });
}

#[test]
fn what_is_wrong_with_the_command_line_is_told_at_once() {
    let output = Running::start(harness(&root(), &["acp", "no-such-file.yaml"])).end();
    assert_eq!(output.code, Some(2));
    assert!(output.stdout.is_empty() && output.stderr.contains("no-such-file.yaml"), "{}", output.stderr);
}
