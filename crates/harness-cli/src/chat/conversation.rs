//! The conversation of a chat: a runtime of threads over a descriptor or a plain assistant, and the current thread.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use harness::Builder;
use harness::core::message::{Message, UserMessage};
use harness::core::port::{Clock, DynCompactor, DynModel};
use harness::core::{Json, ThreadId, Time};
use harness::descriptor::load_file;
use harness::host::process::wait_for_orphans;
use harness::memory::compact::{CompactionPolicy, ContextCompactor, ModelSummarizer, SummaryModel};
use harness::runtime::template::expand_command;
use harness::runtime::{Approvals, StartAt, Stream, Thread};
use harness::session::Location;
use harness::system::SystemClock;
use harness::tools::{StandingApprovals, ThreadMode};
use serde::{Deserialize, Serialize};

use super::approver::{Decider, Previews, Prompts};
use super::assistant::Assistant;
use super::command;
use super::store::{self, Store};
use crate::args::{Approve, ChatArgs, ModelArgs, ThreadArgs};
use crate::error::CliError;
use crate::records::recording::thread_recording;
use crate::run::approve::CommandLineApprover;
use crate::run::session::same_descriptor;
use crate::threads::{Of, Threads, found};
use crate::{env, model};

/// Instructions of a backend that answers without a descriptor: it has its own tools.
const PLAIN: &str = "You are a helpful assistant who talks with a person at a terminal. Be exact and to the point. \
     Answers are shown as Markdown.";

/// Start of a chat: its description, and how to resume it.
#[derive(Debug)]
pub(super) struct Begun {
    /// Agents, or the model.
    pub(super) title: String,
    /// Model of the command line, or the demo model.
    pub(super) model: String,
    /// Context window of the model in tokens, if it is known.
    pub(super) window: Option<u64>,
    /// The line about the demo model, if it answers.
    pub(super) notice: Option<String>,
    /// Earlier messages.
    pub(super) before: Vec<Arc<Message>>,
}

/// Origin in the first line of a session. It equals that of `harness run`, so that `harness resume` can continue a
/// chat.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Meta {
    #[serde(default)]
    run: MetaRun,
}

/// See [`Meta`]. Paths are absolute.
#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
struct MetaRun {
    #[serde(skip_serializing_if = "Option::is_none")]
    descriptor: Option<PathBuf>,
    #[serde(skip_serializing_if = "Option::is_none")]
    registry: Option<PathBuf>,
}

/// An open conversation: its thread, sessions and approvals.
pub(super) struct Conversation {
    threads: Threads,
    pub(super) thread: Thread,
    pub(super) store: Store,
    pub(super) approvals: Approvals,
    pub(super) standing: StandingApprovals,
    /// Changes of files in the prompt.
    pub(super) previews: Previews,
    /// The assistant, in a chat without a descriptor.
    pub(super) assistant: Option<Assistant>,
    pub(super) clock: Arc<dyn Clock>,
    /// Session files of new conversations.
    folder: Option<PathBuf>,
    meta: Json,
    models: ModelArgs,
    /// Context window as given by the user, and that of the current model.
    named_window: Option<u64>,
    window: Option<u64>,
    /// Whether requests pass on a thinking level: not to a backend, the demo model or a recording.
    pub(super) has_thinking: bool,
}

/// Directory of the conversations with the same agents; `None` without a home directory.
pub(super) fn folder(args: &ChatArgs) -> Option<PathBuf> {
    env::state().map(|state| store::folder(&state, args.descriptor.as_deref()))
}

impl Begun {
    fn of(args: &ChatArgs, threads: &Threads, before: Vec<Arc<Message>>) -> Self {
        Self {
            title: args.descriptor.as_deref().map_or_else(|| "assistant".to_owned(), title),
            model: threads.model_name.clone().unwrap_or_default(),
            window: args.threads.agents.view.window.or(threads.window),
            notice: threads.notice.clone(),
            before,
        }
    }
}

