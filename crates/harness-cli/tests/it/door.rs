//! One door to the terminal: what others wrote is harmless on it, and holds no secret.

use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;

use serde_json::json;

use crate::support::{Answer, Project, Reply, Running, Server, on_terminal, raw_controls};

/// Titles, the clipboard, an erased screen, hidden text, C1, bidi, zero width, tags.
const HOSTILE: &str = "H\u{1b}]0;t\u{7}\u{1b}]52;c;aGk=\u{7}\u{1b}[2J\u{1b}[8m\u{1b}Pq\u{1b}\\\u{9b}31m\u{9d}0;x\u{9c}\u{85}\r\u{8}\u{202e}\u{2066}\u{200b}\u{feff}\u{e0041}\u{7f}";

/// The same in a JSON string.
fn escaped() -> String {
    let mut text = String::new();
    for unit in HOSTILE.encode_utf16() {
        let _ = write!(text, "\\u{unit:04x}");
    }
    text
}

/// The same in a double-quoted scalar of YAML.
fn in_yaml() -> String {
    HOSTILE.chars().fold(String::new(), |mut text, c| {
        let _ = write!(text, "\\U{:08x}", u32::from(c));
        text
    })
}

const SERVER: &str = r#"#!/bin/sh
while read -r line; do
  case "$line" in *'"initialize"'*)
    id=$(printf '%s' "$line" | sed 's/.*"id":\([0-9]*\).*/\1/')
    printf '{"jsonrpc":"2.0","id":%s,"error":{"code":-32000,"message":"HOSTILE"}}\n' "$id";;
  esac
done
printf 'HOSTILE' >&2
"#;

/// A project in whose files everything that can be said is hostile.
fn project() -> Project {
    let project = Project::new("printf 'seen HOSTILE'", "printf 'HOSTILE' >&2; exit 1");
    let look = project.read("look.sh").replace("HOSTILE", HOSTILE);
    project.write("look.sh", &look);
    let pay = project.read("pay.sh").replace("HOSTILE", HOSTILE);
    project.write("pay.sh", &pay);
    let yaml = in_yaml();
    project.write(
        "hostile.yaml",
        &format!(
            "runtime: {{ entry_agent: desk }}\ntools: {{ look: {{ target: look, description: \"{yaml}\" }}, pay: {{ target: pay }} }}\n\
             agent_defaults: {{ model: scripted }}\nagents:\n  desk:\n    name: \"{yaml}\"\n    instructions: \"{yaml}\"\n    tools: [look, pay]\n"
        ),
    );
    project.write(
        "broken.yaml",
        &format!(
            "runtime: {{ entry_agent: \"{yaml}\" }}\nagents: {{ desk: {{ \"{yaml}\": 1 }} }}\n# {HOSTILE}\n"
        ),
    );
    project.write("other.yaml", &project.read("hostile.yaml").replace("look, pay", "look"));
    project.write("server.sh", &SERVER.replace("HOSTILE", &escaped().replace('\\', "\\\\")));
    fs::set_permissions(project.path().join("server.sh"), fs::Permissions::from_mode(0o755)).unwrap();
    project.write(
        "mcp.yaml",
        "version: 1\ntools:\n  far: { mcp: { command: [sh, server.sh], connect_timeout: 20s } }\n",
    );
    project.write(
        "tools.yaml",
        &format!(
            "version: 1\ntools:\n  look: {{ command: sh, args: [look.sh], class: pure, description: \"{yaml}\" }}\n  \
             pay: {{ command: sh, args: [pay.sh], class: unsafe }}\n"
        ),
    );
    let json = escaped();
    project.write(
        "s.jsonl",
        &format!(
            "{{\"type\":\"session\",\"format\":\"harness.session\",\"version\":1,\"id\":\"{json}\",\"created_at\":\"2026-01-01T00:00:00.000Z\"}}\n\
             {{\"type\":\"message\",\"id\":\"e1\",\"parent_id\":null,\"at\":\"{json}\",\"message\":{{\"role\":\"user\",\"content\":[{{\"type\":\"text\",\"text\":\"{json}\"}}]}}}}\n\
             {{\"type\":\"message\",\"id\":\"{json}\",\"parent_id\":\"e1\",\"at\":\"2026-01-01T00:00:01.000Z\",\"message\":{{\"role\":\"assistant\",\"content\":[{{\"type\":\"toolCall\",\"id\":\"{json}\",\"name\":\"{json}\",\"arguments\":{{\"{json}\":\"{json}\"}}}}]}}}}\n\
             {{\"type\":\"{json}\",\"id\":\"e3\",\"parent_id\":\"{json}\",\"at\":\"2026-01-01T00:00:02.000Z\"}}\n"
        ),
    );
    project.write("torn.jsonl", &format!("{{\"type\":\"session\",\"version\":\"{json}\"}}\n{HOSTILE}\n{{\n"));
    project
}

