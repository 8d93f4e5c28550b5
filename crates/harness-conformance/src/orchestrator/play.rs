//! Performs the actions of a vector.

#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "what the vectors have no word for is passed over, whatever is added"
)]

use std::sync::Arc;

use harness_core::port::{BoxFuture, Secret, ThinkingLevel};
use harness_core::testing::VirtualClock;
use harness_core::turn::Execution;
use harness_core::{Fault, Time, ToolName};
use harness_host::Secrets;
use harness_memory::compact::ContextCompactor;
use harness_runtime::skill::{Skill, SkillSet};
use harness_runtime::template::{PromptTemplate, TemplateSet};
use harness_runtime::{
    Instructions, ModelChoice, QueueMode, Report, Runtime, RuntimeError, StartAt, Status, Stream,
    ThreadConfig,
};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::super::runtime::Ids;
use super::script::Script;
use super::sessions::Opener;
use super::tools::Tools;
use super::wire::Wire;
use super::world::{World, user_message};
use crate::prompts::SkillWords;
use crate::summarizing_compactor::{Scripted, policy};
use crate::turn::convert::{Done, at, list, text};

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
    pub(super) fn new(input: &Value) -> Done<Self> {
        let world = Arc::new(World::new(input)?);
        let compactor = at(&world.options, "compactor");
        let noting = Arc::clone(&world);
        let summarizer = compactor.is_object().then(|| {
            Scripted::new(compactor).telling(move |covers| noting.note(json!({"summarize": covers})))
        });
        Ok(Self { world, events: None, wire: Wire::default(), summarizer })
    }

    /// Makes the thread; the codes of what is wrong.
    pub(super) async fn construct(&mut self) -> Result<(), Value> {
        let broken = |error: String| json!([{"code": "broken_vector", "message": error}]);
        let config = self.config().map_err(broken)?;
        let clock = Arc::new(VirtualClock::frozen(Time(0)));
        let mut builder = Runtime::builder(config, clock, Arc::new(Ids));
        if self.world.sessions.any() {
            builder = builder.sessions(Opener(Arc::clone(&self.world.sessions)));
        }
        let runtime = builder.build().map_err(|error| broken(error.to_string()))?;
        let thread = runtime.thread("vector");
        self.events = Some(thread.events(StartAt::Live));
        let loaded = thread.messages().await;
        self.world.set_thread(Some(thread));
        loaded.map(drop).map_err(|error| self.world.codes(&error))
    }

    fn config(&self) -> Done<ThreadConfig> {
        let options = &self.world.options;
        let model = ModelChoice::new(Script(Arc::clone(&self.world))).named("m1").of(PROVIDER, PROTOCOL);
        let mut config = ThreadConfig::new(model);
        config.forget_compacted = true;
        config.tools = Arc::new(Tools::new(&self.world, None)?);
        config.thinking = ThinkingLevel::parse(text(options, "thinking_level"));
        config.instructions = Instructions::Text(Arc::from(text(options, "system_prompt")));
        if at(options, "build_system_prompt") == true {
            config.instructions = Instructions::Built(Arc::new(built));
        }
        if let Some(names) = options.get("active_tools").and_then(Value::as_array) {
            config.active_tools = Some(tool_names(names).into());
        }
        if text(options, "tool_execution") == "sequential" {
            config.run.turn.execution = Execution::Sequential;
        }
        let mode = |key| match text(options, key) {
            "all" => QueueMode::All,
            _ => QueueMode::OneAtATime,
        };
        (config.steering_mode, config.follow_up_mode) = (mode("steering_mode"), mode("follow_up_mode"));
        if options.get("api_keys").is_some() {
            config.secrets = Some(Arc::new(Keys(Arc::clone(&self.world))));
        }
        if let Some(role) = options.get("convert_drop_role").and_then(Value::as_str) {
            let role = role.to_owned();
            config.convert = Some(Arc::new(move |view| {
                let mut kept = Vec::new();
                view.for_each(|message| kept.extend((message.role() != role).then(|| Arc::clone(message))));
                kept
            }));
        }
        let skills = list(options, "skills").iter().map(SkillWords::deserialize);
        let skills = skills.collect::<Result<Vec<_>, _>>().map_err(|e| e.to_string())?;
        config.skills = SkillSet::new(skills.into_iter().map(Skill::from));
        config.templates = TemplateSet::new(list(options, "templates").iter().map(template));
        let compactor = at(options, "compactor");
        if let Some(summarizer) = &self.summarizer {
            let window = at(options, "context_window").as_u64().unwrap_or(0);
            let compactor = ContextCompactor::new(policy(window, compactor));
            config.compactor = Some(Arc::new(compactor.with_summarizer(summarizer.clone())));
        }
        Ok(config)
    }

    /// One action from outside of all runs, with the events of it.
    pub(super) async fn step(&mut self, action: &Value) -> Done<Value> {
        let mut result = if text(action, "do") == "reopen" {
            self.close().await;
            let error = self.construct().await.err();
            json!({"do": "reopen", "error": error})
        } else {
            if matches!(text(action, "do"), "prompt" | "continue" | "skill" | "template") {
                self.world.sessions.count_run();
            }
            perform(&self.world, action).await?
        };
        let mut events = Vec::new();
        while let Some(told) = self.events.as_mut().and_then(Stream::try_next) {
            self.wire.take(&told, &mut events);
        }
        if let Some(object) = result.as_object_mut() {
            object.insert("events".to_owned(), json!(events));
            object.insert("in_run".to_owned(), json!(self.world.take_notes()));
        }
        Ok(result)
    }

    pub(super) async fn transcript(&self) -> Done<Value> {
        let messages = self.world.thread()?.messages().await.map_err(|e| e.to_string())?;
        Ok(messages.iter().map(|message| json!(**message)).collect())
    }

    pub(super) async fn close(&self) {
        if let Ok(thread) = self.world.thread() {
            thread.close().await;
        }
        self.world.set_thread(None);
        self.world.sessions.release();
    }
}