impl Conversation {
    /// Opens the agents of the arguments with the conversation in this file; without a file it is not stored. Calls that
    /// need approval are held if the chat is interactive.
    pub(super) async fn open(
        args: &ChatArgs,
        file: Option<&Path>,
        asks: bool,
    ) -> Result<(Self, Begun), CliError> {
        let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
        let (meta, store) = (meta(args), Store::default());
        let thread = stored_thread(args, file, &store, &meta, clock.now()).await?;
        let (approvals, previews) = (Approvals::new(), Previews::default());
        let is_alone = args.descriptor.is_none() && args.threads.agents.backend.backend.is_none();
        let assistant = is_alone.then(|| Assistant::open(Path::new("."), &clock)).transpose()?;
        let edits = assistant.as_ref().map(|assistant| assistant.edits.clone());
        let prompts = Prompts { approvals: approvals.clone(), edits, previews: previews.clone() };
        let standing = prompts.standing(assistant.as_ref());
        let approver = decider(args.approve, asks, &standing, assistant.as_ref());
        let descriptor = args.descriptor.as_deref();
        let templates = found::templates(&args.templates, descriptor, command::unusable).await?;
        let recording = thread_recording(&args.threads, descriptor)?;
        let change = |builder: Builder| {
            let builder = recording.into_iter().fold(builder.templates(templates), Builder::record);
            let builder = match &assistant {
                Some(assistant) => assistant.give(builder),
                None if descriptor.is_none() => builder.instructions(PLAIN),
                None => builder,
            };
            if file.is_some() { builder.sessions(store.clone()) } else { builder }
        };
        let of = Of { descriptor, sessions: None, thread: Some(thread.clone()), pools: None };
        let threads = {
            let ThreadArgs { agents, spans, .. } = &args.threads;
            Threads::open(of, agents, spans, approver, &clock, change).await?
        };
        let thread = threads.runtime.thread(thread);
        let window = args.threads.agents.view.window(threads.window);
        thread.configure(|config| {
            config.ports.compactor.get_or_insert_with(|| compactor(&threads.model, window));
        });
        let before = thread.messages().await?.iter().cloned().collect();
        if let Some(assistant) = &assistant {
            assistant.ask_again(thread.id());
        }
        let begun = Begun::of(args, &threads, before);
        let this = Self {
            threads,
            thread,
            store,
            approvals,
            standing,
            previews,
            assistant,
            clock,
            folder: folder(args),
            meta,
            models: args.threads.agents.model.clone(),
            named_window: args.threads.agents.view.window,
            window: begun.window,
            has_thinking: has_thinking(args, &begun.model),
        };
        Ok((this, begun))
    }

    /// Expands a line with a slash if it names a template or a skill.
    pub(super) fn expand(&self, line: &str) -> Option<UserMessage> {
        let config = self.thread.config();
        let text = expand_command(line, &config.templates, &config.skills)?;
        let origin = if line.starts_with("/skill:") { "skill" } else { "template" };
        Some(UserMessage::text(text).from_origin(origin))
    }

    /// Problems in skill and context files.
    pub(super) fn problems(&self) -> &[String] {
        &self.threads.found.problems
    }

    /// Whether an output schema validates the answers.
    pub(super) fn has_output_schema(&self) -> bool {
        self.threads.are_validated
    }

    /// Subscribes to the events of the thread, starting now.
    pub(super) fn events(&self) -> Stream {
        self.thread.events(StartAt::Live)
    }

    pub(super) fn now(&self) -> Time {
        self.clock.now()
    }

    /// Session file of the conversation.
    pub(super) fn file(&self) -> Option<PathBuf> {
        self.store.path(self.thread.id())
    }

    /// Path for a new conversation, next to this one.
    fn next_file(&self) -> Option<PathBuf> {
        let file = self.file()?;
        let usual = self.folder.as_ref().filter(|_| matches!(Location::of(&file), Location::File(_)));
        Some(usual.map_or_else(
            || store::new_beside(&file, self.now()),
            |folder| store::new_file(folder, self.now()),
        ))
    }

    /// Continues in a copy of the conversation and returns its file; `None` if the conversation is not stored.
    pub(super) fn fork(&mut self) -> Result<Option<PathBuf>, CliError> {
        let Some(file) = self.next_file() else { return Ok(None) };
        let Some(thread) = self.store.fork(self.thread.id(), &file, self.now())? else { return Ok(None) };
        self.go_to(thread);
        Ok(Some(file))
    }

    /// Starts a new conversation.
    pub(super) fn begin_new(&mut self) -> Result<(), CliError> {
        let now = self.now();
        let thread = match self.next_file() {
            Some(file) => self.store.open(&file, self.meta.clone(), now)?,
            None => ThreadId::from(format!("chat-{:x}", now.0)),
        };
        self.go_to(thread);
        Ok(())
    }

    fn go_to(&mut self, thread: ThreadId) {
        let (config, mode) = (self.thread.config(), self.mode());
        // Approvals are for one conversation.
        for rule in self.standing.rules() {
            self.standing.revoke(&rule);
        }
        self.thread = self.threads.runtime.thread(thread);
        // What was changed by commands holds on.
        self.thread.configure(|fresh| *fresh = config);
        if let (Some(before), Some(mode)) = (mode, self.mode()) {
            // It is one of them.
            let _ = mode.set(&before.current().name);
        }
    }

