//! Where a chat works: the directory and the branch of its repository.

use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

/// Maximum size in bytes of a file that names a branch.
const MOST: u64 = 4 << 10;

/// The name of a directory, and the branch if it is in a git repository: `shop (main)`.
pub(super) fn of(folder: &Path) -> String {
    let name = folder.file_name().map_or_else(|| "/".to_owned(), |name| name.to_string_lossy().into_owned());
    match branch(folder) {
        Some(branch) => format!("{name} ({branch})"),
        None => name,
    }
}

/// The checked-out branch, or the start of the commit that is checked out without one.
fn branch(folder: &Path) -> Option<String> {
    let git = folder.ancestors().map(|folder| folder.join(".git")).find(|git| git.exists())?;
    let git = if git.is_dir() { git } else { linked(&git)? };
    let head = text(&git.join("HEAD"))?;
    let branch = head.trim().strip_prefix("ref: refs/heads/");
    branch.map(str::to_owned).or_else(|| head.get(..8).map(str::to_owned))
}

/// The directory that the `.git` file of a worktree names.
fn linked(file: &Path) -> Option<PathBuf> {
    let text = text(file)?;
    let named = Path::new(text.trim().strip_prefix("gitdir: ")?);
    Some(file.parent()?.join(named))
}

fn text(file: &Path) -> Option<String> {
    let mut text = String::new();
    File::open(file).ok()?.take(MOST).read_to_string(&mut text).ok()?;
    Some(text)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[track_caller]
    fn check(files: &[(&str, &str)], folder: &str, expected: &str) {
        let root = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        assert_eq!(of(&root.path().join(folder)), expected);
    }

    #[test]
    fn place_names_the_directory_and_the_branch() {
        let head = ("shop/.git/HEAD", "ref: refs/heads/fix/tax\n");
        check(&[head, ("shop/src/a", "")], "shop/src", "src (fix/tax)");
        check(&[("shop/.git/HEAD", "0123456789abcdef\n")], "shop", "shop (01234567)");
        check(&[("tree/.git", "gitdir: ../shop/.git\n"), head], "tree", "tree (fix/tax)");
        check(&[("shop/a", "")], "shop", "shop");
    }
}
