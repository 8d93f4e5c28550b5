//! Sessions in JSON Lines files.

mod append;
mod branch;
mod compaction;
mod entries;
mod guard;
mod line;
mod lock;
mod options;
mod pairs;
mod read;
mod repair;
mod replace;
mod session;

use crate::disk;

pub use line::{FORMAT_VERSION, Header, Program};
pub(crate) use line::{Unreadable, WrittenNote, encode, header_line, reason};
pub use lock::Owner;
pub use options::{Limits, OpenOptions, SyncPolicy};
pub(crate) use read::{Whole, open as open_to_read, scan_whole};
pub use repair::{Quarantined, RepairReport};
pub(crate) use replace::{calls, places};
pub(crate) use session::check_file;
pub use session::{JsonlSession, Stored};
