//! Input history of earlier chats: a file that only its owner can read, with one JSON string per line.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};

/// Maximum number of entries.
const MOST: usize = 1_000;

/// Maximum size of an entry in bytes; longer ones are not stored.
const LONGEST: usize = 64 << 10;

/// Maximum number of bytes that are read from the file.
const MOST_BYTES: u64 = 16 << 20;

/// History of inputs across chats; without a file it lasts for this chat.
#[derive(Debug)]
pub(super) struct History {
    path: Option<PathBuf>,
}

impl History {
    /// Reads the file, oldest entry first, and shortens it when it exceeds its limit. Unreadable entries are skipped: a
    /// chat must start even with a damaged history.
    pub(super) fn open(path: Option<PathBuf>) -> (Self, Vec<String>) {
        let read = path.as_deref().and_then(|path| read(path).ok());
        let mut entries = read.unwrap_or_default();
        let over = entries.len().saturating_sub(MOST);
        if over > 0 {
            entries.drain(..over);
            let lines: String = entries.iter().filter_map(|entry| line(entry)).collect();
            if let Some(path) = &path {
                let _ = replace(path, &lines);
            }
        }
        (Self { path }, entries)
    }

    /// Adds an entry.
    pub(super) fn add(&self, entry: &str) {
        let (Some(path), Some(line)) = (&self.path, line(entry)) else { return };
        // The chat goes on without it.
        let _ = append(path, &line);
    }
}

/// Appends a line with one write, because other chats may write at the same time. A torn earlier line does not affect
/// this one.
fn append(path: &Path, line: &str) -> io::Result<()> {
    let mut file = private(path, OpenOptions::new().read(true).append(true).create(true))?;
    let mut last = [b'\n'];
    if file.metadata()?.len() > 0 {
        file.seek(SeekFrom::End(-1))?;
        file.read_exact(&mut last)?;
    }
    let torn = if last == [b'\n'] { "" } else { "\n" };
    file.write_all(format!("{torn}{line}").as_bytes())
}

fn line(entry: &str) -> Option<String> {
    let entry = entry.trim();
    if entry.is_empty() || entry.len() > LONGEST {
        return None;
    }
    serde_json::to_string(entry).ok().map(|line| line + "\n")
}

/// Entries at the end of the file.
fn read(path: &Path) -> io::Result<Vec<String>> {
    if !fs::metadata(path)?.is_file() {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let mut text = Vec::new();
    let mut file = File::open(path)?;
    // A line that begins before this place is left out like a damaged one.
    let start = file.metadata()?.len().saturating_sub(MOST_BYTES);
    file.seek(SeekFrom::Start(start))?;
    file.take(MOST_BYTES).read_to_end(&mut text)?;
    let text = String::from_utf8_lossy(&text);
    Ok(text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect())
}

/// Replaces the file with a complete new one.
fn replace(path: &Path, text: &str) -> io::Result<()> {
    let new = path.with_extension("new");
    private(&new, OpenOptions::new().write(true).create(true).truncate(true))?.write_all(text.as_bytes())?;
    fs::rename(new, path)
}

/// Opens a file that only its owner can read; wider permissions are removed.
fn private(path: &Path, options: &mut OpenOptions) -> io::Result<File> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(options, 0o600);
    let file = options.open(path)?;
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        if file.metadata()?.permissions().mode() & 0o077 != 0 {
            file.set_permissions(fs::Permissions::from_mode(0o600))?;
        }
    }
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_sent_is_there_in_the_next_chat() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state/history.jsonl");
        let (history, entries) = History::open(Some(path.clone()));
        assert_eq!(entries, Vec::<String>::new());
        history.add("one\ntwo \"three\"");
        history.add("  ");
        history.add(&"x".repeat(LONGEST + 1));
        history.add("four");
        assert_eq!(History::open(Some(path.clone())).1, ["one\ntwo \"three\"", "four"]);
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        }
    }

    #[test]
    fn the_file_has_a_bound_and_damage_does_no_harm() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("history.jsonl");
        let lines: Vec<String> = (0..=MOST).map(|number| format!("\"{number}\"")).collect();
        fs::write(&path, format!("damaged\n{}\n", lines.join("\n"))).unwrap();
        let (_, entries) = History::open(Some(path.clone()));
        assert_eq!((entries.len(), entries.first().map(String::as_str)), (MOST, Some("1")));
        assert_eq!(fs::read_to_string(&path).unwrap().lines().count(), MOST);
    }
    #[test]
    fn a_torn_line_takes_no_other_with_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("history.jsonl");
        fs::write(&path, "\"one\"\n\"tor").unwrap();
        #[cfg(unix)]
        fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o644)).unwrap();
        let (history, _) = History::open(Some(path.clone()));
        history.add("two");
        assert_eq!(History::open(Some(path.clone())).1, ["one", "two"]);
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        }
    }

    #[test]
    fn the_newest_entries_of_a_large_file_are_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("history.jsonl");
        let line = format!("\"{}\"\n", "x".repeat(LONGEST));
        let lines = usize::try_from(MOST_BYTES).unwrap() / line.len() + 2;
        fs::write(&path, line.repeat(lines) + "\"newest\"\n").unwrap();
        let (_, entries) = History::open(Some(path));
        assert_eq!(entries.last().map(String::as_str), Some("newest"));
        assert!(entries.len() < lines, "{}", entries.len());
    }
}
