//! Pending calls that another start of the program decides about, one by one.

use serde_json::json;

use crate::support::{Answer, Output, Project, Reply, Server};

/// Two payments that wait for approval.
fn parked() -> (Project, Server) {
    let calls = Answer::call("pay-1", "pay", &json!({ "cents": 1, "to": "alice\u{202e}" }));
    let calls = calls.and_call("pay-2", "pay", &json!({ "cents": 1_000_000 }));
    let texts = ["done", "done again"].map(Reply::text);
    let server = Server::start([Reply::Stream(calls)].into_iter().chain(texts));
    let project = Project::new("", "cat >>pay.log; echo >>pay.log").with_pay("    requires_approval: true\n");
    (project, server)
}

fn ran(project: &Project) -> String {
    if project.path().join("pay.log").exists() { project.read("pay.log") } else { String::new() }
}

fn resume(project: &Project, server: &Server, more: &[&str]) -> Output {
    project.harness(&[&["resume", "s.jsonl", "--base-url", &server.url], more].concat())
}

/// The command that a line offers, without the program's name.
fn offered(output: &Output, before: &str) -> Vec<String> {
    let line = output.stderr.lines().find_map(|line| line.strip_prefix(before));
    let line = line.unwrap_or_else(|| panic!("{before} is not in {}", output.stderr));
    line.split_whitespace().skip(1).map(str::to_owned).collect()
}

#[test]
fn fault_04_pending_calls_are_shown_whole_and_decided_one_by_one() {
    let (project, server) = parked();
    let output = project.ask(&server.url, &["--session", "s.jsonl"]);
    assert_eq!(output.code, Some(4), "{}", output.stderr);
    for part in ["pending call `pay-1`", r#"{"cents":1,"to":"alice\u{202e}"}"#, r#"{"cents":1000000}"#] {
        assert!(output.stderr.contains(part), "{part} is not in {}", output.stderr);
    }
    assert!(!output.stderr.contains('\u{202e}'), "{}", output.stderr);
    let approve = offered(&output, "approve with: ");
    let approve: Vec<&str> = approve.iter().map(String::as_str).collect();
    let output = project.harness(&[&approve, ["--base-url", server.url.as_str()].as_slice()].concat());
    assert_eq!(output.code, Some(4), "the other call stays pending: {}", output.stderr);
    assert!(output.stderr.contains("pending call `pay-2`"), "{}", output.stderr);
    assert!(!ran(&project).contains("1000000"), "{}", ran(&project));
    let output = resume(&project, &server, &["--deny", "pay-2=far too much"]);
    assert_eq!((output.code, output.stdout.as_str()), (Some(0), "done\n"), "{}", output.stderr);
    let ran = ran(&project);
    assert!(ran.contains("alice") && !ran.contains("1000000"), "{ran}");
    assert!(server.requests()[1].to_string().contains("far too much"));
}

#[test]
fn fault_04_an_edited_call_runs_with_the_new_arguments() {
    let (project, server) = parked();
    project.ask(&server.url, &["--session", "s.jsonl"]);
    let edit = ["--edit", r#"pay-2={"cents":7}"#, "--approve", "pay-1"];
    let output = resume(&project, &server, &edit);
    assert_eq!((output.code, output.stdout.as_str()), (Some(0), "done\n"), "{}", output.stderr);
    let ran = ran(&project);
    assert!(ran.contains("\"cents\":7") && ran.contains("alice") && !ran.contains("1000000"), "{ran}");
}

#[test]
fn fault_04_decisions_that_fit_no_pending_call_start_nothing() {
    let (project, server) = parked();
    project.ask(&server.url, &["--session", "s.jsonl"]);
    for (arguments, expected) in [
        (["--approve", "pay-3"].as_slice(), "pending: pay-1, pay-2"),
        (&["--approve", "pay-1", "--deny", "pay-1"], "more than one decision"),
        (&["--edit", "pay-1={"], "invalid JSON"),
        (&["--edit", "pay-1=[1]"], "not a JSON object"),
        (&["--edit", "pay-1"], "missing"),
    ] {
        let output = resume(&project, &server, arguments);
        assert!(
            output.code != Some(0) && output.stderr.contains(expected),
            "{arguments:?}: {}",
            output.stderr
        );
        assert_eq!((ran(&project).as_str(), server.requests().len()), ("", 1), "{arguments:?}");
    }
}

#[test]
fn fault_04_a_decision_about_a_call_that_is_not_the_one_shown_leaves_it_pending() {
    let (project, server) = parked();
    project.ask(&server.url, &["--session", "s.jsonl"]);
    let output = resume(&project, &server, &["--approve", "pay-1@000000000000"]);
    assert_eq!((output.code, ran(&project).as_str()), (Some(4), ""), "{}", output.stderr);
}

#[test]
fn fault_04_without_a_session_the_loss_is_said() {
    let (project, server) = parked();
    let output = project.ask(&server.url, &[]);
    assert_eq!(output.code, Some(4), "{}", output.stderr);
    assert!(output.stderr.contains("pending call `pay-1`"), "{}", output.stderr);
    assert!(output.stderr.contains("--session FILE"), "{}", output.stderr);
    assert!(!output.stderr.contains("harness resume"), "{}", output.stderr);
}

#[test]
fn fault_04_json_holds_the_pending_calls_with_their_arguments() {
    let (project, server) = parked();
    let output = project.ask(&server.url, &["--session", "s.jsonl", "--json"]);
    let last: serde_json::Value = serde_json::from_str(output.stdout.lines().last().unwrap()).unwrap();
    let last = last.to_string();
    assert!(last.contains("pay-2") && last.contains("1000000"), "{last}");
}
