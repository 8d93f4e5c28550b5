//! Files that tools may see: a tree of texts behind slash-separated paths.

mod memory;
mod snippet;

use std::fmt;

pub use memory::MemoryWorkspace;
pub use snippet::{Snippet, first_units};

/// Kind of an entry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum EntryKind {
    /// A file that can be read.
    File,
    /// A directory that can be listed.
    Dir,
    /// Anything else: a symbolic link, a device, something the provider cannot tell.
    #[default]
    Unknown,
}

impl EntryKind {
    /// The wire name: `file`, `dir` or `unknown`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::File => "file",
            Self::Dir => "dir",
            Self::Unknown => "unknown",
        }
    }
}

/// One entry of a listing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct WorkspaceEntry {
    /// Its path, from the root: `/docs/a.md`.
    pub path: String,
    /// Kind of the entry.
    pub kind: EntryKind,
    /// The system that it comes from (`github`), in a workspace of several.
    pub provider: Option<String>,
    /// Its title, where that is more than its name.
    pub title: Option<String>,
    /// Names its present content; another revision means another content.
    pub revision: Option<String>,
    /// When it was last changed, as the provider writes it.
    pub updated_at: Option<String>,
    /// Its size in bytes.
    pub size: Option<u64>,
    /// Further facts, in the provider's order.
    pub properties: Vec<(String, String)>,
}

impl WorkspaceEntry {
    /// An entry without further facts.
    pub fn new(path: impl Into<String>, kind: EntryKind) -> Self {
        Self { path: path.into(), kind, ..Self::default() }
    }
}

/// A file with its content.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct WorkspaceFile {
    /// Entry in a listing.
    pub entry: WorkspaceEntry,
    /// Content: text, or base64 if `base64` is set.
    pub content: String,
    /// Its media type, where the provider knows one.
    pub content_type: Option<String>,
    /// Whether `content` is base64 of binary data.
    pub base64: bool,
}

impl WorkspaceFile {
    /// A text file.
    pub fn text(path: impl Into<String>, content: impl Into<String>) -> Self {
        let content = content.into();
        let mut entry = WorkspaceEntry::new(path, EntryKind::File);
        entry.size = Some(content.len() as u64);
        Self { entry, content, ..Self::default() }
    }
}

/// Something that a search found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct WorkspaceHit {
    /// Entry of the file.
    pub entry: WorkspaceEntry,
    /// The surroundings of the match; absent when only the path matched.
    pub snippet: Option<String>,
}

impl WorkspaceHit {
    /// A hit in an entry.
    pub fn new(entry: WorkspaceEntry, snippet: Option<String>) -> Self {
        Self { entry, snippet }
    }
}

/// Precondition of a write.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Precondition {
    /// Nothing: it is made or replaced.
    #[default]
    Any,
    /// There is no such file yet.
    Absent,
    /// Its content is still this.
    Content(String),
}

impl Precondition {
    /// Whether it holds for the file at `path` with this content; `None`: there is no file.
    ///
    /// # Errors
    /// [`WorkspaceFaultCode::Changed`], and what has changed.
    pub fn check(&self, now: Option<&[u8]>, path: &str) -> Result<(), WorkspaceFault> {
        match (self, now) {
            (Self::Absent, Some(_)) => {
                let problem = format!("`{path}` already exists");
                Err(WorkspaceFault::new(WorkspaceFaultCode::Changed, problem))
            }
            (Self::Content(wanted), now) if now != Some(wanted.as_bytes()) => {
                Err(WorkspaceFault::changed(path))
            }
            _ => Ok(()),
        }
    }
}

/// Error of a workspace.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
#[non_exhaustive]
pub struct WorkspaceFault {
    /// Kind of the error.
    pub code: WorkspaceFaultCode,
    /// Message for the model, with the path and the limit.
    pub message: String,
}

impl WorkspaceFault {
    /// An error with a message.
    pub fn new(code: WorkspaceFaultCode, message: impl Into<String>) -> Self {
        Self { code, message: message.into() }
    }

    /// Error of a file that changed.
    pub fn changed(path: &str) -> Self {
        let problem = format!("`{path}` has changed since it was read; read it again");
        Self::new(WorkspaceFaultCode::Changed, problem)
    }
}

/// Kinds of [`WorkspaceFault`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum WorkspaceFaultCode {
    /// The path leads out of the workspace, or through a link.
    OutsideWorkspace,
    /// Not a regular file, or not a directory where one is required.
    WrongKind,
    /// There is nothing at the path.
    NotFound,
    /// The file is larger than the provider reads or writes.
    TooLarge,
    /// The file is not UTF-8 text.
    NotText,
    /// The precondition of a write no longer holds.
    Changed,
    /// The workspace cannot be written.
    ReadOnly,
    /// The file decides what programs run, or belongs to the host: no tool writes it.
    Protected,
    /// The path has more names, one below the other, than the workspace takes.
    TooDeep,
    /// The operation took too long and was stopped.
    Timeout,
    /// Anything else; trying again may help.
    Unavailable,
}

