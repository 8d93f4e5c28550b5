//! Local files that users provide for agents. Unlike in an agent's workspace, links are followed.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Read as _};
use std::path::{Path, PathBuf};

use harness::host::{
    EntryKind, Workspace, WorkspaceEntry, WorkspaceFault, WorkspaceFaultCode as Code, WorkspaceFile,
    WorkspaceHit,
};

/// Maximum size in bytes of a file.
const MOST_BYTES: u64 = 1 << 20;

/// A workspace that is read before a conversation starts, on blocking threads.
#[derive(Clone, Debug)]
pub(super) struct Disk {
    base: PathBuf,
    /// Real path of the directory that links must not leave; `None` permits all links.
    within: Option<PathBuf>,
}

impl Disk {
    /// All files, by their absolute paths.
    pub(super) fn everywhere() -> Self {
        Self { base: PathBuf::from("/"), within: None }
    }

    /// The files of a directory, by relative paths. Links may lead anywhere.
    pub(super) fn at(folder: &Path) -> Self {
        Self { base: folder.to_owned(), within: None }
    }

    /// The files of an untrusted directory, by relative paths. `folder` is its real path. Links must not leave it,
    /// which protects the user's other files.
    pub(super) fn inside(folder: &Path) -> Self {
        Self { base: folder.to_owned(), within: Some(folder.to_owned()) }
    }

    /// Reads in a separate thread.
    async fn beside<T: Send + 'static>(
        &self,
        read: impl FnOnce(&Self) -> Result<T, WorkspaceFault> + Send + 'static,
    ) -> Result<T, WorkspaceFault> {
        let disk = self.clone();
        let read = tokio::task::spawn_blocking(move || read(&disk)).await;
        read.unwrap_or_else(|fault| Err(WorkspaceFault::new(Code::Unavailable, fault.to_string())))
    }

    fn listed(&self, path: &str, depth: u32, limit: u32) -> Result<Vec<WorkspaceEntry>, WorkspaceFault> {
        let mut walk = Walk { entries: Vec::new(), limit: limit as usize, entered: BTreeSet::new() };
        match walk.down(&self.place(path), path.trim_end_matches('/'), depth) {
            Ok(()) => {}
            Err(fault) if fault.kind() == ErrorKind::NotFound => {}
            Err(fault) => return Err(unreadable(&fault)),
        }
        walk.entries.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(walk.entries)
    }

    fn place(&self, path: &str) -> PathBuf {
        self.base.join(path.trim_start_matches('/'))
    }

    /// The text of a file; `None` when there is none.
    fn text(&self, place: &Path) -> Result<Option<String>, WorkspaceFault> {
        let real = match place.canonicalize() {
            Ok(real) => real,
            Err(fault) if fault.kind() == ErrorKind::NotFound && !place.is_symlink() => return Ok(None),
            Err(fault) if fault.kind() == ErrorKind::NotFound => {
                return Err(WorkspaceFault::new(Code::NotFound, "broken link"));
            }
            Err(fault) => return Err(unreadable(&fault)),
        };
        if self.within.as_ref().is_some_and(|folder| !real.starts_with(folder)) {
            let text = "link to a file outside the project";
            return Err(WorkspaceFault::new(Code::OutsideWorkspace, text));
        }
        if !real.is_file() {
            return Err(WorkspaceFault::new(Code::WrongKind, "not a file"));
        }
        let mut bytes = Vec::new();
        let opened = File::open(&real).map_err(|fault| unreadable(&fault))?;
        opened.take(MOST_BYTES + 1).read_to_end(&mut bytes).map_err(|fault| unreadable(&fault))?;
        if bytes.len() as u64 > MOST_BYTES {
            let text = format!("larger than {MOST_BYTES} bytes");
            return Err(WorkspaceFault::new(Code::TooLarge, text));
        }
        let text = String::from_utf8(bytes);
        text.map(Some).map_err(|_| WorkspaceFault::new(Code::NotText, "not UTF-8 text"))
    }
}

fn unreadable(fault: &io::Error) -> WorkspaceFault {
    WorkspaceFault::new(Code::Unavailable, fault.to_string())
}

