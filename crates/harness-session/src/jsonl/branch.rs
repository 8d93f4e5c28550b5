//! Going back in a session, and what is kept beside its transcript.

use std::fs;
use std::path::Path;

use harness_core::EntryId;
use harness_core::port::EntryHead;

use super::home::io_error;
use super::session::{FileSession, lock};
use crate::chain::End;
use crate::error::{Action, Error};
use crate::note::Note;
use crate::tree::Tree;

impl FileSession {
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

    /// Bytes that the session takes.
    ///
    /// # Errors
    /// As of a load.
    pub fn bytes(&self) -> Result<u64, Error> {
        let mut state = self.0.at_rest()?;
        if state.tail.is_none() {
            self.0.scan(&mut state)?;
        }
        Ok(state.tail.as_ref().map_or(0, |tail| tail.length))
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

    /// Removes the session at a path, unless it has an owner. Nothing happens if it does not exist.
    ///
    /// # Errors
    /// [`Error::Locked`], and those of the operating system.
    pub fn remove(path: impl AsRef<Path>) -> Result<(), Error> {
        let owned = match lock(path.as_ref()) {
            Err(Error::NotFound { .. }) => return Ok(()),
            owned => owned?,
        };
        let home = &owned.home;
        match &home.rows {
            Some(rows) => rows.remove(),
            None => {
                fs::remove_file(&home.real).map_err(|source| io_error(Action::Remove, &home.path, source))
            }
        }
    }

    /// All entries of all branches, as they are now.
    ///
    /// # Errors
    /// As of [`Tree::read`].
    pub fn tree(&self) -> Result<Tree, Error> {
        let state = self.0.at_rest()?;
        let tree = Tree::read(self.path(), &self.0.options);
        drop(state);
        tree
    }
}
