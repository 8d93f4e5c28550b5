//! The state of a run at rest, to go on with later.

use serde::{Deserialize, Serialize};

use super::{Run, RunState};
use crate::json::Json;
use crate::machine::Shared;
use crate::transcript::Transcript;

/// What a saved state holds: counters, what the control saves, the turn that begins next, and how much of the
/// transcript belongs to it. Its size does not grow with the transcript.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Snapshot {
    version: u32,
    pub(super) shared: Shared,
    state: RunState,
    /// What the last message of its transcript is known by; absent when there is none.
    #[serde(default)]
    anchor: Option<String>,
}

/// The version of the saved state of a run.
pub const SNAPSHOT_VERSION: u32 = 3;

/// Why a saved state cannot be gone on from.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RestoreError {
    /// It was made by a version that this one does not read.
    #[error(
        "snapshot version {0} is not supported: this program reads version {SNAPSHOT_VERSION}; go on from the \
         transcript instead"
    )]
    Version(u32),
    /// The control of the run cannot go on with what was saved: it was another one.
    #[error("the control of the run cannot read what was saved of it: {0}")]
    Control(String),
    /// The transcript has another length: the snapshot is stale; start from the transcript instead.
    #[error("the snapshot was made at {snapshot} messages, the transcript has {transcript}")]
    Stale {
        /// Messages that the snapshot knows.
        snapshot: usize,
        /// Messages that there are.
        transcript: usize,
    },
    /// The transcript holds another message where the snapshot was made: it belongs to another conversation.
    #[error("message {message} of the transcript is not the one that the snapshot was made at")]
    Foreign {
        /// Which message, from 1.
        message: usize,
    },
}

impl Snapshot {
    /// Whether this is a transcript that it was made over, or one that has gone on since.
    pub(super) fn fits(&self, log: &Transcript) -> Result<(), RestoreError> {
        if self.version != SNAPSHOT_VERSION {
            return Err(RestoreError::Version(self.version));
        }
        let message = self.shared.len;
        if log.len() < message {
            return Err(RestoreError::Stale { snapshot: message, transcript: log.len() });
        }
        if self.anchor.is_some() && self.anchor != anchor(log, message) {
            return Err(RestoreError::Foreign { message });
        }
        Ok(())
    }
}

impl RunState {
    /// The state as JSON.
    pub(super) fn to_json(&self, shared: &Shared, log: &Transcript) -> Option<Json> {
        #[derive(Serialize)]
        #[serde(rename_all = "camelCase")]
        struct Borrowed<'a> {
            version: u32,
            shared: &'a Shared,
            state: &'a RunState,
            anchor: Option<String>,
        }
        let anchor = anchor(log, log.len());
        Json::of(&Borrowed { version: SNAPSHOT_VERSION, shared, state: self, anchor }).ok()
    }
}

impl Run {
    /// The run with a saved state; `self` was made anew, over a transcript that may have gone on since.
    pub(super) fn with_state(mut self, snapshot: Snapshot) -> Result<Self, RestoreError> {
        snapshot.fits(self.log())?;
        let (state, shared) = self.state_mut();
        let fresh = std::mem::replace(state, snapshot.state);
        state.control.take_over(fresh.control).map_err(|error| RestoreError::Control(error.to_string()))?;
        *shared = snapshot.shared;
        Ok(self)
    }
}

/// What the last of the first `messages` messages is known by.
fn anchor(log: &Transcript, messages: usize) -> Option<String> {
    let last = log.get(messages.checked_sub(1)?)?;
    serde_json::to_string(&**last).ok().map(|text| crate::canonical::sha256_hex(&text))
}