    /// Removes the last messages and returns the text of the first of them.
    pub(super) async fn undo(&self, count: usize) -> Result<Option<store::Undone>, CliError> {
        // What the thread remembers is read again from the file.
        self.thread.messages().await?;
        if !self.thread.unload() {
            return Ok(None);
        }
        self.store.undo(self.thread.id(), count, self.now())
    }

    /// Mode of the conversation, of the assistant's modes or those that the registry file declares.
    pub(super) fn mode(&self) -> Option<ThreadMode> {
        let modes = self.assistant.as_ref().map(|assistant| &assistant.modes);
        modes.or_else(|| self.threads.modes()).map(|modes| modes.of(self.thread.id()))
    }

    /// Context window of the current model in tokens, if it is known.
    pub(super) fn window(&self) -> Option<u64> {
        self.window
    }

    /// Names of models for completion.
    pub(super) fn known_models(&self) -> Vec<String> {
        model::known(&self.models, self.threads.registry.as_ref())
    }

    /// Sets the model of the next run.
    pub(super) fn set_model(&mut self, name: &str) -> Result<(), CliError> {
        let args =
            ModelArgs { model: Some(name.to_owned()), replay: None, record: None, ..self.models.clone() };
        let source = model::choose(&args, None, self.threads.registry.as_ref(), &self.clock)?;
        self.window = self.named_window.or(source.window);
        self.has_thinking = can_think(name);
        if !self.has_thinking {
            self.thread.set_thinking(None);
        }
        self.thread.configure(|config| {
            config.ports.model = source.model;
            config.model_name = Some(name.into());
        });
        Ok(())
    }

    /// Aborts all work.
    pub(super) async fn close(&self) {
        self.threads.close().await;
    }
}

/// Whether requests to this model pass on a thinking level.
fn has_thinking(args: &ChatArgs, model: &str) -> bool {
    let is_live = args.threads.agents.backend.backend.is_none() && args.threads.agents.model.replay.is_none();
    is_live && can_think(model)
}

/// Whether a model has thinking levels, or may have them.
fn can_think(model: &str) -> bool {
    model::demo_notice(model).is_none() && !model::cannot_think(model)
}

/// A conversation at a terminal has no natural end: it is compacted when its window is nearly full, and on
/// request.
fn compactor(model: &Arc<dyn DynModel>, window: u64) -> Arc<dyn DynCompactor> {
    let summarizer = ModelSummarizer::new(SummaryModel::new(Arc::clone(model), window));
    Arc::new(ContextCompactor::new(CompactionPolicy::summarize(window)).with_summarizer(summarizer))
}

/// Approver of the calls: the user if the chat is interactive, unless the command line decides.
fn decider(
    approve: Approve,
    asks: bool,
    standing: &StandingApprovals,
    assistant: Option<&Assistant>,
) -> Decider {
    if asks && approve == Approve::Ask {
        let modes = assistant.map(|assistant| assistant.modes.clone());
        return Decider::Person { standing: standing.clone(), modes };
    }
    Decider::Rule(CommandLineApprover::new(approve))
}

/// Opens the session of the conversation, and names its thread. Without a file it is not stored.
async fn stored_thread(
    args: &ChatArgs,
    file: Option<&Path>,
    store: &Store,
    meta: &Json,
    now: Time,
) -> Result<ThreadId, CliError> {
    let hash = args.descriptor.as_deref().map(load_file).transpose()?;
    let hash = hash.map(|descriptor| descriptor.hash().to_string());
    let Some(file) = file else { return Ok(ThreadId::from(format!("chat-{:x}", now.0))) };
    let thread = store.open(file, meta.clone(), now)?;
    // Its earlier owner may have been killed: nothing that it had started works beside what follows.
    wait_for_orphans().await?;
    if let Some(session) = store.session(&thread).filter(|_| !args.threads.agents.allow_changed) {
        same_descriptor(&session, file, hash.as_deref())?;
    }
    Ok(thread)
}

fn meta(args: &ChatArgs) -> Json {
    let whole = |path: &PathBuf| std::path::absolute(path).ok();
    let run = MetaRun {
        descriptor: args.descriptor.as_ref().and_then(whole),
        registry: args.threads.agents.registry.as_ref().and_then(whole),
    };
    Json::of(&Meta { run }).unwrap_or_default()
}

/// Title of a descriptor on the first line: its directory's name is more specific than `harness.yaml`.
fn title(descriptor: &Path) -> String {
    let whole = descriptor.canonicalize().unwrap_or_else(|_| descriptor.to_owned());
    let stem = whole.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let folder = whole.parent().and_then(Path::file_name);
    match folder {
        Some(folder) if stem == "harness" => folder.to_string_lossy().into_owned(),
        Some(_) | None => stem,
    }
}
