//! Which files a conversation has read, and what they were then.

use std::sync::Arc;

use harness_core::Origin;
use sha2::{Digest as _, Sha256};

use crate::state::{Keep, Kept, MOST_KEPT};

/// How many files of one conversation are remembered; beyond that the least recently read goes.
const MOST_FILES: usize = 1_000;

/// The files that conversations have read: shared by the tools that read and those that change files, so
/// that nothing is replaced which a model has not seen as it is now. Clones share the memory.
///
/// Of each file its digest is kept, never its content; of each of 50 conversations 1,000 files.
#[derive(Clone, Debug)]
pub struct SeenFiles(Arc<Kept<Files>>);

type Files = Vec<(String, [u8; 32])>;

impl Default for SeenFiles {
    fn default() -> Self {
        Self(Arc::new(Kept::new(Keep::Thread, MOST_KEPT)))
    }
}

/// Earlier content of a file, compared with the current one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Memory {
    /// It was not read.
    Unread,
    /// It is as it was read.
    Same,
    /// It was another when it was read.
    Changed,
}

impl SeenFiles {
    /// Remembers a file as it is now.
    pub(crate) fn remember(&self, origin: &Origin, path: &str, content: &str) {
        let digest = Sha256::digest(content.as_bytes()).into();
        self.0.with(origin, |files| {
            files.retain(|(known, _)| known != path);
            if files.len() >= MOST_FILES {
                files.remove(0);
            }
            files.push((path.to_owned(), digest));
        });
    }

    /// Compares a file with what was read earlier.
    pub(crate) fn recall(&self, origin: &Origin, path: &str, content: &str) -> Memory {
        let known =
            self.0.with(origin, |files| files.iter().find(|(known, _)| known == path).map(|(_, d)| *d));
        match known {
            None => Memory::Unread,
            Some(digest) if digest == <[u8; 32]>::from(Sha256::digest(content.as_bytes())) => Memory::Same,
            Some(_) => Memory::Changed,
        }
    }
}
