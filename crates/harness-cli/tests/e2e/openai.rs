//! The official clients of OpenAI, unchanged, against the server: chat completions, responses, streams, conversations
//! and errors, with the shipped example, whose refunds require approval,
//! and its demo model.

use std::path::Path;
use std::process::Command;

use rustix::process::Signal;

use crate::support::{Running, harness};
use crate::{LONG, guarded_example, installed, other, ran};

pub(crate) const TOKEN: &str = "0123456789abcdef0123456789abcdef";

/// A server that requires a token, and its base URL.
fn server(folder: &Path) -> (Running, String) {
    use std::os::unix::fs::PermissionsExt as _;
    let token = folder.join("token");
    std::fs::write(&token, TOKEN).unwrap();
    std::fs::set_permissions(&token, std::fs::Permissions::from_mode(0o600)).unwrap();
    let example = folder.join("example");
    guarded_example(&example);
    let arguments =
        ["serve", "harness.yaml", "--listen", "127.0.0.1:0", "--token-file", token.to_str().unwrap()];
    let (running, line) = Running::start(harness(&example, &arguments)).line("the address of the server");
    let url = line.trim().strip_prefix("listening on ").unwrap_or_else(|| panic!("the server says {line:?}"));
    let url = url.to_owned();
    (running, url)
}

/// Runs a script of a client, which checks what it receives and prints `ok` at its end.
#[track_caller]
pub(crate) fn check(folder: &Path, mut client: Command) {
    let (running, url) = server(folder);
    client.env("BASE_URL", format!("{url}/v1")).env("TOKEN", TOKEN);
    let printed = ran(client);
    assert!(printed.trim_end().ends_with("ok"), "{printed}");
    running.signal(Signal::TERM);
    assert_eq!(running.end_in(LONG).code, Some(0));
}

#[test]
fn the_python_client_works_unchanged() {
    let folder = installed("openai/python");
    let mut client = other(folder.join("venv/bin/python"), &folder);
    let script = folder.join("client.py");
    std::fs::write(&script, include_str!("openai_client.py")).unwrap();
    client.arg(&script);
    check(&folder, client);
}

#[test]
fn the_javascript_client_works_unchanged() {
    let folder = installed("openai/node");
    let script = folder.join("client.mjs");
    std::fs::write(&script, include_str!("openai_client.mjs")).unwrap();
    let mut client = other("node", &folder);
    client.arg(&script);
    check(&folder, client);
}
