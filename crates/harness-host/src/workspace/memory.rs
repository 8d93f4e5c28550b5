//! A workspace in memory.

use std::collections::{BTreeMap, BTreeSet};

use parking_lot::Mutex;

use super::{
    EntryKind, Precondition, Snippet, Workspace, WorkspaceEntry, WorkspaceFault, WorkspaceFaultCode,
    WorkspaceFile, WorkspaceHit, normal_path,
};

/// A workspace whose files are in memory: for tests, and for texts that a program gathers itself.
///
/// Paths are in normal form ([`normal_path`]); a directory exists if it has files. Searching is case-insensitive, in
/// paths and contents. It can be written unless
/// [`MemoryWorkspace::read_only`] says otherwise, up to [`MemoryWorkspace::MAX_BYTES`] in all.
///
/// ```
/// use harness_host::{MemoryWorkspace, Workspace, WorkspaceFile};
///
/// let files = MemoryWorkspace::new([WorkspaceFile::text("/docs/a.md", "Berth 4 is free.")]);
/// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
/// let hits = files.search("berth", None, 10).await?;
/// assert_eq!(hits[0].snippet.as_deref(), Some("Berth 4 is free."));
/// # Ok::<(), harness_host::WorkspaceFault>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct MemoryWorkspace {
    files: Mutex<BTreeMap<String, WorkspaceFile>>,
    snippet: Snippet,
    read_only: bool,
}

impl MemoryWorkspace {
    /// How many bytes all files together may have after a write: 64 MiB.
    pub const MAX_BYTES: usize = 64 * 1024 * 1024;

    /// A workspace of these files. Their paths are brought into normal form; of two with one path the
    /// later is kept. A file without a size gets that of its content.
    pub fn new(files: impl IntoIterator<Item = WorkspaceFile>) -> Self {
        let mut all = BTreeMap::new();
        for mut file in files {
            file.entry.path = normal_path(&file.entry.path);
            file.entry.kind = EntryKind::File;
            file.entry.size.get_or_insert(file.content.len() as u64);
            all.insert(file.entry.path.clone(), file);
        }
        Self { files: Mutex::new(all), snippet: Snippet::default(), read_only: false }
    }

    /// Rejects writes.
    #[must_use]
    pub fn read_only(mut self) -> Self {
        self.read_only = true;
        self
    }

    /// Sets the size of snippets: UTF-16 units before the match, and from its start. Default 80 and 160.
    #[must_use]
    pub fn with_snippet(mut self, before: usize, after: usize) -> Self {
        self.snippet = Snippet { before, after };
        self
    }

    fn with<T>(&self, work: impl FnOnce(&mut BTreeMap<String, WorkspaceFile>) -> T) -> T {
        work(&mut self.files.lock())
    }
}

impl Workspace for MemoryWorkspace {
    async fn list(&self, path: &str, depth: u32, limit: u32) -> Result<Vec<WorkspaceEntry>, WorkspaceFault> {
        let root = normal_path(path);
        let root = if root == "/" { String::new() } else { root };
        let below =
            |path: &str| path.strip_prefix(&*root).and_then(|rest| rest.strip_prefix('/').map(str::len));
        self.with(|files| {
            let mut folders = BTreeSet::new();
            let mut entries = Vec::new();
            for (path, file) in files.iter() {
                let Some(rest) = below(path) else { continue };
                let names = path.split_at(path.len() - rest).1;
                for (level, (slash, _)) in names.match_indices('/').enumerate() {
                    if level < depth as usize {
                        folders.insert(path.split_at(path.len() - rest + slash).0);
                    }
                }
                if names.split('/').count() <= depth as usize {
                    entries.push(file.entry.clone());
                }
            }
            entries.extend(folders.into_iter().map(|path| WorkspaceEntry::new(path, EntryKind::Dir)));
            entries.sort_by(|a, b| a.path.cmp(&b.path));
            entries.truncate(limit as usize);
            Ok(entries)
        })
    }

    async fn read(&self, path: &str) -> Result<Option<WorkspaceFile>, WorkspaceFault> {
        Ok(self.with(|files| files.get(&normal_path(path)).cloned()))
    }

    async fn search(
        &self,
        query: &str,
        provider: Option<&str>,
        limit: u32,
    ) -> Result<Vec<WorkspaceHit>, WorkspaceFault> {
        let query = query.to_lowercase();
        self.with(|files| {
            let of_provider =
                |file: &&WorkspaceFile| provider.is_none() || file.entry.provider.as_deref() == provider;
            let hits = files.values().filter(of_provider).filter_map(|file| {
                let snippet = self.snippet.of(&file.content, &query);
                let hit = snippet.is_some() || file.entry.path.to_lowercase().contains(&query);
                hit.then(|| WorkspaceHit::new(file.entry.clone(), snippet))
            });
            Ok(hits.take(limit as usize).collect())
        })
    }

    async fn write(
        &self,
        path: &str,
        content: &str,
        precondition: &Precondition,
    ) -> Result<(), WorkspaceFault> {
        let path = normal_path(path);
        if self.read_only {
            let message = format!("`{path}` cannot be written: this workspace can only be read");
            return Err(WorkspaceFault::new(WorkspaceFaultCode::ReadOnly, message));
        }
        self.with(|files| {
            let old = files.get(&path);
            precondition.check(old.map(|file| file.content.as_bytes()), &path)?;
            let others: usize = files.values().map(|file| file.content.len()).sum();
            let bytes = others - old.map_or(0, |file| file.content.len()) + content.len();
            if bytes > Self::MAX_BYTES {
                let most = Self::MAX_BYTES;
                let message =
                    format!("`{path}` would bring the workspace to {bytes} bytes; it may have {most}");
                return Err(WorkspaceFault::new(WorkspaceFaultCode::TooLarge, message));
            }
            let mut file = old.cloned().unwrap_or_else(|| WorkspaceFile::text(&*path, ""));
            file.entry.size = Some(content.len() as u64);
            content.clone_into(&mut file.content);
            files.insert(path, file);
            Ok(())
        })
    }
}
