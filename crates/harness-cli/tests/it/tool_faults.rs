//! Tools that misbehave: the model is told, and the run goes on.

use serde_json::{Value, json};

use crate::support::{Answer, Project, Reply, Server};

/// What the model reads of a call of this tool.
fn result_of(pay: &str, settings: &str, arguments: &Value) -> String {
    let server = Server::start([Reply::Stream(Answer::call("pay-1", "pay", arguments)), Reply::text("ok")]);
    let project = Project::new("", pay).with_pay(settings);
    let output = project.ask(&server.url, &[]);
    assert_eq!((output.code, output.stdout.as_str()), (Some(0), "ok\n"), "{}", output.stderr);
    let text = server.requests()[1]["messages"][3]["content"].as_str().unwrap().to_owned();
    crate::support::normal(&text)
}

#[test]
fn a_tool_that_hangs() {
    let text = result_of("cat never", "    timeout: 200ms\n    input: none\n", &json!({}));
    assert!(text.contains("never"), "without the pipe it fails: {text}");
    let server = Server::start([Reply::Stream(Answer::call("pay-1", "pay", &json!({}))), Reply::text("ok")]);
    let project = Project::new("", "cat never").with_pay("    timeout: 200ms\n");
    project.pipe("never");
    let output = project.ask(&server.url, &[]);
    insta::assert_snapshot!(project.told(&output), @r"
    exit 0
    ok
    ---
    • desk
    → pay {}
    ✗ pay [TIME]: `sh` did not finish within [TIME] and was stopped; if it needs more time, raise its `timeout`
    completed (answer_finalized) · 2 iterations · 1 tool call · 200 + 8 tokens · cost 0.0002 · [TIME]
    ");
    let text = server.requests()[1]["messages"][3]["content"].as_str().unwrap().to_owned();
    insta::assert_snapshot!(crate::support::normal(&text), @r"
    `sh` did not finish within [TIME] and was stopped; if it needs more time, raise its `timeout`
    ");
}

#[test]
fn a_tool_that_prints_a_hundred_megabytes() {
    let text = result_of("yes 0123456789abcdef | head -c 100000000", "", &json!({}));
    assert!(text.len() < 100_000, "{} bytes reach the model", text.len());
    assert!(text.starts_with("0123456789abcdef"), "{}", &text[..100]);
}

#[test]
fn a_tool_that_prints_bytes() {
    let text = result_of("printf 'a\\000\\377\\376b'", "", &json!({}));
    insta::assert_snapshot!(text.escape_debug().to_string(), @r#"`sh` exited with code 0, and its result is binary output of 5 bytes, which cannot be shown; make it print UTF-8 text"#);
}

#[test]
fn a_tool_that_fails() {
    let text = result_of("echo 'out of money' >&2; exit 3", "", &json!({}));
    insta::assert_snapshot!(text, @r#"
    `sh` exited with code 3

    stderr:
    out of money
    "#);
}

#[test]
fn arguments_that_do_not_fit() {
    let settings =
        "    parameters: { type: object, properties: { cents: { type: integer } }, required: [cents] }\n";
    let text = result_of("echo '{}'", settings, &json!({ "cents": "five" }));
    insta::assert_snapshot!(text, @r#"argument `cents` is wrong: expected integer, found "five""#);
}
