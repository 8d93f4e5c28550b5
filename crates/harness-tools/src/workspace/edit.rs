//! The tools that change files.

use std::sync::Arc;

use harness_core::Json;
use harness_core::message::Block;
use harness_core::port::ProposedCall;
use harness_core::tool::{ArgumentFault, DynTool, Tool, ToolCx, ToolDef, ToolOutcome};
use harness_host::DynWorkspace;
use serde_json::json;

use super::change::{Ask, Change};
use super::preview::{FilePreview, Shown};
use super::seen::SeenFiles;
use super::tools::{failed, stopped};
use crate::arguments::{Arguments, Refused, checked, refusal};
use crate::tool_set::ToolSet;

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
    shown: Shown,
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
        Self { files, seen, approval: true, prefix: String::new(), shown: Shown::default() }
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

    /// Computes what a call of these tools would write, to show it before it is approved. From then on the call
    /// writes exactly this: if the file or the result is no longer the same when it runs, it fails with
    /// `file_changed`. `None` for calls of other tools.
    ///
    /// # Errors
    /// What the model would read: the call would write nothing.
    pub async fn preview(&self, proposed: &ProposedCall) -> Option<Result<FilePreview, String>> {
        let name = proposed.call.name.as_str().strip_prefix(&*self.prefix)?;
        let kind = [Kind::Write, Kind::Edit].into_iter().find(|kind| kind.name() == name)?;
        let ask = match kind.ask(&proposed.call.arguments) {
            Ok(ask) => ask,
            Err(refused) => return Some(Err(text_of(&refused.outcome()))),
        };
        match Change::of(&ask, &*self.files, &self.seen, &proposed.origin).await {
            Ok(change) => {
                self.shown.remember(&proposed.origin, &proposed.call.id, change.digest());
                let Change { path, before, after, .. } = change;
                Some(Ok(FilePreview { path, before, after }))
            }
            Err(failure) => Some(Err(text_of(&failure))),
        }
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
    fn name(self) -> &'static str {
        match self {
            Self::Write => "file_write",
            Self::Edit => "file_edit",
        }
    }

    fn def(self, prefix: &str) -> ToolDef {
        let path = json!({ "type": "string", "minLength": 1 });
        let (description, schema) = match self {
            Self::Write => (
                "Makes a text file, or replaces one that was read before.",
                json!({
                    "type": "object",
                    "properties": { "path": path, "content": { "type": "string" } },
                    "required": ["path", "content"],
                }),
            ),
            Self::Edit => (
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
        ToolDef::new(format!("{prefix}{}", self.name()), description).with_schema(schema.into())
    }

    fn ask(self, arguments: &Json) -> Result<Ask, Refused> {
        let arguments = Arguments::of(arguments)?;
        let path = checked::filled("path", arguments.get("path"))?.to_owned();
        let text = |key: &str| checked::text(key, arguments.get(key)).map(str::to_owned);
        match self {
            Self::Write => Ok(Ask::Write { path, content: text("content")? }),
            Self::Edit => {
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
}

struct EditTool {
    kind: Kind,
    def: ToolDef,
    shared: FileEdits,
}

impl EditTool {
    async fn run(&self, ask: &Ask, cx: &ToolCx) -> Result<ToolOutcome, ToolOutcome> {
        let FileEdits { files, seen, shown, .. } = &self.shared;
        let change = Change::of(ask, &**files, seen, &cx.origin).await?;
        let (Ask::Write { path, .. } | Ask::Edit { path, .. }) = ask;
        if shown.recall(&cx.origin, &cx.call.id).is_some_and(|digest| digest != change.digest()) {
            let message = format!("`{path}` has changed since the call was approved; read it again");
            return Err(refusal("file_changed", message));
        }
        let written = files.write_boxed(path, &change.after, &change.precondition()).await;
        written.map_err(|fault| failed(&fault))?;
        seen.remember(&cx.origin, &change.path, &change.after);
        Ok(told(path, change))
    }
}

impl Tool for EditTool {
    fn def(&self) -> &ToolDef {
        &self.def
    }

    fn check(&self, arguments: &Json) -> Result<(), ArgumentFault> {
        self.kind.ask(arguments).map(|_| ()).map_err(Into::into)
    }

    async fn call(&self, cx: ToolCx) -> ToolOutcome {
        let ask = match self.kind.ask(&cx.call.arguments) {
            Ok(ask) => ask,
            Err(refused) => return refused.outcome(),
        };
        if cx.cancel.is_cancelled() {
            return stopped();
        }
        // From here on it is not given up: half a change would be worse than one that nobody waits for. The
        // workspace bounds its time.
        self.run(&ask, &cx).await.unwrap_or_else(|failure| failure)
    }
}

/// A success: one sentence for the model, and the facts as data.
fn told(path: &str, change: Change) -> ToolOutcome {
    let (bytes, (fact, value)) = (change.after.len(), change.fact);
    let mut outcome = ToolOutcome::text(format!("{}; it has {bytes} bytes now", change.what));
    outcome.structured = Some(json!({ "path": path, "bytes": bytes, fact: value }).into());
    outcome
}

/// Text for the model about a failure.
fn text_of(failure: &ToolOutcome) -> String {
    let text: String = failure.content.iter().filter_map(Block::as_text).collect();
    let message = failure.error.as_ref().map(|error| error.message.clone());
    if text.is_empty() { message.unwrap_or_default() } else { text }
}