/// Recursive listing of a directory. Each real directory is entered once, which prevents cycles of links.
struct Walk {
    entries: Vec<WorkspaceEntry>,
    limit: usize,
    entered: BTreeSet<PathBuf>,
}

impl Walk {
    fn down(&mut self, folder: &Path, shown: &str, depth: u32) -> io::Result<()> {
        if depth == 0 || !self.entered.insert(folder.canonicalize()?) {
            return Ok(());
        }
        let mut names = fs::read_dir(folder)?
            .take(self.limit)
            .map(|entry| Ok(entry?.file_name()))
            .collect::<io::Result<Vec<_>>>()?;
        names.sort_unstable();
        for name in names {
            // A name that is no text cannot be one of ours.
            let Some(name) = name.to_str() else { continue };
            if self.entries.len() >= self.limit {
                break;
            }
            let (place, path) = (folder.join(name), format!("{shown}/{name}"));
            let kind = if place.is_dir() { EntryKind::Dir } else { EntryKind::File };
            self.entries.push(WorkspaceEntry::new(path.as_str(), kind));
            if kind == EntryKind::Dir {
                self.down(&place, &path, depth - 1)?;
            }
        }
        Ok(())
    }
}

impl Workspace for Disk {
    async fn list(&self, path: &str, depth: u32, limit: u32) -> Result<Vec<WorkspaceEntry>, WorkspaceFault> {
        let path = path.to_owned();
        self.beside(move |disk| disk.listed(&path, depth, limit)).await
    }

    async fn read(&self, path: &str) -> Result<Option<WorkspaceFile>, WorkspaceFault> {
        let path = path.to_owned();
        self.beside(move |disk| {
            let text = disk.text(&disk.place(&path))?;
            Ok(text.map(|text| WorkspaceFile::text(path, text)))
        })
        .await
    }

    /// Nothing is looked for at the start.
    async fn search(&self, _: &str, _: Option<&str>, _: u32) -> Result<Vec<WorkspaceHit>, WorkspaceFault> {
        Ok(Vec::new())
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[tokio::test]
    async fn links_are_followed_and_each_folder_is_entered_once() {
        let (here, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        fs::write(elsewhere.path().join("SKILL.md"), "x").unwrap();
        fs::create_dir(here.path().join("own")).unwrap();
        symlink(here.path(), here.path().join("own/round")).unwrap();
        symlink(elsewhere.path(), here.path().join("linked")).unwrap();
        let listed = Disk::at(here.path()).list("", 8, 100).await.unwrap();
        let paths: Vec<&str> = listed.iter().map(|entry| entry.path.as_str()).collect();
        assert_eq!(paths, ["/linked", "/linked/SKILL.md", "/own", "/own/round"]);
        assert!(Disk::at(here.path()).list("none", 8, 100).await.unwrap().is_empty());
    }

    /// What reading `AGENTS.md` gives when it is a link to this file.
    #[track_caller]
    fn check(disk: fn(&Path) -> Disk, target: &Path, folder: &Path, expected: Result<Option<&str>, &str>) {
        let link = folder.join("AGENTS.md");
        symlink(target, &link).unwrap();
        let read = disk(folder).text(&link);
        let read = read.as_ref().map(Option::as_deref).map_err(|fault| fault.message.as_str());
        assert_eq!(read, expected);
        fs::remove_file(link).unwrap();
    }

    #[test]
    fn links_of_a_project_stay_within_it() {
        let (here, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let folder = here.path().canonicalize().unwrap();
        let key = elsewhere.path().join("key");
        fs::write(&key, "secret").unwrap();
        fs::write(folder.join("CLAUDE.md"), "Use tabs.").unwrap();
        check(Disk::inside, Path::new("CLAUDE.md"), &folder, Ok(Some("Use tabs.")));
        check(Disk::inside, &key, &folder, Err("link to a file outside the project"));
        check(Disk::at, &key, &folder, Ok(Some("secret")));
        check(Disk::at, Path::new("none"), &folder, Err("broken link"));
        assert_eq!(Disk::at(&folder).text(&folder.join("none")), Ok(None));
    }
}
