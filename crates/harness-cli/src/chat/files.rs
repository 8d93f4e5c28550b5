//! Files below the current directory, for the menu of `@`.

use std::path::Path;

use ignore::WalkBuilder;

use super::assistant::SKIPPED;

/// Maximum number of files and directories that are visited.
const MOST: usize = 20_000;

/// Maximum depth of files.
const DEEPEST: usize = 13;

/// Paths of the files and directories below a directory, in order; those of directories end with a slash. Hidden ones,
/// generated ones and those that `.gitignore` files exclude are skipped.
pub(super) fn list(root: &Path) -> Vec<String> {
    let mut walk = WalkBuilder::new(root);
    // Links are not followed, so that no directory is entered twice.
    walk.max_depth(Some(DEEPEST)).follow_links(false).require_git(false).git_global(false);
    walk.filter_entry(|entry| {
        let is_folder = entry.file_type().is_some_and(|kind| kind.is_dir());
        entry.depth() == 0
            || !is_folder
            || entry.file_name().to_str().is_some_and(|name| !SKIPPED.contains(&name))
    });
    let shown = |entry: &ignore::DirEntry| {
        let path = entry.path().strip_prefix(root).ok()?.to_str()?;
        let slash = if entry.file_type().is_some_and(|kind| kind.is_dir()) { "/" } else { "" };
        (!path.is_empty()).then(|| format!("{path}{slash}"))
    };
    let entries = walk.build().take(MOST).filter_map(Result::ok);
    let mut found: Vec<String> = entries.filter_map(|entry| shown(&entry)).collect();
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
    use std::fs;

    use super::*;

    #[test]
    fn files_are_listed_without_hidden_generated_and_ignored_ones() {
        let root = tempfile::tempdir().unwrap();
        let files = [
            ("src/main.rs", ""),
            ("target/out", ""),
            (".git/HEAD", ""),
            ("README.md", ""),
            (".gitignore", "*.log\n/made/\n"),
            ("a.log", ""),
            ("made/x", ""),
            ("src/made/y", ""),
            ("src/.gitignore", "!b.log\n"),
            ("src/b.log", ""),
        ];
        for (path, text) in files {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let expected = ["README.md", "src/", "src/b.log", "src/made/", "src/made/y", "src/main.rs"];
        assert_eq!(list(root.path()), expected);
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
