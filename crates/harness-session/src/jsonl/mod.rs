//! Sessions in JSON Lines files.

mod append;
mod branch;
mod compaction;
mod entries;
mod guard;
mod home;
mod line;
mod lock;
mod options;
mod pairs;
mod read;
mod repair;
mod replace;
mod session;

use crate::disk;

pub(crate) use home::Home;
pub use line::{FORMAT_VERSION, Header, Program};
pub(crate) use line::{Unreadable, WrittenNote, encode, header_line, reason};
pub use lock::Owner;
pub use options::{Limits, OpenOptions, SyncPolicy};
pub(crate) use read::{Whole, scan_whole};
pub use repair::{Quarantined, RepairReport};
pub(crate) use replace::{calls, places};
pub use session::{FileSession, Stored};
