//! `harness session`: looking at stored conversations, and keeping them in order.

use serde_json::{Value, json};

use crate::support::{Project, Reply, Server};

/// Two branches with a call, a compaction and a label.
const CHAT: &str = r#"{"type":"session","format":"harness.session","version":1,"id":"chat-1","created_at":"2026-01-01T00:00:00.000Z"}
{"type":"message","id":"e1","parent_id":null,"at":"2026-01-01T00:00:00.000Z","message":{"role":"user","content":[{"type":"text","text":"Where is my order?"}]}}
{"type":"message","id":"e2","parent_id":"e1","at":"2026-01-01T00:00:01.000Z","message":{"role":"assistant","content":[{"type":"toolCall","id":"c1","name":"look","arguments":{"n":1}}],"usage":{"input":100,"output":7,"cacheRead":0,"cacheWrite":0,"totalTokens":107},"stopReason":"toolUse"}}
{"type":"message","id":"e3","parent_id":"e2","at":"2026-01-01T00:00:02.000Z","message":{"role":"toolResult","toolCallId":"c1","toolName":"look","content":[{"type":"text","text":"on its way\nsince today"}],"isError":false}}
{"type":"compaction","id":"e4","parent_id":"e3","at":"2026-01-01T00:00:03.000Z","summary":"An order was asked for.","first_kept_id":"e3","tokens_before":900,"tokens_after":90,"plan":[{"kept":{"first":"e2"}}]}
{"type":"message","id":"e5","parent_id":"e4","at":"2026-01-01T00:00:04.000Z","message":{"role":"assistant","content":[{"type":"text","text":"It is on its way."}],"stopReason":"stop"}}
{"type":"message","id":"e6","parent_id":"e1","at":"2026-01-01T00:00:05.000Z","message":{"role":"user","content":[{"type":"text","text":"Never mind.\u001b[2J"}]}}
{"type":"label","id":"e7","parent_id":"e6","at":"2026-01-01T00:00:06.000Z","target_id":"e1","label":"start"}
"#;

/// The tree of another program.
const PI: &str = r#"{"type":"session","version":3,"id":"p","timestamp":"2030-01-01T00:00:00.000Z","cwd":"/w"}
{"type":"message","id":"0a0b0c01","parentId":null,"timestamp":"2030-01-01T00:00:01.000Z","message":{"role":"user","content":"hello"}}
"#;

fn project() -> Project {
    let project = Project::plain();
    project.write("chat.jsonl", CHAT);
    project
}

/// What the program prints.
fn told(project: &Project, arguments: &[&str]) -> String {
    project.told(&project.harness(&[&["session"], arguments].concat()))
}

fn parsed(project: &Project, arguments: &[&str]) -> Value {
    let output = project.harness(&[&["session"], arguments].concat());
    assert_eq!(output.code, Some(0), "{}", output.stderr);
    serde_json::from_str(&output.stdout).unwrap()
}

