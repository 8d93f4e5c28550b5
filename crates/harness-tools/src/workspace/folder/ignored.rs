//! Files that `.gitignore` files exclude from a search.

use std::os::fd::BorrowedFd;

use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};

use super::jail::{self, Names};

/// Name of the files with patterns.
const FILE: &str = ".gitignore";

/// Maximum size in bytes of a file with patterns, and the number of its patterns; more are ignored.
const MOST_BYTES: u64 = 256 << 10;
const MOST_LINES: usize = 4_000;

/// The patterns of the directories from the root down to the current one.
#[derive(Debug, Default)]
pub(super) struct Ignored(Vec<(String, Gitignore)>);

impl Ignored {
    /// Whether an entry of a directory is excluded. Entries come in the order of a walk.
    pub(super) fn excludes(&mut self, path: &str, is_folder: bool, folder: BorrowedFd<'_>) -> bool {
        let path = path.trim_start_matches('/');
        self.go_to(path.rsplit_once('/').map_or("", |(parent, _)| parent), folder);
        for (_, patterns) in self.0.iter().rev() {
            match patterns.matched(path, is_folder) {
                Match::Ignore(_) => return true,
                Match::Whitelist(_) => return false,
                Match::None => {}
            }
        }
        false
    }

    /// Leaves the directories that do not contain this one, and reads its patterns.
    fn go_to(&mut self, parent: &str, folder: BorrowedFd<'_>) {
        let contains = |dir: &str| {
            let below = parent.strip_prefix(dir);
            dir.is_empty() || below.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        while self.0.last().is_some_and(|(dir, _)| !contains(dir)) {
            self.0.pop();
        }
        if self.0.last().is_none_or(|(dir, _)| dir != parent) {
            self.0.push((parent.to_owned(), patterns(parent, folder)));
        }
    }
}

/// The patterns of a directory; none if it has no file of them that can be read.
fn patterns(parent: &str, folder: BorrowedFd<'_>) -> Gitignore {
    let mut builder = GitignoreBuilder::new(parent);
    let file = Names::of(FILE).and_then(|names| jail::bytes(folder, FILE, &names, MOST_BYTES));
    let text = file.ok().flatten().map(|(bytes, _)| String::from_utf8_lossy(&bytes).into_owned());
    for line in text.unwrap_or_default().lines().take(MOST_LINES) {
        // A pattern that is invalid excludes nothing.
        let _ = builder.add_line(None, line);
    }
    builder.build().unwrap_or_else(|_| Gitignore::empty())
}
