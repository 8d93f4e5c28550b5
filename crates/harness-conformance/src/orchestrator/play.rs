//! Performs the actions of a vector.

#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "what the vectors have no word for is passed over, whatever is added"
)]

use std::sync::Arc;

use harness_core::port::{BoxFuture, Clock, Secret, ThinkingLevel};
use harness_core::testing::VirtualClock;
use harness_core::turn::Execution;
use harness_core::{Fault, Time, ToolName};
use harness_host::Secrets;
use harness_memory::compact::ContextCompactor;
use harness_runtime::skill::{Skill, SkillSet};
use harness_runtime::template::{PromptTemplate, TemplateSet};
use harness_runtime::{
    Instructions, ModelChoice, QueueMode, Report, ResumeFrom, Runtime, RuntimeError, StartAt, Status, Stream,
    StreamItem, Thread, ThreadConfig, ThreadEvent,
};
use serde_json::{Value, json};

use super::super::runtime::Ids;
use super::engine;
use super::script::Script;
use super::sessions::Opener;
use super::tools::{fill, toolbox};
use super::wire::Wire;
use super::words::{self, Action, Delivery, Invoked};
use super::world::{Place, World, user_message};
use crate::Done;
use crate::summarizing_compactor::{Scripted, policy};

pub(super) const PROTOCOL: &str = "openai-completions";
pub(super) const PROVIDER: &str = "prov";

/// Plays one vector.
pub(super) struct Player {
    pub(super) world: Arc<World>,
    events: Option<Stream>,
    wire: Wire,
    summarizer: Option<Scripted>,
}

impl Player {
    pub(super) fn new(world: World) -> Self {
        let world = Arc::new(world);
        let summarizer = world.options.compactor.as_ref().map(|compactor| {
            let noting = Arc::clone(&world);
            Scripted::new(compactor.summaries.clone(), compactor.fail_on.clone())
                .telling(move |covers| noting.note(json!({"summarize": covers})))
        });
        Self { world, events: None, wire: Wire::default(), summarizer }
    }

    /// Makes the thread; the codes of what is wrong.
    pub(super) async fn construct(&mut self) -> Result<(), Value> {
        let broken = |error: String| json!([{"code": "broken_vector", "message": error}]);
        let config = self.config(Arc::new(VirtualClock::frozen(Time(0)))).map_err(broken)?;
        let mut builder = Runtime::builder(config, Arc::new(Ids));
        if self.world.sessions.any() {
            builder = builder.sessions(Opener(Arc::clone(&self.world.sessions)));
        }
        let runtime = builder.build();
        let thread = runtime.thread("vector");
        self.events = Some(thread.events(StartAt::Live));
        let loaded = thread.messages().await;
        self.world.set_place(Some(Place::Process(thread)));
        loaded.map(drop).map_err(|error| self.world.codes(&error))
    }

    /// The parts of the thread.
    pub(super) fn config(&self, clock: Arc<dyn Clock>) -> Done<ThreadConfig> {
        let options = &self.world.options;
        let model = ModelChoice::new(Script(Arc::clone(&self.world))).named("m1").of(PROVIDER, PROTOCOL);
        let mut config = ThreadConfig::new(model, clock);
        config.forget_compacted = true;
        config.ports.tools = Arc::new(toolbox(&self.world, None)?);
        config.ports.gates.extend(fill(&options.tools));
        config.thinking = ThinkingLevel::parse(&options.thinking_level);
        config.instructions = if options.build_system_prompt {
            Instructions::Built(Arc::new(built))
        } else {
            Instructions::Text(Arc::from(&*options.system_prompt))
        };
        config.active_tools = options.active_tools.as_deref().map(|names| tool_names(names).into());
        if options.tool_execution == Some(words::Execution::Sequential) {
            config.run.turn.execution = Execution::Sequential;
        }
        let mode = |delivery| match delivery {
            Delivery::All => QueueMode::All,
            Delivery::One => QueueMode::OneAtATime,
        };
        (config.steering_mode, config.follow_up_mode) =
            (mode(options.steering_mode), mode(options.follow_up_mode));
        if options.api_keys.is_some() {
            config.secrets = Some(Arc::new(Keys(Arc::clone(&self.world))));
        }
        if let Some(role) = options.convert_drop_role {
            let role = json!(role);
            config.convert = Some(Arc::new(move |view| {
                let mut kept = Vec::new();
                view.for_each(|message| kept.extend((role != message.role()).then(|| Arc::clone(message))));
                kept
            }));
        }
        config.skills = SkillSet::new(options.skills.iter().cloned().map(Skill::from));
        let templates = options.templates.iter();
        config.templates = TemplateSet::new(templates.map(|t| PromptTemplate::new(&*t.name, &*t.content)));
        if let (Some(words), Some(summarizer)) = (&options.compactor, &self.summarizer) {
            let policy = policy(options.context_window, words.reserve_tokens, words.keep_recent_tokens);
            let compactor = ContextCompactor::new(policy).with_summarizer(summarizer.clone());
            config.ports.compactor = Some(Arc::new(compactor));
        }
        Ok(config)
    }

