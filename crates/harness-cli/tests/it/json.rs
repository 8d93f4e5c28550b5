//! The output for programs.

use serde_json::{Value, json};

use crate::support::{Answer, Project, Reply, Server};

fn lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
#[expect(clippy::too_many_lines, reason = "one case after another")]
fn every_line_is_an_object_and_the_last_one_is_the_result() {
    let server = Server::start([
        Reply::Stream(Answer::call("c1", "look", &json!({ "n": 1 }))),
        Reply::text("two words"),
    ]);
    let output = Project::plain().ask(&server.url, &["--json"]);
    let lines = lines(&output.stdout);
    let types: Vec<&str> = lines.iter().map(|line| line["type"].as_str().unwrap()).collect();
    insta::assert_snapshot!(types.join("\n"), @r#"
    run_started
    message_appended
    agent_prepared
    turn_started
    model_step_started
    delta
    delta
    delta
    message_appended
    model_step_finished
    tool_requested
    tool_started
    message_appended
    tool_finished
    model_step_started
    delta
    delta
    message_appended
    model_step_finished
    turn_finished
    run_finished
    result
    "#);
    let numbers: Vec<u64> = lines.iter().filter_map(|line| line["seq"].as_u64()).collect();
    assert!(numbers.iter().copied().eq(0..numbers.len() as u64), "{numbers:?}");
    let mut result = lines.last().unwrap().clone();
    result["elapsed"] = json!("[TIME]");
    result["usage"]["latencyMs"] = json!("[TIME]");
    result.sort_all_objects();
    insta::assert_snapshot!(serde_json::to_string_pretty(&result).unwrap(), @r#"
    {
      "agent": "desk",
      "answer": "two words",
      "elapsed": "[TIME]",
      "evidence": "none",
      "iterations": 2,
      "outcome": "completed",
      "stopReason": "answer_finalized",
      "turns": 1,
      "type": "result",
      "usage": {
        "byPurpose": {
          "answer": {
            "cost": 0.0002,
            "inputTokens": 200,
            "modelCalls": 2,
            "outputTokens": 9,
            "totalTokens": 209
          }
        },
        "cost": 0.0002,
        "inputTokens": 200,
        "latencyMs": "[TIME]",
        "modelCalls": 2,
        "outputTokens": 9,
        "toolCalls": 1
      }
    }
    "#);
}

#[test]
fn events_name_the_session_from_the_first_one_on() {
    let server = Server::start([Reply::text("ok")]);
    let project = Project::plain();
    let output = project.ask(&server.url, &["--json", "--session", "s.jsonl"]);
    let session = &project.session("s.jsonl")[0]["id"];
    assert!(session.as_str().is_some_and(|id| id.starts_with("s-")), "{session}");
    let events = lines(&output.stdout).into_iter().filter(|line| line["seq"].is_u64());
    assert!(
        events.map(|event| event["origin"]["session"].clone()).all(|of| of == *session),
        "{}",
        output.stdout
    );
}

#[test]
fn a_fault_before_the_run_is_a_line_too() {
    let output = Project::plain().harness(&["run", "missing.yaml", "hello", "--json"]);
    let lines = lines(&output.stdout);
    assert_eq!((output.code, lines.len()), (Some(2), 1));
    assert_eq!((&lines[0]["type"], &lines[0]["kind"]), (&json!("error"), &json!("descriptor.io")));
}
