//! Whether agents are there, and new enough.

use std::os::unix::fs::PermissionsExt as _;

use harness_adapters::local::{Found, LocalAgent, LocalProgram, Probe, probe};
use harness_host::process::{Environment, ProgramSpec};

use super::{block_on, shell};

fn probed(agent: LocalAgent, script: &str) -> Probe {
    let mut program = shell();
    program.spec = program.spec.args(["-c", script]);
    block_on(probe(agent, &program))
}

#[track_caller]
fn check(agent: LocalAgent, script: &str, expected: &str) {
    let shown = match probed(agent, script).found {
        Found::Ready(version) => format!("ready {version}"),
        Found::TooOld(version) => format!("too old {version}"),
        Found::Unclear(why) => format!("unclear {why}"),
        found @ (Found::Missing | _) => format!("{found:?}"),
    };
    assert_eq!(shown, expected);
}

#[test]
fn a_version_is_compared_with_the_oldest_that_is_known() {
    check(LocalAgent::ClaudeCode, "echo '2.1.197 (Claude Code)'", "ready 2.1.197");
    check(LocalAgent::ClaudeCode, "echo '1.0.128 (Claude Code)'", "too old 1.0.128");
    check(LocalAgent::Codex, "echo WARNING 1.2.3 >&2; echo codex-cli 0.169.0", "ready 0.169.0");
}

#[test]
fn what_tells_no_version_is_unclear() {
    check(LocalAgent::Gemini, "echo hello", "unclear exit status: 0: hello");
    check(LocalAgent::Gemini, "echo 9.9.9; echo broken >&2; exit 1", "unclear exit status: 1: 9.9.9\nbroken");
}

#[test]
fn what_is_missing_is_missing() {
    let program = LocalProgram::new(ProgramSpec::new("no-such-agent").env("PATH", "/usr/bin:/bin"));
    let found = block_on(probe(LocalAgent::OpenCode, &program));
    assert_eq!((&found.found, &found.path), (&Found::Missing, &None));
    assert_eq!(found.hint().as_deref(), Some("install it with `npm install -g opencode-ai`"));
}

#[test]
fn where_a_program_is_comes_from_the_path() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("gemini");
    std::fs::write(&path, "no program").unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    let surroundings = Environment::from_iter([("PATH", format!("/no/folder:{}", folder.path().display()))]);
    let found = block_on(probe(LocalAgent::Gemini, &LocalAgent::Gemini.program(&surroundings)));
    assert_eq!(found.path, Some(path));
}
