//! Whole runs over a scripted model.

use std::sync::Arc;

use harness::tools::{Keep, WorkTools, work_complete};
use harness_control::{
    ControlEvent, ControlReport, ControlSpec, Feedback, SignalSpec, StallSpec, StandardFacts, StopCode,
    StopDecision, UntilDone, WorkSpec,
};
use harness_core::decide::{GateVerdict, gate};
use harness_core::driver::{Ports, drive};
use harness_core::event::{Event, EventKind};
use harness_core::machine::Start;
use harness_core::message::{AssistantMessage, Message, ToolCall};
use harness_core::outcome::StopMode;
use harness_core::port::{Deltas, Model, ModelFault, ModelFaultCode, ModelRequest, SingleAgent};
use harness_core::run::{Run, RunSpec};
use harness_core::testing::{EventLog, VirtualClock};
use harness_core::tool::{DynTool, FnTool, ToolOutcome, Toolbox};
use harness_core::transcript::{Transcript, View};
use harness_core::{Cancel, End, Json, Origin, Time};
use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::super::turn::convert::{list, text};
use super::{Contract, decision};
use crate::Done;
use crate::case::{block_on, exact};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Input {
    message: String,
    #[serde(default)]
    config: Config,
    #[serde(default)]
    tools: Vec<ToolWords>,
    script: Vec<Reply>,
}

/// Missing values are the product's defaults.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Config {
    max_turns: Option<u32>,
    max_continuation_prompts: Option<u32>,
    enable_stall_detection: Option<bool>,
    stall_threshold: Option<u32>,
    enable_work_items: Option<bool>,
    task_contract: Option<Contract>,
    stop_policy_profile: Option<StopMode>,
    #[serde(default)]
    deny_tools: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ToolWords {
    name: String,
    returns: Option<String>,
    raises: Option<String>,
}

#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Reply {
    text: Option<String>,
    #[serde(default)]
    calls: Vec<CallWords>,
    error: Option<String>,
}

#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct CallWords {
    id: String,
    tool: String,
    args: Option<Value>,
}

const SIGNAL: &str = "work_complete";
/// Characters of a result that the source's event shows.
const PREVIEW: usize = 2_000;

/// Gives the replies of the script, in order.
///
/// The source calls its model once more after the signal; the product does not. A text that the script has for
/// that request is skipped when the next turn has started.
struct Scripted {
    replies: Vec<Reply>,
    next: Mutex<Next>,
}

#[derive(Default)]
struct Next {
    at: usize,
    signalled: bool,
    passed_over: usize,
    seen: Vec<View>,
}

impl Scripted {
    fn take(&self, request: &ModelRequest) -> Option<Reply> {
        let mut next = self.next.lock();
        next.seen.push(request.view.clone());
        let in_turn = request.view.last().is_some_and(|message| message.as_tool_result().is_some());
        let is_text = |reply: &Reply| reply.text.is_some() && reply.calls.is_empty();
        if next.signalled && !in_turn && self.replies.get(next.at).is_some_and(is_text) {
            next.at += 1;
            next.passed_over += 1;
        }
        let reply = self.replies.get(next.at)?.clone();
        next.at += 1;
        next.signalled = reply.calls.iter().any(|call| call.tool == SIGNAL);
        Some(reply)
    }
}

struct Replies(Arc<Scripted>);

impl Model for Replies {
    async fn step(&self, request: ModelRequest, _: &dyn Deltas) -> Result<AssistantMessage, ModelFault> {
        let unknown = |text: &str| ModelFault::new(ModelFaultCode::Unknown, text);
        let reply = self.0.take(&request).ok_or_else(|| unknown("the script is over"))?;
        if let Some(error) = reply.error {
            return Err(unknown(&error));
        }
        let call = |call: &CallWords| {
            let args = call.args.as_ref().map_or_else(|| Ok(Json::empty_object()), exact)?;
            Ok(ToolCall::new(&*call.id, &*call.tool, args))
        };
        let calls = reply.calls.iter().map(call).collect::<Done<Vec<_>>>();
        let calls = calls.map_err(|fault| unknown(&fault))?;
        let said = reply.text.unwrap_or_default();
        if calls.is_empty() {
            return Ok(AssistantMessage::text(said));
        }
        let mut answer = AssistantMessage::calls(calls);
        if !said.is_empty() {
            answer.content.insert(0, harness_core::message::Block::text(said));
        }
        Ok(answer)
    }
}

