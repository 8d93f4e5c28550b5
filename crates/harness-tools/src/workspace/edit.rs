//! The tools that change files.

use std::sync::Arc;

use harness_core::tool::{ArgumentFault, DynTool, Tool, ToolCx, ToolDef, ToolOutcome};
use harness_core::{Json, Origin};
use harness_host::{DynWorkspace, Precondition, WorkspaceFault};
use serde_json::{Value, json};

use super::seen::{Memory, SeenFiles};
use super::tools::{failed, not_found, stopped};
use crate::arguments::{Arguments, Refused, checked, refusal};
use crate::tool_set::ToolSet;

/// How many places of a text are named.
const PLACES: usize = 5;

const BOM: char = '\u{feff}';

/// The tools `file_write` and `file_edit` over a [`Workspace`](harness_host::Workspace).
///
/// Each call waits for approval unless [`FileEdits::without_approval`] says otherwise. What exists keeps
/// its byte order mark and its line ends. Nothing is replaced that has changed since the conversation read
/// it, and `file_write` replaces nothing that it has not read ([`SeenFiles`]).
///
/// | code | meaning |
/// |---|---|
/// | `invalid_input` | an argument is missing or of another type |
/// | `not_found` | there is no such file to edit |
/// | `file_not_read` | the file exists and was not read in this conversation |
/// | `file_changed` | the file is not as it was read, or changed during the call |
/// | `no_match` | `old_string` does not occur |
/// | `several_matches` | `old_string` occurs more than once |
/// | others | those of [`WorkspaceFaultCode`](harness_host::WorkspaceFaultCode) |
#[derive(Clone)]
pub struct FileEdits {
    files: Arc<dyn DynWorkspace>,
    seen: SeenFiles,
    approval: bool,
    prefix: String,
}

impl std::fmt::Debug for FileEdits {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FileEdits").field("approval", &self.approval).finish_non_exhaustive()
    }
}

impl FileEdits {
    /// The tools over a workspace. `seen` is that of the tools which read the same workspace
    /// ([`WorkspaceTools::seen`](crate::WorkspaceTools::seen)).
    pub fn new(files: Arc<dyn DynWorkspace>, seen: SeenFiles) -> Self {
        Self { files, seen, approval: true, prefix: String::new() }
    }

    /// Lets the tools run without approval.
    #[must_use]
    pub fn without_approval(mut self) -> Self {
        self.approval = false;
        self
    }

    /// Sets a prefix of the tool names.
    #[must_use]
    pub fn with_prefix(mut self, prefix: impl Into<String>) -> Self {
        self.prefix = prefix.into();
        self
    }

    /// The tools as a set.
    pub fn into_set(self) -> ToolSet {
        ToolSet::new([Kind::Write, Kind::Edit].map(|kind| {
            let mut def = kind.def(&self.prefix);
            def.requires_approval = self.approval;
            def.sequential = true;
            Arc::new(EditTool { kind, def, shared: self.clone() }) as Arc<dyn DynTool>
        }))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Write,
    Edit,
}

impl Kind {
    fn def(self, prefix: &str) -> ToolDef {
        let path = json!({ "type": "string", "minLength": 1 });
        let (name, description, schema) = match self {
            Self::Write => (
                "file_write",
                "Makes a text file, or replaces one that was read before.",
                json!({
                    "type": "object",
                    "properties": { "path": path, "content": { "type": "string" } },
                    "required": ["path", "content"],
                }),
            ),
            Self::Edit => (
                "file_edit",
                "Replaces a text in a file. The old text must match exactly, white space included, and only once.",
                json!({
                    "type": "object",
                    "properties": {
                        "path": path,
                        "old_string": { "type": "string", "minLength": 1 },
                        "new_string": { "type": "string" },
                        "replace_all": { "type": "boolean", "description": "Replace every occurrence." },
                    },
                    "required": ["path", "old_string", "new_string"],
                }),
            ),
        };
        ToolDef::new(format!("{prefix}{name}"), description).with_schema(schema.into())
    }
}

enum Ask {
    Write { path: String, content: String },
    Edit { path: String, old: String, new: String, all: bool },
}

struct EditTool {
    kind: Kind,
    def: ToolDef,
    shared: FileEdits,
}

impl EditTool {
    fn ask(&self, arguments: &Json) -> Result<Ask, Refused> {
        let arguments = Arguments::of(arguments)?;
        let path = checked::filled("path", arguments.get("path"))?.to_owned();
        let text = |key: &str| checked::text(key, arguments.get(key)).map(str::to_owned);
        match self.kind {
            Kind::Write => Ok(Ask::Write { path, content: text("content")? }),
            Kind::Edit => {
                let old = checked::filled("old_string", arguments.get("old_string"))?.to_owned();
                let new = text("new_string")?;
                if old == new {
                    return Err(Refused::new("new_string", "new_string is the same text as old_string"));
                }
                let all = checked::flag("replace_all", arguments.get("replace_all"))?;
                Ok(Ask::Edit { path, old, new, all })
            }
        }
    }

