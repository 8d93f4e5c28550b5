//! Results of programs for the model.

use std::fmt::Write as _;
use std::io;
use std::os::unix::process::ExitStatusExt as _;
use std::process::ExitStatus;

use harness_core::message::Block;
use harness_core::tool::{RetryClass, ToolOutcome, ToolStatus};
use harness_core::{Json, Millis};
use harness_host::process::{Capture, Ended, Ending, MAX_PRINTED, ProgramSpec, Shown, why_not_started};

use super::tool::TimeLimit;

pub(crate) const INVALID_ARGUMENTS: &str = "invalid_arguments";

/// Exit code of a failure that another attempt may fix (`EX_TEMPFAIL` of sysexits).
const TEMPORARY_FAILURE: i32 = 75;

/// Result of a program.
pub(crate) fn outcome(program: &str, class: RetryClass, limit: TimeLimit, ended: &Ended) -> ToolOutcome {
    match ended.ending {
        Ending::Exited(status) if status.success() => success(program, ended),
        Ending::Exited(status) => failure(program, class, status, ended),
        Ending::TimedOut => {
            let span = Millis::from(limit.span());
            let what = match limit {
                TimeLimit::Timeout(_) => format!(
                    "`{program}` did not finish within {span} and was stopped; \
                     if it needs more time, raise its `timeout`"
                ),
                TimeLimit::Deadline(_) => {
                    format!("`{program}` did not finish in the remaining {span} of the turn and was stopped")
                }
            };
            stopped(ToolStatus::Timeout, "timeout", &what, ended)
        }
        Ending::Cancelled => {
            let what = format!("`{program}` was stopped: the call was cancelled");
            stopped(ToolStatus::Cancelled, "cancelled", &what, ended)
        }
        Ending::Flooded => {
            let most = MAX_PRINTED / (1024 * 1024);
            let what =
                format!("`{program}` printed more than {most} MiB and was stopped; make it print less");
            stopped(ToolStatus::Failed, "too_much_output", &what, ended)
        }
    }
}

/// Result of a program whose exit code is not a failure.
pub(crate) fn any_exit(program: &str, limit: TimeLimit, ended: &Ended) -> ToolOutcome {
    let Ending::Exited(status) = ended.ending else {
        return outcome(program, RetryClass::Unsafe, limit, ended);
    };
    let Some(code) = status.code() else { return failure(program, RetryClass::Unsafe, status, ended) };
    let mut parts = Vec::new();
    if code != 0 {
        parts.push(format!("exit code {code}"));
    }
    parts.extend(readable(&ended.stdout, false));
    parts.extend(readable(&ended.stderr, false).map(|text| format!("stderr:\n{text}")));
    let mut outcome =
        ToolOutcome::text(if parts.is_empty() { "(no output)".to_owned() } else { parts.join("\n\n") });
    outcome.exit_code = Some(code);
    outcome
}

/// Result of a call that was cancelled before its program was started.
pub(crate) fn cancelled(program: &str) -> ToolOutcome {
    let what = format!("`{program}` was not started: the call was cancelled");
    ToolOutcome::with_error(ToolStatus::Cancelled, "cancelled", what)
}

/// Result of a call after the turn's deadline.
pub(crate) fn too_late(program: &str) -> ToolOutcome {
    let what = format!("`{program}` was not started because the turn's deadline has passed");
    ToolOutcome::with_error(ToolStatus::Timeout, "timeout", what)
}

/// Result of a call that cannot be sandboxed.
pub(super) fn no_sandbox(why: &str) -> ToolOutcome {
    let message = format!(
        "programs cannot be sandboxed on this machine: {why}; the host can disable the sandbox with `sandbox: off`"
    );
    ToolOutcome::error("sandbox_unavailable", message)
}

/// Result of a call whose program could not be started.
pub(crate) fn spawn_error(program: &ProgramSpec, error: &io::Error) -> ToolOutcome {
    let why = why_not_started(program, error);
    let program = program.name();
    ToolOutcome::error("spawn_error", format!("`{program}` could not be started: {why}"))
}

fn success(program: &str, ended: &Ended) -> ToolOutcome {
    let mut outcome = match ended.stdout.show(false) {
        Shown::Text { text, whole } => {
            let text = text.trim_end_matches(['\n', '\r']);
            let data = whole.then(|| Json::parse(text).ok()).flatten().filter(Json::is_object);
            let mut outcome = ToolOutcome::text(if text.is_empty() { "(no output)" } else { text });
            outcome.structured = data;
            outcome
        }
        Shown::Binary(bytes) => ToolOutcome::error(
            "binary_output",
            format!(
                "`{program}` exited with code 0, and its result is binary output of {bytes} bytes, \
                 which cannot be shown; make it print UTF-8 text"
            ),
        ),
    };
    outcome.exit_code = Some(0);
    outcome.metadata = printed_aside(&ended.stderr);
    outcome
}

/// Stderr of a successful program: for users and logs, not for the model.
fn printed_aside(stderr: &Capture) -> Option<Json> {
    let text = readable(stderr, false)?;
    Json::of(&std::collections::BTreeMap::from([("stderr", text)])).ok()
}

fn failure(program: &str, class: RetryClass, status: ExitStatus, ended: &Ended) -> ToolOutcome {
    let (code, what) = match (status.code(), status.signal()) {
        (Some(code), _) => ("nonzero_exit", format!("`{program}` exited with code {code}")),
        (None, Some(signal)) => ("killed_by_signal", format!("`{program}` was killed by signal {signal}")),
        (None, None) => ("nonzero_exit", format!("`{program}` failed: {status}")),
    };
    let mut outcome = failed(ToolStatus::Failed, code, &what, ended, false);
    outcome.exit_code = status.code();
    let temporary = status.code() == Some(TEMPORARY_FAILURE) && class != RetryClass::Unsafe;
    if let (true, Some(error)) = (temporary, &mut outcome.error) {
        error.retryable = Some(true);
    }
    outcome
}

fn stopped(status: ToolStatus, code: &str, what: &str, ended: &Ended) -> ToolOutcome {
    failed(status, code, what, ended, true)
}

/// A failed call: one sentence as the message of the error, with the output as content.
fn failed(status: ToolStatus, code: &str, what: &str, ended: &Ended, cut_off: bool) -> ToolOutcome {
    let mut outcome = ToolOutcome::with_error(status, code, what);
    let mut text = what.to_owned();
    for (name, stream) in [("stderr", &ended.stderr), ("stdout", &ended.stdout)] {
        if let Some(printed) = readable(stream, cut_off) {
            // Writing to a string cannot fail.
            let _ = write!(text, "\n\n{name}:\n{printed}");
        }
    }
    outcome.content = vec![Block::text(text)];
    outcome
}

fn readable(stream: &Capture, cut_off: bool) -> Option<String> {
    match stream.show(cut_off) {
        Shown::Text { text, .. } => {
            let text = text.trim_end_matches(['\n', '\r']);
            (!text.is_empty()).then(|| text.to_owned())
        }
        Shown::Binary(bytes) => Some(format!("(binary output of {bytes} bytes)")),
    }
}
