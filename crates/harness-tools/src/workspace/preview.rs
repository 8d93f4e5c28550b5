//! Changes that were shown before they were approved.

use std::collections::VecDeque;
use std::sync::Arc;

use harness_core::{CallId, Origin, RunId};
use parking_lot::Mutex;

/// Maximum number of shown calls that are remembered; the oldest is dropped.
const MOST: usize = 10_000;

/// A change of a file that a call would make. Made by [`FileEdits::preview`](crate::FileEdits::preview).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FilePreview {
    /// Path of the file in its workspace.
    pub path: String,
    /// Content before the call; `None` if the file does not exist.
    pub before: Option<String>,
    /// Content after the call.
    pub after: String,
}

/// Digests of the changes that were shown, by run and call. Clones share them.
#[derive(Clone, Debug, Default)]
pub(super) struct Shown(Arc<Mutex<Entries>>);

type Entries = VecDeque<((Option<RunId>, CallId), [u8; 32])>;

impl Shown {
    pub(super) fn remember(&self, origin: &Origin, call: &CallId, digest: [u8; 32]) {
        let key = (origin.run.clone(), call.clone());
        let mut entries = self.0.lock();
        entries.retain(|(known, _)| *known != key);
        if entries.len() >= MOST {
            entries.pop_front();
        }
        entries.push_back((key, digest));
    }

    pub(super) fn recall(&self, origin: &Origin, call: &CallId) -> Option<[u8; 32]> {
        let entries = self.0.lock();
        let of_call = |(run, id): &(Option<RunId>, CallId)| *run == origin.run && id == call;
        entries.iter().find(|(known, _)| of_call(known)).map(|(_, digest)| *digest)
    }
}
