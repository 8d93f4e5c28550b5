//! The runners of workers.

use std::time::Duration;

use harness_adapters::local::{LocalAgent, LocalRunner};
use harness_adapters::{CliInput, CliOutcome, CliRunner as _};

use super::{LONG, SECRET, block_on, environment, gone};

#[track_caller]
fn check_arguments(agent: LocalAgent, expected: &[&str]) {
    let mut input = CliInput::new("--help", LONG);
    input.model = Some("m-1".to_owned());
    let invocation = LocalRunner::new(agent, &environment()).invocation(&input);
    assert_eq!(invocation.args, expected);
    assert_eq!(invocation.stdin.as_deref(), Some("--help"));
}

#[test]
fn no_prompt_is_an_argument() {
    // W27
    check_arguments(LocalAgent::ClaudeCode, &["-p", "--output-format", "text", "--model=m-1"]);
    check_arguments(LocalAgent::Codex, &["exec", "--skip-git-repo-check", "--model=m-1", "-"]);
    check_arguments(LocalAgent::OpenCode, &["run", "--model=m-1"]);
    check_arguments(LocalAgent::Gemini, &["--skip-trust", "--model=m-1"]);
    check_arguments(LocalAgent::Bash, &["-c", "cat"]);
}

fn run(script: &str, input: CliInput) -> CliOutcome {
    block_on(LocalRunner::new(LocalAgent::Bash, &environment()).script(script).run(input))
}

#[track_caller]
fn check(script: &str, prompt: &str, expected: &str) {
    let shown = match run(script, CliInput::new(prompt, LONG)) {
        CliOutcome::Completed { text, .. } => format!("completed {text:?}"),
        CliOutcome::Failed { error, stderr, exit_code } => format!("{error} {stderr:?} {exit_code:?}"),
        other => format!("{other:?}"),
    };
    assert_eq!(shown, expected);
}

#[test]
fn answers_lose_the_white_space_at_their_end() {
    check("cat", "  a\nb \n\t\n", r#"completed "  a\nb""#);
    check("cat >/dev/null", "x", r#"completed """#);
    // W31
    check(r"cat >/dev/null; printf '\305'; printf '\274'", "", "completed \"\u{17c}\"");
    // W32
    check("exec <&-; echo closed", &"x".repeat(1 << 20), r#"completed "closed""#);
}

#[test]
fn failures_tell_the_end_of_stderr() {
    check("echo boom >&2; exit 7", "", r#"CLI 'bash' exited with code 7 Some("boom\n") Some(7)"#);
    check("kill -KILL $$", "", r#"CLI 'bash' exited with code null Some("") None"#);
    let outcome = run("seq 1 100000 >&2; exit 1", CliInput::new("", LONG));
    let CliOutcome::Failed { stderr: Some(stderr), .. } = outcome else { panic!("{outcome:?}") };
    assert!(stderr.len() == 2000 && stderr.ends_with("100000\n"));
}

#[test]
fn a_program_that_is_missing_is_told() {
    let mut runner = LocalRunner::new(LocalAgent::Codex, &environment());
    runner.program.spec.path = "no-such-agent".into();
    let outcome = block_on(runner.run(CliInput::new("hi", LONG)));
    let CliOutcome::Failed { error, .. } = outcome else { panic!("{outcome:?}") };
    assert!(error.starts_with("Failed to spawn 'no-such-agent': no program of that name"), "{error}");
}

#[test]
fn secrets_are_not_told() {
    let mut runner = LocalRunner::new(LocalAgent::ClaudeCode, &environment());
    runner.program.spec.path = "/bin/sh".into();
    runner.program.spec.args = ["-c", "echo $ANTHROPIC_API_KEY"].map(Into::into).into();
    let outcome = block_on(runner.run(CliInput::new("hi", LONG)));
    assert_eq!(outcome, CliOutcome::Completed { text: "[hidden]".to_owned(), metadata: None });
    assert!(!format!("{runner:?}").contains(SECRET));
}

#[test]
fn a_timeout_ends_all_that_was_started() {
    let script = "trap '' TERM; (while :; do sleep 1000; done) & echo $$ $! >&2; while :; do wait; done";
    let outcome = run(script, CliInput::new("", Duration::from_millis(500)));
    let CliOutcome::Failed { error, stderr: Some(stderr), exit_code: None } = outcome else {
        panic!("{outcome:?}")
    };
    assert_eq!(error, "CLI 'bash' timed out after 500ms");
    let pids: Vec<_> = stderr.split_whitespace().collect();
    assert!(pids.len() == 2 && pids.iter().all(|pid| gone(pid)), "{pids:?}");
}
