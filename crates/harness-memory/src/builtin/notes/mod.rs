//! Long-term memory: notes that outlive runs, found again by their words and, with an embedder, by what
//! they are alike to.
//!
//! [`LongTermMemory`] is what layers and tools use; it keeps notes in a [`NoteStore`]: [`LocalNotes`] in
//! memory, `SqliteNotes` (feature `sqlite`) in one file, or one of your own.

mod local;
mod memory;
mod note;
#[cfg(feature = "sqlite")]
mod sqlite;
mod store;
pub(crate) mod words;

pub use local::LocalNotes;
pub use memory::{Added, Found, LongTermMemory, MemoryBounds, NoteQuery, Recalled, WhenFull};
pub use note::{Note, NoteDraft, NoteScope, NoteSource};
#[cfg(feature = "sqlite")]
pub use sqlite::SqliteNotes;
pub use store::{DynNoteStore, Embedding, NoteStore, Put, Ranked, Within};
