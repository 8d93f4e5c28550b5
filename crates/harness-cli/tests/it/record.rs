//! Recording and replay.

use serde_json::json;

use crate::support::{Answer, Project, Reply, Server};

fn recorded() -> Project {
    let server = Server::start([
        Reply::Stream(Answer::call("c1", "look", &json!({ "n": 1 }))),
        Reply::text("It was seen."),
    ]);
    let project = Project::plain();
    let output = project.ask(&server.url, &["--record", "r.jsonl"]);
    assert_eq!(output.stdout, "It was seen.\n", "{}", output.stderr);
    project
}

#[test]
fn a_replay_gives_the_same_answer_without_a_network() {
    let project = recorded();
    let output = project.harness(&["run", "harness.yaml", "hello", "--replay", "r.jsonl"]);
    insta::assert_snapshot!(project.told(&output), @r#"
    exit 0
    It was seen.
    ---
    • desk
    → look {"n":1}
    ✓ look [TIME]
    completed (answer_finalized) · 2 iterations · 1 tool call · 200 + 10 tokens · cost 0.0002 · [TIME]
    "#);
}

#[test]
fn another_message_is_no_match() {
    let project = recorded();
    let output = project.harness(&["run", "harness.yaml", "bye", "--replay", "r.jsonl"]);
    insta::assert_snapshot!(project.told(&output), @r#"
    exit 1
    ---
    • desk
    ! model: step 1 of recording `r.jsonl` does not match the request: messages[0].content: "hello" → "bye"; record it again if the change is intended
    failed (runtime_error) · 1 iteration · 0 tool calls · [TIME]
    "#);
}

#[test]
fn another_tool_result_is_no_match() {
    let project = recorded();
    project.write("look.sh", "echo '{\"seen\":2}'");
    let output = project.harness(&["run", "harness.yaml", "hello", "--replay", "r.jsonl"]);
    insta::assert_snapshot!(project.told(&output), @r#"
    exit 1
    ---
    • desk
    → look {"n":1}
    ✓ look [TIME]
    ! model: step 2 of recording `r.jsonl` does not match the request: messages[2].output: "{\"seen\":1}" → "{\"seen\":2}"; record it again if the change is intended
    failed (runtime_error) · 2 iterations · 1 tool call · 100 + 7 tokens · cost 0.0001 · [TIME]
    "#);
}

#[test]
fn what_was_not_asked_for_is_a_fault() {
    let project = recorded();
    let answer = project.read("r.jsonl");
    let mut lines: Vec<&str> = answer.lines().collect();
    let again = lines[2].replace("\"step\":2", "\"step\":3");
    lines.push(&again);
    project.write("r.jsonl", &(lines.join("\n") + "\n"));
    let output = project.harness(&["run", "harness.yaml", "hello", "--replay", "r.jsonl"]);
    insta::assert_snapshot!(project.told(&output), @r#"
    exit 1
    It was seen.
    ---
    • desk
    → look {"n":1}
    ✓ look [TIME]
    completed (answer_finalized) · 2 iterations · 1 tool call · 200 + 10 tokens · cost 0.0002 · [TIME]
    recording `r.jsonl` has 1 unused of 3 exchanges, first unused: 3; the run ended earlier than the recorded one; record it again
    "#);
}

#[test]
fn a_file_that_is_no_recording_is_left_alone() {
    let project = Project::plain();
    project.write("notes.txt", "precious\n");
    let output = project.ask("http://127.0.0.1:9/v1", &["--record", "notes.txt"]);
    insta::assert_snapshot!(project.told(&output), @r#"
    exit 2
    ---
    error: recording `notes.txt`, line 1: missing header {"kind":"harness.recording",…}
      hint: record it again, or restore the file from version control
    "#);
    assert_eq!(project.read("notes.txt"), "precious\n");
    let output = project.harness(&["run", "harness.yaml", "hello", "--replay", "missing.jsonl"]);
    insta::assert_snapshot!(project.told(&output), @r#"
    exit 2
    ---
    error: cannot read recording `missing.jsonl`: No such file or directory (os error 2)
      hint: check the path
    "#);
}

#[test]
fn no_key_reaches_a_recording_or_a_session() {
    let server = Server::start([Reply::text("ok")]);
    let project = Project::plain();
    let arguments = [
        "run",
        "harness.yaml",
        "hello",
        "--record",
        "r.jsonl",
        "--session",
        "s.jsonl",
        "--json",
        "--log",
        "trace",
        "--base-url",
        &server.url,
    ];
    let output = project.command(&arguments).env("HARNESS_API_KEY", "sk-very-secret").output().unwrap();
    let printed = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
    for text in [printed, project.read("r.jsonl"), project.read("s.jsonl")] {
        assert!(text.contains("hello") && !text.contains("sk-very-secret"), "{text}");
    }
}
