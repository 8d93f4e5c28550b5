//! What the program says when something is wrong: which thing, where, and what to do.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use serde_json::json;

use crate::support::{Answer, Gate, Project, Reply, Running, Server, harness_on_a_full_disk, within};

const NOWHERE: &str = "http://127.0.0.1:9/v1";

#[test]
fn a_descriptor_that_is_not_there() {
    let project = Project::plain();
    let output = project.harness(&["run", "missing.yaml", "hello"]);
    insta::assert_snapshot!(project.told(&output), @r#"
    exit 2
    ---
    error[descriptor.io]: cannot read the descriptor `missing.yaml`: No such file or directory (os error 2)
    help: check the path
    "#);
}

#[test]
fn a_descriptor_that_cannot_be_read() {
    let project = Project::plain();
    fs::create_dir(project.path().join("folder.yaml")).unwrap();
    let output = project.harness(&["check", "folder.yaml"]);
    insta::assert_snapshot!(project.told(&output), @r#"
    exit 2
    ---
    error[descriptor.io]: cannot read the descriptor `folder.yaml/harness.yaml`: No such file or directory (os error 2)
    help: check the path

    1 error
    "#);
}

#[test]
fn a_descriptor_without_permission() {
    let project = Project::plain();
    let path = project.path().join("harness.yaml");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o000)).unwrap();
    if fs::read(&path).is_ok() {
        // The superuser may read everything.
        return;
    }
    let output = project.harness(&["check", "harness.yaml"]);
    assert_eq!(output.code, Some(2));
    assert!(output.stderr.contains("Permission denied"), "{}", output.stderr);
}

