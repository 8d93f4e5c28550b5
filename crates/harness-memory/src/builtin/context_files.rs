//! Context files: what a project tells its agents, `AGENTS.md` and the like.

use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

use harness_core::Json;
use harness_host::DynWorkspace;

use super::text::{cut, units_of};
use crate::MemoryError;
use crate::layer::{Hook, Layer, LayerCx, LayerDef, Placement, RecallAsk, Recalled, ScopedStorage, Update};

/// The names that are looked for in each folder; the first that is there counts.
const NAMES: [&str; 4] = ["AGENTS.md", "AGENTS.MD", "CLAUDE.md", "CLAUDE.MD"];
/// How deep imports go: a file that a folder has is at 0.
const MOST_DEPTH: usize = 5;
/// Lines of one file that are shown.
const MOST_LINES: usize = 200;
/// Bytes of one file that are shown.
const MOST_BYTES: usize = 25_000;
/// Bytes of all files together.
const MOST_TOTAL: usize = 60_000;

/// Shows the context files of a project: one of `AGENTS.md`, `AGENTS.MD`, `CLAUDE.md`, `CLAUDE.MD` in the
/// agent's own folder and in every folder from the root of the workspace down to the working folder, each
/// file once, under its path.
///
/// A file imports others with `@path/to/file.md` (from its own folder, or from the root with `@/…`), outside
/// of code, to depth 5; an imported file follows the one that asks for it. Of one file 200 lines and 25,000
/// bytes are shown, of all together 60,000 bytes; what is cut off is said. The files are read when an
/// execution begins.
#[derive(Clone)]
pub struct ContextFiles {
    def: LayerDef,
    workspace: Arc<dyn DynWorkspace>,
    folders: Vec<String>,
}

impl fmt::Debug for ContextFiles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ContextFiles")
            .field("def", &self.def)
            .field("folders", &self.folders)
            .finish_non_exhaustive()
    }
}

impl ContextFiles {
    /// The context files of `workspace` from its root down to the folder `working`.
    pub fn new(workspace: Arc<dyn DynWorkspace>, working: &str) -> Self {
        let def = LayerDef::new("context-files", 195, [Hook::Init, Hook::Recall])
            .with_range(0, 15_000)
            .with_placement(Placement::Anchor);
        let mut folders = vec![String::new()];
        for part in parts(working) {
            let last = folders.last().cloned().unwrap_or_default();
            folders.push(format!("{last}/{part}"));
        }
        Self { def, workspace, folders }
    }

    /// The same, with those of the agent's own folder first.
    #[must_use]
    pub fn with_agent_folder(mut self, folder: &str) -> Self {
        self.folders.insert(0, absolute("", folder));
        self
    }

    async fn gathered(&self) -> String {
        let mut gathering =
            Gathering { workspace: &*self.workspace, seen: HashSet::new(), text: String::new() };
        for folder in &self.folders {
            for name in NAMES {
                let path = format!("{folder}/{name}");
                if gathering.add_with_imports(&path).await {
                    break;
                }
            }
        }
        gathering.text
    }
}

/// The sections so far.
struct Gathering<'a> {
    workspace: &'a dyn DynWorkspace,
    seen: HashSet<String>,
    text: String,
}

impl Gathering<'_> {
    /// Adds a file and what it imports; whether there is such a file. Imports are worked off from a stack, so
    /// that each follows the file that asks for it.
    async fn add_with_imports(&mut self, path: &str) -> bool {
        let mut stack = vec![(path.to_owned(), 0)];
        let mut found = false;
        while let Some((path, depth)) = stack.pop() {
            if self.seen.contains(&path) {
                found |= depth == 0;
                continue;
            }
            let Some(text) = self.read(&path).await else { continue };
            found |= depth == 0;
            self.seen.insert(path.clone());
            self.push(&path, &text);
            if depth < MOST_DEPTH {
                let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
                let imported = imports(&text).into_iter().rev();
                stack.extend(imported.map(|import| (absolute(folder, import), depth + 1)));
            }
        }
        found
    }

    /// The text of a file. One that cannot be read is left out: a project's hints are no condition of a run.
    async fn read(&self, path: &str) -> Option<String> {
        let file = self.workspace.read_boxed(path).await.ok()??;
        (!file.base64).then_some(file.content)
    }

    fn push(&mut self, path: &str, text: &str) {
        let mut section = format!("\n\n## {path}\n\n");
        section.push_str(&shortened(text));
        let room = MOST_TOTAL.saturating_sub(self.text.len());
        if section.len() <= room {
            self.text.push_str(&section);
        } else if !self.text.ends_with(TOO_MANY) {
            self.text.push_str(TOO_MANY);
        }
    }
}

const TOO_MANY: &str = "\n\n[further context files are left out: 60000 bytes are the most]";

/// The beginning of a file that is shown, and a note when it is not all.
fn shortened(text: &str) -> String {
    let mut shown = String::new();
    let mut lines = text.trim_end().lines();
    for (number, line) in lines.by_ref().enumerate() {
        if number == MOST_LINES || shown.len() + line.len() + 1 > MOST_BYTES {
            let note = format!(
                "[cut off after {number} lines: {MOST_LINES} lines and {MOST_BYTES} bytes are the most]"
            );
            shown.push_str(&note);
            return shown;
        }
        shown.push_str(line);
        shown.push('\n');
    }
    shown.truncate(shown.trim_end().len());
    shown
}

/// The paths that a text imports: words `@….md` outside of code, in order.
fn imports(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut fenced = false;
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
        }
        if fenced {
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

/// The path from the root that `path` means in `folder`. It never leads above the root.
fn absolute(folder: &str, path: &str) -> String {
    let mut all: Vec<&str> = if path.starts_with('/') { Vec::new() } else { parts(folder).collect() };
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

impl Layer for ContextFiles {
    fn def(&self) -> &LayerDef {
        &self.def
    }

    async fn init(&self, _storage: &ScopedStorage, _cx: &LayerCx) -> Result<Update, MemoryError> {
        let text = self.gathered().await;
        if text.is_empty() {
            return Ok(Update::Clear);
        }
        Ok(Update::Set(Json::string(&format!("# Project context{text}"))))
    }

    async fn recall(&self, ask: RecallAsk, cx: &LayerCx) -> Result<Recalled, MemoryError> {
        let text: String = cx.state_as()?;
        if ask.budget == 0 || cx.tokenize(&text) <= ask.budget {
            return Ok(Recalled::text(text));
        }
        let note = "\n[cut off: the budget of context files is used up]";
        let room = units_of(ask.budget).saturating_sub(note.len());
        Ok(Recalled::text(format!("{}{note}", cut(&text, room))))
    }
}
