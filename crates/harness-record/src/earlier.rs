//! Parts that the record of a run shares with that of the run before it.

use std::sync::Arc;

use harness_core::message::Message;
use harness_core::redact::KnownSecrets;

use super::request::Messages;

/// Messages at the end of a run. The next run of the thread starts with them: they are hashed, redacted and measured once.
#[derive(Clone, Debug)]
pub(super) struct Earlier {
    /// As the run had them.
    pub(super) items: Vec<Arc<Message>>,
    pub(super) hashes: Messages,
    /// Redacted, by these secrets.
    pub(super) clean: Vec<Arc<Message>>,
    pub(super) secrets: FixedSecrets,
    /// Size of the redacted ones in bytes of JSON.
    pub(super) bytes: u64,
}

impl Earlier {
    /// Whether a history starts with these messages: the same ones in memory, not only equal ones.
    pub(super) fn starts(&self, history: &[Arc<Message>]) -> bool {
        let is_start = !self.items.is_empty() && self.items.len() <= history.len();
        is_start && self.items.iter().zip(history).all(|(known, message)| Arc::ptr_eq(known, message))
    }
}

/// Secrets that a redaction looks for in messages, and nothing else.
#[derive(Clone, Debug)]
pub(super) struct FixedSecrets(pub(super) Option<Arc<KnownSecrets>>);

impl FixedSecrets {
    /// Whether both redact every message alike.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        match (&self.0, &other.0) {
            (None, None) => true,
            (Some(a), Some(b)) => Arc::ptr_eq(a, b),
            (None, Some(_)) | (Some(_), None) => false,
        }
    }
}
