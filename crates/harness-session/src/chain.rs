//! Which entries lead to which.

use std::borrow::Cow;
use std::collections::HashMap;

use harness_core::EntryId;

use crate::spine::Path;

/// Parent of an entry, as written.
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

/// Entry after which a session continues.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum End {
    /// After the last one of the file.
    #[default]
    Last,
    /// After the one at this place; before all of them when there is none.
    At(Option<u32>),
}

const ROOT: u32 = u32::MAX;

/// A number that is written in its only form.
fn number(digits: &str) -> Option<u32> {
    if digits.starts_with(['0', '+']) && digits != "0" { None } else { digits.parse().ok() }
}

/// The tree of entries of a session, in the order in which they are stored.
#[derive(Clone, Debug, Default)]
pub(crate) struct Chain {
    ids: Vec<EntryId>,
    parents: Vec<u32>,
    places: HashMap<EntryId, u32>,
    branched: bool,
    /// The largest number of an id that we made.
    made: u32,
}

impl Chain {
    /// How many entries there are.
    pub(crate) fn len(&self) -> u32 {
        u32::try_from(self.ids.len()).unwrap_or(ROOT)
    }

    /// Adds an entry and returns its place.
    ///
    /// # Errors
    /// Its id or its parent is invalid.
    pub(crate) fn push(&mut self, id: &str, parent: &Parent<'_>) -> Result<u32, String> {
        let place = self.len();
        if place == ROOT {
            return Err("the file has too many entries".to_owned());
        }
        let parent = match parent {
            Parent::Unsaid => place.checked_sub(1),
            Parent::Root => None,
            Parent::Of(name) => Some(self.find(name).ok_or_else(|| {
                format!("`parent_id` names the entry `{}`, which is not before it", clip(name))
            })?),
        };
        let id = EntryId::from(id);
        if self.places.contains_key(&id) {
            return Err(format!("`id` repeats the entry `{}`", clip(id.as_str())));
        }
        self.made = self.made.max(id.as_str().strip_prefix('e').and_then(number).unwrap_or(0));
        self.add(id, parent);
        Ok(place)
    }

    /// Adds a generated entry after the entry at `parent` and returns its place.
    pub(crate) fn grow(&mut self, parent: Option<u32>) -> u32 {
        let place = self.len();
        self.made = self.made.saturating_add(1);
        self.add(numbered(self.made), parent);
        place
    }

    fn add(&mut self, id: EntryId, parent: Option<u32>) {
        let place = self.len();
        self.branched |= parent != place.checked_sub(1);
        self.places.insert(id.clone(), place);
        self.ids.push(id);
        self.parents.push(parent.unwrap_or(ROOT));
    }

    /// The place of the entry named `id`.
    pub(crate) fn find(&self, id: &str) -> Option<u32> {
        let last = self.ids.last().filter(|last| last.as_str() == id);
        if last.is_some() { self.len().checked_sub(1) } else { self.places.get(&EntryId::from(id)).copied() }
    }

    /// The id of the entry at `place`.
    pub(crate) fn id(&self, place: u32) -> Option<EntryId> {
        self.ids.get(place as usize).cloned()
    }

    /// The id of the entry at `place`; after the last one, that which it will get when we make it.
    pub(crate) fn id_ahead(&self, place: u32) -> Option<EntryId> {
        let ahead = place.checked_sub(self.len());
        ahead.map_or_else(
            || self.id(place),
            |ahead| Some(numbered(self.made.saturating_add(ahead).saturating_add(1))),
        )
    }

    /// The entry that the one at `place` follows.
    pub(crate) fn parent(&self, place: u32) -> Option<u32> {
        self.parents.get(place as usize).copied().filter(|parent| *parent != ROOT)
    }

    /// The entries that lead to an end.
    pub(crate) fn path(&self, end: End) -> Path {
        match end {
            End::Last if !self.branched => Path::Whole,
            End::Last | End::At(_) => Path::Of(self.places_to(self.at(end))),
        }
    }

    /// The place of an end.
    pub(crate) fn at(&self, end: End) -> Option<u32> {
        match end {
            End::Last => self.len().checked_sub(1),
            End::At(place) => place,
        }
    }

    /// The places of the entries that lead to the one at `leaf`.
    pub(crate) fn places_to(&self, leaf: Option<u32>) -> Vec<u32> {
        let mut places = Vec::new();
        let mut at = leaf;
        while let Some(place) = at {
            places.push(place);
            at = self.parent(place);
        }
        places.reverse();
        places
    }

    /// The largest number of an id that we made.
    pub(crate) fn made(&self) -> u32 {
        self.made
    }
}

/// The id that is made for the entry of this number.
pub(crate) fn numbered(number: u32) -> EntryId {
    EntryId::from(format!("e{number}"))
}

/// The id of a line that has none, by its line number.
pub(crate) fn implied(line: u64) -> EntryId {
    EntryId::from(format!("line{line}"))
}

/// At most 40 characters of a foreign text, for messages.
pub(crate) fn clip(text: &str) -> String {
    text.chars().take(40).collect()
}
