//! Going back in a session, and what is kept beside its transcript.

use harness_core::EntryId;
use harness_core::port::EntryHead;

use super::session::JsonlSession;
use crate::chain::End;
use crate::error::Error;
use crate::note::Note;
use crate::tree::Tree;

impl JsonlSession {
    /// The entry after which the next one goes; `None` before the first.
    ///
    /// # Errors
    /// As of a load.
    pub fn leaf(&self) -> Result<Option<EntryId>, Error> {
        let mut state = self.0.at_rest()?;
        if state.tail.is_none() {
            self.0.scan(&mut state)?;
        }
        Ok(state.tail.as_ref().and_then(|tail| tail.last.clone()))
    }

    /// Continues after the entry `at`, or before all entries: later appends follow it, and a load
    /// shows its branch. Other branches stay in the file.
    ///
    /// Nothing is written: a session that is reopened continues after its last line.
    ///
    /// # Errors
    /// [`Error::UnknownEntry`], and those of a load.
    pub fn branch(&self, at: Option<&EntryId>) -> Result<(), Error> {
        let mut state = self.0.at_rest()?;
        self.0.scan(&mut state)?;
        let place = match at {
            Some(id) => Some(state.chain.find(id.as_str()).ok_or_else(|| self.0.unknown(id))?),
            None => None,
        };
        state.end = End::At(place);
        self.0.scan(&mut state).map(drop)
    }

    /// Adds a note and returns its id.
    ///
    /// # Errors
    /// [`Error::UnknownEntry`] if it names an unknown entry, and those of an append.
    pub fn note(&self, head: &EntryHead, note: &Note) -> Result<EntryId, Error> {
        self.0.append_note(head, note)
    }

    /// All entries of all branches, as they are now.
    ///
    /// # Errors
    /// As of [`Tree::read`].
    pub fn tree(&self) -> Result<Tree, Error> {
        let state = self.0.at_rest()?;
        let tree = Tree::read(self.path(), self.0.options.limits);
        drop(state);
        tree
    }
}
