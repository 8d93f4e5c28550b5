//! The result of a program that has ended, or was never started.

use std::os::unix::process::ExitStatusExt as _;
use std::process::ExitStatus;
use std::time::Duration;

use harness_core::Json;
use harness_host::process::{Capture, Ending, MAX_PRINTED, signal_name};

use super::adapter::{Printed, in_ms};
use super::output::ParsedOutput;
use crate::execution::{Attempt, ExecutionError, ExecutionErrorCode, ExecutionOutput, ExecutionResult};

/// How many UTF-16 units of malformed output a trace shows.
const PREVIEW: usize = 200;

/// Maximum bytes of the last line of stderr in a message.
const LAST_LINE: usize = 512;

/// Maximum bytes of stdout and of stderr in results and traces: the beginning and the end.
const DETAILS: usize = 2 * 1024;

/// An exit other than with code 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Exit {
    /// The exit code; `None` when a signal ended it.
    pub code: Option<i32>,
    /// The signal's number.
    pub signal: Option<i32>,
}

impl Exit {
    fn of(status: ExitStatus) -> Self {
        Self { code: status.code(), signal: status.signal() }
    }
}

/// Data for building results.
pub(super) struct Report<'a> {
    pub(super) label: &'a str,
    pub(super) retry: &'a (dyn Fn(Exit) -> bool + Send + Sync),
    pub(super) timeout: Duration,
}

/// The result of a program that could not be started.
pub(super) fn not_started(why: &str, attempt: Attempt<'_>) -> ExecutionResult {
    let error = ExecutionError::new(ExecutionErrorCode::BackendExecutionError, why).retryable(false);
    attempt.tool_calls(0).failed(error, Some(Json::object([("stderr", Json::string(""))])))
}

impl Report<'_> {
    /// The result of a program that was started.
    pub(super) fn ended(
        &self,
        printed: &Printed,
        parsed: Option<ParsedOutput>,
        attempt: Attempt<'_>,
    ) -> ExecutionResult {
        let label = self.label;
        let failed = |code, told: String| ExecutionError::new(code, told);
        let (error, data) = match printed.ending {
            Ending::Exited(status) if status.success() => {
                return match parsed {
                    Some(ParsedOutput { failure: None, .. }) | None => {
                        self.answered(printed, parsed, attempt)
                    }
                    Some(parsed) => {
                        self.failed(printed, None, exit_data(status, printed), Some(parsed), attempt)
                    }
                };
            }
            Ending::Exited(status) => {
                let exit = Exit::of(status);
                let code = ExecutionErrorCode::BackendExecutionError;
                let told = self.exited(exit, &printed.stderr);
                let error = failed(code, told).retryable((self.retry)(exit));
                (error, exit_data(status, printed))
            }
            Ending::TimedOut => {
                let told = format!("{label} timed out after {}.", in_ms(self.timeout));
                let limit = u64::try_from(self.timeout.as_millis()).unwrap_or(u64::MAX);
                let data = [("stderr", shown(&printed.stderr)), ("timeoutMs", number(limit))];
                (failed(ExecutionErrorCode::Timeout, told).retryable(true), Json::object(data))
            }
            Ending::Cancelled => {
                let told = format!("{label} was stopped: the run was cancelled.");
                let data = Json::object([("stderr", shown(&printed.stderr))]);
                (failed(ExecutionErrorCode::Other, told).retryable(false), data)
            }
            Ending::Flooded => {
                let most = MAX_PRINTED / (1024 * 1024);
                let told = format!("{label} printed more than {most} MiB and was stopped.");
                let data = Json::object([("stderr", shown(&printed.stderr))]);
                (failed(ExecutionErrorCode::BackendExecutionError, told).retryable(false), data)
            }
        };
        self.failed(printed, Some(error), data, parsed, attempt)
    }

    /// A program that exited with code 0 and says nothing of a failure.
    fn answered(
        &self,
        printed: &Printed,
        parsed: Option<ParsedOutput>,
        attempt: Attempt<'_>,
    ) -> ExecutionResult {
        let Some(mut parsed) = parsed else {
            let told = format!("{} returned malformed output.", self.label);
            let stderr = shown(&printed.stderr);
            let metadata = Json::object([("stdout", shown(&printed.stdout)), ("stderr", stderr.clone())]);
            let error = ExecutionError::new(ExecutionErrorCode::InvalidBackendOutput, told)
                .with_metadata(Some(metadata));
            let preview = Json::string(&preview(&printed.stdout));
            return attempt
                .tool_calls(0)
                .failed(error, Some(Json::object([("stdoutPreview", preview), ("stderr", stderr)])));
        };
        let calls = calls(&parsed);
        let mut attempt = attempt.tool_calls(calls);
        for (kind, data) in parsed.events.drain(..) {
            attempt.event(kind, Some(data));
        }
        let continuation = parsed.continuation.take();
        let metadata = metadata(printed, parsed.metadata.take());
        let mut result =
            attempt.completed(output(parsed), Some(Json::object([("toolCallCount", number(calls))])));
        result.metadata = metadata;
        result.continuation = continuation;
        result
    }

    /// Result of a failed program. The failure in its output takes precedence, unless the program
    /// was stopped by this process.
    fn failed(
        &self,
        printed: &Printed,
        error: Option<ExecutionError>,
        data: Json,
        parsed: Option<ParsedOutput>,
        attempt: Attempt<'_>,
    ) -> ExecutionResult {
        let mut parsed = parsed.unwrap_or_default();
        let stopped = error.as_ref().is_some_and(|error| error.code == ExecutionErrorCode::Timeout);
        let own = parsed.failure.take().filter(|_| !stopped);
        let fallback = || ExecutionError::new(ExecutionErrorCode::Other, format!("{} failed.", self.label));
        let mut error = own.or(error).unwrap_or_else(fallback);
        if error.metadata.is_none() {
            error.metadata = told_of(printed, parsed.text.is_none());
        }
        let mut result = attempt.tool_calls(calls(&parsed)).failed(error, Some(data));
        result.continuation = parsed.continuation.take();
        result.metadata = parsed.metadata.take();
        let partial = output(parsed);
        result.output = (partial != ExecutionOutput::default()).then_some(partial);
        result
    }

    /// How it exited, and the last line of its stderr: most programs say there why.
    fn exited(&self, exit: Exit, stderr: &str) -> String {
        let how = match (exit.code, exit.signal) {
            (Some(code), _) => format!("exited with code {code}"),
            (None, Some(signal)) => format!("exited with code unknown (signal {})", signal_name(signal)),
            (None, None) => "exited with code unknown".to_owned(),
        };
        let last = stderr.lines().map(str::trim).rfind(|line| !line.is_empty());
        match last {
            Some(last) => format!("{} {how}: {}", self.label, shortened(last, LAST_LINE)),
            None => format!("{} {how}.", self.label),
        }
    }
}

