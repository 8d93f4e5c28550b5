//! Which entries lead to which.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

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

/// Compact id: generated ids and those of pi are stored inline, others in a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Key {
    /// `e` and a number: made here.
    Made(u32),
    /// `line` and a number: of a line without an id.
    Line(u32),
    /// Eight hexadecimal digits: made by pi.
    Hex(u32),
    /// The place in the table.
    Named(u32),
}

impl Key {
    /// The id, when it has a form that holds itself.
    fn short(id: &str) -> Option<Self> {
        if let Some(digits) = id.strip_prefix("line") {
            return number(digits).map(Self::Line);
        }
        if let Some(number) = id.strip_prefix('e').and_then(number) {
            return Some(Self::Made(number));
        }
        let hex = id.len() == 8 && id.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        if hex { u32::from_str_radix(id, 16).ok().map(Self::Hex) } else { None }
    }
}

/// A number that is written in its only form.
fn number(digits: &str) -> Option<u32> {
    if digits.starts_with(['0', '+']) && digits != "0" { None } else { digits.parse().ok() }
}

/// The tree of entries of a file, in the order of the file. A file that only ever grew at its end costs no
/// look-up table.
#[derive(Clone, Debug, Default)]
pub(crate) struct Chain {
    keys: Vec<Key>,
    parents: Vec<u32>,
    names: Vec<Arc<str>>,
    named: HashMap<Arc<str>, u32>,
    /// Built when an id or a parent is not the one that plain growth gives. Holds no named ones.
    index: Option<HashMap<Key, u32>>,
    branched: bool,
    /// The largest number of an id that we made.
    made: u32,
    /// The largest number of a line without an id.
    lines: u32,
}

impl Chain {
    /// How many entries there are.
    pub(crate) fn len(&self) -> u32 {
        u32::try_from(self.keys.len()).unwrap_or(ROOT)
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
        let before = place.checked_sub(1);
        let parent = match parent {
            Parent::Unsaid => before,
            Parent::Root => None,
            Parent::Of(name) => Some(self.find(name).ok_or_else(|| {
                format!("`parent_id` names the entry `{}`, which is not before it", clip(name))
            })?),
        };
        let key = self.claim(id, place)?;
        self.add(key, parent);
        Ok(place)
    }

    /// Adds a generated entry after the entry at `parent` and returns its place.
    pub(crate) fn grow(&mut self, parent: Option<u32>) -> u32 {
        let place = self.len();
        self.made = self.made.saturating_add(1);
        let key = Key::Made(self.made);
        if let Some(index) = &mut self.index {
            index.insert(key, place);
        }
        self.add(key, parent);
        place
    }

    fn add(&mut self, key: Key, parent: Option<u32>) {
        self.branched |= parent != self.len().checked_sub(1);
        self.keys.push(key);
        self.parents.push(parent.unwrap_or(ROOT));
    }

    /// Checks that an id is new. Ids that we made count upwards, which shows it without a look-up.
    fn claim(&mut self, id: &str, place: u32) -> Result<Key, String> {
        let key = Key::short(id);
        match key {
            Some(Key::Made(number)) if number > self.made => self.made = number,
            Some(Key::Line(number)) if number > self.lines => self.lines = number,
            Some(_) | None if self.find(id).is_some() => {
                return Err(format!("`id` repeats the entry `{}`", clip(id)));
            }
            Some(_) | None => {}
        }
        let key = key.unwrap_or_else(|| {
            let name: Arc<str> = id.into();
            self.named.insert(Arc::clone(&name), place);
            self.names.push(name);
            Key::Named(u32::try_from(self.names.len() - 1).unwrap_or(ROOT))
        });
        if let Some(index) = &mut self.index {
            index.insert(key, place);
        }
        Ok(key)
    }

    /// The place of the entry named `id`.
    pub(crate) fn find(&mut self, id: &str) -> Option<u32> {
        let Some(key) = Key::short(id) else { return self.named.get(id).copied() };
        if self.keys.last() == Some(&key) {
            return self.len().checked_sub(1);
        }
        let keys = &self.keys;
        self.index.get_or_insert_with(|| keys.iter().copied().zip(0..).collect()).get(&key).copied()
    }

    /// The id of the entry at `place`.
    pub(crate) fn id(&self, place: u32) -> Option<EntryId> {
        Some(match *self.keys.get(place as usize)? {
            Key::Made(number) => numbered(number),
            Key::Line(number) => implied(u64::from(number)),
            Key::Hex(number) => EntryId::from(format!("{number:08x}")),
            Key::Named(at) => EntryId::from(&**self.names.get(at as usize)?),
        })
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
