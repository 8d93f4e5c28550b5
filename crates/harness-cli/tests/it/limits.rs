//! Limits of a run, as a user meets them.

use serde_json::{Value, json};

use crate::support::{Answer, Project, Reply, Running, Server};

fn call(id: usize) -> Answer {
    Answer::call(&format!("pay-{id}"), "pay", &json!({ "amount": id }))
}

/// The answer of a server that reports neither usage nor cost.
fn silent(answer: &Answer) -> Reply {
    let body = answer.body("scripted");
    let told = body.split_inclusive("\n\n").filter(|event| !event.contains("\"usage\""));
    let body = String::leak(told.collect());
    Reply::Status { status: 200, headers: vec![("content-type", "text/event-stream")], body }
}

fn result(stdout: &str) -> Value {
    let last = stdout.lines().last().unwrap_or_default();
    serde_json::from_str(last).unwrap_or_else(|fault| panic!("{stdout}: {fault}"))
}

#[test]
fn fault_17_a_token_limit_binds_although_the_server_reports_no_usage() {
    let server = Server::start((0..40).map(|id| silent(&call(id))));
    let project = Project::plain();
    let output = project.ask(&server.url, &["--max-tokens", "400", "--max-iterations", "40", "--json"]);
    assert_eq!(output.code, Some(5), "{}", output.stderr);
    let result = result(&output.stdout);
    assert_eq!(result["stopReason"], "budget_reached", "{result}");
    let used = result["usage"]["estimatedTokens"].as_u64().unwrap();
    assert!((50..=400).contains(&used), "{result}");
    assert_eq!(result["usage"]["byPurpose"]["answer"]["estimatedTokens"], used, "{result}");
}

#[test]
fn fault_17_a_cost_limit_without_a_cost_is_said_once() {
    let server = Server::start([silent(&call(1)), silent(&call(2)), silent(&Answer::text("done"))]);
    let project = Project::plain();
    let output = project.ask(&server.url, &["--max-cost", "0.01"]);
    assert_eq!(output.code, Some(0), "{}", output.stderr);
    let said = output.stderr.matches("--max-cost has no effect").count();
    assert_eq!(said, 1, "{}", output.stderr);
    let server = Server::start([Reply::text("done")]);
    let output = project.ask(&server.url, &["--max-cost", "0.01"]);
    assert!(!output.stderr.contains("--max-cost"), "{}", output.stderr);
}

#[test]
fn fault_18_a_token_limit_says_what_the_next_call_needs() {
    let server = Server::start((0..3).map(|id| Reply::Stream(call(id))));
    let project = Project::plain();
    let output = project.ask(&server.url, &["--max-tokens", "150"]);
    assert_eq!(output.code, Some(5), "{}", output.stderr);
    let said = "stopped: token limit 150 (--max-tokens): 107 used, the next call needs about 107\n";
    assert!(output.stderr.contains(said), "{}", output.stderr);
}

#[test]
fn fault_19_an_iteration_limit_reports_the_iterations_that_were_made() {
    let server = Server::start([Reply::Stream(call(1)), Reply::Stream(call(2))]);
    let project = Project::plain();
    let output = project.ask(&server.url, &["--max-iterations", "1", "--json"]);
    let result = result(&output.stdout);
    assert_eq!((&result["iterations"], &result["usage"]["modelCalls"]), (&json!(1), &json!(1)), "{result}");
}

#[test]
fn answer_matches_the_schema_of_the_command_line() {
    let project = Project::plain();
    project.write(
        "answer.json",
        r#"{"type":"object","required":["euros"],"properties":{"euros":{"type":"integer"}}}"#,
    );
    let server = Server::start([Reply::text("90 euros"), Reply::text("{\"euros\":90}")]);
    let output = project.ask(&server.url, &["--output-schema", "answer.json"]);
    assert_eq!((output.code, output.stdout.as_str()), (Some(0), "{\"euros\":90}\n"), "{}", output.stderr);
    let server = Server::start([Reply::text("90 euros"), Reply::text("{}")]);
    let output = project.ask(&server.url, &["--output-schema", "answer.json", "--json"]);
    assert_eq!(result(&output.stdout)["stopReason"], "invalid_output", "{}", output.stderr);
    project.write("answer.json", "[]");
    let output = project.ask("http://127.0.0.1:9", &["--output-schema", "answer.json"]);
    assert_eq!(output.code, Some(2));
    assert!(output.stderr.contains("invalid output schema answer.json: not a mapping"), "{}", output.stderr);
}

/// A project whose desk hands over to a clerk that answers by a schema, with one model call for each of these texts.
#[track_caller]
fn check_typed(arguments: &[&str], entry: &str, replies: &[&str], expected: (i32, &str)) {
    let descriptor = format!(
        "runtime: {{ entry_agent: {entry} }}
agent_defaults: {{ model: scripted }}
agents:
  desk: {{ instructions: Route., handoffs: [clerk] }}
  clerk:
    instructions: Quote a price.
    handoffDescription: Quotes prices.
    output: {{ type: object, properties: {{ euros: {{ type: number }} }}, required: [euros] }}
"
    );
    let project = Project::of(&[("harness.yaml", &descriptor)]);
    let server = Server::start(replies.iter().map(|text| Reply::text(text)));
    let mut command = project.command(&[arguments, &["--base-url", &server.url]].concat());
    command.env("HOME", project.path());
    let output = Running::start_with_input(command, b"Quote a price\n").end();
    assert_eq!((output.code, output.stdout.as_str()), (Some(expected.0), expected.1), "{}", output.stderr);
}

#[test]
fn only_an_accepted_answer_is_printed_when_an_agent_has_an_output_schema() {
    let run = ["run", "harness.yaml", "Quote a price"];
    let chat = ["chat", "harness.yaml"];
    for program in [&run[..], &chat] {
        check_typed(program, "clerk", &["90 euros", "{\"euros\":90}"], (0, "{\"euros\":90}\n"));
        check_typed(program, "clerk", &["90 euros", "ninety"], (1, ""));
        // The desk has no schema, and its text is the answer.
        check_typed(program, "desk", &["Which price?"], (0, "Which price?\n"));
    }
}
