//! Sessions in JSON Lines files.

mod compaction;
mod disk;
mod line;
mod lock;
mod options;
mod read;
mod replace;
mod session;

pub use line::{FORMAT_VERSION, Header, Program};
pub use options::{Limits, OpenOptions, SyncPolicy};
pub use session::{JsonlSession, Stored};

#[cfg(feature = "testing")]
pub(crate) use disk::{Fate, Probe};