pub(super) fn run(input: Input) -> Done<Value> {
    let script = Arc::new(Scripted { replies: input.script, next: Mutex::default() });
    let clock = Arc::new(VirtualClock::still(Time(0)));
    let mut ports = Ports::new(Arc::new(Replies(Arc::clone(&script))), Arc::clone(&clock) as _);
    ports.agents = Arc::new(SingleAgent::new("Do what is asked."));
    let denied = input.config.deny_tools.clone();
    let (spec, control) = spec(input.config);
    let mut tools: Vec<Arc<dyn DynTool>> = input.tools.into_iter().map(tool).collect();
    tools.push(work_complete());
    if control.work.is_some() {
        tools.extend(WorkTools::new(Keep::Run, clock).into_set().tools().iter().cloned());
    }
    ports.tools = Arc::new(Toolbox::new(tools));
    ports.facts = Some(Arc::new(StandardFacts::default()));
    ports.gates.push(gate::func("denies", move |ask, _| match ask.call.name.as_str() {
        name if denied.iter().any(|tool| tool == name) => GateVerdict::deny("not here"),
        _ => GateVerdict::Allow,
    }));
    let events = EventLog::default();
    ports.hub.fold(events.clone());
    let strict = spec.mode == StopMode::StrictAutomation;
    let mut origin = Origin::default();
    origin.run = Some("run".into());
    let mut run = Run::new(Arc::new(spec), origin, Transcript::default())
        .with_control(Box::new(UntilDone::new(control)));
    let begin = Start::prompt(Message::user(input.message));
    let end = block_on(drive(&mut run, &ports, &Cancel::never(), begin))?;

    let mut told = Told { strict, error: decision::error_of(&end), ..Told::default() };
    events.events().iter().for_each(|event| told.note(event));
    let next = script.next.lock();
    let requests: Vec<_> = next.seen.iter().map(|view| told.shapes(view)).collect();
    let reminders =
        requests.last().into_iter().flatten().filter(|shape| *shape == "system:work_item_reminder");
    Ok(json!({
        "model_requests": requests,
        "reminders_in_last_request": reminders.count(),
        "unused_replies": script.replies.len().saturating_sub(next.at) + next.passed_over,
        "lifecycle_types": told.lifecycle,
        "transcript": told.transcript,
        "result": told.result(&end),
    }))
}

fn spec(config: Config) -> (RunSpec, ControlSpec) {
    let mut signal = SignalSpec::default();
    if let Some(prompts) = config.max_continuation_prompts {
        signal.prompts = prompts;
    }
    let mut control = ControlSpec::default().with_signal(signal);
    if let Some(contract) = config.task_contract {
        control = control.with_contract(contract.0);
    }
    if config.enable_work_items == Some(true) {
        control = control.with_work(WorkSpec::default());
    }
    if config.enable_stall_detection == Some(true) {
        control =
            control.with_stall(config.stall_threshold.map_or_else(StallSpec::default, StallSpec::after));
    }
    let mut spec = RunSpec::default();
    spec.limits.turns = config.max_turns.unwrap_or(spec.limits.turns);
    spec.mode = config.stop_policy_profile.unwrap_or(spec.mode);
    (spec, control)
}

fn tool(words: ToolWords) -> Arc<dyn DynTool> {
    let outcome = match words.raises {
        Some(error) => ToolOutcome::error("raised", error),
        None => ToolOutcome::text(words.returns.unwrap_or_default()),
    };
    Arc::new(FnTool::with_schema(&words.name, "", Json::empty_object(), move |_: Json, _| {
        let outcome = outcome.clone();
        async move { outcome }
    }))
}

/// The events of a run in the source's form.
#[derive(Default)]
struct Told {
    strict: bool,
    error: String,
    lifecycle: Vec<Value>,
    transcript: Vec<Value>,
    feedback: Vec<&'static str>,
    last: Option<StopDecision>,
    /// Of the turn that runs: its messages, what it said, whether it called tools.
    messages: u32,
    said: Vec<String>,
    called: bool,
}

impl Told {
    #[expect(clippy::wildcard_enum_match_arm, reason = "the source reports few things")]
    fn note(&mut self, event: &Event) {
        let turn = event.turn;
        match &event.kind {
            EventKind::RunStarted { .. } => self.lifecycle.push(json!("harness_started")),
            EventKind::TurnStarted { .. } => {
                (self.messages, self.called) = (0, false);
                self.said.clear();
                self.lifecycle.push(json!("turn_started"));
                self.tell("turn_start", json!({ "turn_number": turn, "repairs_made": 0 }));
            }
            EventKind::MessageAppended { message, .. } => self.note_message(message),
            EventKind::ToolStarted { call } => {
                let args: Value = call.arguments.to().unwrap_or_default();
                let data = json!({
                    "turn_number": turn, "call_id": call.id, "tool_name": call.name, "args": args,
                });
                self.tell("tool_call", data);
            }
            EventKind::ToolFinished { call, outcome, .. } | EventKind::ToolFailed { call, outcome, .. } => {
                let said: String = outcome.content.iter().filter_map(|block| block.as_text()).collect();
                let preview: String = said.chars().take(PREVIEW).collect();
                let data = json!({
                    "turn_number": turn, "call_id": call.id, "tool_name": call.name,
                    "error": outcome.error.as_ref().map(|error| error.message.as_str()),
                    "truncated": preview.len() < said.len(), "preview": preview,
                });
                self.tell("tool_result", data);
            }
            EventKind::TurnFinished { .. } => {
                let data = json!({
                    "turn_number": turn, "message_count": self.messages, "has_tool_calls": self.called,
                    "message": self.said.join("\n"), "truncated": false,
                });
                self.tell("agent_response", data);
            }
            EventKind::Control { .. } => self.note_control(ControlEvent::of(&event.kind)),
            _ => {}
        }
    }