#[test]
fn a_fault_in_the_yaml() {
    let project = Project::plain();
    project.write("harness.yaml", "runtime:\n  entry_agent: a\n\tagents: {}\n");
    let output = project.harness(&["check", "harness.yaml"]);
    insta::assert_snapshot!(project.told(&output), @r#"
    exit 2
    ---
    harness.yaml:2:16: error[yaml.syntax]: invalid YAML: while scanning a plain scalar, found a tab
      |
    2 |   entry_agent: a
      |                ^
    help: check indentation and quotes at that place

    1 error
    "#);
}

#[test]
fn an_agent_that_is_not_there() {
    let project = Project::plain();
    project.write(
        "harness.yaml",
        "runtime: { entry_agent: boss }\nagents:\n  a: { model: m, instructions: x }\n",
    );
    let output = project.harness(&["check", "harness.yaml"]);
    insta::assert_snapshot!(project.told(&output), @r"
    exit 2
    ---
    harness.yaml:1:25: error[descriptor.unknown_entry_agent]: unknown agent `boss` in `runtime.entry_agent`
      |
    1 | runtime: { entry_agent: boss }
      |                         ^^^^
    help: use the id of an agent, or add the agent under `agents`

    1 error
    ");
    project.write("harness.yaml", "runtime: { entry_agent: a }\nagents:\n  a: { model: m, handoffs: [b] }\n");
    let output = project.harness(&["check", "harness.yaml"]);
    insta::assert_snapshot!(project.told(&output), @r"
    exit 2
    ---
    harness.yaml:3:29: error[descriptor.unknown_handoff]: agent `a` hands off to unknown agent `b`
      |
    3 |   a: { model: m, handoffs: [b] }
      |                             ^
    help: use the id of an agent, or add the agent under `agents`

    1 error
    ");
}

#[test]
fn a_tool_that_is_not_bound() {
    let project = Project::plain();
    let descriptor = project.read("harness.yaml").replace("target: look", "target: loook");
    project.write("harness.yaml", &descriptor);
    let output = project.harness(&["check", "harness.yaml"]);
    insta::assert_snapshot!(project.told(&output), @r"
    exit 2
    ---
    harness.yaml:3:19: error[descriptor.unbound_target]: target `loook` of tool `look` is not bound
      |
    3 |   look: { target: loook }
      |                   ^^^^^
    help: did you mean `look`?

    1 error
    ");
    fs::remove_file(project.path().join("registry.yaml")).unwrap();
    let output = project.harness(&["check", "harness.yaml"]);
    insta::assert_snapshot!(project.told(&output), @r"
    exit 0
    harness.yaml is valid: 2 agents, entry `desk`, 2 tools
    sha256:aefd8404439a875f10d8616fee887e5cbfa903dd0f3fd97d742aa875de45c22b
    ---
    note: no registry file next to harness.yaml; tool targets were not checked
    ");
}

#[test]
fn a_registry_with_faults() {
    let project = Project::plain();
    project.write("registry.yaml", "version: 1\ntools:\n  look: { comand: sh, timeout: soon }\n");
    let output = project.harness(&["check", "harness.yaml"]);
    insta::assert_snapshot!(project.told(&output), @r"
    exit 2
    ---
    registry.yaml:3:3: error[tools.registry_faulty]: missing `command` in tools.look
      |
    3 |   look: { comand: sh, timeout: soon }
      |   ^^^^
    help: set it to the program that the tool runs

    registry.yaml:3:11: error[tools.registry_faulty]: unknown key `comand` in tools.look
      |
    3 |   look: { comand: sh, timeout: soon }
      |           ^^^^^^
    help: did you mean `command`?

    registry.yaml:3:32: error[tools.registry_faulty]: tools.look.timeout must be a duration of at most 1h, not `soon`
      |
    3 |   look: { comand: sh, timeout: soon }
      |                                ^^^^
    help: write a number with `ms`, `s`, `m` or `h`, such as `500ms` or `90s`

    3 errors
    ");
    let output = project.harness(&["run", "harness.yaml", "hello", "--registry", "missing.yaml"]);
    insta::assert_snapshot!(project.told(&output), @r"
    exit 2
    ---
    error: cannot read registry file missing.yaml: No such file or directory (os error 2)
      hint: check the path of the registry file
    ");
}

#[test]
fn a_program_that_this_machine_lacks() {
    let project = Project::plain();
    let registry = project.read("registry.yaml").replacen("command: sh", "command: no-such-program", 1);
    project.write("registry.yaml", &registry);
    let output = project.harness(&["check", "harness.yaml"]);
    insta::assert_snapshot!(project.told(&output), @r"
    exit 2
    ---
    registry.yaml:5:14: error[tools.missing]: tool target `look`: program `no-such-program` not found in PATH
      |
    5 |     command: no-such-program
      |              ^^^^^^^^^^^^^^^
    help: install it, or write its path in `command`

    1 error
    ");
}

#[test]
fn no_message_and_no_key() {
    let project = Project::plain();
    let output = project.harness(&["run", "harness.yaml"]);
    insta::assert_snapshot!(project.told(&output), @r#"
    exit 2
    ---
    error: no message given
      hint: pass it as an argument or on standard input, or use `--resume` with `--session`
    "#);
    let output = project.harness(&["run", "harness.yaml", "hello", "--model", "scripted"]);
    insta::assert_snapshot!(project.told(&output), @r"
    exit 2
    ---
    error: no API key for model `scripted`: OPENROUTER_API_KEY is not set
      hint: set OPENROUTER_API_KEY, or use `--keys FILE`, `--model ollama/NAME`, `--base-url URL`, or `--model demo` for the demo model
    ");
}

#[test]
fn a_base_url_that_is_none() {
    let project = Project::plain();
    let output = project.ask("localhost:80", &[]);
    insta::assert_snapshot!(project.told(&output), @r#"
    exit 2
    ---
    error: the base URL `localhost:80` cannot be used: the scheme `localhost` is neither http nor https
      hint: give a URL such as https://openrouter.ai/api/v1, without key or password
    "#);
}

#[test]
fn a_network_that_refuses() {
    let project = Project::plain();
    // The port of a listener that is gone.
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let output = project.ask(&format!("http://127.0.0.1:{port}/v1"), &[]);
    insta::assert_snapshot!(project.told(&output), @r#"
    exit 1
    ---
    • desk
    ! model: 127.0.0.1:[PORT]/v1/chat/completions could not be reached: Connection refused (os error 111); check the base URL and the network, then try again (after 3 attempts)
    failed (runtime_error) · 1 iteration · 0 tool calls · [TIME]
    "#);
}

#[test]
fn a_key_that_is_refused() {
    let server = Server::start([Reply::status(
        401,
        r#"{"error":{"message":"No auth credentials found","code":401}}"#,
    )]);
    let project = Project::plain();
    let output = project.ask(&server.url, &[]);
    insta::assert_snapshot!(project.told(&output), @r#"
    exit 1
    ---
    • desk
    ! model: 127.0.0.1:[PORT]/v1/chat/completions answered with HTTP 401: No auth credentials found; check HARNESS_API_KEY
    failed (runtime_error) · 1 iteration · 0 tool calls · [TIME]
    "#);
}

#[test]
fn too_many_requests_are_repeated_after_the_wait_that_is_asked_for() {
    let headers = vec![("content-type", "application/json"), ("retry-after", "0")];
    let body = r#"{"error":{"message":"slow down","code":429}}"#;
    let server = Server::start([Reply::Status { status: 429, headers, body }, Reply::text("at last")]);
    let project = Project::plain();
    let output = project.ask(&server.url, &[]);
    assert_eq!((output.code, output.stdout.as_str()), (Some(0), "at last\n"), "{}", output.stderr);
    assert_eq!(server.requests().len(), 2);
}

#[test]
fn too_many_requests_with_a_wait_that_is_too_long() {
    let headers = vec![("content-type", "application/json"), ("retry-after", "3600")];
    let body = r#"{"error":{"message":"slow down","code":429}}"#;
    let server = Server::start([Reply::Status { status: 429, headers, body }]);
    let project = Project::plain();
    let output = project.ask(&server.url, &[]);
    insta::assert_snapshot!(project.told(&output), @r#"
    exit 1
    ---
    • desk
    ! model: 127.0.0.1:[PORT]/v1/chat/completions answered with HTTP 429: slow down; try again after [TIME]
    failed (runtime_error) · 1 iteration · 0 tool calls · [TIME]
    "#);
}

#[test]
fn a_provider_that_fails() {
    let again = || Reply::status(503, r#"{"error":{"message":"overloaded","code":503}}"#);
    let server = Server::start([again(), again(), again()]);
    let project = Project::plain();
    let output = project.ask(&server.url, &[]);
    insta::assert_snapshot!(project.told(&output), @r#"
    exit 1
    ---
    • desk
    ! model: 127.0.0.1:[PORT]/v1/chat/completions answered with HTTP 503: overloaded; the error is the provider's: try again later or use another model (after 3 attempts)
    failed (runtime_error) · 1 iteration · 0 tool calls · [TIME]
    "#);
    assert_eq!(server.requests().len(), 3);
}

#[test]
fn a_stream_of_garbage() {
    let garbage = || Reply::Status {
        status: 200,
        headers: vec![("content-type", "text/event-stream")],
        body: "data: {{{\n\ndata: not json\n\n\u{1b}[31m\n\n",
    };
    let server = Server::start([garbage(), garbage(), garbage()]);
    let project = Project::plain();
    let output = project.ask(&server.url, &[]);
    insta::assert_snapshot!(project.told(&output), @r#"
    exit 1
    ---
    • desk
    ! model: 127.0.0.1:[PORT]/v1/chat/completions sent an event that is not a valid chat completion: `{{{` and 1 more; check that the base URL is that of an OpenAI-compatible endpoint
    failed (runtime_error) · 1 iteration · 0 tool calls · [TIME]
    "#);
}

#[test]
fn a_session_that_another_process_uses() {
    let (gate, arrived) = Gate::closed();
    let answer = Answer::text("slow");
    let server = Server::start([Reply::Paused { answer, after: 0, gate: gate.clone() }]);
    let project = Project::plain();
    let arguments = ["run", "harness.yaml", "hello", "--session", "s.jsonl", "--base-url", &server.url];
    let owner = Running::start(project.command(&arguments));
    within("the request", move || arrived.recv().unwrap());
    let output = project.ask(NOWHERE, &["--session", "s.jsonl"]);
    insta::assert_snapshot!(project.told(&output), @r#"
    exit 2
    ---
    error: session `s.jsonl` is in use by process [PID] of host `[HOST]` since 20[..]
      hint: wait until that process is done, end it, or use another session file; the lock is freed when its owner ends
    "#);
    gate.open();
    assert_eq!(owner.end().code, Some(0), "the owner is not disturbed");
}

#[test]
fn a_session_that_cannot_be_taken_up() {
    let project = Project::plain();
    let header = r#"{"type":"session","format":"harness.session","version":2,"id":"s","created_at":"2026-01-01T00:00:00Z"}"#;
    project.write("newer.jsonl", &format!("{header}\n"));
    let output = project.ask(NOWHERE, &["--session", "newer.jsonl"]);
    insta::assert_snapshot!(project.told(&output), @r#"
    exit 2
    ---
    error: session `newer.jsonl` has format version 2, this program reads up to version 1
      hint: use the version of harness that wrote it, or a newer one; the file was left as it is
    "#);
    project.write(
        "damaged.jsonl",
        &format!("{}\noops\n{{}}\n", header.replace("\"version\":2", "\"version\":1")),
    );
    let output = project.ask(NOWHERE, &["--session", "damaged.jsonl"]);
    insta::assert_snapshot!(project.told(&output), @r#"
    exit 2
    ---
    error: session `damaged.jsonl`, line 2 (byte 103): a JSON object was expected (`harness session repair` moves such lines to a separate file; the session is unchanged)
    "#);
    let output = project.harness(&[
        "run",
        "harness.yaml",
        "--resume",
        "--session",
        "none.jsonl",
        "--base-url",
        NOWHERE,
    ]);
    insta::assert_snapshot!(project.told(&output), @r#"
    exit 2
    ---
    error: session `none.jsonl` does not exist
      hint: check the path; without `--resume`, a message starts a new session there
    "#);
}

#[test]
fn fault_37_sigxfsz_a_session_that_cannot_be_written_ends_no_run() {
    let server = Server::start([
        Reply::Stream(Answer::call("pay-1", "pay", &serde_json::json!({}))),
        Reply::text("It was not paid."),
        Reply::text("Once more."),
    ]);
    let project = Project::new("", "echo ran >>pay.log");
    let arguments = ["run", "harness.yaml", "hello", "--session", "s.jsonl", "--base-url", &server.url];
    let output = Running::start(harness_on_a_full_disk(project.path(), &arguments)).end();
    assert_eq!((output.code, output.stdout.as_str()), (Some(6), "It was not paid.\n"), "{}", output.stderr);
    for expected in [
        "! session not saved: cannot write to session `s.jsonl`: File too large",
        "✗ pay did not run: This call did not run: its start could not be stored",
        "! session not saved completely: cannot write to session `s.jsonl`",
    ] {
        assert!(output.stderr.contains(expected), "{}", output.stderr);
    }
    assert!(!project.path().join("pay.log").exists(), "an unsafe call needs its record first");
    let again = project.ask(&server.url, &["--session", "s.jsonl"]);
    assert_eq!((again.code, again.stdout.as_str()), (Some(0), "Once more.\n"), "{}", again.stderr);
}

#[test]
fn a_session_that_another_descriptor_began() {
    let server = Server::start([Reply::text("one"), Reply::text("two")]);
    let project = Project::plain();
    project.ask(&server.url, &["--session", "s.jsonl"]);
    let changed = project.read("harness.yaml").replace("You are the desk.", "You are another desk.");
    project.write("harness.yaml", &changed);
    let output = project.ask(&server.url, &["--session", "s.jsonl"]);
    insta::assert_snapshot!(project.told(&output), @r"
    exit 2
    ---
    error: session `s.jsonl` was started under descriptor sha256:425d534efb726584b262655c04d050b255c8d1ab96018e3e7ad7587024b60b5a, this is descriptor sha256:1bac7956508a43b640fe3a00b849c3ee888521ea3156b8d01ed5f663adf43f50
      hint: use the original descriptor or pass `--allow-changed`
    ");
    let output = project.ask(&server.url, &["--session", "s.jsonl", "--allow-changed"]);
    assert_eq!((output.code, output.stdout.as_str()), (Some(0), "two\n"), "{}", output.stderr);
}

#[test]
fn a_context_that_is_none() {
    let project = Project::plain();
    let output = project.ask(NOWHERE, &["--context", "missing.yaml"]);
    insta::assert_snapshot!(project.told(&output), @r"
    exit 2
    ---
    error: invalid context `missing.yaml`: expected PATH=VALUE or a readable file: No such file or directory (os error 2)
      hint: pass PATH=VALUE, for example customer.premium=true, or a YAML or JSON file with a mapping
    ");
}

#[test]
fn a_command_line_that_is_wrong() {
    let project = Project::plain();
    let output = project.harness(&["run", "harness.yaml", "hello", "--timeout", "10"]);
    insta::assert_snapshot!(project.told(&output), @r#"
    exit 2
    ---
    error: invalid value '10' for '--timeout <TIME>': expected a number and a unit, for example 500ms, 90s, 5m or 1h

    For more information, try '--help'.
    "#);
    let output = project.harness(&["run", "harness.yaml", "hello", "--log", "!!"]);
    insta::assert_snapshot!(project.told(&output), @r"
    exit 2
    ---
    error: invalid log filter `!!`: invalid filter directive
      hint: use error, warn, info, debug or trace, or a filter such as harness_adapters=debug
    ");
}

/// What is told of a session that a tool damages during the run, with the exit code, and how many lines it has then.
fn check_damaged(damage: &str, code: i32, told: &str, lines: usize) {
    let server = Server::start([Reply::Stream(Answer::call("c1", "pay", &json!({}))), Reply::text("Paid.")]);
    let project = Project::new("", &format!("{damage}; echo '{{}}'"));
    let output = project.ask(&server.url, &["--session", "s.jsonl"]);
    assert_eq!((output.code, output.stdout.as_str()), (Some(code), "Paid.\n"), "{}", output.stderr);
    assert!(output.stderr.contains(told), "{}", output.stderr);
    assert_eq!(project.read("s.jsonl").lines().count(), lines);
}

#[test]
fn fault_31_a_session_that_is_damaged_during_a_run_is_reported() {
    check_damaged(
        "rm s.jsonl",
        0,
        "was removed while in use; it was written again, nothing is lost; the run continues",
        7,
    );
    check_damaged(": >s.jsonl", 6, "session not saved completely", 0);
}
