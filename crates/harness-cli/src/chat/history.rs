//! What was sent in earlier chats: a file that only its owner may read, one JSON text a line.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};

/// Entries that are kept.
const MOST: usize = 1_000;

/// Bytes of one entry; longer ones are not kept.
const LONGEST: usize = 64 << 10;

/// Bytes of the file that are read.
const MOST_BYTES: u64 = 16 << 20;

/// The history between chats; without a file it is one of this chat only.
#[derive(Debug)]
pub(super) struct History {
    path: Option<PathBuf>,
}

impl History {
    /// Reads the file, oldest entry first, and makes it shorter when it has grown over its bound. What cannot be
    /// read is left out: a history is not worth refusing a chat for.
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

    /// Keeps one more entry.
    pub(super) fn add(&self, entry: &str) {
        let (Some(path), Some(line)) = (&self.path, line(entry)) else { return };
        // The chat goes on without it.
        let _ = private(path, OpenOptions::new().append(true).create(true))
            .and_then(|mut file| file.write_all(line.as_bytes()));
    }
}

fn line(entry: &str) -> Option<String> {
    let entry = entry.trim();
    if entry.is_empty() || entry.len() > LONGEST {
        return None;
    }
    serde_json::to_string(entry).ok().map(|line| line + "\n")
}

fn read(path: &Path) -> io::Result<Vec<String>> {
    let mut text = Vec::new();
    File::open(path)?.take(MOST_BYTES).read_to_end(&mut text)?;
    let text = String::from_utf8_lossy(&text);
    Ok(text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect())
}

/// The new file is whole before it takes the old one's place.
fn replace(path: &Path, text: &str) -> io::Result<()> {
    let new = path.with_extension("new");
    private(&new, OpenOptions::new().write(true).create(true).truncate(true))?.write_all(text.as_bytes())?;
    fs::rename(new, path)
}

/// Opens a file that, when it is made, only its owner may read.
fn private(path: &Path, options: &mut OpenOptions) -> io::Result<File> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(options, 0o600);
    options.open(path)
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
}
