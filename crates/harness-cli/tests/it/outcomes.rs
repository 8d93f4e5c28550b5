//! What a run ends with, and the exit code of it.

use serde_json::json;

use crate::support::{Answer, Project, Reply, Server};

fn pay_once() -> Reply {
    Reply::Stream(Answer::call("pay-1", "pay", &json!({})))
}

#[test]
fn a_limit_defers() {
    let server = Server::start([pay_once(), Reply::text("summed up")]);
    let project = Project::plain();
    let output = project.ask(&server.url, &["--max-tool-calls", "0", "--session", "s.jsonl"]);
    insta::assert_snapshot!(project.told(&output), @r#"
    exit 5
    summed up
    ---
    • desk
    ✗ pay did not run: This call did not run: the permitted tool calls are used up (0).
    ! stopped: tool call limit 0 (--max-tool-calls): 0 used
    deferred (max_tool_calls_reached) · 2 iterations · 0 tool calls · 200 + 9 tokens · cost 0.0002 · [TIME]
    resume with: harness run harness.yaml --session s.jsonl --resume
    "#);
}

#[test]
fn an_iteration_limit_defers_with_what_there_is() {
    let server = Server::start([pay_once(), Reply::text("summed up")]);
    let project = Project::plain();
    let output = project.ask(&server.url, &["--max-iterations", "2"]);
    insta::assert_snapshot!(project.told(&output), @r#"
    exit 5
    summed up
    ---
    • desk
    → pay {}
    ✓ pay [TIME]
    ! stopped: iteration limit 2 (--max-iterations): 2 used
    deferred (max_iterations_reached) · 2 iterations · 1 tool call · 200 + 9 tokens · cost 0.0002 · [TIME]
    "#);
}

#[test]
fn a_budget_of_the_registry_file_defers() {
    let server = Server::start([pay_once()]);
    let project = Project::plain();
    let registry = project.read("registry.yaml");
    project.write(
        "registry.yaml",
        &format!("{registry}budgets:\n  users: {{ per: user, tokens: 100, period: month }}\n"),
    );
    let output = project.ask(&server.url, &["--session", "s.jsonl"]);
    let told = project.told(&output);
    let (before, renewed) = told.split_once("it is renewed at ").expect(&told);
    let (_, after) = renewed.split_once(".000Z").expect(renewed);
    insta::assert_snapshot!(format!("{before}it is renewed at [TIME]{after}"), @r#"
    exit 5
    ---
    • desk
    → pay {}
    ✓ pay [TIME]
    ! model: the budget `users` of work without a user is used up: 107 of 100 tokens; it is renewed at [TIME]
    deferred (budget_reached) · 2 iterations · 1 tool call · 100 + 7 tokens · cost 0.0001 · [TIME]
    resume with: harness run harness.yaml --session s.jsonl --resume
    "#);
}

#[test]
fn a_time_limit_defers() {
    let (gate, _arrived) = crate::support::Gate::closed();
    let answer = Answer::text("never whole");
    let server = Server::start([Reply::Paused { answer, after: 1, gate }]);
    let project = Project::plain();
    let output = project.ask(&server.url, &["--timeout", "100ms"]);
    assert_eq!(output.code, Some(5), "{}", output.stderr);
    assert!(output.stderr.contains("timeout_reached"), "{}", output.stderr);
    assert!(output.stderr.contains("stopped: time limit of 100 ms (--timeout)\n"), "{}", output.stderr);
}

#[test]
fn a_call_that_needs_approval_waits_for_it() {
    let server = Server::start([pay_once(), Reply::text("paid")]);
    let project = Project::plain().with_pay("    requires_approval: true\n");
    let output = project.ask(&server.url, &["--session", "s.jsonl"]);
    let told = project.told(&output);
    let digest = told.split("--approve pay-1@").nth(1).and_then(|rest| rest.get(..12)).unwrap().to_owned();
    insta::assert_snapshot!(told.replace(&digest, "DIGEST"), @r"
    exit 4
    ---
    • desk
    ? approval required: `pay` needs approval
    • approval later
    ! approval required: `pay` needs approval
    awaiting_approval (approval_required) · 1 iteration · 0 tool calls · 100 + 7 tokens · cost 0.0001 · [TIME]
    pending call `pay-1`: `pay` needs approval
      pay {}
    approve with: harness resume s.jsonl --approve pay-1@DIGEST
    deny with: harness resume s.jsonl --deny pay-1@DIGEST=REASON
    change with: harness resume s.jsonl --edit pay-1@DIGEST=JSON
    ");

    let url = server.url.as_str();
    let more =
        ["run", "harness.yaml", "--resume", "--session", "s.jsonl", "--approve", "always", "--base-url", url];
    let output = project.harness(&more);
    insta::assert_snapshot!(project.told(&output), @r#"
    exit 0
    paid
    ---
    • pay did not run earlier; it is run now
    ? approval required: `pay` needs approval
    • approval granted
    → pay {}
    ✓ pay [TIME]
    • desk
    completed (answer_finalized) · 1 iteration · 1 tool call · 100 + 1 tokens · cost 0.0001 · [TIME]
    "#);
}

#[test]
fn a_call_may_be_approved_or_refused_beforehand() {
    for (approve, expected) in [("always", "{\"paid\":1}"), ("never", "the user denies all calls")] {
        let server = Server::start([pay_once(), Reply::text("done")]);
        let project = Project::plain().with_pay("    requires_approval: true\n");
        let output = project.ask(&server.url, &["--approve", approve]);
        assert_eq!(output.code, Some(0), "{}", output.stderr);
        let result = server.requests()[1]["messages"][3]["content"].as_str().unwrap().to_owned();
        assert!(result.contains(expected), "{approve}: {result}");
    }
}

#[test]
fn an_answer_that_nobody_reads_ends_quietly() {
    let server = Server::start([Reply::text("unread")]);
    let project = Project::plain();
    let arguments = ["run", "harness.yaml", "hello", "--base-url", &server.url];
    let mut command = project.command(&arguments);
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let output = command.stdout(writer).output().unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(141), "{stderr}");
    assert!(!stderr.contains("panicked") && !stderr.contains("error"), "{stderr}");
}
