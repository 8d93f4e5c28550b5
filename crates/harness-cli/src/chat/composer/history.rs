//! Sent messages, and the position of the editor among them.

use std::collections::{BTreeMap, VecDeque};

/// Maximum number of entries; the oldest are dropped.
const MOST_ENTRIES: usize = 1_000;

/// Maximum number of edited entries whose changes are kept until something is sent.
const MOST_CHANGED: usize = 32;

/// Entries, oldest first, with a current position; the draft follows the last entry.
#[derive(Debug, Default)]
pub(super) struct History {
    entries: VecDeque<String>,
    /// Index of the shown entry; `None` for the draft.
    at: Option<usize>,
    draft: String,
    /// Edited entries by index.
    changed: BTreeMap<usize, String>,
}

impl History {
    pub(super) fn new(entries: Vec<String>) -> Self {
        let mut history = Self::default();
        for entry in entries {
            history.add(&entry);
        }
        history
    }

    /// Adds a sent message unless it equals the last entry, and returns to an empty draft.
    pub(super) fn add(&mut self, text: &str) {
        self.at = None;
        self.draft.clear();
        self.changed.clear();
        if text.trim().is_empty() || self.entries.back().is_some_and(|last| last == text) {
            return;
        }
        self.entries.push_back(text.to_owned());
        if self.entries.len() > MOST_ENTRIES {
            self.entries.pop_front();
        }
    }

    /// Moves to the previous entry and keeps `text` as the edit of the current one.
    pub(super) fn older(&mut self, text: &str) -> Option<String> {
        let at = self.at.unwrap_or(self.entries.len()).checked_sub(1)?;
        self.go_to(Some(at), text)
    }

    /// Moves to the next entry, or to the draft.
    pub(super) fn newer(&mut self, text: &str) -> Option<String> {
        let at = self.at? + 1;
        self.go_to((at < self.entries.len()).then_some(at), text)
    }

    fn go_to(&mut self, to: Option<usize>, text: &str) -> Option<String> {
        match self.at {
            None => text.clone_into(&mut self.draft),
            Some(at) if self.entries.get(at).is_some_and(|entry| entry == text) => {
                self.changed.remove(&at);
            }
            Some(at) if self.changed.len() < MOST_CHANGED || self.changed.contains_key(&at) => {
                self.changed.insert(at, text.to_owned());
            }
            Some(_) => {}
        }
        self.at = to;
        match to {
            None => Some(self.draft.clone()),
            Some(at) => self.changed.get(&at).or_else(|| self.entries.get(at)).cloned(),
        }
    }

    /// Returns the newest entry before that index that contains the text. Case is ignored unless the text has an
    /// upper-case letter.
    pub(super) fn find(&self, text: &str, before: usize) -> Option<usize> {
        let exact = text.chars().any(char::is_uppercase);
        let holds = |entry: &str| {
            if exact { entry.contains(text) } else { entry.to_lowercase().contains(text) }
        };
        (0..before.min(self.entries.len())).rev().find(|at| self.entries.get(*at).is_some_and(|e| holds(e)))
    }

    pub(super) fn entry(&self, at: usize) -> Option<&str> {
        self.entries.get(at).map(String::as_str)
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }
}