/// Performs an action, inside of a run or outside; its result in the vectors' words.
pub(super) fn perform<'a>(world: &'a Arc<World>, action: &'a Value) -> BoxFuture<'a, Done<Value>> {
    Box::pin(async move {
        let thread = world.thread()?;
        let name = text(action, "do");
        let mut result = Map::from_iter([("do".to_owned(), json!(name)), ("error".to_owned(), Value::Null)]);
        let mut fail = |error: Value| result.insert("error".to_owned(), error);
        let of_run = |ended: Result<Report, RuntimeError>| {
            ended.map_or_else(|error| world.codes(&error), |report| problems(&report))
        };
        match name {
            "prompt" => drop(fail(of_run(thread.prompt_items([user_message(action)?]).await))),
            "continue" => drop(fail(of_run(thread.continue_run().await))),
            "skill" => {
                let extra: Vec<&str> = list(action, "args").iter().filter_map(Value::as_str).collect();
                fail(of_run(thread.prompt_skill(text(action, "name"), &extra).await));
            }
            "template" => {
                let arguments: Vec<&str> = list(action, "args").iter().filter_map(Value::as_str).collect();
                fail(of_run(thread.prompt_template(text(action, "name"), &arguments).await));
            }
            "steer" => drop(thread.steer(user_message(action)?).map_err(|e| e.to_string())?),
            "follow_up" => drop(thread.follow_up(user_message(action)?).map_err(|e| e.to_string())?),
            "abort" => drop(thread.abort("abort")),
            "compact" => {
                let done = thread.compact(None).await;
                if let Err(error) = &done {
                    fail(world.codes(error));
                }
                result.insert("compacted".to_owned(), json!(matches!(done, Ok(Some(_)))));
            }
            "set_active_tools" => {
                if let Err(error) = thread.set_active_tools(tool_names(list(action, "names"))).await {
                    fail(world.codes(&error));
                }
            }
            "set_tools" => thread.set_tools(Arc::new(Tools::new(world, Some(list(action, "names")))?)),
            "set_model" => thread.set_model(thread.config().model.named(text(action, "model"))),
            "set_thinking_level" => thread.set_thinking(ThinkingLevel::parse(text(action, "level"))),
            "set_system_prompt" => {
                // A builder wins over a static prompt.
                if !matches!(thread.config().instructions, Instructions::Built(_)) {
                    thread.set_instructions(text(action, "text"));
                }
            }
            "active_tools" => {
                let active = thread.active_tools().await.map_err(|e| e.to_string())?;
                result.insert("activeTools".to_owned(), json!(active));
            }
            "snapshot" => {
                let now = thread.snapshot().await.map_err(|e| e.to_string())?;
                let snapshot = json!({
                    "model": now.model,
                    "messages": now.messages.len(),
                    "isStreaming": now.status != Status::Idle,
                    "hasStreamingMessage": now.answer.is_some(),
                    "pendingToolCalls": now.pending_calls,
                    "errorMessage": now.error.unwrap_or_default(),
                });
                result.insert("snapshot".to_owned(), snapshot);
            }
            other => return Err(format!("`{other}` is no action")),
        }
        Ok(Value::Object(result))
    })
}

/// What a run ended with, as codes; null when all went well.
fn problems(report: &Report) -> Value {
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
    /// Why the runtime refused, as codes.
    fn codes(&self, error: &RuntimeError) -> Value {
        let code = |code: &str| json!([{ "code": code }]);
        match error {
            RuntimeError::Busy { .. } => code("busy"),
            RuntimeError::EmptyTranscript { .. } => code("empty_transcript"),
            RuntimeError::EndsWithAnswer { .. } => code("last_message_is_assistant"),
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

fn tool_names(names: &[Value]) -> Vec<ToolName> {
    names.iter().filter_map(Value::as_str).map(ToolName::from).collect()
}

fn template(template: &Value) -> PromptTemplate {
    PromptTemplate::new(text(template, "Name"), text(template, "Content"))
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
