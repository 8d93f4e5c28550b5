//! How a session file is opened.

use harness_core::port::Durability;
use harness_core::{Json, SessionId};

use super::disk::Disk;
use super::line::Program;
use crate::seal::Key;

/// How safe an entry is when an append returns.
///
/// | policy | name | survives |
/// |---|---|---|
/// | [`Buffered`](Self::Buffered) | `none` | nothing but an orderly end |
/// | [`Never`](Self::Never) | `flush` | the end of the process, `kill -9` included |
/// | [`WhenAsked`](Self::WhenAsked) | `auto` | the same; at the end of runs and before an `unsafe` call, the end of the machine too |
/// | [`Always`](Self::Always) | `fsync` | the end of the machine |
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum SyncPolicy {
    /// Entries are collected in the process and written when they are 64 KiB, when an entry asks for
    /// [`Durability::Sync`], at the end of a run, before a load, and when the session is dropped; never synced.
    /// For sessions that may be lost, and for writing many at once. A write that fails keeps what was
    /// collected for the next.
    Buffered,
    /// Handed to the operating system, which decides when they reach the disk. The end of the machine may
    /// cost the last entries.
    Never,
    /// Handed to the operating system, and synced when the entry asks for it ([`Durability::Sync`]): at the
    /// end of turns and runs and before an `unsafe` call runs.
    #[default]
    WhenAsked,
    /// Synced with every append.
    Always,
}

impl SyncPolicy {
    /// All policies, the least safe first.
    pub const ALL: [Self; 4] = [Self::Buffered, Self::Never, Self::WhenAsked, Self::Always];

    /// The name of the policy in options of programs.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Buffered => "none",
            Self::Never => "flush",
            Self::WhenAsked => "auto",
            Self::Always => "fsync",
        }
    }

    /// The policy of a name.
    ///
    /// ```
    /// use harness_session::SyncPolicy;
    ///
    /// assert_eq!(SyncPolicy::named("fsync"), Some(SyncPolicy::Always));
    /// assert_eq!(SyncPolicy::named("perhaps"), None);
    /// ```
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|policy| policy.as_str() == name)
    }

    /// SQLite's `synchronous` for an append: in its write-ahead log, `normal` syncs at checkpoints only.
    pub(crate) fn synchronous(self, sync: bool) -> &'static str {
        match (self, sync) {
            (_, true) => "full",
            (Self::Buffered, false) => "off",
            (Self::Never | Self::WhenAsked | Self::Always, false) => "normal",
        }
    }

    pub(crate) fn wants(self, asked: Durability) -> bool {
        match self {
            Self::Buffered | Self::Never => false,
            Self::WhenAsked => asked == Durability::Sync,
            Self::Always => true,
        }
    }
}

/// Size limits of a session file, checked both when writing and when reading, so that every written
/// file can be read.
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
    pub(crate) key: Option<Key>,
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
            key: None,
            disk: Disk::default(),
        }
    }

    /// Sets whether a missing file is an empty session (the file is created by the first append,
    /// its directory immediately) or an error. Default: `true`.
    #[must_use]
    pub fn create(mut self, create: bool) -> Self {
        self.create = create;
        self
    }

    /// Encrypts a new session with `key`, and opens an encrypted one with it. A session that is not encrypted
    /// is not opened for writing with a key. Default: none.
    #[cfg(feature = "encryption")]
    #[must_use]
    pub fn key(mut self, key: impl Into<Option<Key>>) -> Self {
        self.key = key.into();
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
}