fn server() -> Server {
    Server::start([
        Reply::Stream(
            Answer::call(HOSTILE, "look", &json!({ HOSTILE: HOSTILE }))
                .and_call("c2", HOSTILE, &json!({}))
                .and_call("c3", "pay", &json!({})),
        ),
        Reply::text(&format!(
            "**{HOSTILE}** and `{HOSTILE}`\n\n# {HOSTILE}\n\n[{HOSTILE}](http://{HOSTILE})"
        )),
    ])
}

#[track_caller]
fn check(project: &Project, command: Command, what: &str) {
    // The program's own line of status is emptied; nobody else says that.
    let shown = on_terminal(command).stdout.replace("\r\u{1b}[2K", "\n");
    assert_eq!(raw_controls(&shown), "", "{what}: {shown:?}");
    assert!(!shown.is_empty(), "{what} shows something in {}", project.path().display());
}

#[test]
#[expect(clippy::too_many_lines, reason = "one case after another")]
fn fault_12_nothing_hostile_reaches_the_terminal_from_files() {
    let project = project();
    let hostile_path = format!("{}.yaml", HOSTILE.replace('/', ""));
    project.write(&hostile_path, "agents: 1\n");
    for arguments in [
        &["check", "hostile.yaml", "broken.yaml", &hostile_path][..],
        &["check", "broken.yaml", "--json"],
        &["check", "hostile.yaml", "--registry", "mcp.yaml", "--connect"],
        &["hash", "hostile.yaml"],
        &["hash", "broken.yaml"],
        &["show", "hostile.yaml"],
        &["show", "hostile.yaml", "--json"],
        &["show", "hostile.yaml", "--agent", "desk", "--message", HOSTILE],
        &["show", "hostile.yaml", "--agent", HOSTILE],
        &["show", "hostile.yaml", "--agent", "desk", "--json"],
        &["graph", "hostile.yaml"],
        &["diff", "hostile.yaml", "other.yaml"],
        &["diff", "hostile.yaml", "broken.yaml"],
        &["tools", "tools.yaml"],
        &["tools", "tools.yaml", "--json"],
        &["tools", "mcp.yaml"],
        &["tools", "tools.yaml", "--call", "look"],
        &["tools", "tools.yaml", "--call", "pay"],
        &["tools", "tools.yaml", "--call", "look", "--json"],
        &["tools", "tools.yaml", "--call", HOSTILE],
        &["tools", "tools.yaml", "--call", "look", "--input", HOSTILE],
        &["session", "list"],
        &["session", "list", "--json"],
        &["session", "show", "s.jsonl"],
        &["session", "show", "s.jsonl", "--json"],
        &["session", "show", "s.jsonl", "--leaf", HOSTILE],
        &["session", "show", "s.jsonl", "--leaf", "nothing"],
        &["session", "export", "s.jsonl"],
        &["session", "export", "s.jsonl", "--format", "markdown"],
        &["session", "label", "s.jsonl", "e1", HOSTILE],
        &["session", "compact", "s.jsonl"],
        &["session", "repair", "torn.jsonl"],
        &["session", "show", "torn.jsonl"],
        &["session", "fork", "s.jsonl", HOSTILE],
        &["inspect", "torn.jsonl"],
        &["replay", "torn.jsonl"],
        &["regress", "broken.yaml"],
        &["resume", "s.jsonl"],
        &["resume", "torn.jsonl"],
        &["resume", HOSTILE],
        &["run", HOSTILE, "x"],
        &["run", "hostile.yaml", "x", "--registry", "tools.yaml", "--model", HOSTILE],
        &["run", "hostile.yaml", "x", "--registry", "tools.yaml", "--base-url", HOSTILE],
        &["run", "hostile.yaml", "x", "--registry", "tools.yaml", "--context", HOSTILE],
        &["run", "hostile.yaml", "x", "--keys", HOSTILE],
        &["run", "hostile.yaml", "x", "--log", HOSTILE],
        &["run", "hostile.yaml", "x", "--session", "torn.jsonl"],
        &["chat", "--model", HOSTILE],
        &["chat", "--replay", "torn.jsonl"],
        &["doctor", "--base-url", HOSTILE],
        &["serve", "broken.yaml"],
        &["serve", "hostile.yaml", "--listen", HOSTILE],
        &["new", &format!("a{HOSTILE}.yaml")],
        &["run", "hostile.yaml", "--max-turns", HOSTILE],
        &[&format!("--{HOSTILE}")],
        &[HOSTILE],
        &["--help"],
        &["run", "--help"],
    ] {
        check(&project, project.command(arguments), &format!("{arguments:?}"));
    }
}

