//! Runs whose turns a backend runs: a stand-in for an installed agent, and any program.

use rustix::process::Signal;
use serde_json::Value;

use crate::signal::started;
use crate::support::{Output, Project, Running, within};

/// A `claude` that looks at a file, answers, and keeps what it was asked.
const AGENT: &str = r#"#!/bin/sh
printf '%s\n' "$@" >>asked
cat >>asked
cat <<'EVENTS'
{"type":"system","subtype":"init","session_id":"s-1","tools":["Bash"],"model":"m","claude_code_version":"2.1.197"}
{"type":"assistant","message":{"content":[{"type":"tool_use","id":"t1","name":"Bash","input":{"command":"cat note.txt"}}],"id":"m1"},"parent_tool_use_id":null}
{"type":"user","message":{"role":"user","content":[{"tool_use_id":"t1","type":"tool_result","content":[{"type":"text","text":"buy milk"}],"is_error":false}]},"parent_tool_use_id":null}
{"type":"assistant","message":{"content":[{"type":"text","text":"It says: buy milk"}],"id":"m2"},"parent_tool_use_id":null}
{"type":"result","subtype":"success","is_error":false,"num_turns":2,"result":"It says: buy milk","stop_reason":"end_turn","session_id":"s-1","total_cost_usd":0.5,"usage":{"input_tokens":200,"output_tokens":40},"permission_denials":[]}
EVENTS
"#;

const DESCRIPTOR: &str = "\
runtime: { entry_agent: desk }
agents:
  desk:
    model: any
    instructions: You are the desk.
";

fn project() -> Project {
    let project = Project::plain();
    project.write("desk.yaml", DESCRIPTOR);
    project
}

fn program(project: &Project, name: &str, text: &str) {
    project.write(name, text);
    project.set_executable(name);
}

/// `harness run desk.yaml …` with the project's folder first in `PATH`.
fn run(project: &Project, arguments: &[&str]) -> Output {
    let mut command = project.command(&[&["run", "desk.yaml"], arguments].concat());
    let folder = project.path().display().to_string();
    command.env("PATH", format!("{folder}:/usr/local/bin:/usr/bin:/bin"));
    Running::start(command).end()
}

