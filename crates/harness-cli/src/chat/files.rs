//! Files below the current directory, for the menu of `@`.

use std::fs;
use std::path::{Path, PathBuf};

use super::assistant::SKIPPED;

/// Maximum number of directory entries that are read.
const MOST: usize = 20_000;

/// Maximum depth of directories.
const DEEPEST: usize = 12;

/// Paths of the files and directories below a directory, in order; those of directories end with a slash. Hidden ones
/// and generated ones are skipped.
pub(super) fn list(root: &Path) -> Vec<String> {
    let mut found = Vec::new();
    let mut next: Vec<(PathBuf, String, usize)> = vec![(root.to_owned(), String::new(), 0)];
    let mut read = 0;
    while let Some((folder, shown, depth)) = next.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            read += 1;
            if read > MOST {
                found.sort_unstable();
                return found;
            }
            let Ok(name) = entry.file_name().into_string() else { continue };
            // Links are not followed, so that no directory is entered twice.
            let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
            if name.starts_with('.') || is_folder && SKIPPED.contains(&&*name) {
                continue;
            }
            if is_folder {
                found.push(format!("{shown}{name}/"));
                if depth < DEEPEST {
                    next.push((entry.path(), format!("{shown}{name}/"), depth + 1));
                }
            } else {
                found.push(format!("{shown}{name}"));
            }
        }
    }
    found.sort_unstable();
    found
}

/// Paths that match what was typed, the best first: names that start with it, then paths that contain it, then those
/// that contain its characters in order.
pub(super) fn matching<'f>(files: &'f [String], typed: &str, most: usize) -> Vec<&'f str> {
    let typed = typed.to_lowercase();
    let mut found: Vec<(u8, usize, &str)> = Vec::new();
    for file in files {
        let lower = file.to_lowercase();
        let trimmed = lower.trim_end_matches('/');
        let name = trimmed.rsplit('/').next().unwrap_or(trimmed);
        let rank = match () {
            () if lower.starts_with(&typed) || name.starts_with(&typed) => 0,
            () if lower.contains(&typed) => 1,
            () if holds_in_order(&lower, &typed) => 2,
            () => continue,
        };
        found.push((rank, lower.len(), file));
    }
    found.sort_unstable();
    found.into_iter().take(most).map(|(.., file)| file).collect()
}

fn holds_in_order(text: &str, typed: &str) -> bool {
    let mut chars = text.chars();
    typed.chars().all(|wanted| chars.any(|c| c == wanted))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_listed_without_hidden_and_generated_ones() {
        let root = tempfile::tempdir().unwrap();
        for path in ["src/main.rs", "target/out", ".git/HEAD", "README.md"] {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "").unwrap();
        }
        assert_eq!(list(root.path()), ["README.md", "src/", "src/main.rs"]);
    }

    #[test]
    fn names_that_start_with_the_text_come_first() {
        let files = ["docs/domain.md", "src/main.rs", "src/model/asked.rs", "README.md"].map(str::to_owned);
        assert_eq!(matching(&files, "ma", 9), ["src/main.rs", "docs/domain.md", "src/model/asked.rs"]);
        assert_eq!(matching(&files, "read", 9), ["README.md", "src/model/asked.rs"]);
        assert_eq!(matching(&files, "readx", 9), Vec::<&str>::new());
        assert_eq!(matching(&files, "", 2), ["README.md", "src/main.rs"]);
    }
}