    async fn write(&self, path: &str, content: &str, origin: &Origin) -> Result<ToolOutcome, ToolOutcome> {
        let FileEdits { files, seen, .. } = &self.shared;
        let Some(file) = files.read_boxed(path).await.map_err(|fault| failed(&fault))? else {
            self.save(path, content, &Precondition::Absent).await?;
            seen.remember(origin, &harness_host::normal_path(path), content);
            return Ok(told(path, &format!("made {path}"), content.len(), ("created", true.into())));
        };
        let at = &file.entry.path;
        match seen.recall(origin, at, &file.content) {
            Memory::Same => {}
            Memory::Changed => return Err(refusal("file_changed", WorkspaceFault::changed(path).message)),
            Memory::Unread => {
                let message = format!("`{path}` exists and was not read; read it before you replace it");
                return Err(refusal("file_not_read", message));
            }
        }
        let content = Style::of(&file.content).apply(content);
        self.save(path, &content, &Precondition::Content(file.content)).await?;
        seen.remember(origin, at, &content);
        Ok(told(path, &format!("replaced {path}"), content.len(), ("created", false.into())))
    }

    async fn edit(
        &self,
        path: &str,
        (old, new, all): (&str, &str, bool),
        origin: &Origin,
    ) -> Result<ToolOutcome, ToolOutcome> {
        let FileEdits { files, seen, .. } = &self.shared;
        let read = files.read_boxed(path).await.map_err(|fault| failed(&fault))?;
        let file = read.ok_or_else(|| not_found(path))?;
        if seen.recall(origin, &file.entry.path, &file.content) == Memory::Changed {
            return Err(refusal("file_changed", WorkspaceFault::changed(path).message));
        }
        let text = &file.content;
        let style = Style::of(text);
        let (old, new) = (style.lines(old), style.lines(new));
        let places: Vec<usize> = text.match_indices(&*old).map(|(at, _)| line_of(text, at)).collect();
        let replaced = match (places.len(), all) {
            (0, _) => return Err(refusal("no_match", no_match(path, text, &old))),
            (1, _) | (_, true) => text.replace(&*old, &new),
            (_, false) => return Err(refusal("several_matches", several(path, &places))),
        };
        self.save(path, &replaced, &Precondition::Content(text.clone())).await?;
        seen.remember(origin, &file.entry.path, &replaced);
        let (count, lines) = (places.len(), lines(&places));
        let times = if count == 1 { "once".to_owned() } else { format!("{count} times") };
        let what = format!("edited {path} {times}, at {lines}");
        Ok(told(path, &what, replaced.len(), ("replacements", count.into())))
    }

    async fn save(&self, path: &str, content: &str, wanted: &Precondition) -> Result<(), ToolOutcome> {
        self.shared.files.write_boxed(path, content, wanted).await.map_err(|fault| failed(&fault))
    }
}

impl Tool for EditTool {
    fn def(&self) -> &ToolDef {
        &self.def
    }

    fn check(&self, arguments: &Json) -> Result<(), ArgumentFault> {
        self.ask(arguments).map(|_| ()).map_err(Into::into)
    }

