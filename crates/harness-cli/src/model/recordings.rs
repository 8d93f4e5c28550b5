//! The recordings that lie beside a descriptor.

use std::fs::{self, File};
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};

use harness::core::message::Message;
use serde::Deserialize;

/// Files of a folder that are looked at, at most.
const MOST_FILES: usize = 100;

/// Bytes of a file that are looked at, at most: its header and its first exchange.
const MOST_BYTES: u64 = 1 << 20;

/// A recording and the message that its conversation begins with.
#[derive(Debug)]
pub(super) struct Recording {
    pub(super) path: PathBuf,
    pub(super) question: String,
}

#[derive(Deserialize)]
struct Exchange {
    request: Request,
}

#[derive(Deserialize)]
struct Request {
    messages: Vec<Message>,
}

/// The readable recordings of a folder, by name. A file that is none is left out: the one that is chosen
/// is read again, and whole, by the replay.
pub(super) fn in_folder(folder: &Path) -> Vec<Recording> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten().take(MOST_FILES);
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "jsonl"));
    paths.sort_unstable();
    paths.into_iter().filter_map(|path| Some(Recording { question: question(&path)?, path })).collect()
}

fn question(path: &Path) -> Option<String> {
    let file = BufReader::new(File::open(path).ok()?.take(MOST_BYTES));
    let first = file.lines().nth(1)?.ok()?;
    let Exchange { request } = serde_json::from_str(&first).ok()?;
    let last = request.messages.last()?;
    matches!(last, Message::User(_)).then(|| last.joined_text())
}
