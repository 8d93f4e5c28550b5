//! The tools that search, list and read.

use std::sync::Arc;

use harness_core::Json;
use harness_core::message::Block;
use harness_core::tool::{ArgumentFault, DynTool, RetryClass, Tool, ToolCx, ToolDef, ToolOutcome};
use harness_host::{DynWorkspace, WorkspaceFault, WorkspaceFaultCode, WorkspaceFile};
use serde_json::{Value, json};

use super::seen::SeenFiles;
use super::show;
use crate::arguments::{Arguments, INVALID_INPUT, Refused, refusal};
use crate::tool_set::ToolSet;

/// The most that `workspace_search` may be asked for.
const MOST_HITS: u32 = 100;

/// The deepest that `workspace_list` may be asked for.
const MOST_DEPTH: u32 = 5;

/// The most entries that `workspace_list` may be asked for, and how many it gives unasked.
const MOST_ENTRIES: u32 = 200;
const USUAL_ENTRIES: u64 = 50;

/// Space of a page reserved for the note about the rest.
const NOTE: usize = 200;

/// How the workspace tools behave.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct WorkspaceOptions {
    /// How many hits a search gives unless it asks for another number. Default 20; 1 to 100, 0 is the
    /// default.
    pub search_limit: u32,
    /// How deep a listing goes at most. Default 3; 1 to 5, 0 is the default.
    pub list_depth: u32,
    /// The systems that a search can be narrowed to. Default none: there is no such argument.
    pub providers: Vec<String>,
}

impl Default for WorkspaceOptions {
    fn default() -> Self {
        Self { search_limit: 20, list_depth: 3, providers: Vec::new() }
    }
}

impl WorkspaceOptions {
    fn within_bounds(mut self) -> Self {
        let or_default = |value: u32, default: u32| if value == 0 { default } else { value };
        self.search_limit = or_default(self.search_limit, 20).min(MOST_HITS);
        self.list_depth = or_default(self.list_depth, 3).min(MOST_DEPTH);
        self
    }
}

/// The tools `workspace_search`, `workspace_list`, `workspace_read` and `workspace_read_json` over a
/// [`Workspace`](harness_host::Workspace).
///
/// All are of class `pure`. A result has at most 50 KiB: lists are cut and report the number of omitted
/// entries, files are read by page (`offset` and `limit` in bytes, cut at line ends if possible). Numbers in
/// JSON files are never rounded.
///
/// | code | meaning |
/// |---|---|
/// | `invalid_input` | an argument is missing, has the wrong type or is out of bounds |
/// | `workspace_unavailable` | no workspace is configured |
/// | `not_found` | the file does not exist |
/// | `invalid_json` | the file is not JSON |
/// | others | those of [`WorkspaceFaultCode`]; after `tool_error` another attempt may succeed |
///
/// ```
/// use std::sync::Arc;
///
/// use harness_core::Json;
/// use harness_core::message::ToolCall;
/// use harness_core::tool::{ToolCx, ToolRegistry};
/// use harness_host::{MemoryWorkspace, WorkspaceFile};
/// use harness_tools::{WorkspaceOptions, WorkspaceTools};
///
/// let files = MemoryWorkspace::new([WorkspaceFile::text("/docs/a.md", "Berth 4 is free.")]);
/// let tools = WorkspaceTools::new(Arc::new(files), WorkspaceOptions::default()).into_set();
/// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
/// let call = ToolCall::new("c", "workspace_read", Json::parse(r#"{"path":"docs/a.md"}"#)?);
/// let outcome = tools.call(ToolCx::for_call(Arc::new(call))).await?;
/// assert_eq!(outcome.content[0].as_text(), Some("Berth 4 is free."));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct WorkspaceTools {
    files: Option<Arc<dyn DynWorkspace>>,
    options: Arc<WorkspaceOptions>,
    seen: SeenFiles,
    prefix: String,
}