/// Details of the error: stderr, and stdout if there is no other answer.
fn told_of(printed: &Printed, no_answer: bool) -> Option<Json> {
    let mut told = Vec::new();
    if !printed.stderr.is_empty() {
        told.push(("stderr", shown(&printed.stderr)));
    }
    if no_answer && !printed.stdout.is_empty() {
        told.push(("stdout", shown(&printed.stdout)));
    }
    (!told.is_empty()).then(|| Json::object(told))
}

fn exit_data(status: ExitStatus, printed: &Printed) -> Json {
    let exit = Exit::of(status);
    let code = exit.code.and_then(|code| Json::of(&code).ok()).unwrap_or_else(Json::null);
    let signal = exit.signal.map_or_else(Json::null, |signal| Json::string(&signal_name(signal)));
    Json::object([("code", code), ("signal", signal), ("stderr", shown(&printed.stderr))])
}

/// Metadata with stderr, overridden by the output's own.
fn metadata(printed: &Printed, own: Option<Json>) -> Option<Json> {
    let own = own.map(|own| own.entries().unwrap_or_default());
    if printed.stderr.is_empty() && own.is_none() {
        return None;
    }
    let own = own.unwrap_or_default();
    let mut entries = Vec::new();
    if !printed.stderr.is_empty() && own.iter().all(|(key, _)| key != "stderr") {
        entries.push(("stderr", shown(&printed.stderr)));
    }
    entries.extend(own.iter().map(|(key, value)| (key.as_str(), value.clone())));
    Some(Json::object(entries))
}

/// Excerpt of printed output for a result.
fn shown(text: &str) -> Json {
    Json::string(&shortened(text, DETAILS))
}

/// The beginning and the end of a text that is longer than `most` bytes.
pub(super) fn shortened(text: &str, most: usize) -> String {
    if text.len() <= most {
        return text.to_owned();
    }
    let mut capture = Capture::new(most);
    capture.push(text.as_bytes());
    capture.lossy()
}

fn calls(parsed: &ParsedOutput) -> u64 {
    parsed.tool_calls.as_ref().map_or(0, |calls| calls.len() as u64)
}

fn output(parsed: ParsedOutput) -> ExecutionOutput {
    let ParsedOutput { text, attachments, .. } = parsed;
    let mut output = ExecutionOutput { text, attachments, ..ExecutionOutput::default() };
    let Some(calls) = parsed.tool_calls else {
        output.structured = parsed.structured;
        return output;
    };
    let structured = parsed.structured.and_then(|value| value.entries().ok()).unwrap_or_default();
    let kept = structured.iter().filter(|(key, _)| key != "toolCalls");
    let calls = Json::of(&calls).unwrap_or_else(|_| Json::null());
    output.structured = Some(Json::object(
        kept.map(|(key, value)| (key.as_str(), value.clone())).chain([("toolCalls", calls)]),
    ));
    output
}

fn preview(text: &str) -> String {
    let mut units = 0;
    text.chars()
        .take_while(|c| {
            units += c.len_utf16();
            units <= PREVIEW
        })
        .collect()
}

fn number(value: u64) -> Json {
    Json::of(&value).unwrap_or_else(|_| Json::null())
}
