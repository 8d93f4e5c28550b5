//! A workspace in memory, for tests.

use std::collections::BTreeMap;

use harness_host::{
    EntryKind, Workspace, WorkspaceEntry, WorkspaceFault, WorkspaceFaultCode, WorkspaceFile, WorkspaceHit,
};

/// Files by path. A file whose text is `!` cannot be read.
pub(crate) struct Tree(BTreeMap<String, String>);

impl Tree {
    pub(crate) fn new(files: &[(&str, &str)]) -> Self {
        Self(files.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned())).collect())
    }
}

impl Workspace for Tree {
    async fn list(&self, path: &str, depth: u32, limit: u32) -> Result<Vec<WorkspaceEntry>, WorkspaceFault> {
        let root = format!("{}/", path.trim_end_matches('/'));
        let near = |file: &str| {
            let below = file.strip_prefix(&root)?;
            (below.matches('/').count() < depth as usize).then(|| WorkspaceEntry::new(file, EntryKind::File))
        };
        Ok(self.0.keys().filter_map(|file| near(file)).take(limit as usize).collect())
    }

    async fn read(&self, path: &str) -> Result<Option<WorkspaceFile>, WorkspaceFault> {
        match self.0.get(path).map(String::as_str) {
            Some("!") => Err(WorkspaceFault::new(WorkspaceFaultCode::Unavailable, "the disk is gone")),
            text => Ok(text.map(|text| WorkspaceFile::text(path, text))),
        }
    }

    async fn search(&self, _: &str, _: Option<&str>, _: u32) -> Result<Vec<WorkspaceHit>, WorkspaceFault> {
        Ok(Vec::new())
    }
}
