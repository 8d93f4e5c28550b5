//! The files of the project.

use std::path::Path;

use crate::fault::{Fault, Result};
use crate::repo::shown;

/// What holds nothing of the project's own (`.git` is a file in a linked checkout).
const FOREIGN: &[&str] = &[".git", "target", "node_modules"];

/// Every text file below a folder.
#[derive(Debug, Default)]
pub(super) struct Tree {
    files: Vec<File>,
}

/// One text file.
#[derive(Debug)]
pub(super) struct File {
    /// Relative to the tree, with `/` between folders.
    pub(super) path: String,
    /// Its text.
    pub(super) text: String,
}

impl File {
    /// Whether it is Rust source.
    pub(super) fn is_rust(&self) -> bool {
        Path::new(&self.path).extension().is_some_and(|extension| extension == "rs")
    }
}

impl Tree {
    /// Reads everything below `root`; files that are not UTF-8 are left out.
    pub(super) fn read(root: &Path) -> Result<Self> {
        let mut tree = Self::default();
        tree.add(root, "")?;
        Ok(tree)
    }

    fn add(&mut self, folder: &Path, prefix: &str) -> Result<()> {
        let unreadable = |e| Fault::because(shown(folder), e);
        for entry in std::fs::read_dir(folder).map_err(unreadable)? {
            let entry = entry.map_err(unreadable)?;
            let name = entry.file_name().to_string_lossy().into_owned();
            if FOREIGN.contains(&name.as_str()) {
                continue;
            }
            let path = format!("{prefix}{name}");
            let kind = entry.file_type().map_err(unreadable)?;
            if kind.is_dir() {
                self.add(&entry.path(), &format!("{path}/"))?;
            } else if kind.is_file() {
                let bytes = std::fs::read(entry.path()).map_err(unreadable)?;
                self.files.extend(String::from_utf8(bytes).ok().map(|text| File { path, text }));
            }
        }
        Ok(())
    }

    /// All files, in no particular order.
    pub(super) fn files(&self) -> &[File] {
        &self.files
    }

    /// The text of one file.
    pub(super) fn text(&self, path: &str) -> Option<&str> {
        self.files.iter().find(|file| file.path == path).map(|file| file.text.as_str())
    }

    /// A tree of literal files, for tests of rules.
    #[cfg(test)]
    pub(super) fn of(files: &[(&str, &str)]) -> Self {
        let file = |&(path, text): &(&str, &str)| File { path: path.to_owned(), text: text.to_owned() };
        Self { files: files.iter().map(file).collect() }
    }
}
