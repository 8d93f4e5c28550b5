//! The files of the project.

use std::collections::BTreeSet;
use std::path::Path;

use crate::fault::{Fault, Result};
use crate::repo::shown;

/// What holds nothing of the project's own (`.git` is a file in a linked checkout).
const FOREIGN: &[&str] = &[".git", "target", "node_modules"];

/// Every file below a folder: text files with their text, others by their path.
#[derive(Debug, Default)]
pub(super) struct Tree {
    files: Vec<File>,
    binaries: BTreeSet<String>,
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
    /// Reads everything below `root`.
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
                match String::from_utf8(bytes) {
                    Ok(text) => self.files.push(File { path, text }),
                    Err(_) => {
                        self.binaries.insert(path);
                    }
                }
            }
        }
        Ok(())
    }

    /// All text files, in no particular order.
    pub(super) fn files(&self) -> &[File] {
        &self.files
    }

    /// The text of one file.
    pub(super) fn text(&self, path: &str) -> Option<&str> {
        self.files.iter().find(|file| file.path == path).map(|file| file.text.as_str())
    }

    /// Whether there is a file at this path, of text or not.
    pub(super) fn has(&self, path: &str) -> bool {
        self.text(path).is_some() || self.binaries.contains(path)
    }

    /// The names of the test functions that are named after a number, `law_9_…` with the prefix `law_`, but for those in
    /// the file at `except`, whose examples are no tests.
    pub(super) fn tests_named(&self, prefix: &str, except: &str) -> BTreeSet<&str> {
        let files = self.files.iter().filter(|file| file.is_rust() && file.path != except);
        files
            .flat_map(|file| file.text.lines())
            .filter_map(|line| numbered_test(line.trim_start(), prefix))
            .collect()
    }

    /// Whether a function has this name.
    pub(super) fn has_function(&self, name: &str) -> bool {
        let declared = format!("fn {name}(");
        self.files.iter().filter(|file| file.is_rust()).any(|file| file.text.contains(&declared))
    }

    /// A tree of literal files, for tests of rules.
    #[cfg(test)]
    pub(super) fn of(files: &[(&str, &str)]) -> Self {
        let file = |&(path, text): &(&str, &str)| File { path: path.to_owned(), text: text.to_owned() };
        Self { files: files.iter().map(file).collect(), binaries: BTreeSet::new() }
    }
}

/// The name of the test function that a line declares, if it is the prefix, a number, and more.
fn numbered_test<'a>(line: &'a str, prefix: &str) -> Option<&'a str> {
    let rest = line.strip_prefix("async fn ").or_else(|| line.strip_prefix("fn "))?;
    let name = rest.split(['(', '<']).next()?;
    let (number, _) = name.strip_prefix(prefix)?.split_once('_')?;
    (!number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())).then_some(name)
}
