//! Which entries lead to the last one.

use std::borrow::Cow;
use std::collections::HashMap;

use harness_core::EntryId;

/// What an entry says it follows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Parent<'a> {
    /// Nothing: it follows the entry before it in the file.
    #[default]
    Unsaid,
    /// No entry: it is a first one.
    Root,
    /// The entry of this id.
    Of(Cow<'a, str>),
}

const ROOT: u32 = u32::MAX;

/// The tree of entries of a file, in the order of the file. A file that only ever grew at its end costs no
/// look-up table.
#[derive(Debug, Default)]
pub(crate) struct Chain {
    ids: Vec<EntryId>,
    parents: Vec<u32>,
    /// Built when an id or a parent is not the one that plain growth gives.
    index: Option<HashMap<Box<str>, u32>>,
    branched: bool,
    /// The largest number of an id that we made.
    made: u64,
}

impl Chain {
    /// Adds an entry.
    ///
    /// # Errors
    /// What is wrong with its id or its parent.
    pub(crate) fn push(&mut self, id: EntryId, parent: &Parent<'_>) -> Result<(), String> {
        let place = u32::try_from(self.ids.len()).map_err(|_| "the file has too many entries".to_owned())?;
        let before = place.checked_sub(1);
        let parent = match parent {
            Parent::Unsaid => before,
            Parent::Root => None,
            Parent::Of(name) if self.ids.last().is_some_and(|last| *last == **name) => before,
            Parent::Of(name) => Some(self.find(name).ok_or_else(|| {
                format!("`parent_id` names the entry `{}`, which is not before it", clip(name))
            })?),
        };
        self.branched |= parent != before;
        self.claim(&id, place)?;
        self.ids.push(id);
        self.parents.push(parent.unwrap_or(ROOT));
        Ok(())
    }

    /// Checks that an id is new. Ids that we made count upwards, which shows it without a look-up.
    fn claim(&mut self, id: &EntryId, place: u32) -> Result<(), String> {
        match number_of(id.as_str()) {
            Some(number) if number > self.made => self.made = number,
            Some(_) | None if self.find(id.as_str()).is_some() => {
                return Err(format!("`id` repeats the entry `{}`", clip(id.as_str())));
            }
            Some(_) | None => {}
        }
        if let Some(index) = &mut self.index {
            index.insert(id.as_str().into(), place);
        }
        Ok(())
    }

    fn find(&mut self, id: &str) -> Option<u32> {
        let ids = &self.ids;
        self.index
            .get_or_insert_with(|| (0..).zip(ids).map(|(place, id)| (id.as_str().into(), place)).collect())
            .get(id)
            .copied()
    }

    /// The places of the entries that lead to the last one; `None` when that is all of them.
    pub(crate) fn path(&self) -> Option<Vec<usize>> {
        if !self.branched {
            return None;
        }
        let mut path = Vec::new();
        let mut at = self.parents.len().checked_sub(1);
        while let Some(place) = at {
            path.push(place);
            at = self.parents.get(place).filter(|parent| **parent != ROOT).map(|parent| *parent as usize);
        }
        path.reverse();
        Some(path)
    }

    /// The last entry, and the largest number of an id that we made.
    pub(crate) fn end(&self) -> (Option<EntryId>, u64) {
        (self.ids.last().cloned(), self.made)
    }
}

/// The id that is made for the entry of this number.
pub(crate) fn numbered(number: u64) -> EntryId {
    EntryId::from(format!("e{number}"))
}

/// The id of a line that has none, by its line number.
pub(crate) fn implied(line: u64) -> EntryId {
    EntryId::from(format!("line{line}"))
}

fn number_of(id: &str) -> Option<u64> {
    id.strip_prefix('e').filter(|digits| !digits.starts_with(['0', '+']))?.parse().ok()
}

/// At most 40 characters of a foreign text, for messages.
pub(crate) fn clip(text: &str) -> String {
    text.chars().take(40).collect()
}
