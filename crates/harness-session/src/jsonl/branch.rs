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

    /// Goes on after the entry `at`, or before all of them: what is appended next follows it, and a load shows
    /// what led to it. What lies on other branches stays in the file.
    ///
    /// Nothing is written: a session that is opened again goes on after its last line.
    ///
    /// # Errors
    /// [`Error::UnknownEntry`], and as of a load.
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

    /// Adds a note; tells its name.
    ///
    /// # Errors
    /// [`Error::UnknownEntry`] when it speaks of an entry that is not there, and as of an append.
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