impl WorkspaceFaultCode {
    /// The code of a tool's error result. `tool_error` covers every other failure of a provider.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::OutsideWorkspace => "outside_workspace",
            Self::WrongKind => "wrong_kind",
            Self::NotFound => "not_found",
            Self::TooLarge => "file_too_large",
            Self::NotText => "not_text",
            Self::Changed => "file_changed",
            Self::ReadOnly => "read_only",
            Self::Protected => "protected_path",
            Self::TooDeep => "path_too_deep",
            Self::Timeout => "timeout",
            Self::Unavailable => "tool_error",
        }
    }

    /// Whether the same operation may work when it is tried again.
    pub fn is_retryable(self) -> bool {
        matches!(self, Self::Unavailable)
    }
}

impl fmt::Display for WorkspaceFaultCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A tree of files that tools may see, and, where the provider allows it, change.
///
/// Paths come from the model. A provider normalizes them ([`normal_path`]) and rejects those that lead out of the
/// workspace. It bounds sizes and search times, and reports a reached bound as an error. Dropping a future cancels the
/// operation.
///
/// ```
/// use harness_host::{
///     normal_path, EntryKind, Workspace, WorkspaceEntry, WorkspaceFault, WorkspaceFile, WorkspaceHit,
/// };
///
/// /// A workspace with one file.
/// struct Note(String);
///
/// impl Workspace for Note {
///     async fn list(&self, _: &str, _: u32, _: u32) -> Result<Vec<WorkspaceEntry>, WorkspaceFault> {
///         Ok(vec![WorkspaceEntry::new("/note.md", EntryKind::File)])
///     }
///
///     async fn read(&self, path: &str) -> Result<Option<WorkspaceFile>, WorkspaceFault> {
///         Ok((normal_path(path) == "/note.md").then(|| WorkspaceFile::text("/note.md", &*self.0)))
///     }
///
///     async fn search(
///         &self,
///         query: &str,
///         _: Option<&str>,
///         _: u32,
///     ) -> Result<Vec<WorkspaceHit>, WorkspaceFault> {
///         let entry = WorkspaceEntry::new("/note.md", EntryKind::File);
///         Ok(if self.0.contains(query) { vec![WorkspaceHit::new(entry, None)] } else { Vec::new() })
///     }
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a workspace",
    note = "implement `list`, `read` and `search`; `write` is refused unless you implement it, too"
)]
pub trait Workspace: Send + Sync {
    /// Lists at most `limit` entries below `path`, at most `depth` levels deep (1: its children), sorted by path. A missing
    /// path gives an empty list.
    ///
    /// # Errors
    /// Errors of the provider.
    fn list(
        &self,
        path: &str,
        depth: u32,
        limit: u32,
    ) -> impl Future<Output = Result<Vec<WorkspaceEntry>, WorkspaceFault>> + Send;

    /// The file at `path`; `None` if there is none.
    ///
    /// # Errors
    /// Errors of the provider.
    fn read(&self, path: &str) -> impl Future<Output = Result<Option<WorkspaceFile>, WorkspaceFault>> + Send;

    /// At most `limit` files whose path or text has `query` in it, sorted by path; of one `provider` only,
    /// if one is named.
    ///
    /// # Errors
    /// Errors of the provider.
    fn search(
        &self,
        query: &str,
        provider: Option<&str>,
        limit: u32,
    ) -> impl Future<Output = Result<Vec<WorkspaceHit>, WorkspaceFault>> + Send;

    /// Creates or replaces a text file atomically, with missing directories. A replaced file keeps its permissions. The
    /// default rejects.
    ///
    /// # Errors
    /// `Changed` if `precondition` does not hold; errors of the provider. The file is unchanged then.
    fn write(
        &self,
        path: &str,
        content: &str,
        precondition: &Precondition,
    ) -> impl Future<Output = Result<(), WorkspaceFault>> + Send {
        let _ = (path, content, precondition);
        std::future::ready(Err(WorkspaceFault::new(
            WorkspaceFaultCode::ReadOnly,
            "this workspace can only be read",
        )))
    }
}

harness_core::twin! {
    DynWorkspace of Workspace {
        async fn list_boxed = list(
            path: &'a str,
            depth: u32,
            limit: u32
        ) -> Result<Vec<WorkspaceEntry>, WorkspaceFault>;
        async fn read_boxed = read(path: &'a str) -> Result<Option<WorkspaceFile>, WorkspaceFault>;
        async fn search_boxed = search(
            query: &'a str,
            provider: Option<&'a str>,
            limit: u32
        ) -> Result<Vec<WorkspaceHit>, WorkspaceFault>;
        async fn write_boxed = write(
            path: &'a str,
            content: &'a str,
            precondition: &'a Precondition
        ) -> Result<(), WorkspaceFault>;
    }
}

/// A path in its normal form: one slash before each name and none at the end; the root is `/`. Names are kept
/// as they are, with blanks around them, `.` and `..` too.
///
/// ```
/// use harness_host::normal_path;
///
/// assert_eq!(normal_path("docs//a.md/"), "/docs/a.md");
/// assert_eq!(normal_path(" sp "), "/ sp ");
/// assert_eq!(normal_path(""), "/");
/// ```
pub fn normal_path(path: &str) -> String {
    let mut normal = String::with_capacity(path.len() + 1);
    for name in path.split('/').filter(|name| !name.is_empty()) {
        normal.push('/');
        normal.push_str(name);
    }
    if normal.is_empty() {
        normal.push('/');
    }
    normal
}
