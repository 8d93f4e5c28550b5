//! The memory tools: remember, recall, forget.

use std::sync::Arc;

use harness_core::port::Clock;
use harness_core::tool::{DynTool, ToolCx, ToolError, ToolOutcome, tool_fn};
use harness_core::{Json, Millis, Time};
use harness_host::StorageError;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::notes::{LongTermMemory, Note, NoteDraft, NoteQuery, NoteScope, NoteSource};
use super::text::units;
use super::tree::Tree;

const DAY: u64 = 86_400_000;

/// The tools `memory_remember`, `memory_recall` and `memory_forget` over `memory`; without one they answer
/// `memory_unavailable`. What expires does so by `clock`.
///
/// A note belongs to the session (the thread), the user or the workspace of the call. Notes of others are neither
/// read nor removed.
///
/// ```
/// use std::sync::Arc;
///
/// use harness_memory::builtin::memory_tools;
/// use harness_memory::builtin::notes::{LocalNotes, LongTermMemory};
/// # use harness_core::{Time, port::{BoxFuture, Clock}};
/// # struct Stopped;
/// # impl Clock for Stopped {
/// #     fn now(&self) -> Time { Time(0) }
/// #     fn sleep_until(&self, _: Time) -> BoxFuture<'static, ()> { Box::pin(std::future::pending()) }
/// # }
/// # let clock: Arc<dyn Clock> = Arc::new(Stopped);
///
/// let memory = LongTermMemory::new(Arc::new(LocalNotes::default()));
/// let names: Vec<String> =
///     memory_tools(Some(memory), clock).iter().map(|tool| tool.tool_def().name.to_string()).collect();
/// assert_eq!(names, ["memory_remember", "memory_recall", "memory_forget"]);
/// ```
pub fn memory_tools(memory: Option<LongTermMemory>, clock: Arc<dyn Clock>) -> Vec<Arc<dyn DynTool>> {
    let bench = Bench { memory, clock };
    let (remembering, recalling, forgetting) = (bench.clone(), bench.clone(), bench);
    let remember = tool_fn(
        "memory_remember",
        "Remembers a fact for later conversations. Write one self-contained fact at a time, and nothing secret.",
        move |args: Remember, cx: ToolCx| {
            let bench = remembering.clone();
            async move { bench.remember(args, &cx).await }
        },
    );
    let recall = tool_fn(
        "memory_recall",
        "Finds remembered facts by what they say.",
        move |args: Recall, cx: ToolCx| {
            let bench = recalling.clone();
            async move { bench.recall(args, &cx).await }
        },
    );
    let forget = tool_fn(
        "memory_forget",
        "Forgets a remembered fact by the id that memory_recall gives.",
        move |args: Forget, cx: ToolCx| {
            let bench = forgetting.clone();
            async move { bench.forget(args, &cx).await }
        },
    );
    vec![Arc::new(remember.idempotent()), Arc::new(recall.pure()), Arc::new(forget.idempotent())]
}

/// Owner of a fact.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum ScopeName {
    Session,
    User,
    Workspace,
}

/// Owners of the searched facts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum ScopeChoice {
    #[default]
    Any,
    Session,
    User,
    Workspace,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Remember {
    /// The fact, at most 2,000 characters.
    content: String,
    /// Owner: this session, the user in all sessions, or all users of the workspace.
    scope: ScopeName,
    /// At most 10 words to find it by.
    #[serde(default)]
    tags: Vec<String>,
    /// Forget it after so many days, 1 to 365; without it, never.
    expires_in_days: Option<u32>,
}

#[derive(Deserialize, JsonSchema)]
struct Recall {
    /// Words to search for, at most 500 characters.
    query: String,
    /// Where to look; everywhere when absent.
    #[serde(default)]
    scope: ScopeChoice,
    /// How many facts to give at most, 1 to 20; 5 when absent.
    limit: Option<u32>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Forget {
    /// The id of the fact.
    entry_id: String,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Remembered<'a> {
    entry_id: &'a str,
    created: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    expires_at: Option<String>,
}

#[derive(Serialize)]
struct Entries<'a> {
    entries: Vec<Entry<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Entry<'a> {
    #[serde(rename = "entryId")]
    id: &'a str,
    content: &'a str,
    scope: &'static str,
    tags: &'a [String],
    created_at: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    expires_at: Option<String>,
    /// To two digits: more would say more than is known.
    score: f64,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Forgotten<'a> {
    entry_id: &'a str,
    forgotten: bool,
}

#[derive(Clone)]
struct Bench {
    memory: Option<LongTermMemory>,
    clock: Arc<dyn Clock>,
}

impl Bench {
    fn memory(&self) -> Result<&LongTermMemory, ToolError> {
        self.memory.as_ref().ok_or_else(|| {
            ToolError::new("memory_unavailable", "no memory is configured; continue without remembering")
        })
    }