#[test]
fn an_installed_agent_runs_the_turn_and_its_session_goes_on() {
    let project = project();
    program(&project, "claude", AGENT);
    let arguments = ["--backend", "claude", "--session", "s.jsonl", "--backend-tool", "Bash"];
    let output = run(&project, &[&["read the note"], &arguments[..]].concat());
    insta::assert_snapshot!(project.told(&output), @r#"
    exit 0
    It says: buy milk
    ---
    • desk
    → Bash {"command":"cat note.txt"}
    ✓ Bash buy milk
    completed (answer_finalized) · 1 iteration · 0 tool calls · 200 + 40 tokens · cost 0.5 · [TIME]
    "#);
    let asked = project.read("asked");
    assert!(asked.contains("You are the desk.") && asked.contains("read the note"), "{asked}");
    assert!(!asked.contains("s-1"), "{asked}");

    run(&project, &[&["and again"], &arguments[..]].concat());
    let again = project.read("asked").split_off(asked.len());
    assert!(again.contains("s-1") && again.contains("and again"), "{again}");
    assert!(!again.contains("read the note"), "the agent knows it: {again}");
}

#[test]
fn what_a_backend_does_is_told_to_programs_too() {
    let project = project();
    program(&project, "claude", AGENT);
    let output = run(&project, &["read the note", "--backend", "claude", "--json"]);
    let mut lines: Vec<Value> =
        output.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    lines.iter_mut().for_each(Value::sort_all_objects);
    let parts = lines.iter().filter(|line| line["type"] == "delta").map(|line| line["part"].to_string());
    insta::assert_snapshot!(parts.collect::<Vec<_>>().join("\n"), @r#"
    {"backendToolStarted":{"id":"t1","input":{"command":"cat note.txt"},"name":"Bash"}}
    {"backendToolFinished":{"failed":false,"id":"t1","output":"buy milk"}}
    {"text":"It says: buy milk"}
    "#);
    let result = lines.last().unwrap();
    assert_eq!(
        (&result["outcome"], &result["usage"]["cost"]),
        (&"completed".into(), &serde_json::json!(0.5))
    );
}

#[test]
fn an_agent_that_is_not_installed_is_told_with_what_to_do() {
    let output = run(&project(), &["hello", "--backend", "gemini"]);
    insta::assert_snapshot!(project().told(&output), @r"
    exit 1
    ---
    • desk
    ! model: `gemini` could not be started: no program of that name is in PATH; install it, or write its path in `command`; install it with `npm install -g @google/gemini-cli`
    failed (runtime_error) · 1 iteration · 0 tool calls · [TIME]
    ");
}

const REVIEWER: &str = "\
version: 1
backend: reviewer
command: ./review.sh
args:
  - --terse
  - [--model, '{model}']
  - '{system}'
env: [LANG]
set: { MODE: strict }
timeout: 20s
";

#[test]
fn any_program_runs_turns_as_its_file_says() {
    let project = project();
    project.write("reviewer.yaml", REVIEWER);
    program(&project, "review.sh", "#!/bin/sh\necho \"$MODE $HOME $#: $*\"\ncat\n");
    let output = run(&project, &["look at this", "--backend", "command:reviewer.yaml"]);
    insta::assert_snapshot!(project.told(&output), @r"
    exit 0
    strict  2: --terse You are the desk.
    User message:
    look at this
    ---
    • desk
    completed (answer_finalized) · 1 iteration · 0 tool calls · 12 + 20 tokens (estimated) · [TIME]
    ");
    let output = run(&project, &["x", "--backend", "command:reviewer.yaml", "--model", "big"]);
    assert!(
        output.stdout.starts_with("strict  4: --terse --model big You are the desk."),
        "{}",
        output.stdout
    );
}

#[test]
fn a_program_that_fails_ends_the_run_as_failed() {
    let project = project();
    project.write("reviewer.yaml", "version: 1\ncommand: ./review.sh\n");
    program(&project, "review.sh", "#!/bin/sh\necho out of paper >&2\nexit 3\n");
    let output = run(&project, &["x", "--backend", "command:reviewer.yaml"]);
    insta::assert_snapshot!(project.told(&output), @r"
    exit 1
    ---
    • desk
    ! model: command exited with code 3: out of paper
    failed (runtime_error) · 1 iteration · 0 tool calls · [TIME]
    ");
}

#[test]
fn ctrl_c_ends_the_backend_with_everything_that_it_started() {
    let project = project();
    project.write("b.yaml", "version: 1\ncommand: ./work.sh\n");
    // The program's child keeps the pipe `alive` open for as long as it lives, and is deaf to SIGTERM.
    program(
        &project,
        "work.sh",
        "#!/bin/sh\nsh -c 'trap \"\" TERM; exec 3>alive; echo started >&3; cat release'\n",
    );
    project.pipe("alive");
    project.pipe("release");
    let arguments = ["run", "desk.yaml", "x", "--backend", "command:b.yaml", "--session", "s.jsonl"];
    let running = Running::start(project.command(&arguments));
    let mut alive = started(&project);
    running.signal(Signal::INT);
    let output = running.end();
    assert_eq!(output.code, Some(130), "{}", output.stderr);
    let again = "resume with: harness run desk.yaml --session s.jsonl --backend command:b.yaml --resume";
    assert!(output.stderr.contains(again), "{}", output.stderr);
    within("the end of the child", move || std::io::read_to_string(&mut alive).unwrap());
}

#[test]
fn a_relay_without_a_broker_is_told_with_where_it_was_looked_for() {
    let project = project();
    let output = run(&project, &["x", "--backend", "relay:ops"]);
    insta::assert_snapshot!(project.told(&output), @"
    exit 2
    ---
    error: no running broker was found: there is no ./.agent-relay/connection.json, ./.agentworkforce/relay/connection.json
      hint: start one in this directory: agent-relay-broker init --persist
    ");
}

#[track_caller]
fn refused(arguments: &[&str], file: &str, expected: &str) {
    let project = project();
    project.write("b.yaml", file);
    let output = run(&project, arguments);
    assert_eq!((output.code, output.stderr.as_str()), (Some(2), expected));
}

#[test]
fn what_cannot_be_a_backend_is_refused_before_anything_runs() {
    refused(
        &["x", "--backend", "docker"],
        "",
        "error: invalid value 'docker' for '--backend <BACKEND>': expected claude, codex, opencode, gemini, \
         relay:CHANNEL or command:FILE\n\nFor more information, try '--help'.\n",
    );
    refused(
        &["x", "--backend", "command:b.yaml"],
        "version: 1\ncommand: ./a\nargs: ['{user}']\n",
        "b.yaml:3:8: error[cli.backend_file]: args[0]: `{user}` has an unknown placeholder {user}; expected {prompt}, \
         {message}, {system}, {model}, {tools}\n  |\n3 | args: ['{user}']\n  |        ^^^^^^^^\n",
    );
}
