//! Notes of a scratchpad, by path.

use std::collections::BTreeMap;

use harness_core::Json;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::super::tree::Tree;

/// Maximum notes, and bytes of a path.
const MAX_NOTES: usize = 1_000;
const MAX_PATH: usize = 1_024;

/// Bounds of the notes of a scratchpad, in bytes of UTF-8.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct NoteBounds {
    /// Bytes of one note. Default 64 KiB.
    pub note: usize,
    /// Bytes of all notes. Default 256 KiB.
    pub total: usize,
}

impl Default for NoteBounds {
    fn default() -> Self {
        Self { note: 65_536, total: 262_144 }
    }
}

#[derive(Deserialize, JsonSchema)]
pub(super) struct List {
    /// Only notes whose path starts with this.
    #[serde(default)]
    pub(super) prefix: String,
}

#[derive(Deserialize, JsonSchema)]
pub(super) struct Read {
    /// Path of the note.
    pub(super) path: String,
}

#[derive(Deserialize, JsonSchema)]
pub(super) struct Write {
    /// Path of the note.
    pub(super) path: String,
    /// New content.
    pub(super) content: String,
}

#[derive(Deserialize, JsonSchema)]
pub(super) struct Edit {
    /// Path of the note.
    pub(super) path: String,
    /// Text to replace; must occur exactly once unless `replace_all` is true.
    pub(super) old_string: String,
    /// Replacement.
    pub(super) new_string: String,
    /// Replaces every occurrence.
    #[serde(default)]
    pub(super) replace_all: bool,
}

#[derive(Serialize)]
struct Written<'a> {
    path: &'a str,
    bytes: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    replacements: Option<usize>,
}

/// Notes by path.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Notes(BTreeMap<String, String>);

impl Notes {
    pub(super) fn of(tree: Tree) -> Self {
        let Tree::Object(entries) = tree else { return Self::default() };
        let note = |(path, tree)| if let Tree::Text(text) = tree { Some((path, text)) } else { None };
        Self(entries.into_iter().filter_map(note).collect())
    }

    pub(super) fn tree(&self) -> Tree {
        Tree::Object(self.0.iter().map(|(path, text)| (path.clone(), Tree::Text(text.clone()))).collect())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// One line per note.
    pub(super) fn lines(&self) -> String {
        let lines = self.0.iter().map(|(path, text)| format!("- {path} ({} bytes)", text.len()));
        lines.collect::<Vec<_>>().join("\n")
    }

    pub(super) fn list(&self, prefix: &str) -> Json {
        let paths: Vec<&String> = self.0.keys().filter(|path| path.starts_with(prefix)).collect();
        Json::of(&paths).unwrap_or_default()
    }

    pub(super) fn read(&self, path: &str) -> Result<&str, String> {
        self.0.get(path).map(String::as_str).ok_or_else(|| format!("note `{path}` not found"))
    }

    pub(super) fn write(&mut self, path: &str, content: String, bounds: NoteBounds) -> Result<Json, String> {
        let bytes = content.len();
        self.check(path, bytes, bounds)?;
        self.0.insert(path.to_owned(), content);
        Ok(Json::of(&Written { path, bytes, replacements: None }).unwrap_or_default())
    }

    pub(super) fn edit(&mut self, edit: &Edit, bounds: NoteBounds) -> Result<Json, String> {
        let Edit { path, old_string: old, new_string: new, replace_all } = edit;
        let content = self.read(path)?;
        let found = if old.is_empty() { 0 } else { content.matches(old.as_str()).count() };
        if found == 0 || (!replace_all && found != 1) {
            return Err(format!(
                "`old_string` occurs {found} times in note `{path}`; it must occur exactly once"
            ));
        }
        // Checked before anything of that size is made.
        self.check(path, content.len() - found * old.len() + found * new.len(), bounds)?;
        let content = content.replace(old.as_str(), new);
        let bytes = content.len();
        self.0.insert(path.clone(), content);
        Ok(Json::of(&Written { path, bytes, replacements: Some(found) }).unwrap_or_default())
    }

    fn check(&self, path: &str, bytes: usize, bounds: NoteBounds) -> Result<(), String> {
        let others: usize =
            self.0.iter().filter(|(known, _)| *known != path).map(|(_, text)| text.len()).sum();
        if path.is_empty() || path.len() > MAX_PATH {
            return Err(format!("the path has {} bytes; 1 to {MAX_PATH} are permitted", path.len()));
        }
        if bytes > bounds.note {
            return Err(format!("the note has {bytes} bytes; at most {} are permitted", bounds.note));
        }
        if others + bytes > bounds.total {
            return Err(format!(
                "all notes have {} bytes; at most {} are permitted",
                others + bytes,
                bounds.total
            ));
        }
        if self.0.len() >= MAX_NOTES && !self.0.contains_key(path) {
            return Err(format!("there are {MAX_NOTES} notes, which is the maximum"));
        }
        Ok(())
    }
}