    /// One action from outside of all runs, with the events of it.
    pub(super) async fn step(&mut self, action: &Action) -> Done<Value> {
        let mut result = if let Action::Reopen {} = action {
            self.close().await;
            let error = self.construct().await.err();
            json!({"do": "reopen", "error": error})
        } else {
            if let Action::Prompt(_) | Action::Continue {} | Action::Skill(_) | Action::Template(_) = action {
                self.world.sessions.count_run();
            }
            perform(&self.world, action).await?
        };
        let mut events = Vec::new();
        for event in self.told()? {
            self.wire.take(&event, &mut events);
        }
        if let Some(object) = result.as_object_mut() {
            object.insert("events".to_owned(), json!(events));
            object.insert("in_run".to_owned(), json!(self.world.take_notes()));
        }
        Ok(result)
    }

    /// Events since the last call.
    fn told(&mut self) -> Done<Vec<ThreadEvent>> {
        if let Place::Engine(thread) = self.world.place()? {
            return Ok(thread.events());
        }
        let told = std::iter::from_fn(|| self.events.as_mut().and_then(Stream::try_next));
        Ok(told
            .filter_map(|told| if let StreamItem::Event { event, .. } = told { Some(event) } else { None })
            .collect())
    }

    pub(super) async fn transcript(&self) -> Done<Value> {
        let messages = match self.world.place()? {
            Place::Process(thread) => thread.messages().await.map_err(|e| e.to_string())?,
            Place::Engine(thread) => thread.transcript(u64::MAX).prefix(),
        };
        Ok(messages.iter().map(|message| json!(**message)).collect())
    }

    pub(super) async fn close(&self) {
        if let Ok(Place::Process(thread)) = self.world.place() {
            thread.close().await;
        }
        self.world.set_place(None);
        self.world.sessions.release();
    }
}

/// Performs actions inside of a run, and records their results.
pub(super) async fn perform_all(world: &Arc<World>, actions: &[Action]) {
    for action in actions {
        match perform(world, action).await {
            Ok(result) => world.note(result),
            Err(fault) => world.break_off(fault),
        }
    }
}

/// Performs an action, inside of a run or outside; its result in the vectors' words.
fn perform<'a>(world: &'a Arc<World>, action: &'a Action) -> BoxFuture<'a, Done<Value>> {
    Box::pin(async move {
        let thread = match world.place()? {
            Place::Process(thread) => thread,
            Place::Engine(thread) => return engine::perform(&thread, action).await,
        };
        let of_run = |ended: Result<Report, RuntimeError>| {
            ended.map_or_else(|error| world.codes(&error), |report| problems(&report))
        };
        let unlisted =
            |done: Result<(), RuntimeError>| done.map_or_else(|e| world.codes(&e), |()| Value::Null);
        let (mut error, mut more) = (Value::Null, None);
        match action {
            Action::Prompt(said) => error = of_run(thread.prompt(user_message(said)).await),
            Action::Continue {} => {
                error = of_run(thread.resume(ResumeFrom::Transcript).await);
            }
            Action::Skill(Invoked { name, args }) => {
                error = of_run(thread.prompt_skill(name, &texts(args.as_deref())).await);
            }
            Action::Template(Invoked { name, args }) => {
                error = of_run(thread.prompt_template(name, &texts(args.as_deref())).await);
            }
            Action::Steer(said) => drop(thread.steer(user_message(said)).map_err(|e| e.to_string())?),
            Action::FollowUp(said) => drop(thread.follow_up(user_message(said)).map_err(|e| e.to_string())?),
            Action::Abort {} => drop(thread.abort("abort")),
            Action::Compact {} => {
                let done = thread.compact(None).await;
                more = Some(("compacted", json!(matches!(done, Ok(Some(_))))));
                error = unlisted(done.map(drop));
            }
            Action::SetActiveTools { names } => {
                error = unlisted(thread.set_active_tools(tool_names(names)).await);
            }
            Action::SetTools { names } => thread.set_tools(Arc::new(toolbox(world, Some(names))?)),
            Action::SetModel { model } => {
                thread.configure(|config| config.model_name = Some((&**model).into()));
            }
            Action::SetThinkingLevel { level } => thread.set_thinking(ThinkingLevel::parse(level)),
            Action::SetSystemPrompt { text } => {
                // A builder wins over a static prompt.
                if !matches!(thread.config().instructions, Instructions::Built(_)) {
                    thread.set_instructions(&**text);
                }
            }
            Action::ActiveTools {} => {
                let active = thread.active_tools().await.map_err(|e| e.to_string())?;
                more = Some(("activeTools", json!(active)));
            }
            Action::Snapshot {} => more = Some(("snapshot", snapshot(&thread).await?)),
            Action::Reopen {} => return Err("a run has no action `reopen`".to_owned()),
        }
        let fields = [("do", word(action)), ("error", error)];
        Ok(fields.into_iter().chain(more).map(|(key, value)| (key.to_owned(), value)).collect())
    })
}

