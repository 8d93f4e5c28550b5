//! MCP servers that are programs: their start, their surroundings and their end.
//!
//! The programs are shell scripts that answer line by line.

use std::time::Duration;

use harness_core::tool::ToolOutcome;
use harness_host::process::ProgramSpec;
use harness_tools::mcp::{McpServer, McpSpec, McpTransport};

use crate::mcp_peer::read;
use crate::stopping::{Fifo, all_gone};
use crate::support::{LONG, block_on, environment, told};

/// Answers requests with `reply`; the id is that of the line that was read last.
const HELPERS: &str = r#"
next() { read -r line || exit 0; id=${line#*\"id\":}; id=${id%%,*}; }
reply() { printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$1"; }
greet() {
    next
    reply '{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}'
    next
}
list() { next; reply '{"tools":[{"name":"read_file","inputSchema":{"type":"object"}}]}'; }
say() { reply "{\"content\":[{\"type\":\"text\",\"text\":\"$1\"}]}"; }
"#;

/// A server that is a script; `$1` and so on are `args`.
fn script(text: &str, args: &[&std::path::Path]) -> McpServer {
    let fixed = ["-c".into(), format!("{HELPERS}\n{text}").into(), "script".into()];
    let args = args.iter().map(|arg| arg.as_os_str().to_owned());
    let program = ProgramSpec::new("sh").args(fixed.into_iter().chain(args)).pass(&environment(), []);
    let mut spec = McpSpec::stdio(program);
    (spec.timeout, spec.connect_timeout, spec.grace) = (LONG, LONG, Duration::from_millis(200));
    McpServer::new("files", spec)
}

fn changed(server: &McpServer, change: impl FnOnce(&mut McpSpec)) -> McpServer {
    let mut spec = server.spec().clone();
    change(&mut spec);
    McpServer::new("files", spec)
}

fn set(spec: &mut McpSpec, name: &str, value: &str) {
    let McpTransport::Stdio(program) = &mut spec.transport else { panic!("{spec:?}") };
    program.env.set(name, value);
}

fn outcome(server: &McpServer) -> ToolOutcome {
    block_on(read(server))
}

#[test]
fn a_program_answers_over_its_stdout() {
    let server = script("echo noise; greet; list; next; say found; next", &[]);
    assert_eq!(told(&outcome(&server)), "success\nfound");
}

#[test]
fn a_program_that_does_not_exist_is_named() {
    let server =
        McpServer::new("files", McpSpec::stdio(ProgramSpec::new("no-such-program").pass(&environment(), [])));
    insta::assert_snapshot!(told(&outcome(&server)), @"
    failed mcp_unavailable
    the MCP server `files` cannot be used, and `read_file` was not called: its program `no-such-program` could not be started: no program of that name is in PATH; install it, or write its path in `command`
    ");
    let server = McpServer::new("files", McpSpec::stdio(ProgramSpec::new("sh").cwd("/no/such/folder")));
    insta::assert_snapshot!(told(&outcome(&server)), @"
    failed mcp_unavailable
    the MCP server `files` cannot be used, and `read_file` was not called: its program `sh` could not be started: its directory /no/such/folder does not exist; correct its `cwd`
    ");
}

#[test]
fn a_program_that_ends_at_once_is_told_with_its_code_and_stderr() {
    let server = script("echo one >&2; echo no licence >&2; exit 3", &[]);
    insta::assert_snapshot!(block_on(server.tools()).unwrap_err(), @r#"
    cannot use MCP server `files`: its program ended: exit code 3; its stderr says "one
    no licence"
    "#);
}

#[test]
fn stderr_has_a_bound() {
    let server = script("i=0; while [ $i -lt 3000 ]; do echo line $i >&2; i=$((i+1)); done; exit 1", &[]);
    let text = block_on(server.tools()).unwrap_err().to_string();
    assert!(text.len() < 4400 && text.contains("line 0\n") && text.contains("line 2999"), "{text}");
}

#[test]
fn a_program_that_never_greets_is_given_up_and_ended() {
    let fifo = Fifo::new();
    let text = "exec 3>\"$1\"; sleep 1000 & echo waiting for you >&2; echo up >&3; wait";
    let slow = script(text, &[&fifo.path]);
    let server = changed(&slow, |spec| spec.connect_timeout = Duration::from_secs(2));
    block_on(async {
        let (tools, pipe) = tokio::join!(server.tools(), fifo.up());
        insta::assert_snapshot!(tools.unwrap_err(), @r#"
        cannot use MCP server `files`: it was not ready within 2.0 s; its stderr says "waiting for you"
        "#);
        all_gone(pipe).await;
    });
}

#[test]
fn a_server_that_dies_in_a_call_says_how_and_the_next_call_starts_another() {
    let text = r#"
greet
if [ -e "$1/died" ]; then next; say back; next; fi
list; next; touch "$1/died"; echo out of memory >&2; kill -9 $$"#;
    let folder = tempfile::tempdir().unwrap();
    let server = script(text, &[folder.path()]);
    block_on(async {
        insta::assert_snapshot!(told(&read(&server).await), @r#"
        failed mcp_server_lost
        the MCP server `files` was lost during the call of `read_file`, which may have had effects: find out before you call it again; its program ended: killed by signal 9; its stderr says "out of memory"
        "#);
        assert_eq!(told(&read(&server).await), "success\nback");
    });
}

#[test]
fn a_leader_that_dies_takes_its_children_with_it() {
    let fifo = Fifo::new();
    // The child holds the output open, so that only its end is the end of the stream.
    let text = "exec 3>\"$1\"; sleep 1000 & greet; list; next; echo up >&3; exit 5";
    let server = script(text, &[&fifo.path]);
    block_on(async {
        let (outcome, pipe) = tokio::join!(read(&server), fifo.up());
        assert!(told(&outcome).contains("exit code 5"), "{}", told(&outcome));
        all_gone(pipe).await;
    });
}

/// A server that is up, with a child, and deaf to all but SIGKILL.
const DEAF: &str = "trap '' TERM; exec 3>\"$1\"; sleep 1000 & greet; list; echo up >&3
while :; do wait; sleep 1000; done";

#[test]
fn closing_a_server_waits_until_all_of_it_is_gone() {
    let fifo = Fifo::new();
    let server = script(DEAF, &[&fifo.path]);
    block_on(async {
        let (tools, pipe) = tokio::join!(server.tools(), fifo.up());
        assert_eq!(tools.unwrap().len(), 1);
        server.close().await;
        all_gone(pipe).await;
        assert_eq!(read(&server).await.error.unwrap().code, "mcp_unavailable");
    });
}

#[test]
fn dropping_a_server_ends_all_of_it() {
    let fifo = Fifo::new();
    let server = script(DEAF, &[&fifo.path]);
    block_on(async {
        let (tools, pipe) = tokio::join!(server.tools(), fifo.up());
        assert_eq!(tools.unwrap().len(), 1);
        drop(server);
        all_gone(pipe).await;
    });
}

#[test]
fn the_end_of_the_runtime_ends_all_of_it() {
    let fifo = Fifo::new();
    let server = script(DEAF, &[&fifo.path]);
    let pipe = block_on(async {
        let (tools, pipe) = tokio::join!(server.tools(), fifo.up());
        assert_eq!(tools.unwrap().len(), 1);
        pipe
    });
    // The runtime is gone; the server is still held.
    block_on(all_gone(pipe));
    drop(server);
}

#[test]
fn a_program_sees_only_the_variables_meant_for_it() {
    let text = r#"greet; list; next; say "$(env | grep -E 'PATH|MODE|SECRET' | sort | tr '\n' ' ')"; next"#;
    let server = script(text, &[]);
    let outcome = outcome(&changed(&server, |spec| set(spec, "MODE", "test")));
    assert_eq!(told(&outcome), "success\nMODE=test PATH=/usr/local/bin:/usr/bin:/bin ");
}

#[test]
fn secrets_that_a_program_prints_are_hidden_in_errors() {
    let server = script("echo cannot log in with $TOKEN >&2; exit 1", &[]);
    let server = changed(&server, |spec| set(spec, "TOKEN", "s3cret-token"));
    let text = block_on(server.tools()).unwrap_err().to_string();
    assert!(text.contains("cannot log in with [hidden]") && !text.contains("s3cret"), "{text}");
    assert!(!format!("{server:?}").contains("s3cret"));
}
