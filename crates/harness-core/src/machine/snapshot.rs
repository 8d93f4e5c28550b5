//! The state of a machine, to go on with later.

use serde::{Deserialize, Serialize};

use super::{Cx, Effect, Effects, Machine, Phase, Shared};
use crate::json::Json;
use crate::time::Time;
use crate::transcript::Transcript;

/// What [`super::Machine::snapshot`] holds: the state, and how much of the transcript belongs to it.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", bound = "P: Phase")]
#[non_exhaustive]
pub struct Snapshot<P: Phase> {
    /// The version of this form: 3.
    pub version: u32,
    pub(crate) shared: Shared,
    pub(crate) phase: P,
    /// What the last message of its transcript is known by; absent when there is none, and in earlier versions.
    #[serde(default)]
    anchor: Option<String>,
}

/// The version of [`Snapshot`].
pub const SNAPSHOT_VERSION: u32 = 3;

/// Why a snapshot cannot be restored.
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

impl<P: Phase> Snapshot<P> {
    /// Whether this is a transcript that it was made over, or one that has gone on since.
    pub(crate) fn fits(&self, log: &Transcript) -> Result<(), RestoreError> {
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

impl<P: Phase> Machine<P> {
    /// The state as JSON. Refers to the transcript by its length; its size does not grow with it.
    ///
    /// # Errors
    /// None in practice; the signature is that of serialization.
    pub fn snapshot(&self) -> Result<Json, serde_json::Error> {
        #[derive(Serialize)]
        #[serde(rename_all = "camelCase")]
        struct Borrowed<'a, P> {
            version: u32,
            shared: &'a Shared,
            phase: &'a P,
            anchor: Option<String>,
        }
        let (shared, phase, anchor) = (&self.shared, &self.phase, anchor(&self.log, self.log.len()));
        Json::of(&Borrowed { version: SNAPSHOT_VERSION, shared, phase, anchor })
    }

    /// The machine with a saved state; `self` was made anew, over a transcript that may have gone on since.
    pub(crate) fn with_state(mut self, snapshot: Snapshot<P>) -> Result<Self, RestoreError> {
        snapshot.fits(&self.log)?;
        let fresh = std::mem::replace(&mut self.phase, snapshot.phase);
        self.phase.take_over(fresh).map_err(|error| RestoreError::Control(error.to_string()))?;
        self.shared = snapshot.shared;
        Ok(self)
    }

    /// What a machine that is made from a snapshot still has to be told.
    pub(crate) fn parts_mut(&mut self) -> (&mut P, &mut Shared) {
        (&mut self.phase, &mut self.shared)
    }

    /// The machine as it was when the snapshot was made; `self` was made anew with the settings, the ports and the
    /// control of then, over the transcript of then. Outstanding operations are asked for again.
    ///
    /// # Errors
    /// When the snapshot is of another version, or the transcript or the control is not the one it belongs to.
    pub fn restore(self, snapshot: Snapshot<P>, fx: &mut Effects) -> Result<Self, RestoreError> {
        if snapshot.shared.len < self.log.len() {
            return Err(RestoreError::Stale { snapshot: snapshot.shared.len, transcript: self.log.len() });
        }
        let mut machine = self.with_state(snapshot)?;
        let outstanding = machine.shared.pending.clone();
        let cx =
            Cx { now: Time(0), sh: &mut machine.shared, log: &mut machine.log, fx, ports: &machine.ports };
        let ops: Vec<_> = outstanding
            .into_iter()
            .filter_map(|(id, pending)| Some((id, machine.phase.reissue(&machine.spec, &cx, pending)?)))
            .collect();
        for (id, op) in ops {
            fx.push(Effect::Perform(id, op));
        }
        Ok(machine)
    }
}

/// What the last of the first `messages` messages is known by.
fn anchor(log: &Transcript, messages: usize) -> Option<String> {
    let last = log.get(messages.checked_sub(1)?)?;
    serde_json::to_string(&**last).ok().map(|text| crate::canonical::sha256_hex(&text))
}
