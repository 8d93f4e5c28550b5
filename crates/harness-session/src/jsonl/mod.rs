//! Sessions in JSON Lines files.

mod chain;
mod disk;
mod line;
mod lock;
mod options;
mod read;
mod session;

pub use line::{FORMAT_VERSION, Header, Program};
pub use options::{Limits, OpenOptions, SyncPolicy};
pub use session::{JsonlSession, Stored};

#[cfg_attr(not(feature = "testing"), expect(unused_imports, reason = "only tests break the disk"))]
pub(crate) use disk::{Fate, Probe, Step};