#[test]
fn fault_12_nothing_hostile_reaches_the_terminal_from_a_run() {
    for more in [&[][..], &["--json"], &["--log", "debug"], &["--until-done"]] {
        let (project, server) = (project(), server());
        let mut arguments =
            vec!["run", "hostile.yaml", HOSTILE, "--registry", "tools.yaml", "--base-url", &server.url];
        arguments.extend(["--run-record", "run.json", "--session", "run.jsonl", "--report", "report.md"]);
        arguments.extend(more);
        check(&project, project.command(&arguments), &format!("run {more:?}"));
        assert!(server.requests().len() >= 2, "{more:?}");
        for arguments in [
            &["inspect", "run.json"][..],
            &["inspect", "run.json", "--json"],
            &["inspect", "run.json", "--html", "page.html"],
            &["replay", "run.json"],
            &["session", "show", "run.jsonl"],
            &["session", "export", "run.jsonl"],
            &["session", "list"],
        ] {
            check(&project, project.command(arguments), &format!("{arguments:?}"));
        }
        let page = project.read("page.html");
        assert_eq!(raw_controls(&page), "", "the page: {page}");
    }
    let (project, server) = (project(), server());
    let arguments = [
        "chat",
        "hostile.yaml",
        "--registry",
        "tools.yaml",
        "--base-url",
        &server.url,
        "--session",
        "c.jsonl",
    ];
    let mut command = project.command(&arguments);
    command.stdin(fs::File::open(project.path().join("s.jsonl")).unwrap());
    check(&project, command, "chat");
}

#[test]
fn fault_12_a_pipe_gets_the_bytes_of_a_file_and_json_that_is_escaped() {
    let project = project();
    let exported = project.harness(&["session", "export", "s.jsonl"]);
    assert_eq!(exported.code, Some(0), "{}", exported.stderr);
    project.write("copy.jsonl", &exported.stdout);
    let again = project.harness(&["session", "export", "copy.jsonl"]);
    assert_eq!(again.stdout, exported.stdout, "what was exported can be read again");
    let called = project.harness(&["tools", "tools.yaml", "--call", "look"]);
    assert_eq!(called.stdout, format!("seen {HOSTILE}\n"));
    let called = project.harness(&["tools", "tools.yaml", "--call", "look", "--json"]);
    assert_eq!(raw_controls(&called.stdout), "");
    assert!(called.stdout.contains("\\u202e"), "{}", called.stdout);
    let wrong = project.harness(&["run", HOSTILE]);
    assert_eq!(raw_controls(&wrong.stderr), "");
}

#[test]
fn fault_13_passwords_in_addresses_are_shown_nowhere() {
    let project = Project::plain();
    project.write("mcp.yaml", "version: 1\ntools:\n  look: { mcp: { url: 'https://user:PASSWORD@h/mcp' } }\n  pay: { command: sh }\n");
    for address in [
        "htp:/user:PASSWORD@h",
        "http://user:PASSWORD@127.0.0.1:9/v1",
        "user:PASSWORD@h",
        "http://user:PASS/PASSWORD@h",
    ] {
        for arguments in [
            &["run", "harness.yaml", "hello", "--base-url", address][..],
            &["run", "harness.yaml", "hello", "--base-url", address, "--json"],
            &["run", "harness.yaml", "hello", "--base-url", "http://127.0.0.1:9/v1", "--otlp", address],
            &["chat", "--model", "x", "--base-url", address],
            &["doctor", "--base-url", address],
            &["doctor", "--base-url", address, "--json"],
            &["serve", "harness.yaml", "--base-url", address],
            &["run", address, "hello"],
            &["run", "harness.yaml", "hello", "--timeout", address],
            &["run", "harness.yaml", "hello", "--log", address],
        ] {
            let output = project.harness(arguments);
            let shown = output.stdout + &output.stderr;
            assert!(!shown.contains("PASSWORD"), "{arguments:?}: {shown}");
        }
    }
    for name in [
        "OPENROUTER_BASE_URL",
        "OPENAI_BASE_URL",
        "ANTHROPIC_BASE_URL",
        "OLLAMA_BASE_URL",
        "LMSTUDIO_BASE_URL",
        "HARNESS_LOCAL_BASE_URL",
    ] {
        let mut command = project.command(&["doctor"]);
        command.env(name, "http://user:PASSWORD@127.0.0.1:9/v1").env("OPENROUTER_API_KEY", "a-key-of-no-use");
        let output = Running::start(command).end();
        let shown = output.stdout + &output.stderr;
        assert!(!shown.contains("PASSWORD") && !shown.contains("a-key-of"), "{name}: {shown}");
    }
    for arguments in [
        &["tools", "mcp.yaml"][..],
        &["tools", "mcp.yaml", "--json"],
        &["check", "harness.yaml", "--registry", "mcp.yaml"],
        &["check", "harness.yaml", "--registry", "mcp.yaml", "--json"],
        &["run", "harness.yaml", "hello", "--registry", "mcp.yaml"],
    ] {
        let output = project.harness(arguments);
        assert_eq!(output.code, Some(2), "{arguments:?}");
        let shown = output.stdout + &output.stderr;
        assert!(!shown.contains("PASSWORD"), "{arguments:?}: {shown}");
        assert!(shown.contains("contains a user name or password"), "{arguments:?}: {shown}");
    }
}

