//! Files that tell an agent about a project: `AGENTS.md` and its relatives.
//!
//! They become a part of the agent's instructions, never of the transcript, so that compaction does not touch
//! them.

use harness_host::{DynWorkspace, WorkspaceFault, WorkspaceFaultCode};

/// The names, of which the first that a folder has counts.
pub const CONTEXT_FILE_NAMES: [&str; 4] = ["AGENTS.md", "AGENTS.MD", "CLAUDE.md", "CLAUDE.MD"];

/// The longest file that is taken, in bytes.
const MAX_BYTES: usize = 128 * 1024;
/// How many folders are looked at from the root down.
const MAX_FOLDERS: usize = 64;

/// A file about a project.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ContextFile {
    /// Its path.
    pub path: String,
    /// Its text.
    pub content: String,
}

impl ContextFile {
    /// A file with its text.
    pub fn new(path: impl Into<String>, content: impl Into<String>) -> Self {
        Self { path: path.into(), content: content.into() }
    }
}

/// The files that were found, from the most general to the most specific.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ContextFiles {
    /// The files.
    pub files: Vec<ContextFile>,
    /// The files that could not be taken, and why.
    pub problems: Vec<(String, WorkspaceFault)>,
}

impl ContextFiles {
    /// A part of an agent's instructions: every file under its path. Empty when there are none.
    ///
    /// ```
    /// use harness_runtime::context_file::{ContextFile, ContextFiles};
    ///
    /// let mut found = ContextFiles::default();
    /// found.files.push(ContextFile::new("/AGENTS.md", "Run `make test` before you answer.\n"));
    /// assert_eq!(
    ///     found.instructions(),
    ///     "# Project context\n\n## /AGENTS.md\n\nRun `make test` before you answer.",
    /// );
    /// ```
    pub fn instructions(&self) -> String {
        if self.files.is_empty() {
            return String::new();
        }
        let parts = self.files.iter().map(|file| format!("\n\n## {}\n\n{}", file.path, file.content.trim()));
        std::iter::once("# Project context".to_owned()).chain(parts).collect()
    }
}

/// Looks in `extra` (the folder of the user's own agent files, if there is one), then in every folder from the
/// root of the workspace down to `working_folder`, for one of [`CONTEXT_FILE_NAMES`]. Each file counts once;
/// one that is longer than 128 KiB or empty is left out.
pub async fn read_context_files(
    workspace: &dyn DynWorkspace,
    extra: Option<&str>,
    working_folder: &str,
) -> ContextFiles {
    let mut found = ContextFiles::default();
    let folders = extra.map(str::to_owned).into_iter().chain(folders_down_to(working_folder));
    for folder in folders.take(MAX_FOLDERS) {
        read_folder(workspace, folder.trim_end_matches('/'), &mut found).await;
    }
    found
}

/// Every folder on the way from the root to `folder`, that one included.
fn folders_down_to(folder: &str) -> Vec<String> {
    let mut folders = vec![String::new()];
    for name in folder.split('/').filter(|name| !name.is_empty()) {
        let above = folders.last().map(String::as_str).unwrap_or_default();
        folders.push(format!("{above}/{name}"));
    }
    folders
}

async fn read_folder(workspace: &dyn DynWorkspace, folder: &str, found: &mut ContextFiles) {
    for name in CONTEXT_FILE_NAMES {
        let path = format!("{folder}/{name}");
        let fault = |code, text: String| WorkspaceFault::new(code, text);
        let text = match workspace.read_boxed(&path).await {
            Ok(None) => continue,
            Ok(Some(file)) if file.base64 => {
                Err(fault(WorkspaceFaultCode::NotText, "it is no UTF-8 text".to_owned()))
            }
            Ok(Some(file)) if file.content.len() > MAX_BYTES => {
                let bytes = file.content.len();
                let text = format!("it has {bytes} bytes; at most {MAX_BYTES} are taken");
                Err(fault(WorkspaceFaultCode::TooLarge, text))
            }
            Ok(Some(file)) => Ok(file.content),
            Err(fault) => Err(fault),
        };
        let known = found.files.iter().any(|file| file.path == path);
        match text {
            Ok(text) if !known && !text.trim().is_empty() => found.files.push(ContextFile::new(path, text)),
            Ok(_) => {}
            Err(fault) => found.problems.push((path, fault)),
        }
        return;
    }
}
