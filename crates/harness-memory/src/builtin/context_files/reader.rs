//! The reader of context files and of their imports.

use std::collections::HashSet;
use std::fmt::Write as _;

use harness_host::{DynWorkspace, WorkspaceFault, WorkspaceFaultCode};

/// Names that are tried in each directory; the first that exists is used.
const NAMES: [&str; 4] = ["AGENTS.md", "AGENTS.MD", "CLAUDE.md", "CLAUDE.MD"];
/// Maximum directories that are searched.
const MAX_DIRECTORIES: usize = 64;

/// Bounds of context files. What exceeds them is cut, with a note in its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ContextFileLimits {
    /// Depth of imports; a file of a directory has depth 0. Default 5.
    pub depth: usize,
    /// Lines of one file. Default 200.
    pub lines: usize,
    /// Bytes of one file. Default 25,000.
    pub bytes: usize,
    /// Bytes of all files with their headings. Default 60,000.
    pub total: usize,
}

impl Default for ContextFileLimits {
    fn default() -> Self {
        Self { depth: 5, lines: 200, bytes: 25_000, total: 60_000 }
    }
}

/// One context file.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ContextFile {
    /// Path from the root of the workspace.
    pub path: String,
    /// Text, within the bounds.
    pub text: String,
}

/// Context files from the most general to the most specific, each followed by its imports.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ContextFileSet {
    /// Files, each once.
    pub files: Vec<ContextFile>,
    /// Unreadable files, by path.
    pub problems: Vec<(String, WorkspaceFault)>,
    /// Whether files were omitted because `total` was reached.
    pub is_cut: bool,
}

impl ContextFileSet {
    /// Reads one file of each directory, and what it imports. The first of `AGENTS.md`, `AGENTS.MD`, `CLAUDE.md` and
    /// `CLAUDE.MD` that exists is used; empty files are omitted. At most 64 directories are searched.
    ///
    /// A file imports others with `@path/to/file.md` outside of code: from its own directory, or with `@/…` from the
    /// root.
    pub async fn read(
        workspace: &dyn DynWorkspace,
        directories: &[String],
        limits: ContextFileLimits,
    ) -> Self {
        let mut reader = Reader { workspace, limits, seen: HashSet::new(), bytes: 0, set: Self::default() };
        for directory in directories.iter().take(MAX_DIRECTORIES) {
            for name in NAMES {
                if reader.add_with_imports(&format!("{}/{name}", directory.trim_end_matches('/'))).await {
                    break;
                }
            }
        }
        reader.set
    }

    /// Section for the instructions of an agent, with each file below its path; empty without files.
    pub fn instructions(&self) -> String {
        if self.files.is_empty() {
            return String::new();
        }
        let sections = self.files.iter().map(|file| section(&file.path, &file.text));
        let note = if self.is_cut { "\n\n[further context files are omitted]" } else { "" };
        std::iter::once("# Project context".to_owned()).chain(sections).chain([note.to_owned()]).collect()
    }
}

fn section(path: &str, text: &str) -> String {
    format!("\n\n## {path}\n\n{text}")
}

/// Directories from the root of a workspace down to `directory`, both included.
pub fn directories_down_to(directory: &str) -> Vec<String> {
    let mut directories = vec![String::new()];
    for part in parts(directory) {
        let above = directories.last().map(String::as_str).unwrap_or_default();
        directories.push(format!("{above}/{part}"));
    }
    directories
}

struct Reader<'a> {
    workspace: &'a dyn DynWorkspace,
    limits: ContextFileLimits,
    seen: HashSet<String>,
    /// Bytes of the sections so far.
    bytes: usize,
    set: ContextFileSet,
}

impl Reader<'_> {
    /// Adds a file and its imports; returns whether the file exists. Imports wait on a stack, so that each follows the
    /// file that names it.
    async fn add_with_imports(&mut self, path: &str) -> bool {
        let mut stack = vec![(path.to_owned(), 0)];
        let mut exists = false;
        while let Some((path, depth)) = stack.pop() {
            if self.seen.contains(&path) {
                exists |= depth == 0;
                continue;
            }
            let text = match self.text_of(&path).await {
                Ok(None) => continue,
                Ok(Some(text)) => text,
                Err(fault) => {
                    exists |= depth == 0;
                    self.set.problems.push((path, fault));
                    continue;
                }
            };
            exists |= depth == 0;
            self.seen.insert(path.clone());
            if depth < self.limits.depth {
                let directory = path.rsplit_once('/').map_or("", |(directory, _)| directory);
                let imported = imports(&text).into_iter().rev();
                stack.extend(imported.map(|import| (absolute(directory, import), depth + 1)));
            }
            self.push(path, &text);
        }
        exists
    }

    async fn text_of(&self, path: &str) -> Result<Option<String>, WorkspaceFault> {
        let Some(file) = self.workspace.read_boxed(path).await? else { return Ok(None) };
        if file.base64 {
            return Err(WorkspaceFault::new(WorkspaceFaultCode::NotText, "not UTF-8 text"));
        }
        Ok(Some(file.content))
    }

    fn push(&mut self, path: String, text: &str) {
        let text = shortened(text, self.limits);
        let bytes = section(&path, &text).len();
        if text.is_empty() {
            return;
        }
        if self.bytes + bytes > self.limits.total {
            self.set.is_cut = true;
            return;
        }
        self.bytes += bytes;
        self.set.files.push(ContextFile { path, text });
    }
}

/// First lines of a file, with a note if it is longer.
fn shortened(text: &str, limits: ContextFileLimits) -> String {
    let mut shown = String::new();
    for (number, line) in text.trim().lines().enumerate() {
        if number == limits.lines || shown.len() + line.len() + 1 > limits.bytes {
            let _ = write!(shown, "[cut after {number} lines]");
            return shown;
        }
        shown.push_str(line);
        shown.push('\n');
    }
    shown.truncate(shown.trim_end().len());
    shown
}

/// Paths that a text imports: words `@….md` outside of code, in order.
fn imports(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut is_fenced = false;
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            is_fenced = !is_fenced;
        }
        if is_fenced {
            continue;
        }
        // Every second part of a line, cut at its backticks, is code.
        for plain in line.split('`').step_by(2) {
            for word in plain.split_whitespace() {
                let path =
                    word.strip_prefix('@').map(|path| path.trim_end_matches([',', '.', ';', ':', ')', '!']));
                found.extend(path.filter(|path| path.to_ascii_lowercase().ends_with(".md")));
            }
        }
    }
    found
}

/// Path from the root that `path` means in `directory`. It never leads above the root.
pub(super) fn absolute(directory: &str, path: &str) -> String {
    let mut all: Vec<&str> = if path.starts_with('/') { Vec::new() } else { parts(directory).collect() };
    for part in parts(path) {
        if part == ".." {
            all.pop();
        } else {
            all.push(part);
        }
    }
    all.iter().fold(String::new(), |joined, part| joined + "/" + part)
}

fn parts(path: &str) -> impl Iterator<Item = &str> {
    path.split('/').filter(|part| !part.is_empty() && *part != ".")
}