    async fn remember(&self, args: Remember, cx: &ToolCx) -> Result<ToolOutcome, ToolError> {
        let memory = self.memory()?;
        bounded("content", &args.content, 2_000)?;
        if args.tags.len() > 10 {
            return Err(invalid(format!("`tags` has {} entries, at most 10 are allowed", args.tags.len())));
        }
        let days = args.expires_in_days;
        if days.is_some_and(|days| !(1..=365).contains(&days)) {
            return Err(invalid("`expiresInDays` must be from 1 to 365".to_owned()));
        }
        let now = self.clock.now();
        let expires = days.map(|days| now.after(Millis(u64::from(days).saturating_mul(DAY))));
        let mut draft = NoteDraft::new(args.content, scope(args.scope, cx)?).tagged(args.tags);
        draft.source = NoteSource::new("tool", &cx.origin);
        draft.expires_at = expires;
        let added = memory.add(draft, now).await.map_err(tool_error)?;
        let expires_at = expires.map(Time::iso);
        Ok(answered(&Remembered { entry_id: &added.note.id, created: added.fresh, expires_at }))
    }

    async fn recall(&self, args: Recall, cx: &ToolCx) -> Result<ToolOutcome, ToolError> {
        let memory = self.memory()?;
        bounded("query", &args.query, 500)?;
        let limit = args.limit.unwrap_or(5);
        if !(1..=20).contains(&limit) {
            return Err(invalid(format!("`limit` is {limit}, it must be from 1 to 20")));
        }
        let scopes = match args.scope {
            ScopeChoice::Any => known(cx),
            ScopeChoice::Session => vec![scope(ScopeName::Session, cx)?],
            ScopeChoice::User => vec![scope(ScopeName::User, cx)?],
            ScopeChoice::Workspace => vec![scope(ScopeName::Workspace, cx)?],
        };
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        let query = NoteQuery::new(args.query, scopes).at_most(limit);
        let found = memory.search(&query, self.clock.now()).await.map_err(tool_error)?;
        let entries = found.hits.iter().map(|hit| entry(&hit.note, hit.score)).collect();
        Ok(answered(&Entries { entries }))
    }

    async fn forget(&self, args: Forget, cx: &ToolCx) -> Result<ToolOutcome, ToolError> {
        let memory = self.memory()?;
        bounded("entryId", &args.entry_id, 200)?;
        if !memory.forget(&args.entry_id, known(cx)).await.map_err(tool_error)? {
            let message = format!("there is no remembered fact `{}`", args.entry_id);
            return Err(ToolError::new("not_found", message));
        }
        Ok(answered(&Forgotten { entry_id: &args.entry_id, forgotten: true }))
    }
}

fn entry(note: &Note, score: f64) -> Entry<'_> {
    Entry {
        id: &note.id,
        content: &note.text,
        scope: match note.scope {
            NoteScope::Thread(_) => "session",
            NoteScope::Resource(_) => "user",
            NoteScope::Workspace(_) => "workspace",
            NoteScope::Global => "global",
        },
        tags: &note.tags,
        created_at: note.created_at.iso(),
        expires_at: note.expires_at.map(Time::iso),
        score: (score * 100.0).round() / 100.0,
    }
}

/// The scope of that name, for the work that the call belongs to.
fn scope(name: ScopeName, cx: &ToolCx) -> Result<NoteScope, ToolError> {
    let origin = &cx.origin;
    let (word, found) = match name {
        ScopeName::Session => {
            ("session", origin.thread.as_ref().map(|id| NoteScope::Thread(id.as_str().into())))
        }
        ScopeName::User => ("user", origin.user.clone().map(NoteScope::Resource)),
        ScopeName::Workspace => ("workspace", origin.workspace.clone().map(NoteScope::Workspace)),
    };
    found.ok_or_else(|| invalid(format!("scope `{word}` cannot be used: this work has no {word}")))
}

/// Every scope that the call may look at.
fn known(cx: &ToolCx) -> Vec<NoteScope> {
    NoteScope::visible_to(&cx.origin)
}

fn bounded(name: &str, text: &str, most: usize) -> Result<(), ToolError> {
    let length = units(text);
    if text.trim().is_empty() {
        return Err(invalid(format!("`{name}` is empty")));
    }
    if length > most {
        return Err(invalid(format!("`{name}` has {length} characters, at most {most} are allowed")));
    }
    Ok(())
}

fn invalid(message: String) -> ToolError {
    ToolError::new("invalid_input", message)
}

fn tool_error(fault: StorageError) -> ToolError {
    match &*fault.kind {
        "notes.empty" | "notes.too_long" | "notes.too_many_tags" => invalid(fault.message),
        "notes.full" => ToolError::new("memory_full", fault.message),
        _ => ToolError::new("tool_error", fault.message).retryable(),
    }
}

/// A success that the model reads as indented JSON.
fn answered(value: &impl Serialize) -> ToolOutcome {
    let json = Json::of(value).unwrap_or_default();
    let mut outcome = ToolOutcome::text(Tree::of(&json).pretty());
    outcome.structured = Some(json);
    outcome
}
