//! Visits the entries below a directory.

use std::os::fd::{AsFd as _, BorrowedFd};

use harness_host::{
    EntryKind, Snippet, WorkspaceEntry, WorkspaceFault, WorkspaceFaultCode as Code, WorkspaceHit,
};

use super::ignored::Ignored;
use super::jail::{self, Names};
use super::{Inner, Stop, entry_of};

/// How many files a search looks into.
pub(super) const MAX_SEARCHED: usize = 100_000;

/// How deep a search goes.
const MAX_DEPTH: u32 = 64;

/// Entries below a directory: the first `limit` found, sorted by path.
pub(super) fn list(
    folder: BorrowedFd<'_>,
    names: &Names<'_>,
    depth: u32,
    limit: usize,
    stop: &Stop,
) -> Result<Vec<WorkspaceEntry>, WorkspaceFault> {
    let root = names.normal();
    let mut entries = Vec::new();
    down(folder, root.trim_end_matches('/'), depth, stop, &mut |seen| {
        if entries.len() < limit {
            entries.push(entry_of(seen.path.to_owned(), seen.found.kind, &seen.found.stat));
        }
        Ok(if entries.len() < limit { Go::Down } else { Go::Stop })
    })?;
    entries.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(entries)
}

/// The files whose path or text has `query`, which is in lower case, in it.
pub(super) fn search(
    inner: &Inner,
    folder: BorrowedFd<'_>,
    query: &str,
    limit: usize,
    stop: &Stop,
) -> Result<Vec<WorkspaceHit>, WorkspaceFault> {
    let mut hits = Vec::new();
    let mut searched = 0_usize;
    let mut ignored = Ignored::default();
    down(folder, "", MAX_DEPTH, stop, &mut |seen| {
        let is_folder = seen.found.kind == EntryKind::Dir;
        if inner.skips_ignored && ignored.excludes(seen.path, is_folder, seen.folder) {
            return Ok(Go::Past);
        }
        if is_folder {
            return Ok(if inner.skipped.contains(&seen.found.name) { Go::Past } else { Go::Down });
        }
        if seen.found.kind != EntryKind::File {
            return Ok(Go::Past);
        }
        searched += 1;
        if searched > MAX_SEARCHED {
            let problem =
                format!("the workspace has more than {MAX_SEARCHED} files; it is too large to search");
            return Err(WorkspaceFault::new(Code::TooLarge, problem));
        }
        let snippet = text_of(inner, seen).and_then(|text| Snippet::default().of(&text, query));
        if snippet.is_some() || seen.path.to_lowercase().contains(query) {
            let entry = entry_of(seen.path.to_owned(), seen.found.kind, &seen.found.stat);
            hits.push(WorkspaceHit::new(entry, snippet));
        }
        Ok(if hits.len() < limit { Go::Past } else { Go::Stop })
    })?;
    hits.sort_by(|a, b| a.entry.path.cmp(&b.entry.path));
    Ok(hits)
}

/// The text of a file; none of what is too large, no text, or cannot be read: it has nothing to be found.
fn text_of(inner: &Inner, seen: &Seen<'_>) -> Option<String> {
    let names = Names::of(seen.path).ok()?;
    let (bytes, _) = jail::bytes(seen.folder, &seen.found.name, &names, inner.max_file).ok()??;
    String::from_utf8(bytes).ok()
}

/// Something on the way down.
struct Seen<'s> {
    path: &'s str,
    found: &'s jail::Found,
    folder: BorrowedFd<'s>,
}

/// Where to go next.
enum Go {
    /// Enters it, if it is a directory.
    Down,
    /// To what comes after it.
    Past,
    /// Nowhere.
    Stop,
}

/// Visits everything below a directory, by name, at most `depth` levels deep. Returns whether it reached the
/// end. One directory is open per level.
fn down(
    folder: BorrowedFd<'_>,
    path: &str,
    depth: u32,
    stop: &Stop,
    look: &mut dyn FnMut(&Seen<'_>) -> Result<Go, WorkspaceFault>,
) -> Result<bool, WorkspaceFault> {
    if depth == 0 {
        return Ok(true);
    }
    for found in jail::entries(folder, if path.is_empty() { "/" } else { path })? {
        stop.check()?;
        let path = format!("{path}/{}", found.name);
        match look(&Seen { path: &path, found: &found, folder })? {
            Go::Stop => return Ok(false),
            Go::Past => continue,
            Go::Down if found.kind != EntryKind::Dir => continue,
            Go::Down => {}
        }
        // What is no folder any more, or may not be entered, is passed by.
        let Ok(inside) = jail::enter(folder, &found.name) else { continue };
        if !down(inside.as_fd(), &path, depth - 1, stop, look)? {
            return Ok(false);
        }
    }
    Ok(true)
}
