//! Holders of an artifact, and their permissions.

use std::ops::Range;
use std::sync::Arc;

use harness_core::{ArtifactId, SessionId, Time, canonical};
use harness_host::{ArtifactMeta, ArtifactPart, Sensitivity};
use serde::{Deserialize, Serialize};

use crate::error::Error;

/// The largest artifact by default, in bytes.
pub(crate) const MOST_BYTES: u64 = 64 << 20;

/// How many sessions may hold one artifact.
pub(crate) const MOST_HOLDERS: usize = 1_000;

/// Prefix of an artifact's name.
const SCHEME: &str = "sha256:";

/// Result of a purge.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Purged {
    /// Artifacts without holders.
    pub artifacts: u64,
    /// Their bytes.
    pub bytes: u64,
}

impl Purged {
    pub(crate) fn add(&mut self, bytes: u64) {
        self.artifacts += 1;
        self.bytes = self.bytes.saturating_add(bytes);
    }
}

/// Those who hold an artifact, at most one entry for each session and one for no session.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct Holders(Vec<ArtifactMeta>);

impl Holders {
    /// Adds a holder. An existing holder keeps its label, the stricter sensitivity and the later
    /// expiry.
    pub(crate) fn add(&mut self, id: &ArtifactId, size: u64, mut meta: ArtifactMeta) -> Result<(), Error> {
        meta.size = size;
        if let Some(held) = self.0.iter_mut().find(|held| held.owner == meta.owner) {
            held.sensitivity = held.sensitivity.max(meta.sensitivity);
            held.expires_at = held.expires_at.zip(meta.expires_at).map(|(a, b)| a.max(b));
        } else if self.0.len() < MOST_HOLDERS {
            self.0.push(meta);
        } else {
            return Err(Error::ManyOwners { id: id.clone(), limit: MOST_HOLDERS });
        }
        Ok(())
    }

    /// Metadata that a session sees: its own entry, else the least restricted of the others. `None`
    /// if all have expired or are restricted to others.
    pub(crate) fn seen_by(&self, requester: Option<&SessionId>, now: Time) -> Option<&ArtifactMeta> {
        let is_own = |held: &&ArtifactMeta| held.owner.as_ref() == requester;
        let live = || self.0.iter().filter(|held| is_live(held, now));
        live().find(is_own).or_else(|| {
            live()
                .filter(|held| held.sensitivity < Sensitivity::Restricted)
                .min_by_key(|held| held.sensitivity)
        })
    }

    /// Removes expired holders and returns whether there were any.
    pub(crate) fn expire(&mut self, now: Time) -> bool {
        let before = self.0.len();
        self.0.retain(|held| is_live(held, now));
        self.0.len() < before
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

fn is_live(meta: &ArtifactMeta, now: Time) -> bool {
    meta.expires_at.is_none_or(|end| now < end)
}

/// The name of bytes.
pub(crate) fn name(bytes: &[u8]) -> ArtifactId {
    ArtifactId::from(format!("{SCHEME}{}", canonical::sha256_hex(bytes)))
}

/// The hexadecimal digits of a name; none of one that no store gives.
pub(crate) fn digits(id: &ArtifactId) -> Option<&str> {
    let digits = id.as_str().strip_prefix(SCHEME)?;
    let is_digit = |byte: u8| byte.is_ascii_digit() || matches!(byte, b'a'..=b'f');
    (digits.len() == 64 && digits.bytes().all(is_digit)).then_some(digits)
}

/// Part of `bytes` in `range`, truncated to the end.
pub(crate) fn part(bytes: &[u8], range: Range<u64>, meta: &ArtifactMeta) -> ArtifactPart {
    let place = |at: u64| usize::try_from(at).unwrap_or(usize::MAX).min(bytes.len());
    let (from, to) = (place(range.start), place(range.end));
    let part = bytes.get(from..to.max(from)).unwrap_or_default();
    ArtifactPart::new(Arc::from(part), from as u64, meta.clone())
}
