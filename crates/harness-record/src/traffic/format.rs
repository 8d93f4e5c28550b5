//! The lines of a recording.

use std::path::Path;

use harness_core::Json;
use harness_core::message::AssistantMessage;
use harness_core::port::{DeltaPart, ModelFault};
use serde::{Deserialize, Serialize};

use super::canonical::digest;
use crate::RecordError;

/// The version of recordings that this crate writes, and the newest one that it reads.
///
/// | version | what |
/// |---|---|
/// | 1 | header, then one line per exchange |
pub const RECORDING_VERSION: u64 = 1;

const KIND: &str = "harness.recording";

/// How large a recording may be, in bytes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bounds {
    pub(super) file: usize,
    pub(super) line: usize,
}

/// The bounds of recordings that are written and read.
pub(super) const BOUNDS: Bounds = Bounds { file: 256 << 20, line: 32 << 20 };

impl Bounds {
    /// Checks a line and the file that ends with it.
    pub(super) fn check(self, path: &Path, line: usize, file: usize) -> Result<(), RecordError> {
        let fault = |what, limit| Err(RecordError::RecordingSize { path: path.to_owned(), what, limit });
        match (line > self.line, file > self.file) {
            (true, _) => fault("longest line", self.line),
            (_, true) => fault("file", self.file),
            _ => Ok(()),
        }
    }
}

#[derive(Serialize, Deserialize)]
struct Header {
    kind: String,
    version: u64,
}

/// One request and what came of it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Exchange {
    pub(super) step: usize,
    pub(super) digest: String,
    pub(super) request: Json,
    #[serde(default)]
    pub(super) deltas: Vec<DeltaPart>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) answer: Option<AssistantMessage>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) fault: Option<ModelFault>,
}

/// The first line of a new recording.
pub(super) fn header() -> Result<String, serde_json::Error> {
    line(&Header { kind: KIND.to_owned(), version: RECORDING_VERSION })
}

/// A value as one line with its line break.
pub(super) fn line<T: Serialize>(value: &T) -> Result<String, serde_json::Error> {
    serde_json::to_string(value).map(|text| text + "\n")
}

/// Checks the first line of a recording.
pub(super) fn check_header(path: &Path, text: &str) -> Result<(), RecordError> {
    let fault = |reason: &str| fault_at(path, 1, reason);
    let header: Header = serde_json::from_str(text)
        .map_err(|_| fault("a recording begins with its header, {\"kind\":\"harness.recording\",…}"))?;
    if header.kind != KIND {
        return Err(fault(&format!("the file is a `{}`, not a `{KIND}`", header.kind)));
    }
    match header.version {
        1..=RECORDING_VERSION => Ok(()),
        0 => Err(fault("there is no version 0")),
        found => {
            Err(RecordError::RecordingVersion { path: path.to_owned(), found, known: RECORDING_VERSION })
        }
    }
}

/// Reads a whole recording.
pub(super) fn read(path: &Path, text: &str, bounds: Bounds) -> Result<Vec<Exchange>, RecordError> {
    let mut lines = text.lines().enumerate();
    check_header(path, lines.next().map(|(_, line)| line).unwrap_or_default())?;
    let mut exchanges: Vec<Exchange> = Vec::new();
    for (index, line) in lines {
        let number = index.saturating_add(1);
        bounds.check(path, line.len(), text.len())?;
        let exchange: Exchange =
            serde_json::from_str(line).map_err(|error| fault_at(path, number, &error.to_string()))?;
        let expected = exchanges.len().saturating_add(1);
        if exchange.step != expected {
            let reason = format!("step {} stands where step {expected} belongs", exchange.step);
            return Err(fault_at(path, number, &reason));
        }
        if exchange.digest != digest(&exchange.request) {
            return Err(fault_at(
                path,
                number,
                "its digest does not fit its request: the request was changed",
            ));
        }
        if exchange.answer.is_some() == exchange.fault.is_some() {
            return Err(fault_at(path, number, "an exchange has either an answer or a fault"));
        }
        exchanges.push(exchange);
    }
    Ok(exchanges)
}

fn fault_at(path: &Path, line: usize, reason: &str) -> RecordError {
    RecordError::RecordingLine { path: path.to_owned(), line, reason: reason.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(bounds: Bounds, line: usize, file: usize, expected: Option<&str>) {
        let fault = bounds.check(Path::new("f"), line, file).err().map(|fault| fault.to_string());
        assert_eq!(fault.as_deref(), expected);
    }

    #[test]
    fn lines_and_files_may_reach_their_bounds_but_not_pass_them() {
        let bounds = Bounds { line: 10, file: 20 };
        check(bounds, 10, 20, None);
        check(bounds, 11, 20, Some("the recording f is too large: its longest line has more than 10 bytes"));
        check(bounds, 10, 21, Some("the recording f is too large: its file has more than 20 bytes"));
    }

    #[test]
    fn a_reader_checks_its_lines() {
        let text = format!("{}{}", header().unwrap_or_default(), "x".repeat(11));
        let fault =
            read(Path::new("f"), &text, Bounds { line: 10, file: 100 }).err().map(|fault| fault.kind());
        assert_eq!(fault, Some("recording.size"));
    }
}
