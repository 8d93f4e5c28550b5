//! A session after `kill -9`: every call is answered exactly once, and no unsafe call runs twice.

use std::collections::HashMap;
use std::fs::File;
use std::path::Path;

use serde_json::{Value, json};

use crate::support::{Answer, Gate, Output, Project, Reply, Running, Server, within};

/// Notes that it runs, tells the test, and goes on when the test lets it.
const BLOCKING: &str = "\
read -r arguments
echo ran >>pay.log
echo started >started
cat release >/dev/null
echo '{\"paid\":1}'
";

/// Notes that it runs.
const NOTING: &str = "\
read -r arguments
echo ran >>look.log
echo '{\"seen\":1}'
";

fn start(project: &Project, server: &Server) -> Running {
    let arguments = ["run", "harness.yaml", "hello", "--session", "s.jsonl", "--base-url", &server.url];
    Running::start(project.command(&arguments))
}

fn resume(project: &Project, url: &str) -> Output {
    project.harness(&["run", "harness.yaml", "--resume", "--session", "s.jsonl", "--base-url", url])
}

/// Waits until a tool has written to a pipe.
fn started(project: &Project) {
    let path = project.path().join("started");
    within("the start of the tool", move || std::io::read_to_string(File::open(path).unwrap()).unwrap());
}

/// Lets a tool that outlived its program end. On Linux none does.
fn release(folder: &Path) {
    if cfg!(target_os = "linux") {
        return;
    }
    let path = folder.join("release");
    within("the end of the tool", move || drop(File::options().write(true).open(path).unwrap()));
}

/// The messages of a session, and for each call its results.
fn calls(project: &Project) -> HashMap<String, Vec<Value>> {
    let mut calls = HashMap::<String, Vec<Value>>::new();
    for line in project.session("s.jsonl") {
        let message = &line["message"];
        for block in message["content"].as_array().into_iter().flatten() {
            if block["type"] == "toolCall" {
                let before = calls.insert(block["id"].as_str().unwrap().to_owned(), Vec::new());
                assert!(before.is_none(), "{block} was asked for twice");
            }
        }
        if message["role"] == "toolResult" {
            let id = message["toolCallId"].as_str().unwrap();
            calls.get_mut(id).expect("a result follows its call").push(message.clone());
        }
    }
    calls
}

#[track_caller]
fn check_one_result_each(project: &Project, expected: &[(&str, &str)]) {
    let calls = calls(project);
    assert_eq!(calls.len(), expected.len(), "{calls:?}");
    for (id, text) in expected {
        let results = &calls[*id];
        assert_eq!(results.len(), 1, "{id}: {results:?}");
        let said = results[0]["content"][0]["text"].as_str().unwrap();
        assert!(said.contains(text), "{id} was answered with {said}");
    }
}

fn runs(project: &Project, log: &str) -> usize {
    if project.path().join(log).exists() { project.read(log).lines().count() } else { 0 }
}

#[test]
fn killed_while_the_first_answer_is_coming() {
    let (gate, arrived) = Gate::closed();
    let answer = Answer::text("half an answer");
    let server = Server::start([Reply::Paused { answer, after: 2, gate }, Reply::text("the answer")]);
    let project = Project::plain();
    let running = start(&project, &server);
    within("the request", move || arrived.recv().unwrap());
    running.kill();

    let output = resume(&project, &server.url);
    assert_eq!((output.code, output.stdout.as_str()), (Some(0), "the answer\n"), "{}", output.stderr);
    let messages = server.requests()[1]["messages"].as_array().unwrap().len();
    assert_eq!(messages, 2, "the instructions and the question, and nothing of the lost answer");
    check_one_result_each(&project, &[]);
}

#[test]
fn killed_while_an_unsafe_call_runs() {
    let server = Server::start([
        Reply::Stream(Answer::call("look-1", "look", &json!({})).and_call(
            "pay-1",
            "pay",
            &json!({ "cents": 5 }),
        )),
        Reply::text("I am not sure whether it was paid."),
    ]);
    let project = Project::new(NOTING, BLOCKING);
    project.pipe("started");
    project.pipe("release");
    let running = start(&project, &server);
    started(&project);
    running.kill();
    release(project.path());

    let output = resume(&project, &server.url);
    assert_eq!(output.code, Some(0), "{}", output.stderr);
    assert!(output.stderr.contains("pay started earlier and may have had effects"), "{}", output.stderr);
    check_one_result_each(&project, &[("look-1", "seen"), ("pay-1", "may have taken effect")]);
    assert_eq!(runs(&project, "pay.log"), 1, "an unsafe call is not repeated");
}

