//! Programs that fail, do not start, do not end, or print without end.

use std::time::Duration;

use harness_adapters::execution::{
    ExecutionAdapter as _, ExecutionCapabilities, ExecutionCx, ExecutionErrorCode, ExecutionResult,
    ExecutionStatus,
};
use harness_adapters::local::{Invocation, LocalCommandAdapter, LocalProgram, OutputFormat};
use harness_core::Cancel;
use harness_host::process::ProgramSpec;
use tokio::time::Instant;

use super::{SECRET, block_on, clock, execute, gone, request, shell, summary};

fn adapter(program: LocalProgram, args: &[&str]) -> LocalCommandAdapter {
    let args: Vec<String> = args.iter().map(|arg| (*arg).to_owned()).collect();
    LocalCommandAdapter::new(
        "local",
        program,
        move |_| Ok(Invocation::new(&args)),
        OutputFormat::plain_text(),
        ExecutionCapabilities::none(),
        clock(),
    )
    .when_missing("install it")
}

#[track_caller]
fn check(program: LocalProgram, args: &[&str], expected: &str) -> ExecutionResult {
    let result = execute(&adapter(program, args), request(""));
    assert_eq!(summary(&result), expected);
    result
}

#[test]
fn what_cannot_be_started_is_told_with_what_to_do() {
    // W23
    let started = |command: &str| LocalProgram::new(ProgramSpec::new(command).env("PATH", "/usr/bin:/bin"));
    check(
        started("no-such-agent"),
        &[],
        "failed backend_execution_error: `no-such-agent` could not be started: no program of that name is in \
         PATH; install it, or write its path in `command`; install it (final)",
    );
    let folder = tempfile::tempdir().unwrap();
    let plain = folder.path().join("plain");
    std::fs::write(&plain, "no program").unwrap();
    let plain = plain.to_str().unwrap();
    check(
        started(plain),
        &[],
        &format!(
            "failed backend_execution_error: `{plain}` could not be started: it is not executable; make it so \
             with `chmod +x` (final)"
        ),
    );
    check(
        started("echo"),
        &["a\0b"],
        "failed backend_execution_error: `echo` could not be started: an argument or a variable of it holds a \
         zero byte, which no program can be given (final)",
    );
    check(
        started("echo"),
        &["x".repeat(200_000).as_str()],
        "failed backend_execution_error: `echo` could not be started: its arguments and environment are too \
         long for this system; pass long values on stdin (final)",
    );
}

#[test]
fn an_exit_is_told_with_what_was_printed_and_without_secrets() {
    // W24
    let script = "echo answer; echo \"refused: $ANTHROPIC_API_KEY\" >&2; exit 3";
    let result = check(
        shell(),
        &["-c", script],
        "failed backend_execution_error: local command exited with code 3: refused: [hidden] (retryable)",
    );
    let metadata = result.error.as_ref().unwrap().metadata.as_ref().unwrap().text();
    assert_eq!(metadata, r#"{"stderr":"refused: [hidden]\n"}"#);
    assert_eq!(result.text(), "answer");
    assert!(!serde_json::to_string(&result).unwrap().contains(SECRET));
    let killed = "failed backend_execution_error: local command exited with code unknown (signal SIGKILL). (retryable)";
    check(shell(), &["-c", "kill -KILL $$"], killed);
}

#[test]
fn a_long_stderr_is_told_in_part() {
    let result = execute(&adapter(shell(), &["-c", "seq 1 100000 >&2; exit 1"]), request(""));
    let shown = serde_json::to_string(&result).unwrap();
    assert!(
        shown.len() < 8 * 1024 && shown.contains("bytes left out") && shown.contains("100000"),
        "{shown}"
    );
}

#[test]
fn what_prints_without_end_is_stopped() {
    check(
        shell(),
        &["-c", "cat /dev/zero"],
        "failed backend_execution_error: local command printed more than 128 MiB and was stopped. (final)",
    );
}

/// Prints its numbers and is deaf to SIGTERM, with a child that is, too, and holds the output.
const DEAF: &str = "trap '' TERM; (while :; do sleep 1000; done) & echo $$ $!; while :; do wait; done";

#[test]
fn a_program_deaf_to_sigterm_ends_within_its_time_with_all_that_it_started() {
    // W21
    let limit = Duration::from_millis(500);
    let (result, took) = block_on(async {
        let start = Instant::now();
        let mut program = shell();
        program.limits.time = limit;
        let adapter = adapter(program, &["-c", DEAF]);
        let result = adapter.execute(request(""), ExecutionCx::new(&(), &Cancel::never())).await;
        (result, start.elapsed())
    });
    assert!(took < limit + Duration::from_secs(2), "{took:?}");
    let error = result.error.as_ref().unwrap();
    assert_eq!((error.code, error.retryable), (ExecutionErrorCode::Timeout, Some(true)));
    assert_eq!(error.message, "local command timed out after 500ms.");
    let pids: Vec<_> = result.text().split_whitespace().collect();
    assert_eq!(pids.len(), 2, "what was printed until then is kept: {result:?}");
    assert!(pids.iter().all(|pid| gone(pid)), "{pids:?}");
}

#[test]
fn a_request_that_is_not_wanted_starts_nothing() {
    // W26
    let folder = tempfile::tempdir().unwrap();
    let cancel = Cancel::new();
    cancel.cancel();
    let mut program = shell();
    program.spec.cwd = Some(folder.path().to_owned());
    let adapter = adapter(program, &["-c", "echo started > file"]);
    let result = block_on(adapter.execute(request(""), ExecutionCx::new(&(), &cancel)));
    assert_eq!(result.status, ExecutionStatus::Failed);
    assert_eq!(
        summary(&result),
        "failed other: local command was not started: the run was cancelled. (final)"
    );
    assert!(!folder.path().join("file").exists());
}
