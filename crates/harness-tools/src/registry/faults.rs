//! Collecting the faults of a file.

use std::path::Path;

use super::yaml::{self, Part, Step};
use crate::error::{RegistryFault, ToolsError};

/// How many faults are reported at once.
const MOST: usize = 50;

/// The faults found so far in one file.
pub(crate) struct Faults<'t> {
    text: &'t str,
    list: Vec<RegistryFault>,
    more: usize,
}

impl<'t> Faults<'t> {
    /// No faults yet in the file of this text.
    pub(crate) fn new(text: &'t str) -> Self {
        Self { text, list: Vec::new(), more: 0 }
    }

    /// A fault of a value.
    pub(crate) fn value(&mut self, path: &[Step], problem: impl Into<String>, hint: Option<String>) {
        self.add(path, Part::Value, problem.into(), hint);
    }

    /// A fault of a key.
    pub(crate) fn key(&mut self, path: &[Step], problem: impl Into<String>, hint: Option<String>) {
        self.add(path, Part::Key, problem.into(), hint);
    }

    fn add(&mut self, path: &[Step], part: Part, problem: String, hint: Option<String>) {
        if self.list.len() == MOST {
            self.more += 1;
            return;
        }
        let place = yaml::place(self.text, path, part);
        self.list.push(RegistryFault { place, path: written(path), problem, hint });
    }

    /// All faults as one error, in the order of their places; `None` if there is none.
    pub(crate) fn into_error(mut self, file: &Path) -> Option<ToolsError> {
        self.list.sort_by_key(|fault| fault.place);
        let Self { list: faults, more, .. } = self;
        (!faults.is_empty()).then(|| ToolsError::Faulty { file: file.to_owned(), faults, more })
    }
}

/// `tools."orders.lookup".args[1]`.
fn written(path: &[Step]) -> String {
    let mut out = String::new();
    for step in path {
        match step {
            Step::Index(index) => out.extend(["[", &index.to_string(), "]"]),
            Step::Key(key) => {
                if !out.is_empty() {
                    out.push('.');
                }
                let plain = key.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-');
                if plain && !key.is_empty() {
                    out.push_str(key);
                } else {
                    out.extend(["\"", &key.escape_debug().to_string(), "\""]);
                }
            }
        }
    }
    out
}
