//! What was sent before, and where in it the editor is.

use std::collections::{BTreeMap, VecDeque};

/// More entries than these are forgotten, the oldest first.
const MOST_ENTRIES: usize = 1_000;

/// Changed entries of which the changes are kept until something is sent.
const MOST_CHANGED: usize = 32;

/// Entries, oldest first, with a place among them; behind the last one is the draft.
#[derive(Debug, Default)]
pub(super) struct History {
    entries: VecDeque<String>,
    /// The entry that is shown; `None` for the draft.
    at: Option<usize>,
    draft: String,
    /// Entries as they were changed, by their places.
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

    /// Adds what was sent, unless the last entry is the same, and goes back to an empty draft.
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

    /// Goes to the entry before and leaves `text` where the editor is.
    pub(super) fn older(&mut self, text: &str) -> Option<String> {
        let at = self.at.unwrap_or(self.entries.len()).checked_sub(1)?;
        self.go_to(Some(at), text)
    }

    /// Goes to the entry behind, or to the draft.
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

    /// The newest entry before that place which holds the text; upper and lower case are the same unless the
    /// text has an upper-case letter.
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
