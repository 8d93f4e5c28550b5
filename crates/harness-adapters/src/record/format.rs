//! The lines of a recording.

use std::path::Path;

use harness_core::Json;
use harness_core::message::AssistantMessage;
use harness_core::port::{DeltaPart, ModelFault};
use serde::{Deserialize, Serialize};

use super::canonical::digest;
use crate::AdapterError;

/// The version of recordings that this crate writes, and the newest one that it reads.
///
/// | version | what |
/// |---|---|
/// | 1 | header, then one line per exchange |
pub const RECORDING_VERSION: u64 = 1;

const KIND: &str = "harness.recording";

/// Bytes of a whole recording.
pub(super) const MAX_FILE: usize = 256 << 20;
/// Bytes of one line.
pub(super) const MAX_LINE: usize = 32 << 20;

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
pub(super) fn check_header(path: &Path, text: &str) -> Result<(), AdapterError> {
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
            Err(AdapterError::RecordingVersion { path: path.to_owned(), found, known: RECORDING_VERSION })
        }
    }
}

/// Reads a whole recording.
pub(super) fn read(path: &Path, text: &str) -> Result<Vec<Exchange>, AdapterError> {
    let mut lines = text.lines().enumerate();
    check_header(path, lines.next().map(|(_, line)| line).unwrap_or_default())?;
    let mut exchanges: Vec<Exchange> = Vec::new();
    for (index, line) in lines {
        let number = index.saturating_add(1);
        if line.len() > MAX_LINE {
            return Err(AdapterError::RecordingSize { path: path.to_owned(), what: "line", limit: MAX_LINE });
        }
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

fn fault_at(path: &Path, line: usize, reason: &str) -> AdapterError {
    AdapterError::RecordingLine { path: path.to_owned(), line, reason: reason.to_owned() }
}