    fn note_control(&mut self, event: Option<ControlEvent>) {
        match event {
            Some(ControlEvent::WorkItemsChanged { .. }) => self.lifecycle.push(json!("work_item_changed")),
            Some(ControlEvent::DeliverablesUpdated { .. }) => {
                self.lifecycle.push(json!("deliverables_updated"));
            }
            Some(ControlEvent::StopDecided { decision }) => self.note_decision(&decision),
            _ => {}
        }
    }

    fn note_message(&mut self, message: &Message) {
        if let Some(answer) = message.as_assistant() {
            self.messages += 1;
            self.called |= answer.tool_calls().any(|call| call.name != SIGNAL);
            let said = answer.joined_text();
            if !said.is_empty() {
                self.said.push(said);
            }
        } else if message.as_tool_result().is_some() {
            self.messages += 1;
        }
    }

    /// A decision; in the source a prompt to continue is part of the turn that it answers.
    fn note_decision(&mut self, decision: &StopDecision) {
        if decision.stall_turns.is_some() {
            self.lifecycle.push(json!("stall_detected"));
        }
        self.feedback.extend(decision.feedback.as_ref().map(|feedback| {
            if matches!(feedback, Feedback::Continuation { .. }) {
                "system:continuation"
            } else if matches!(feedback, Feedback::WorkItemsIncomplete { .. }) {
                "system:work_item_reminder"
            } else {
                "system:feedback"
            }
        }));
        if let (StopCode::ContinuationPrompt, Some(Feedback::Continuation { count, max })) =
            (decision.code, &decision.feedback)
        {
            self.lifecycle.push(json!("continuation_prompt"));
            self.tell("continuation_prompt", json!({ "count": count, "max": max }));
        }
        self.lifecycle.push(json!("turn_completed"));
        for event in decision::events(decision, self.strict, &self.error) {
            self.transcript.push(event);
        }
        if decision.stops {
            self.lifecycle.push(json!("harness_completed"));
        }
        self.last = Some(decision.clone());
    }

    fn tell(&mut self, kind: &str, data: Value) {
        self.transcript.push(json!({ "event_type": kind, "data": data }));
    }

    /// The messages of a request by their roles and kinds.
    #[expect(clippy::wildcard_enum_match_arm, reason = "no other role has a kind")]
    fn shapes(&self, view: &View) -> Vec<String> {
        let mut shapes = vec!["system:instructions".to_owned()];
        let mut feedback = self.feedback.iter();
        view.for_each(|message| {
            shapes.push(match &**message {
                Message::User(user) => match user.origin.as_deref() {
                    Some("hook") => feedback.next().copied().unwrap_or("system:feedback").to_owned(),
                    Some("guidance") => "user:guidance".to_owned(),
                    _ => "user:text".to_owned(),
                },
                Message::Assistant(answer) => {
                    let calls: Vec<_> = answer.tool_calls().map(|call| call.name.to_string()).collect();
                    if calls.is_empty() {
                        "assistant:text".into()
                    } else {
                        format!("assistant:call:{}", calls.join(","))
                    }
                }
                Message::ToolResult(result) => format!("tool:result:{}", result.tool_call_id),
                _ => message.role().to_owned(),
            });
        });
        shapes
    }

    fn result(&self, end: &End) -> Value {
        let Some(decision) = &self.last else { return Value::Null };
        let mut result = Map::new();
        result.insert("status".to_owned(), json!(decision::status(decision)));
        result.insert("reason".to_owned(), decision::reason(decision, self.strict, &self.error));
        result.insert("turn_count".to_owned(), json!(end.turns));
        let deliverables = ControlReport::of(end).map(|report| json!(report.deliverables));
        result.insert("deliverables".to_owned(), deliverables.unwrap_or_else(|| json!([])));
        Value::Object(result)
    }
}

/// Leaves out what the case does not ask for: more events of a transcript, more details of a reason.
pub(super) fn only_wanted(wanted: &mut Value, got: &mut Value) {
    let details = |value: &Value| value.pointer("/result/reason/details").and_then(Value::as_object).cloned();
    if let (Some(wanted), Some(Value::Object(got))) =
        (details(wanted), got.pointer_mut("/result/reason/details"))
    {
        got.retain(|key, _| wanted.contains_key(key));
    }
    let events = list(wanted, "transcript").to_vec();
    if let Some(Value::Array(got)) = got.get_mut("transcript") {
        let mut left = events.iter().peekable();
        got.retain_mut(|event| {
            let Some(wanted) = left.peek() else { return false };
            let is_next = text(wanted, "event_type") == text(event, "event_type");
            if is_next {
                left.next();
            }
            is_next
        });
    }
}
