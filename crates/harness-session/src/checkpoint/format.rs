//! The file of a checkpoint: three lines of JSON, namely what it is, the state, and a hash of both.

use std::sync::Arc;

use harness_core::port::Checkpoint;
use harness_core::{Json, RunId, Time, canonical};
use serde::{Deserialize, Serialize};

/// The version of the files that are written, and the newest that is read.
///
/// | version | since | what it is |
/// |---|---|---|
/// | 1 | 0.1 | a head, the state, the hash of both, one line each |
pub const CHECKPOINT_FORMAT_VERSION: u32 = 1;

const FORMAT: &str = "harness.checkpoint";

#[derive(Serialize, Deserialize)]
struct Head {
    format: String,
    version: u64,
    run: RunId,
    number: u64,
    at: String,
    schema_version: u32,
    messages: u64,
}

#[derive(Serialize, Deserialize)]
struct Foot {
    sha256: String,
}

/// Reason why a checkpoint cannot be read.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Unreadable {
    Damaged(String),
    Newer(u64),
}

impl Unreadable {
    fn damaged(reason: impl Into<String>) -> Self {
        Self::Damaged(reason.into())
    }
}

pub(crate) fn encode(checkpoint: &Checkpoint) -> Result<Vec<u8>, serde_json::Error> {
    let head = Head {
        format: FORMAT.to_owned(),
        version: CHECKPOINT_FORMAT_VERSION.into(),
        run: checkpoint.run.clone(),
        number: checkpoint.number,
        at: checkpoint.at.iso(),
        schema_version: checkpoint.schema_version,
        messages: checkpoint.messages,
    };
    let mut text = format!("{}\n{}\n", serde_json::to_string(&head)?, checkpoint.state.text());
    let foot = Foot { sha256: canonical::sha256_hex(&text) };
    text.push_str(&serde_json::to_string(&foot)?);
    text.push('\n');
    Ok(text.into_bytes())
}

/// Reads the checkpoint `number` of `run`. Reasons quote nothing of the state.
pub(crate) fn decode(bytes: &[u8], run: &RunId, number: u64) -> Result<Checkpoint, Unreadable> {
    let text = std::str::from_utf8(bytes).map_err(|_| Unreadable::damaged("it is not UTF-8"))?;
    let (first, rest) = text.split_once('\n').ok_or_else(|| Unreadable::damaged("it has no first line"))?;
    let head: Head =
        serde_json::from_str(first).map_err(|_| Unreadable::damaged("its first line is not a head"))?;
    if head.format != FORMAT {
        return Err(Unreadable::damaged("its first line is that of another format"));
    }
    if head.version > CHECKPOINT_FORMAT_VERSION.into() {
        return Err(Unreadable::Newer(head.version));
    }
    let (state, foot) = rest.split_once('\n').ok_or_else(|| Unreadable::damaged("it is cut off"))?;
    let foot: Foot =
        serde_json::from_str(foot).map_err(|_| Unreadable::damaged("its last line is not a hash"))?;
    let hashed = text.get(..first.len() + state.len() + 2).unwrap_or_default();
    if canonical::sha256_hex(hashed) != foot.sha256 {
        return Err(Unreadable::damaged("it does not have the hash that it names"));
    }
    if (&head.run, head.number) != (run, number) {
        return Err(Unreadable::damaged("it is another run's, or has another number"));
    }
    let at = Time::parse_iso(&head.at).ok_or_else(|| Unreadable::damaged("its time is none"))?;
    let state = Json::parse(state).map_err(|_| Unreadable::damaged("its state is not JSON"))?;
    let mut checkpoint = Checkpoint::new(head.run, at, head.schema_version, head.messages, Arc::new(state));
    checkpoint.number = number;
    Ok(checkpoint)
}