impl std::fmt::Debug for WorkspaceTools {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WorkspaceTools").field("options", &self.options).finish_non_exhaustive()
    }
}

impl WorkspaceTools {
    /// The tools over a workspace.
    pub fn new(files: Arc<dyn DynWorkspace>, options: WorkspaceOptions) -> Self {
        Self::of(Some(files), options)
    }

    /// The tools without a workspace: none is listed, and a call is answered with `workspace_unavailable`.
    pub fn unavailable(options: WorkspaceOptions) -> Self {
        Self::of(None, options)
    }

    fn of(files: Option<Arc<dyn DynWorkspace>>, options: WorkspaceOptions) -> Self {
        let options = Arc::new(options.within_bounds());
        Self { files, options, seen: SeenFiles::default(), prefix: String::new() }
    }

    /// Sets a prefix of the tool names, such as `docs_`, for a second workspace.
    #[must_use]
    pub fn with_prefix(mut self, prefix: impl Into<String>) -> Self {
        self.prefix = prefix.into();
        self
    }

    /// Records files that the tools read in `seen`.
    #[must_use]
    pub(crate) fn with_seen(mut self, seen: SeenFiles) -> Self {
        self.seen = seen;
        self
    }

    /// Files that the tools have read, for [`FileEdits`](crate::FileEdits) over the same workspace.
    pub fn seen(&self) -> SeenFiles {
        self.seen.clone()
    }

    /// The tools as a set.
    pub fn into_set(self) -> ToolSet {
        let tools = Kind::ALL.map(|kind| {
            let def = kind.def(&self.prefix, &self.options);
            Arc::new(WorkspaceTool { kind, def, shared: self.clone() }) as Arc<dyn DynTool>
        });
        let set = ToolSet::new(tools);
        if self.files.is_some() { set } else { set.unlisted() }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Search,
    List,
    Read,
    ReadJson,
}

impl Kind {
    const ALL: [Self; 4] = [Self::Search, Self::List, Self::Read, Self::ReadJson];

    fn def(self, prefix: &str, options: &WorkspaceOptions) -> ToolDef {
        let text = json!({ "type": "string", "minLength": 1 });
        let whole = |most: u32| json!({ "type": "integer", "minimum": 1, "maximum": most });
        let (name, description, required, mut properties) = match self {
            Self::Search => (
                "workspace_search",
                "Finds files whose path or text contains the query, whatever its case.",
                "query",
                json!({ "query": text, "limit": whole(MOST_HITS) }),
            ),
            Self::List => (
                "workspace_list",
                "Lists the files and directories below a path. `/` is the root; depth 1 is the content of the directory.",
                "path",
                json!({ "path": text, "depth": whole(MOST_DEPTH), "limit": whole(MOST_ENTRIES) }),
            ),
            Self::Read => ("workspace_read", "Reads a text file.", "path", json!({ "path": text })),
            Self::ReadJson => (
                "workspace_read_json",
                "Reads a JSON file and gives its value.",
                "path",
                json!({ "path": text }),
            ),
        };
        let more = match self {
            Self::Search if !options.providers.is_empty() => {
                vec![("provider", json!({ "type": "string", "enum": options.providers }))]
            }
            Self::Read => {
                let offset = "The byte to begin at, for what follows an earlier page.";
                let limit = "How many bytes to give at most.";
                let (most, whole) = (show::MOST, "integer");
                vec![
                    ("offset", json!({ "type": whole, "minimum": 0, "description": offset })),
                    ("limit", json!({ "type": whole, "minimum": 1, "maximum": most, "description": limit })),
                ]
            }
            Self::Search | Self::List | Self::ReadJson => Vec::new(),
        };
        if let Value::Object(properties) = &mut properties {
            properties.extend(more.into_iter().map(|(name, schema)| (name.to_owned(), schema)));
        }
        let schema = json!({ "type": "object", "properties": properties, "required": [required] });
        ToolDef::new(format!("{prefix}{name}"), description)
            .with_schema(schema.into())
            .with_class(RetryClass::Pure)
    }
}

/// A validated request.
enum Ask {
    Search { query: String, provider: Option<String>, limit: u32 },
    List { path: String, depth: u32, limit: u32 },
    Read { path: String, page: Option<(usize, usize)> },
    ReadJson { path: String },
}

struct WorkspaceTool {
    kind: Kind,
    def: ToolDef,
    shared: WorkspaceTools,
}

impl WorkspaceTool {
    fn ask(&self, arguments: &Json) -> Result<Ask, Refused> {
        let options = &self.shared.options;
        let arguments = Arguments::of(arguments)?;
        let small =
            |value: Option<u64>, default: u64| u32::try_from(value.unwrap_or(default)).unwrap_or(u32::MAX);
        match self.kind {
            Kind::Search => {
                let query = arguments.not_blank("query")?.to_owned();
                let provider = if options.providers.is_empty() {
                    None
                } else {
                    arguments.one_of("provider", &options.providers)?.map(str::to_owned)
                };
                let limit = arguments.whole("limit", 1, MOST_HITS.into())?;
                Ok(Ask::Search { query, provider, limit: small(limit, options.search_limit.into()) })
            }
            Kind::List => {
                let path = arguments.not_empty("path")?.to_owned();
                let depth = arguments.whole("depth", 1, MOST_DEPTH.into())?;
                let limit = arguments.whole("limit", 1, MOST_ENTRIES.into())?;
                let depth = small(depth, 1).min(options.list_depth);
                Ok(Ask::List { path, depth, limit: small(limit, USUAL_ENTRIES) })
            }
            Kind::Read => {
                let path = arguments.not_empty("path")?.to_owned();
                Ok(Ask::Read { path, page: page_of(&arguments)? })
            }
            Kind::ReadJson => Ok(Ask::ReadJson { path: arguments.not_empty("path")?.to_owned() }),
        }
    }