    async fn call(&self, cx: ToolCx) -> ToolOutcome {
        let ask = match self.ask(&cx.call.arguments) {
            Ok(ask) => ask,
            Err(refused) => return refused.outcome(),
        };
        if cx.cancel.is_cancelled() {
            return stopped();
        }
        // From here on it is not given up: half a change would be worse than one that nobody waits for. The
        // workspace bounds its time.
        let done = match &ask {
            Ask::Write { path, content } => self.write(path, content, &cx.origin).await,
            Ask::Edit { path, old, new, all } => self.edit(path, (old, new, *all), &cx.origin).await,
        };
        done.unwrap_or_else(|failure| failure)
    }
}

/// A success: one sentence for the model, and the facts as data, one of them the caller's own.
fn told(path: &str, what: &str, bytes: usize, (fact, value): (&str, Value)) -> ToolOutcome {
    let mut outcome = ToolOutcome::text(format!("{what}; it has {bytes} bytes now"));
    outcome.structured = Some(json!({ "path": path, "bytes": bytes, fact: value }).into());
    outcome
}

/// Properties of a file that an edit keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Style {
    /// It begins with a byte order mark.
    bom: bool,
    /// All its lines end with CR LF.
    crlf: bool,
}

impl Style {
    fn of(text: &str) -> Self {
        let ends = text.matches('\n').count();
        Self { bom: text.starts_with(BOM), crlf: ends > 0 && text.matches("\r\n").count() == ends }
    }

    /// The text with the file's line ends.
    fn lines(self, text: &str) -> String {
        if self.crlf { text.replace("\r\n", "\n").replace('\n', "\r\n") } else { text.to_owned() }
    }

    /// The text with the file's line ends and byte order mark.
    fn apply(self, text: &str) -> String {
        let text = self.lines(text);
        if self.bom && !text.starts_with(BOM) { format!("{BOM}{text}") } else { text }
    }
}

/// The line of a byte, from 1.
fn line_of(text: &str, at: usize) -> usize {
    text.split_at(at).0.matches('\n').count() + 1
}

/// `line 3`, `lines 3, 7 and 2 more`.
fn lines(places: &[usize]) -> String {
    let shown: Vec<String> = places.iter().take(PLACES).map(usize::to_string).collect();
    let more = places.len() - shown.len();
    let more = if more == 0 { String::new() } else { format!(" and {more} more") };
    let word = if places.len() == 1 { "line" } else { "lines" };
    format!("{word} {}{more}", shown.join(", "))
}

fn several(path: &str, places: &[usize]) -> String {
    let (count, lines) = (places.len(), lines(places));
    format!(
        "old_string occurs {count} times in `{path}`, at {lines}; \
         take more of its surroundings into it, or set replace_all"
    )
}

/// Explains why nothing matches; often only white space differs.
fn no_match(path: &str, text: &str, old: &str) -> String {
    let wanted: Vec<&str> = old.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let near = wanted.first().and_then(|first| {
        let lines: Vec<&str> = text.lines().map(str::trim).collect();
        (0..lines.len()).find(|at| {
            lines.get(*at) == Some(first) && {
                let below = lines.iter().skip(*at).filter(|line| !line.is_empty());
                below.take(wanted.len()).eq(wanted.iter())
            }
        })
    });
    match near {
        Some(at) => format!(
            "old_string does not occur in `{path}`; from line {} on the text differs from it only in white space",
            at + 1
        ),
        None => {
            format!("old_string does not occur in `{path}`; read the file again and copy the text from it")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(file: &str, written: &str, expected: &str) {
        assert_eq!(Style::of(file).apply(written), expected);
    }

    #[test]
    fn line_ends_and_byte_order_mark_stay() {
        check("a\nb\n", "x\ny\n", "x\ny\n");
        check("a\r\nb\r\n", "x\ny\r\n", "x\r\ny\r\n");
        check("a\r\nb\n", "x\ny\n", "x\ny\n");
        check("\u{feff}a", "x", "\u{feff}x");
        check("\u{feff}a\r\n", "\u{feff}x\n", "\u{feff}x\r\n");
        check("", "x\n", "x\n");
    }
}
