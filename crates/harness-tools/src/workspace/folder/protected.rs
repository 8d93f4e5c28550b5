//! Files that are never written for a model.

use std::fmt;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use harness_host::{WorkspaceFault, WorkspaceFaultCode as Code};
use parking_lot::RwLock;
use rustix::fs::Stat;

use super::jail::Names;

/// Names that decide what other programs run: version control, settings of this program, start-up files of
/// shells and sessions, keys.
const NAMES: [&str; 42] = [
    ".git",
    ".gitconfig",
    ".gitmodules",
    ".hg",
    ".hgrc",
    ".jj",
    ".svn",
    ".harness",
    ".bashrc",
    ".bash_aliases",
    ".bash_login",
    ".bash_logout",
    ".bash_profile",
    ".profile",
    ".zshrc",
    ".zshenv",
    ".zprofile",
    ".zlogin",
    ".zlogout",
    ".kshrc",
    ".mkshrc",
    ".cshrc",
    ".tcshrc",
    ".login",
    ".logout",
    ".inputrc",
    ".envrc",
    ".direnvrc",
    ".xinitrc",
    ".xprofile",
    ".xsession",
    ".xsessionrc",
    ".pam_environment",
    ".vimrc",
    ".exrc",
    ".gdbinit",
    ".lldbinit",
    ".netrc",
    ".pgpass",
    ".ssh",
    ".gnupg",
    ".rhosts",
];

/// Directories below `.config` with the same effect.
const CONFIG: [&str; 7] = ["fish", "git", "harness", "direnv", "autostart", "systemd", "environment.d"];

/// Files of the host that no tool may write, whatever names they have: a descriptor, its registry, key files.
///
/// Clones share the list. A file is known by its path and, while it exists, by what it is: another path to it
/// is refused, too.
///
/// ```
/// use harness_tools::{FolderWorkspace, ProtectedFiles};
///
/// let own = ProtectedFiles::default();
/// own.add("harness.yaml");
/// let files = FolderWorkspace::open(".")?.writable().protecting(own);
/// # let _ = files;
/// # Ok::<(), harness_tools::ToolsError>(())
/// ```
#[derive(Clone, Default)]
pub struct ProtectedFiles(Arc<RwLock<Lists>>);

#[derive(Default)]
struct Lists {
    own: Vec<PathBuf>,
    others: Vec<ProtectedFiles>,
}

impl ProtectedFiles {
    /// Adds a file, which need not exist.
    pub fn add(&self, file: impl AsRef<Path>) {
        let file = std::path::absolute(file.as_ref()).unwrap_or_else(|_| file.as_ref().to_owned());
        let mut lists = self.0.write();
        if !lists.own.contains(&file) {
            lists.own.push(file);
        }
    }

    /// Adds the files of another list, those too that are added to it later.
    pub fn include(&self, other: &Self) {
        let mut lists = self.0.write();
        if !Arc::ptr_eq(&self.0, &other.0) {
            lists.others.push(other.clone());
        }
    }

    /// Protected files.
    pub fn files(&self) -> Vec<PathBuf> {
        let lists = self.0.read();
        lists.own.iter().cloned().chain(lists.others.iter().flat_map(Self::files)).collect()
    }
}

impl fmt::Debug for ProtectedFiles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.files()).finish()
    }
}

/// Protection of a workspace.
#[derive(Clone, Debug, Default)]
pub(super) struct Protection {
    /// Files of the host.
    pub(super) files: Vec<ProtectedFiles>,
    /// Names of [`NAMES`] and [`CONFIG`] that the host permits.
    pub(super) permitted: Vec<String>,
}

impl Protection {
    /// Whether a path may be written by its names.
    ///
    /// # Errors
    /// [`Code::Protected`], with the name that is in the way.
    pub(super) fn check_names(&self, names: &Names<'_>) -> Result<(), WorkspaceFault> {
        let mut before = String::new();
        for name in names.all() {
            let folded = folded(name);
            let in_config = before == ".config" && CONFIG.contains(&folded.as_str());
            let known = NAMES.contains(&folded.as_str()) || in_config || is_short_git(&folded);
            if known && !self.permitted.iter().any(|permitted| self::folded(permitted) == folded) {
                return Err(refused(names, &format!("`{name}` decides what other programs run")));
            }
            before = folded;
        }
        Ok(())
    }

    /// Whether a file may be written, as it is now.
    ///
    /// # Errors
    /// [`Code::Protected`], when it is a file of the host.
    pub(super) fn check_file(
        &self,
        folder: &Path,
        names: &Names<'_>,
        old: Option<&Stat>,
    ) -> Result<(), WorkspaceFault> {
        let files = self.files.iter().flat_map(ProtectedFiles::files);
        for file in files {
            if old.is_some_and(|old| is_same(&file, old)) || is_at(&file, folder, names) {
                return Err(refused(names, "the program itself is set up by it"));
            }
        }
        Ok(())
    }
}

fn refused(names: &Names<'_>, why: &str) -> WorkspaceFault {
    let problem = format!("`{}` is protected and cannot be written: {why}", names.normal());
    WorkspaceFault::new(Code::Protected, problem)
}

/// Whether a path leads to the same file, through links too.
fn is_same(file: &Path, old: &Stat) -> bool {
    file.metadata().is_ok_and(|now| {
        #[expect(clippy::useless_conversion, reason = "the types differ between systems")]
        let old = (u64::try_from(old.st_dev).ok(), u64::try_from(old.st_ino).ok());
        (Some(now.dev()), Some(now.ino())) == old
    })
}

/// Whether a file, which need not exist, has these names below a directory.
fn is_at(file: &Path, folder: &Path, names: &Names<'_>) -> bool {
    let real = |file: &Path| {
        file.canonicalize().or_else(|_| {
            let folder = file.parent().unwrap_or(file).canonicalize()?;
            Ok::<_, std::io::Error>(folder.join(file.file_name().unwrap_or_default()))
        })
    };
    let (Ok(folder), Ok(file)) = (folder.canonicalize(), real(file)) else { return false };
    let Ok(below) = file.strip_prefix(&folder) else { return false };
    let below: Vec<String> = below.iter().map(|name| folded(&name.to_string_lossy())).collect();
    below == names.all().iter().map(|name| folded(name)).collect::<Vec<_>>()
}

/// A name as file systems compare it that ignore case and what cannot be seen.
fn folded(name: &str) -> String {
    let invisible = |c: char| matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{ad}');
    let seen: String = name.chars().filter(|c| !invisible(*c)).collect();
    seen.trim_end_matches(['.', ' ']).to_uppercase().to_lowercase()
}

/// The short name that some file systems give `.git`.
fn is_short_git(folded: &str) -> bool {
    folded.strip_prefix("git~").is_some_and(|number| number.bytes().all(|b| b.is_ascii_digit()))
}