/// Commands that are given a file of another kind than they read, and whether they quote its lines.
const GIVEN: [(&[&str], bool); 13] = [
    (&["run", "keys.yaml", "hello"], true),
    (&["run", "keys.yaml", "hello", "--json"], true),
    (&["check", "keys.yaml"], true),
    (&["check", "keys.yaml", "--json"], false),
    (&["tools", "keys.yaml"], true),
    (&["run", "harness.yaml", "hello", "--registry", "keys.yaml"], true),
    (&["run", "harness.yaml", "hello", "--context", "keys.yaml"], false),
    (&["chat", "keys.yaml"], true),
    (&["serve", "keys.yaml"], true),
    (&["regress", "keys.yaml"], true),
    (&["inspect", "keys.yaml"], false),
    (&["session", "show", "keys.yaml"], false),
    (&["run", "harness.yaml", "hello", "--contract", "keys.yaml"], true),
];

/// What a command shows of a file that holds this one line. It must refuse the file and name it, or the test
/// would say nothing.
#[track_caller]
fn shown_of(line: &str, arguments: &[&str], project: &Project) -> String {
    project.write("keys.yaml", &format!("{line}\n"));
    let mut command = project.command(arguments);
    command.env("HARNESS_API_KEY", "my-own-word-of-mouth");
    let output = Running::start(command).end();
    let shown = output.stdout + &output.stderr;
    assert!(output.code.is_some_and(|code| code != 0), "{line} by {arguments:?}: {shown}");
    assert!(
        shown.contains("keys.yaml") || shown.contains("error[context."),
        "{line} by {arguments:?}: {shown}"
    );
    shown
}

#[test]
fn fault_13_a_key_file_given_as_a_descriptor_does_not_show_its_line() {
    let project = Project::plain();
    for (arguments, quotes) in GIVEN {
        // Of the same form as a key below, and of as many letters: only what is secret is hidden.
        let shown = shown_of("mine: any-other-word-to-show", arguments, &project);
        assert_eq!(shown.contains("any-other-word-to-show"), quotes, "{arguments:?}: {shown}");
    }
    let keys = [
        "OPENROUTER_API_KEY=sk-or-v1-0123456789abcdef",
        "sk-or-v1-0123456789abcdef",
        "openrouter: sk-or-v1-0123456789abcdef",
        "0123456789abcdef0123456789abcdef",
        "agents: [sk-or-v1-0123456789abcdef]",
        "Authorization: Bearer 0123456789abcdef",
        "a: 'AKIA0123456789ABCDEF",
        "password: 0123456789abcdef",
        "agents: { desk: { token: 0123456789abcdef } }",
        "mine: my-own-word-of-mouth",
    ];
    for key in keys {
        for (arguments, quotes) in GIVEN {
            let shown = shown_of(key, arguments, &project);
            // A line where the file is not YAML any more is named, not quoted.
            let masked = shown.contains("***") || key.contains('\'');
            assert!(!quotes || masked, "{key} is not quoted by {arguments:?}: {shown}");
            // Not even the first half of a secret.
            for secret in ["01234567", "my-own", "of-mouth"] {
                assert!(!shown.contains(secret), "{key} by {arguments:?}: {shown}");
            }
        }
    }
}
