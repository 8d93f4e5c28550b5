//! Keys of the program are in nothing that it prints, stores or sends, and tools cannot read them.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;

use serde_json::json;

use crate::support::{Answer, Project, Reply, Running, Server};

const KEY: &str = "sk-or-0123456789abcdef";
const OTHER: &str = "ghp-not-of-a-provider-42";

/// Prints what the environments of all processes have of two variables, and a file with both.
const LOOK: &str = "cat leak.txt; for f in /proc/[0-9]*/environ; do tr '\\000' '\\n' < $f; done 2> /dev/null | \
                    grep -a -e HARNESS_API_KEY= -e MY_TOKEN= ; true";

#[test]
fn fault_11_keys_that_a_tool_finds_are_redacted_before_they_are_stored() {
    let server = Server::start([
        Reply::Stream(Answer::call("c1", "look", &json!({ "n": 1 }))),
        Reply::text(&format!("I found {KEY} and {OTHER}.")),
    ]);
    let project = Project::new(LOOK, "true");
    project.write("leak.txt", &format!("in a file: {KEY} {OTHER}\n"));
    let more = ["run", "harness.yaml", "hello", "--json", "--log", "trace", "--base-url", &*server.url]
        .into_iter()
        .chain(["--session", "s.jsonl", "--run-record", "r.json", "--record", "m.jsonl"]);
    let mut command = project.command(&more.collect::<Vec<_>>());
    command.env("HARNESS_API_KEY", KEY).env("MY_TOKEN", OTHER);
    let output = Running::start(command).end();
    assert_eq!(output.code, Some(0), "{}", output.stderr);
    let requests = format!("{:?}", server.requests());
    let places = [
        ("standard output", output.stdout.clone()),
        ("standard error", output.stderr.clone()),
        ("the session", project.read("s.jsonl")),
        ("the record", project.read("r.json")),
        ("the recording", project.read("m.jsonl")),
        ("a request", requests.clone()),
    ];
    for (place, text) in &places {
        for secret in [KEY, OTHER] {
            assert!(!text.contains(secret), "{place} holds a secret:\n{text}");
        }
    }
    assert!(requests.contains("in a file: [redacted] [redacted]"), "{requests}");
    assert!(project.read("s.jsonl").contains("I found [redacted] and [redacted]."));
    assert_eq!(server.keys(), [KEY, KEY], "the key itself is still used");
}

#[test]
fn fault_11_a_tool_called_alone_shows_no_keys() {
    let project = Project::new(LOOK, "true");
    project.write("leak.txt", &format!("in a file: {KEY}\n"));
    let mut command = project.command(&["tools", "registry.yaml", "--call", "look"]);
    command.env("HARNESS_API_KEY", KEY).env("MY_TOKEN", OTHER);
    let output = Running::start(command).end();
    assert_eq!(output.code, Some(0), "{}", output.stderr);
    assert!(output.stdout.starts_with("in a file: [redacted]\n"), "{}", output.stdout);
    assert!(!output.stdout.contains(OTHER), "{}", output.stdout);
}

/// Root reads everything, so this is tried as a user who is not root.
#[cfg(target_os = "linux")]
#[test]
fn fault_11_other_programs_of_the_user_cannot_read_the_environment() {
    let project = Project::new(
        "for f in /proc/[0-9]*/environ; do tr '\\000' '\\n' < $f; done 2> /dev/null | grep -ac MY_MARK= ; true",
        "true",
    );
    let program = project.path().join("harness");
    fs::copy(env!("CARGO_BIN_EXE_harness"), &program).unwrap();
    for path in [project.path(), &*program] {
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    }
    #[expect(clippy::disallowed_methods, reason = "this test starts the program under test as another user")]
    let mut command = std::process::Command::new(&program);
    command.args(["tools", "registry.yaml", "--call", "look"]).current_dir(project.path()).env_clear();
    command.env("PATH", "/usr/local/bin:/usr/bin:/bin").env("MY_MARK", "x");
    if rustix::process::geteuid().is_root() {
        command.uid(65_534).gid(65_534);
    }
    let output = Running::start(command).end();
    assert_eq!((output.code, &*output.stdout), (Some(0), "0\n"), "{}", output.stderr);
}

#[test]
fn fault_10_tools_write_no_descriptor_registry_or_key_file() {
    let project = Project::plain();
    let registry = "version: 1\ntools:\n  files: { builtin: file_edit, root: ., requires_approval: false }\n";
    project.write("registry.yaml", registry);
    let descriptor = "runtime: { entry_agent: desk }\ntools:\n  write: { target: files.file_write }\n  edit: { target: files.file_edit }\n\
                      agent_defaults: { model: scripted }\nagents:\n  desk: { instructions: Write., tools: [write, edit] }\n";
    project.write("harness.yaml", descriptor);
    project.write("keys.yaml", "local: sk-local-0123456789\n");
    fs::set_permissions(project.path().join("keys.yaml"), fs::Permissions::from_mode(0o600)).unwrap();
    let edits = ["harness.yaml", "registry.yaml", "keys.yaml"].map(|path| {
        let input = json!({ "path": path, "old_string": "o", "new_string": "x", "replace_all": true });
        Reply::Stream(Answer::call("c1", "file_edit", &input))
    });
    let writes = [".git/config", "free.txt"].map(|path| {
        Reply::Stream(Answer::call("c1", "file_write", &json!({ "path": path, "content": "x" })))
    });
    let calls = edits.into_iter().chain(writes);
    let server = Server::start(calls.chain([Reply::text("Done.")]));
    let output = project.ask(&server.url, &["--keys", "keys.yaml"]);
    assert_eq!(output.stdout, "Done.\n", "{}", output.stderr);
    let requests = server.requests();
    let last = requests.last().unwrap().to_string();
    assert_eq!(last.matches("is protected and cannot be written").count(), 4, "{last}");
    assert_eq!(project.read("harness.yaml"), descriptor);
    assert_eq!(project.read("registry.yaml"), registry);
    assert_eq!(project.read("keys.yaml"), "local: sk-local-0123456789\n");
    assert!(!project.path().join(".git").exists());
    assert_eq!(project.read("free.txt"), "x");
}