    async fn answer(
        &self,
        files: &dyn DynWorkspace,
        ask: &Ask,
        cx: &ToolCx,
    ) -> Result<ToolOutcome, ToolOutcome> {
        let failed = |fault: WorkspaceFault| failed(&fault);
        match ask {
            Ask::Search { query, provider, limit } => {
                let hits = files.search_boxed(query, provider.as_deref(), *limit).await.map_err(failed)?;
                Ok(ToolOutcome::text(show::hits(&hits)))
            }
            Ask::List { path, depth, limit } => {
                let entries = files.list_boxed(path, *depth, *limit).await.map_err(failed)?;
                Ok(ToolOutcome::text(show::entries(&entries)))
            }
            Ask::Read { path, page } => {
                let file = self.file(files, path).await?;
                self.shared.seen.remember(&cx.origin, &file.entry.path, &file.content);
                if page.is_none() && file.content.len() <= show::MOST {
                    return Ok(ToolOutcome::text(file.content));
                }
                Ok(page_outcome(&file, page.unwrap_or((0, show::MOST))))
            }
            Ask::ReadJson { path } => {
                let file = self.file(files, path).await?;
                let wrong = |_| refusal("invalid_json", format!("Workspace file is not valid JSON: {path}"));
                let value = Json::parse(&file.content).map_err(wrong)?;
                self.shared.seen.remember(&cx.origin, &file.entry.path, &file.content);
                Ok(ToolOutcome::text(show::json(path, &value)))
            }
        }
    }

    async fn file(&self, files: &dyn DynWorkspace, path: &str) -> Result<WorkspaceFile, ToolOutcome> {
        let read = files.read_boxed(path).await.map_err(|fault| failed(&fault))?;
        read.ok_or_else(|| not_found(path))
    }
}

impl Tool for WorkspaceTool {
    fn def(&self) -> &ToolDef {
        &self.def
    }

    fn check(&self, arguments: &Json) -> Result<(), ArgumentFault> {
        self.ask(arguments).map(|_| ()).map_err(Into::into)
    }

