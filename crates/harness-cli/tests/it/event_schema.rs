//! The JSON Schema of `harness run --json`, its page, and real output that matches it.

use std::collections::BTreeSet;

use expect_test::expect_file;
use serde_json::{Value, json};

use crate::support::{Answer, Output, Project, Reply, Server};

/// The schema as the program prints it.
fn schema() -> String {
    Project::plain().harness(&["schema", "--events"]).stdout
}

#[test]
fn stored_schema_and_page_are_current() {
    let schema = schema();
    expect_file!["../../../../docs/reference/events.schema.json"].assert_eq(&schema);
    let page = crate::event_page::page(&serde_json::from_str(&schema).unwrap());
    expect_file!["../../../../docs/reference/events.md"].assert_eq(&page);
}

/// Checks every line of a run against the schema, and returns the kinds of lines.
#[track_caller]
fn check(output: &Output) -> BTreeSet<String> {
    let validator = jsonschema::validator_for(&serde_json::from_str(&schema()).unwrap()).unwrap();
    let lines: Vec<Value> = output.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(!lines.is_empty(), "{}", output.stderr);
    for line in &lines {
        assert!(validator.is_valid(line), "{line:#}");
        let mut damaged = line.clone();
        damaged["type"] = json!("no_such_type");
        assert!(!validator.is_valid(&damaged), "every kind is listed");
    }
    lines.iter().map(|line| line["type"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn lines_of_runs_match_the_schema() {
    let server = Server::start([
        Reply::Stream(Answer::call("c1", "look", &json!({ "n": 1 }))),
        Reply::Stream(Answer::call("c2", "handoff_to_expert", &json!({}))),
        Reply::text("done"),
    ]);
    let kinds = check(&Project::new("echo no >&2; exit 3", "").ask(&server.url, &["--json"]));
    for kind in ["tool_failed", "handed_off", "delta", "run_finished", "result"] {
        assert!(kinds.contains(kind), "{kind}: {kinds:?}");
    }
}

#[test]
fn lines_of_stopped_runs_match_the_schema() {
    let look = || Server::start([Reply::Stream(Answer::call("c1", "look", &json!({})))]);
    let kinds = check(&Project::plain().ask(&look().url, &["--json", "--max-iterations", "1"]));
    assert!(kinds.contains("limit_reached"), "{kinds:?}");
    let pay = Server::start([Reply::Stream(Answer::call("c1", "pay", &json!({ "n": 1 })))]);
    let project = Project::plain().with_pay("    requires_approval: true\n");
    let kinds = check(&project.ask(&pay.url, &["--json", "--session", "s.jsonl"]));
    assert!(kinds.contains("approval_requested"), "{kinds:?}");
    let refusing = Server::start([Reply::status(401, "{}")]);
    let kinds = check(&Project::plain().ask(&refusing.url, &["--json"]));
    assert!(kinds.contains("model_step_failed"), "{kinds:?}");
}

#[test]
fn lines_without_a_run_match_the_schema() {
    let project = Project::plain();
    let kinds = check(&project.harness(&["run", "no.yaml", "hello", "--json"]));
    assert_eq!(kinds, BTreeSet::from(["error".to_owned()]));
    let server = Server::start([Reply::text("done")]);
    project.ask(&server.url, &["--session", "s.jsonl"]);
    let kinds = check(&project.harness(&["resume", "s.jsonl", "--json", "--base-url", &server.url]));
    assert_eq!(kinds, BTreeSet::from(["nothing_to_resume".to_owned()]));
}