#[test]
fn killed_while_a_pure_call_runs_which_is_then_repeated() {
    let server =
        Server::start([Reply::Stream(Answer::call("look-1", "look", &json!({}))), Reply::text("Seen.")]);
    // The first run blocks, the second one does not.
    let look = "\
read -r arguments
echo ran >>look.log
if [ \"$(wc -l <look.log)\" -eq 1 ]; then echo started >started; cat release >/dev/null; fi
echo '{\"seen\":1}'
";
    let project = Project::new(look, "");
    project.pipe("started");
    project.pipe("release");
    let running = start(&project, &server);
    started(&project);
    running.kill();
    release(project.path());

    let output = resume(&project, &server.url);
    assert_eq!(output.code, Some(0), "{}", output.stderr);
    check_one_result_each(&project, &[("look-1", "seen")]);
    assert_eq!(runs(&project, "look.log"), 2, "a pure call may be repeated");
}

#[test]
fn killed_between_the_results_and_the_next_answer() {
    let (gate, arrived) = Gate::closed();
    let late = Answer::text("lost");
    let server = Server::start([
        Reply::Stream(Answer::call("pay-1", "pay", &json!({})).and_call("look-1", "look", &json!({}))),
        Reply::Paused { answer: late, after: 0, gate },
        Reply::text("Paid and seen."),
    ]);
    let project = Project::new(NOTING, "read -r arguments; echo ran >>pay.log; echo '{\"paid\":1}'");
    let running = start(&project, &server);
    within("the second request", move || arrived.recv().unwrap());
    running.kill();

    let output = resume(&project, &server.url);
    assert_eq!((output.code, output.stdout.as_str()), (Some(0), "Paid and seen.\n"), "{}", output.stderr);
    check_one_result_each(&project, &[("pay-1", "paid"), ("look-1", "seen")]);
    assert_eq!((runs(&project, "pay.log"), runs(&project, "look.log")), (1, 1));
}

#[test]
fn killed_after_a_handoff_the_new_agent_goes_on() {
    let (gate, arrived) = Gate::closed();
    let server = Server::start([
        Reply::Stream(Answer::call("h-1", "handoff_to_expert", &json!({}))),
        Reply::Paused { answer: Answer::text("lost"), after: 0, gate },
        Reply::text("The expert speaks."),
    ]);
    let project = Project::plain();
    let running = start(&project, &server);
    within("the second request", move || arrived.recv().unwrap());
    running.kill();

    let output = resume(&project, &server.url);
    assert_eq!(output.stdout, "The expert speaks.\n", "{}", output.stderr);
    assert_eq!(server.requests()[2]["messages"][0]["content"], "You are the expert.");
}

#[test]
fn a_new_message_after_a_kill_leaves_nothing_open() {
    let server = Server::start([
        Reply::Stream(Answer::call("pay-1", "pay", &json!({}))),
        Reply::text("Something else then."),
    ]);
    let project = Project::new("", BLOCKING);
    project.pipe("started");
    project.pipe("release");
    let running = start(&project, &server);
    started(&project);
    running.kill();
    release(project.path());

    let output = project.ask(&server.url, &["--session", "s.jsonl"]);
    assert_eq!(output.code, Some(0), "{}", output.stderr);
    check_one_result_each(&project, &[("pay-1", "may have taken effect")]);
    assert_eq!(runs(&project, "pay.log"), 1);
}

#[test]
fn a_line_that_was_not_written_to_its_end_is_left_out_and_said_so() {
    let server = Server::start([Reply::text("one"), Reply::text("two")]);
    let project = Project::plain();
    project.ask(&server.url, &["--session", "s.jsonl"]);
    let whole = project.read("s.jsonl");
    project.write("s.jsonl", &format!("{whole}{{\"type\":\"mess"));
    let output = project.ask(&server.url, &["--session", "s.jsonl"]);
    assert_eq!((output.code, output.stdout.as_str()), (Some(0), "two\n"), "{}", output.stderr);
    let lines = whole.lines().count() + 1;
    let note = format!("line {lines} of the session is incomplete; 13 bytes were skipped\n");
    assert!(output.stderr.contains(&note), "{}", output.stderr);
    assert!(project.read("s.jsonl").starts_with(&whole), "what was acknowledged is still there");
}

#[test]
fn an_idempotent_call_is_repeated_with_the_same_key() {
    let server =
        Server::start([Reply::Stream(Answer::call("pay-1", "pay", &json!({}))), Reply::text("Paid once.")]);
    let pay = "\
echo \"$HARNESS_IDEMPOTENCY_KEY\" >>pay.log
if [ \"$(wc -l <pay.log)\" -eq 1 ]; then echo started >started; cat release >/dev/null; fi
echo '{\"paid\":1}'
";
    let project = Project::new("", pay);
    project.write("registry.yaml", &project.read("registry.yaml").replace("unsafe", "idempotent"));
    project.pipe("started");
    project.pipe("release");
    let running = start(&project, &server);
    started(&project);
    running.kill();
    release(project.path());

    let output = resume(&project, &server.url);
    assert_eq!(output.code, Some(0), "{}", output.stderr);
    check_one_result_each(&project, &[("pay-1", "paid")]);
    let log = project.read("pay.log");
    let keys: Vec<&str> = log.lines().collect();
    assert_eq!(keys.len(), 2);
    assert_eq!(keys[0], keys[1]);
}