    async fn call(&self, cx: ToolCx) -> ToolOutcome {
        let Some(files) = &self.shared.files else {
            return refusal("workspace_unavailable", "Workspace VFS not configured");
        };
        let ask = match self.ask(&cx.call.arguments) {
            Ok(ask) => ask,
            Err(refused) => return refused.outcome(),
        };
        let answer = self.answer(&**files, &ask, &cx);
        tokio::select! {
            biased;
            () = cx.cancel.cancelled() => stopped(),
            outcome = answer => outcome.unwrap_or_else(|failure| failure),
        }
    }
}

/// Result of a cancelled call.
pub(crate) fn stopped() -> ToolOutcome {
    let status = harness_core::tool::ToolStatus::Cancelled;
    ToolOutcome::with_error(status, "cancelled", "the call was cancelled")
}

/// The result of a call that the workspace could not serve.
pub(crate) fn failed(fault: &WorkspaceFault) -> ToolOutcome {
    let mut outcome = ToolOutcome::error(fault.code.as_str(), fault.message.clone());
    if fault.code == WorkspaceFaultCode::Timeout {
        outcome.status = harness_core::tool::ToolStatus::Timeout;
    }
    if let Some(error) = &mut outcome.error {
        error.retryable = Some(fault.code.is_retryable());
    }
    outcome
}

/// The result of a call for a file that is not there.
pub(crate) fn not_found(path: &str) -> ToolOutcome {
    let mut outcome = refusal("not_found", format!("Workspace file not found: {path}"));
    if let Some(error) = &mut outcome.error {
        error.retryable = Some(false);
    }
    outcome
}

/// The page that is asked for: where it begins and how long it may be.
fn page_of(arguments: &Arguments) -> Result<Option<(usize, usize)>, Refused> {
    let offset = arguments.whole("offset", 0, 1 << 40)?;
    let limit = arguments.whole("limit", 1, show::MOST as u64)?;
    if offset.is_none() && limit.is_none() {
        return Ok(None);
    }
    let bytes =
        |value: Option<u64>, default: usize| value.and_then(|v| usize::try_from(v).ok()).unwrap_or(default);
    Ok(Some((bytes(offset, 0), bytes(limit, show::MOST))))
}

/// A page of a file; the note about the rest is a separate block, so that the page is exact.
fn page_outcome(file: &WorkspaceFile, (offset, limit): (usize, usize)) -> ToolOutcome {
    let text = &file.content;
    let size = text.len();
    if offset > 0 && offset >= size {
        let message = format!("input.offset is beyond the end of the file, which has {size} bytes");
        return refusal(INVALID_INPUT, message);
    }
    let begin = text.ceil_char_boundary(offset);
    let end = page_end(text, begin, limit.min(show::MOST - NOTE));
    let page = text.get(begin..end).unwrap_or_default();
    let rest = if end < size { format!("; continue with offset {end}") } else { String::new() };
    let note = format!("\n[bytes {begin} to {end} of {size}{rest}]");
    let mut outcome = ToolOutcome::blocks(vec![Block::text(page), Block::text(note)]);
    let next = if end < size { json!(end) } else { Value::Null };
    let data = json!({ "path": file.entry.path, "offset": begin, "next": next, "size": size });
    outcome.structured = Some(data.into());
    outcome
}

/// Where a page ends: after a line if there is one in its second half, and never within a character.
fn page_end(text: &str, begin: usize, most: usize) -> usize {
    if text.len() - begin <= most {
        return text.len();
    }
    let end = text.floor_char_boundary(begin + most);
    if end == begin {
        // The page is shorter than the character.
        return text.ceil_char_boundary(begin + 1);
    }
    let page = text.get(begin..end).unwrap_or_default();
    match page.rfind('\n') {
        Some(line) if line >= page.len() / 2 => begin + line + 1,
        _ => end,
    }
}
