//! The session file and its lock as they were left, checked before each append.

use std::cmp::Ordering;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::sync::Arc;

use harness_core::port::SessionError;

use super::disk::set_aside;
use super::home::{Held, io_error, refused_lock};
use super::lock::{hold, hold_new, is_at};
use super::session::{Shared, State};
use crate::error::{Action, Disturbance, Error};

impl Shared {
    /// Checks that the file and its lock are unchanged, opens the file if needed, and truncates
    /// unacknowledged data.
    ///
    /// # Errors
    /// [`Error::Locked`] if another owner took over, [`Error::Disturbed`] if the file was changed,
    /// and those of the operating system.
    pub(super) fn heal(&self, state: &mut State) -> Result<(), Error> {
        if !std::mem::take(&mut state.checked) {
            self.keep_lock(state)?;
            self.keep_file(state)?;
        }
        let disk = &self.options.disk;
        let write_error = |source| io_error(Action::Write, &self.home.path, source);
        let tail = state.tail.get_or_insert_default();
        state.synced.get_or_insert(tail.length);
        let Some(file) = &state.file else { return Ok(()) };
        if tail.torn > 0 && !state.dirty {
            set_aside(disk, &self.home.real, tail.length, &self.home.beside(".torn")).map_err(write_error)?;
            state.dirty = true;
        }
        if state.dirty {
            disk.cut(file, tail.length).map_err(write_error)?;
            state.dirty = false;
            tail.torn = 0;
        }
        Ok(())
    }

    /// Whether one write is all that an append needs: the file is open and, like its lock, as it was left.
    pub(super) fn is_as_left(&self, state: &State) -> bool {
        let (Some(file), Some(lock), Some(tail)) = (&state.file, &state.lock, &state.tail) else {
            return false;
        };
        let length = fs::metadata(&self.home.real).is_ok_and(|found| found.len() == tail.length);
        let clean = !state.dirty && tail.torn == 0;
        length && clean && lock.holds().unwrap_or(false) && is_at(file, &self.home.real).unwrap_or(false)
    }

    /// Takes the lock again when its file was removed or its connection broke: meanwhile others could take it.
    pub(super) fn keep_lock(&self, state: &mut State) -> Result<(), Error> {
        let lock_error = |source| io_error(Action::Lock, &self.home.beside(".lock"), source);
        let holds = state.lock.as_ref().map_or(Ok(false), Held::holds).map_err(lock_error)?;
        if !holds {
            tracing::warn!(path = %self.home.path.display(), "the lock was lost; it is taken again");
            state.lock = None;
            state.lock = Some(self.home.lock()?);
        }
        Ok(())
    }

    /// Opens the file when it is not open yet, and checks it.
    fn keep_file(&self, state: &mut State) -> Result<(), Error> {
        if state.file.is_some() {
            return self.check_file(state);
        }
        let opened = self.options.disk.open_to_append(&self.home.real);
        let opened = opened.map_err(|source| io_error(Action::Open, &self.home.path, source))?;
        hold(&opened, false).map_err(|refused| refused_lock(refused, &self.home.path, &self.home.real))?;
        state.file = Some(Arc::new(opened));
        let checked = self.check_file(state);
        if checked.is_err() {
            state.file = None;
        }
        checked
    }

    /// Checks that the file, when it is open, has its name and its length. One that was removed is written
    /// again.
    pub(super) fn check_file(&self, state: &mut State) -> Result<(), Error> {
        let Some(file) = state.file.clone() else { return Ok(()) };
        let open_error = |source| io_error(Action::Open, &self.home.path, source);
        let found = match fs::metadata(&self.home.real) {
            Ok(found) => found,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return self.restore(state, &file),
            Err(source) => return Err(open_error(source)),
        };
        let held = file.metadata().map_err(open_error)?;
        let disturbed = |how| Err(Error::Disturbed { path: self.home.path.clone(), how });
        if (held.dev(), held.ino()) != (found.dev(), found.ino()) {
            return disturbed(Disturbance::Replaced);
        }
        let Some(from) = state.left_bytes() else { return Ok(()) };
        let to = found.len();
        match to.cmp(&from) {
            Ordering::Less => disturbed(Disturbance::Cut { from, to }),
            // What a failed append wrote does not count.
            Ordering::Greater if !state.dirty => disturbed(Disturbance::Grown { from, to }),
            Ordering::Equal | Ordering::Greater => Ok(()),
        }
    }

    /// Writes a file that was removed again: what is open still holds all of it.
    fn restore(&self, state: &mut State, removed: &fs::File) -> Result<(), Error> {
        let restore_error = |source| io_error(Action::PutBack, &self.home.path, source);
        let bytes = match state.left_bytes() {
            Some(bytes) => bytes,
            None => removed.metadata().map_err(restore_error)?.len(),
        };
        let mut placed = None;
        let outcome = self.options.disk.restore(&self.home.real, removed, bytes, |file| {
            hold_new(&file)?;
            placed = Some(file);
            Ok(())
        });
        if let Some(file) = placed.filter(|file| is_at(file, &self.home.real).unwrap_or(false)) {
            state.file = Some(Arc::new(file));
            (state.dirty, state.synced, state.listed) = (false, None, false);
        }
        outcome.map_err(restore_error)?;
        let path = self.home.path.display();
        tracing::warn!(%path, "the session file was removed; it was written again");
        let text =
            format!("session `{path}` was removed while in use; it was written again, nothing is lost");
        state.notice = Some(SessionError::new("session.removed", text));
        Ok(())
    }
}

impl State {
    /// The bytes that the file has, or has at least, when bytes follow that do not count; `None` when it was
    /// not read yet.
    fn left_bytes(&self) -> Option<u64> {
        let tail = self.tail.as_ref()?;
        Some(if self.dirty { tail.length } else { tail.length.saturating_add(tail.torn) })
    }
}
