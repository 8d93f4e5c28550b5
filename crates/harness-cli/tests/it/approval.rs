//! Calls that wait for approval, and are decided about by another start of the program.

use std::fs::File;

use serde_json::json;

use crate::support::{Answer, Output, Project, Reply, Running, Server, within};

const PAY: &str = "read -r arguments; echo ran >>pay.log; echo '{\"paid\":1}'";
const LOOK: &str = "read -r arguments; echo ran >>look.log; echo '{\"seen\":1}'";

/// Payments need approval.
fn project(pay: &str) -> Project {
    Project::new(LOOK, pay).with_pay("    requires_approval: true\n")
}

fn resume(project: &Project, url: &str, approve: &str) -> Output {
    let more = ["run", "harness.yaml", "--resume", "--session", "s.jsonl", "--approve", approve];
    project.harness(&[more.as_slice(), &["--base-url", url]].concat())
}

fn runs(project: &Project, log: &str) -> usize {
    if project.path().join(log).exists() { project.read(log).lines().count() } else { 0 }
}

/// The results in the session, in order.
fn results(project: &Project) -> Vec<String> {
    let lines = project.session("s.jsonl");
    let messages =
        lines.iter().map(|line| &line["message"]).filter(|message| message["role"] == "toolResult");
    messages.map(|message| message["content"][0]["text"].as_str().unwrap().to_owned()).collect()
}

/// A call of `look` that runs, and one of `pay` that waits.
fn parked(pay: &str) -> (Project, Server) {
    let both = Answer::call("pay-1", "pay", &json!({})).and_call("look-1", "look", &json!({}));
    let server = Server::start([Reply::Stream(both), Reply::text("done"), Reply::text("done again")]);
    let project = project(pay);
    let output = project.ask(&server.url, &["--session", "s.jsonl"]);
    assert_eq!(output.code, Some(4), "{}", output.stderr);
    assert_eq!((runs(&project, "pay.log"), runs(&project, "look.log")), (0, 1));
    (project, server)
}

#[track_caller]
fn check(approve: &str, paid: usize, result: &str) {
    let (project, server) = parked(PAY);
    let output = resume(&project, &server.url, approve);
    assert_eq!((output.code, output.stdout.as_str()), (Some(0), "done\n"), "{}", output.stderr);
    let found = results(&project);
    assert!(found.len() == 2 && found[0].contains(result) && found[1].contains("seen"), "{found:?}");
    assert_eq!((runs(&project, "pay.log"), runs(&project, "look.log")), (paid, 1));
    resume(&project, &server.url, approve);
    assert_eq!((runs(&project, "pay.log"), runs(&project, "look.log")), (paid, 1), "a decision counts once");
}

#[test]
fn a_parked_call_is_executed_when_it_is_approved_later() {
    check("always", 1, "paid");
}

#[test]
fn a_parked_call_is_not_executed_when_it_is_refused_later() {
    check("never", 0, "the user denies all calls");
}

#[test]
fn without_a_decision_a_parked_call_stays_parked() {
    let (project, server) = parked(PAY);
    for _ in 0..2 {
        let output = resume(&project, &server.url, "ask");
        assert_eq!(output.code, Some(4), "{}", output.stderr);
    }
    assert_eq!((runs(&project, "pay.log"), runs(&project, "look.log")), (0, 1));
    assert_eq!(resume(&project, &server.url, "always").stdout, "done\n");
    assert_eq!(runs(&project, "pay.log"), 1);
}

#[test]
fn law_5_an_approved_call_that_was_killed_is_not_repeated() {
    let pay = "read -r arguments; echo ran >>pay.log; echo started >started; cat release >/dev/null";
    let (project, server) = parked(pay);
    project.pipe("started");
    project.pipe("release");
    let arguments = ["run", "harness.yaml", "--resume", "--session", "s.jsonl", "--approve", "always"];
    let running =
        Running::start(project.command(&[arguments.as_slice(), &["--base-url", &server.url]].concat()));
    let path = project.path().join("started");
    within("the start of the tool", move || std::io::read_to_string(File::open(path).unwrap()).unwrap());
    running.kill();
    // The tool has ended with the program, or ends now; opened for both ends, the pipe needs no reader.
    let path = project.path().join("release");
    within("the end of the tool", move || drop(File::options().read(true).write(true).open(path).unwrap()));

    let output = resume(&project, &server.url, "always");
    assert_eq!(output.code, Some(0), "{}", output.stderr);
    let found = results(&project);
    assert!(found[0].contains("may have taken effect"), "{found:?}");
    assert_eq!((runs(&project, "pay.log"), runs(&project, "look.log")), (1, 1));
}

#[test]
fn fault_06_a_completed_run_is_not_resumed() {
    let (project, server) = parked(PAY);
    assert_eq!(resume(&project, &server.url, "always").code, Some(0));
    let before = (project.read("s.jsonl"), server.requests().len());
    let run = ["run", "harness.yaml", "--resume", "--session", "s.jsonl"];
    for command in [["resume", "s.jsonl"].as_slice(), &run] {
        let output =
            project.harness(&[command, &["--approve", "always", "--base-url", &server.url]].concat());
        assert_eq!(
            (output.code, output.stdout.as_str(), output.stderr.as_str()),
            (Some(0), "", "nothing to resume: the run completed (answer_finalized)\n"),
            "{command:?}"
        );
    }
    let json = [&run[..], &["--json", "--base-url", &server.url]].concat();
    let output = project.harness(&json);
    assert_eq!(
        (output.code, output.stdout.trim_end()),
        (
            Some(0),
            r#"{"type":"nothing_to_resume","message":"nothing to resume: the run completed (answer_finalized)"}"#
        )
    );
    assert_eq!((project.read("s.jsonl"), server.requests().len()), before, "nothing was asked or stored");
    assert_eq!(runs(&project, "pay.log"), 1);
    let output = project.harness(&["resume", "s.jsonl", "and now?", "--base-url", &server.url]);
    assert_eq!((output.code, output.stdout.as_str()), (Some(0), "done again\n"), "{}", output.stderr);
}

#[test]
fn fault_03_calls_of_one_answer_with_one_id_are_two_calls() {
    let both = Answer::call("c1", "look", &json!({})).and_call("c1", "pay", &json!({}));
    let server = Server::start([Reply::Stream(both), Reply::text("done")]);
    let project = project(PAY);
    let output = project.ask(&server.url, &["--session", "s.jsonl"]);
    assert_eq!(output.code, Some(4), "{}", output.stderr);
    assert_eq!(resume(&project, &server.url, "always").stdout, "done\n");
    assert_eq!((runs(&project, "pay.log"), runs(&project, "look.log")), (1, 1));
    let last = server.requests().pop().unwrap();
    let messages = last["messages"].as_array().unwrap();
    let asked: Vec<&serde_json::Value> =
        messages.iter().filter_map(|message| message["tool_calls"].as_array()).flatten().collect();
    let ids: Vec<&serde_json::Value> = asked.iter().map(|call| &call["id"]).collect();
    let answered: Vec<&serde_json::Value> = messages
        .iter()
        .filter(|message| message["role"] == "tool")
        .map(|result| &result["tool_call_id"])
        .collect();
    assert_eq!(ids, [&json!("c1"), &json!("c1-2")]);
    assert_eq!(ids, answered);
}
