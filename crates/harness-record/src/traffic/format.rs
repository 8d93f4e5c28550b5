//! Lines of a recording.

use std::path::Path;

use harness_core::message::AssistantMessage;
use harness_core::port::{DeltaPart, ModelFault};
use harness_core::{Json, canonical};
use serde::{Deserialize, Serialize};

use crate::error::{RecordError, RecordFile};

/// Version of recordings.
///
/// | version | content |
/// |---|---|
/// | 1 | a separate form of requests; no longer read |
/// | 2 | header, then one line per exchange; requests in the form of run records |
pub const RECORDING_VERSION: u32 = 2;

const KIND: &str = "harness.recording";

/// Size limits of a recording in bytes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bounds {
    pub(super) file: u64,
    pub(super) line: u64,
}

/// Limits for writing and reading.
pub(super) const BOUNDS: Bounds = Bounds { file: 256 << 20, line: 32 << 20 };

impl Bounds {
    /// Checks the sizes of a line and of the file up to it.
    pub(super) fn check(self, path: &Path, line: usize, file: usize) -> Result<(), RecordError> {
        let error = |part, limit| {
            Err(RecordError::Size { file: RecordFile::Recording, path: path.to_owned(), part, limit })
        };
        match (line as u64 > self.line, file as u64 > self.file) {
            (true, _) => error("longest line", self.line),
            (_, true) => error("content", self.file),
            _ => Ok(()),
        }
    }
}

#[derive(Serialize, Deserialize)]
struct Header {
    kind: String,
    version: u64,
}

/// Request with its answer or error.
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

/// First line of a new recording.
pub(super) fn header() -> Result<String, serde_json::Error> {
    line(&Header { kind: KIND.to_owned(), version: RECORDING_VERSION.into() })
}

/// Value as a line.
pub(super) fn line<T: Serialize>(value: &T) -> Result<String, serde_json::Error> {
    serde_json::to_string(value).map(|text| text + "\n")
}

/// Checks the first line of a recording.
pub(super) fn check_header(path: &Path, text: &str) -> Result<(), RecordError> {
    let header: Header = serde_json::from_str(text)
        .map_err(|_| invalid(path, 1, "missing header {\"kind\":\"harness.recording\",…}"))?;
    if header.kind != KIND {
        return Err(invalid(path, 1, &format!("the file is a `{}`, not a `{KIND}`", header.kind)));
    }
    if header.version != u64::from(RECORDING_VERSION) {
        let (file, found, supported) = (RecordFile::Recording, header.version, RECORDING_VERSION);
        return Err(RecordError::Version { file, path: path.to_owned(), found, supported });
    }
    Ok(())
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
            serde_json::from_str(line).map_err(|error| invalid(path, number, &error.to_string()))?;
        let expected = exchanges.len().saturating_add(1);
        if exchange.step != expected {
            let reason = format!("expected step {expected}, found step {}", exchange.step);
            return Err(invalid(path, number, &reason));
        }
        if exchange.digest != canonical::hash(&exchange.request) {
            return Err(invalid(path, number, "the request was changed: it does not match its digest"));
        }
        if exchange.answer.is_some() == exchange.fault.is_some() {
            return Err(invalid(path, number, "expected either an answer or an error"));
        }
        exchanges.push(exchange);
    }
    Ok(exchanges)
}

fn invalid(path: &Path, line: usize, reason: &str) -> RecordError {
    let (file, line, reason) = (RecordFile::Recording, Some(line), reason.to_owned());
    RecordError::Invalid { file, path: path.to_owned(), line, reason }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(bounds: Bounds, line: usize, file: usize, expected: Option<&str>) {
        let error = bounds.check(Path::new("f"), line, file).err().map(|error| error.to_string());
        assert_eq!(error.as_deref(), expected);
    }

    #[test]
    fn lines_and_files_may_reach_their_limits_but_not_exceed_them() {
        let bounds = Bounds { line: 10, file: 20 };
        check(bounds, 10, 20, None);
        check(bounds, 11, 20, Some("recording `f` is too large: its longest line exceeds 10 bytes"));
        check(bounds, 10, 21, Some("recording `f` is too large: its content exceeds 20 bytes"));
    }

    #[test]
    fn reader_checks_its_lines() {
        let text = format!("{}{}", header().unwrap_or_default(), "x".repeat(11));
        let error =
            read(Path::new("f"), &text, Bounds { line: 10, file: 100 }).err().map(|error| error.kind());
        assert_eq!(error, Some("recording.size"));
    }
}