#[test]
fn a_session_is_shown() {
    insta::assert_snapshot!(told(&project(), &["show", "chat.jsonl"]), @r"
    exit 0
    chat-1
    7 entries · 2 branches · from harness

    e1 user
        Where is my order?
        [start]
        another branch starts with e2

    e6 user
        Never mind.�[2J
    ---
    ");
}

#[test]
fn a_branch_is_shown_with_its_calls_and_compactions() {
    insta::assert_snapshot!(told(&project(), &["show", "chat.jsonl", "--leaf", "e5"]), @r#"
    exit 0
    chat-1
    7 entries · 2 branches · from harness

    e1 user
        Where is my order?
        [start]
        another branch starts with e6

    e2 assistant · 100 + 7 tokens
        → look {"n":1}

    e3 look answered
        on its way
        since today

    e4 the view was compacted: 900 → 90 tokens, kept from e3 on
        An order was asked for.

    e5 assistant
        It is on its way.
    ---
    "#);
}

#[test]
fn a_session_is_shown_to_programs() {
    let shown = parsed(&project(), &["show", "chat.jsonl", "--json"]);
    assert_eq!(shown["leaves"], json!(["e5", "e7"]));
    assert_eq!(shown["labels"], json!({"e1": "start"}));
    assert_eq!(shown["entries"].as_array().unwrap().len(), 7);
    assert_eq!(shown["entries"][1]["message"]["content"][0]["name"], "look");
    assert_eq!(shown["entries"][3]["tokens_after"], 90);
}

#[test]
fn sessions_of_a_folder_are_listed_with_what_is_wrong_with_them() {
    let project = project();
    project.write("a-pi.jsonl", PI);
    project.write("broken.jsonl", "nonsense\n{}\n");
    insta::assert_snapshot!(told(&project, &["list"]), @r##"
    exit 0
    a-pi.jsonl
      hello
      1 message · 2030-01-01T00:00:01.000Z · from pi, version 3
    broken.jsonl
      session.corrupt_line: session `./broken.jsonl`, line 1 (byte 0): a JSON object was expected
    chat.jsonl
      Where is my order?
      2 messages · 2 branches · 2026-01-01T00:00:05.000Z
    ---
    "##);
    let listed = parsed(&project, &["list", "--json"]);
    assert_eq!(listed[1]["error"]["kind"], "session.corrupt_line");
    assert_eq!(listed[2]["session"]["branches"], 2);
}

#[test]
fn a_damaged_session_is_repaired() {
    let project = project();
    project.write("chat.jsonl", &CHAT.replace(r#"{"type":"message","id":"e3""#, r#"{"type":"mess"#));
    insta::assert_snapshot!(told(&project, &["show", "chat.jsonl"]), @r##"
    exit 2
    ---
    error: session `chat.jsonl`, line 4 (byte 560): expected `,` or `}`, at byte 16 of the line
      hint: `harness session repair` moves such lines to a separate file; the session is unchanged
    "##);
    insta::assert_snapshot!(told(&project, &["repair", "chat.jsonl"]), @r"
    exit 0
    line 4 (byte 560, 209 bytes): expected `,` or `}`, at byte 16 of the line
    removed 1, relinked 1, kept 6 entries; the removed lines are in [DIR]/chat.jsonl.quarantine
    ---
    ");
    insta::assert_snapshot!(told(&project, &["repair", "chat.jsonl"]), @r"
    exit 0
    no damage found: 6 entries; session unchanged
    ---
    ");
    assert_eq!(parsed(&project, &["repair", "chat.jsonl", "--json"])["kept"], 6);
}

#[test]
fn a_session_is_exported_and_imported() {
    let project = project();
    project.write("pi.jsonl", PI);
    assert_eq!(told(&project, &["export", "chat.jsonl"]), format!("exit 0\n{CHAT}---\n"));
    assert_eq!(told(&project, &["export", "pi.jsonl", "-o", "ours.jsonl"]), "exit 0\n---\n");
    assert_eq!(project.session("ours.jsonl")[1]["message"]["content"], "hello");
    insta::assert_snapshot!(told(&project, &["export", "pi.jsonl", "-o", "ours.jsonl"]), @r##"
    exit 2
    ---
    error: session `ours.jsonl` already exists
      hint: choose another path, or remove that file first
    "##);
    insta::assert_snapshot!(told(&project, &["export", "pi.jsonl", "--format", "markdown"]), @r##"
    exit 0
    # p

    ## User

    hello
    ---
    "##);
}

#[test]
fn a_branch_becomes_a_session() {
    let project = project();
    insta::assert_snapshot!(told(&project, &["fork", "chat.jsonl", "fork.jsonl", "--at", "e2"]), @r##"
    exit 0
    fork.jsonl: 3 entries
    ---
    "##);
    let fork = project.session("fork.jsonl");
    assert_eq!(fork[0]["parent_session"], "chat.jsonl");
    assert_eq!(fork[3]["label"], "start");
}

#[test]
fn an_entry_is_labelled() {
    let project = project();
    insta::assert_snapshot!(told(&project, &["label", "chat.jsonl", "e5", "the answer"]), @r"
    exit 0
    e5 named `the answer`
    ---
    ");
    insta::assert_snapshot!(told(&project, &["label", "chat.jsonl", "e1"]), @r##"
    exit 0
    e1 has no name
    ---
    "##);
    let shown = parsed(&project, &["show", "chat.jsonl", "--json"]);
    assert_eq!(shown["labels"], json!({"e5": "the answer"}));
}

#[test]
fn what_is_not_there_is_named() {
    let project = project();
    insta::assert_snapshot!(told(&project, &["show", "chat.jsonl", "--leaf", "e99"]), @r##"
    exit 2
    ---
    error: session `chat.jsonl` has no entry `e99`
      hint: `harness session show` prints the ids of the entries
    "##);
    insta::assert_snapshot!(told(&project, &["label", "none.jsonl", "e1", "x"]), @r##"
    exit 2
    ---
    error: session `none.jsonl` does not exist
      hint: check the path
    "##);
}

/// A conversation of many long answers.
fn long(project: &Project) {
    let mut text = CHAT.lines().next().unwrap_or_default().to_owned() + "\n";
    for n in 0..40 {
        let said = "a long line ".repeat(80);
        for (id, role, more) in [("u", "user", ""), ("a", "assistant", r#","stopReason":"stop""#)] {
            let line = format!(
                r#"{{"type":"message","id":"{id}{n}","at":"2026-01-01T00:00:00.000Z","message":{{"role":"{role}","content":[{{"type":"text","text":"{n} {said}"}}]{more}}}}}"#
            );
            text.push_str(&line);
            text.push('\n');
        }
    }
    project.write("chat.jsonl", &text);
}

#[test]
fn a_session_is_made_shorter_for_good_and_keeps_everything() {
    let summary = r#"{"current_task":"to hear long lines","facts":["line 7 matters"]}"#;
    // It larger than one request may be, so it is summarized in two pieces.
    let server = Server::start([Reply::text(summary), Reply::text(summary), Reply::text("go on")]);
    let project = Project::plain();
    long(&project);
    let before = project.read("chat.jsonl");
    let model = ["--base-url", &server.url, "--model", "small"];
    let arguments = [&["compact", "chat.jsonl", "--window", "16000"], &model[..]].concat();
    insta::assert_snapshot!(told(&project, &arguments), @r"
    exit 0
    compacted the session: 19603 → 4473 tokens (summarize 62); the file keeps the earlier messages (--forget removes them)
    ---
    ");
    assert!(project.read("chat.jsonl").starts_with(&before), "nothing is taken out");

    let next = project.harness(&[
        "run",
        "harness.yaml",
        "and now?",
        "--session",
        "chat.jsonl",
        "--base-url",
        &server.url,
        "--allow-changed",
    ]);
    assert_eq!(next.code, Some(0), "{}", next.stderr);
    let shown = server.requests()[2]["messages"].to_string();
    assert!(shown.contains("line 7 matters") && shown.len() < before.len() / 2, "{} bytes", shown.len());
}

#[test]
fn compaction_calls_the_models_of_the_registry_file_as_a_run_does() {
    /// Compacts the conversation of a run with `registry`; `expected` is how often the declared model is called.
    #[track_caller]
    fn check(registry: Option<&str>, more: &[&str], expected: (i32, usize)) {
        let summary = r#"{"facts":["line 7 matters"]}"#;
        let server = Server::start([Reply::text(summary), Reply::text(summary)]);
        let project = Project::plain();
        long(&project);
        let model = format!("{{ base_url: '{}', model: small-2, window: 16000 }}", server.url);
        project.write("house.yaml", &format!("version: 1\nmodels:\n  house: {model}\n"));
        if let Some(registry) = registry {
            let meta = json!({ "run": { "registry": project.path().join(registry) } });
            let text = project.read("chat.jsonl");
            let (header, rest) = text.split_once('\n').unwrap();
            let header = header.strip_suffix('}').unwrap();
            project.write("chat.jsonl", &format!("{header},\"meta\":{meta}}}\n{rest}"));
        }
        let compact = ["session", "compact", "chat.jsonl", "--model", "house"];
        let output = project.harness(&[&compact, more].concat());
        let asked = server.requests().iter().filter(|request| request["model"] == "small-2").count();
        assert_eq!((output.code, asked), (Some(expected.0), expected.1), "{output:?}");
    }
    check(None, &["--registry", "house.yaml"], (0, 2));
    check(Some("house.yaml"), &[], (0, 2));
    // The window of the command line wins: one request holds everything.
    check(None, &["--registry", "house.yaml", "--window", "200000"], (0, 1));
    // Without the file, the name is that of a model of OpenRouter.
    check(None, &[], (2, 0));
    check(Some("removed.yaml"), &[], (2, 0));
}

#[test]
fn fault_34_forget_frees_what_a_compaction_leaves_out() {
    let summary = r#"{"current_task":"to hear long lines","facts":["line 7 matters"]}"#;
    let server = Server::start([Reply::text(summary), Reply::text(summary)]);
    let project = Project::plain();
    long(&project);
    let before = project.read("chat.jsonl").len();
    let output = project.harness(&[
        "session",
        "compact",
        "chat.jsonl",
        "--window",
        "16000",
        "--forget",
        "--json",
        "--base-url",
        &server.url,
        "--model",
        "small",
    ]);
    let told: serde_json::Value = serde_json::from_str(&output.stdout).unwrap();
    let after = project.read("chat.jsonl");
    assert_eq!(told["bytes"], serde_json::json!([before, after.len()]), "{told}");
    assert!(after.len() < before / 2, "{} of {before} bytes", after.len());
    assert!(!after.contains("\"5 a long line"), "what was summarized is gone");
    let shown = project.harness(&["session", "show", "chat.jsonl"]);
    assert!(shown.stdout.contains("39 a long line"), "{}", shown.stdout);
    let again = project.harness(&["session", "repair", "chat.jsonl"]);
    assert_eq!(again.code, Some(0), "{}{}", again.stdout, again.stderr);
    assert_eq!(project.read("chat.jsonl"), after, "it is sound");
}

#[test]
fn a_short_session_stays_as_it_is() {
    let project = project();
    insta::assert_snapshot!(told(&project, &["compact", "chat.jsonl"]), @"
    exit 0
    nothing to compact; session unchanged
    ---
    ");
    assert_eq!(project.read("chat.jsonl"), CHAT);
}
