//! How a session file is opened.

use harness_core::port::Durability;
use harness_core::{Json, SessionId};

use super::disk::Disk;
use super::line::Program;

/// When an append is brought to stable storage before it returns.
///
/// In every case an entry is handed to the operating system before an append returns, so it survives the
/// end of the process, `kill -9` included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum SyncPolicy {
    /// Never: the operating system decides when. The end of the machine may cost the last entries.
    Never,
    /// When the entry asks for it ([`Durability::Sync`]): at the end of turns and runs and before an
    /// `unsafe` call runs.
    #[default]
    WhenAsked,
    /// With every append.
    Always,
}

impl SyncPolicy {
    pub(crate) fn wants(self, asked: Durability) -> bool {
        match self {
            Self::Never => false,
            Self::WhenAsked => asked == Durability::Sync,
            Self::Always => true,
        }
    }
}

/// What a session file may hold, checked both when it is written and when it is read: what append writes,
/// load reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// The longest line, in bytes without its line feed. Default 64 MiB.
    pub line_bytes: u64,
    /// The largest file, in bytes. Default 1 GiB.
    pub file_bytes: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self { line_bytes: 64 << 20, file_bytes: 1 << 30 }
    }
}

/// How a session file is opened.
///
/// ```
/// use harness_session::{OpenOptions, SyncPolicy};
///
/// let options = OpenOptions::new().create(false).sync(SyncPolicy::Always);
/// ```
#[derive(Clone, Debug)]
pub struct OpenOptions {
    pub(crate) create: bool,
    pub(crate) sync: SyncPolicy,
    pub(crate) limits: Limits,
    pub(crate) id: Option<SessionId>,
    pub(crate) meta: Option<Json>,
    pub(crate) program: Program,
    pub(crate) disk: Disk,
}

impl Default for OpenOptions {
    fn default() -> Self {
        Self::new()
    }
}

impl OpenOptions {
    /// The defaults: the file is created when it is missing, synced when asked.
    pub fn new() -> Self {
        Self {
            create: true,
            sync: SyncPolicy::default(),
            limits: Limits::default(),
            id: None,
            meta: None,
            program: Program::new("harness", env!("CARGO_PKG_VERSION")),
            disk: Disk::default(),
        }
    }

    /// Whether a missing file is an empty session (the file appears with the first append, its folder at
    /// once) or an error. Default true.
    #[must_use]
    pub fn create(mut self, create: bool) -> Self {
        self.create = create;
        self
    }

    /// When appends are synced. Default [`SyncPolicy::WhenAsked`].
    #[must_use]
    pub fn sync(mut self, sync: SyncPolicy) -> Self {
        self.sync = sync;
        self
    }

    /// The bounds of lines and of the file.
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// The name of a new session. Default: the file's name without extension, and the time of its first
    /// entry. An existing session keeps its own.
    #[must_use]
    pub fn id(mut self, id: impl Into<SessionId>) -> Self {
        self.id = Some(id.into());
        self
    }

    /// The caller's data for the header of a new session, for example the hash of the descriptor. It is
    /// stored as it is: put no secret in it.
    #[must_use]
    pub fn meta(mut self, meta: Json) -> Self {
        self.meta = Some(meta);
        self
    }

    /// The program that the header of a new session names. Default: harness and the version of this crate.
    #[must_use]
    pub fn program(mut self, name: impl Into<String>, version: impl Into<String>) -> Self {
        self.program = Program::new(name, version);
        self
    }

    #[cfg(feature = "testing")]
    pub(crate) fn probe(mut self, probe: std::sync::Arc<dyn super::disk::Probe>) -> Self {
        self.disk.probe = Some(probe);
        self
    }
}