/// The word of an action.
pub(super) fn word(action: &Action) -> Value {
    json!(action).get("do").cloned().unwrap_or_default()
}

async fn snapshot(thread: &Thread) -> Done<Value> {
    let now = thread.snapshot().await.map_err(|e| e.to_string())?;
    Ok(json!({
        "model": now.model,
        "messages": now.messages.len(),
        "isStreaming": now.status != Status::Idle,
        "hasStreamingMessage": now.answer.is_some(),
        "pendingToolCalls": now.pending_calls,
        "errorMessage": now.error.unwrap_or_default(),
    }))
}

fn texts(args: Option<&[String]>) -> Vec<&str> {
    args.unwrap_or_default().iter().map(String::as_str).collect()
}

/// End of a run as codes; null without an error.
pub(super) fn problems(report: &Report) -> Value {
    let mut problems = Vec::new();
    if !report.is_completed() {
        problems.push(match &report.aborted {
            Some(_) => json!({"code": "aborted"}),
            None => json!({"code": "model_error", "message": report.problem()}),
        });
    }
    if report.end.persist_failed.is_some() {
        problems.push(json!({"code": "persist_failed"}));
    }
    if problems.is_empty() { Value::Null } else { json!(problems) }
}

impl World {
    /// Error of the runtime, as codes.
    fn codes(&self, error: &RuntimeError) -> Value {
        let code = |code: &str| json!([{ "code": code }]);
        match error {
            RuntimeError::Busy { .. } => code("busy"),
            RuntimeError::EmptyTranscript { .. } => code("empty_transcript"),
            RuntimeError::NothingToResume { .. } => code("last_message_is_assistant"),
            RuntimeError::UnknownTools { names } => json!([{"code": "unknown_tools", "names": names}]),
            RuntimeError::UnknownSkill { name } => json!([{"code": "unknown_skill", "name": name}]),
            RuntimeError::UnknownTemplate { name } => json!([{"code": "unknown_template", "name": name}]),
            RuntimeError::Compaction(fault) if &*fault.code == "no_compactor" => code("no_compactor"),
            RuntimeError::Compaction(_) => code("compact_failed"),
            RuntimeError::Session(error) => {
                let failure = self.sessions.failure(error);
                json!([{"code": "load_failed", "line": failure.get("line")}])
            }
            other => code(other.kind()),
        }
    }
}

fn tool_names(names: &[String]) -> Vec<ToolName> {
    names.iter().map(|name| name.as_str().into()).collect()
}

/// The vectors' prompt builder.
fn built(info: &harness_runtime::PromptInfo) -> String {
    let tools: Vec<_> = info.tools.iter().map(|def| def.name.as_str()).collect();
    let skills: Vec<_> = info.skills.skills().iter().map(|skill| skill.name.as_str()).collect();
    let model = info.model.as_ref().map_or("", |model| model.as_str());
    let think = info.thinking.map_or("", ThinkingLevel::as_str);
    let (tools, skills) = (tools.join(","), skills.join(","));
    format!("model={model} think={think} tools={tools} n={} skills={skills}", info.messages.len())
}

/// The answers of the key callback, in turn.
struct Keys(Arc<World>);

impl Secrets for Keys {
    async fn key(&self, _: &str) -> Result<Option<Secret>, Fault> {
        Ok(Some(Secret::new(self.0.next_key())))
    }
}
