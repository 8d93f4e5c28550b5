//! Fold from the events of a run to its record.

use std::collections::HashMap;
use std::sync::Arc;

use harness_core::event::{Event, EventKind, Fold};
use harness_core::message::{Message, ToolCall};
use harness_core::outcome::TotalUsage;
use harness_core::port::PreparedAgent;
use harness_core::tool::ToolOutcome;
use harness_core::transcript::Plan;
use harness_core::{AgentId, CallId, End, Fault, Json, RunId, ThreadId, Time, TurnId, canonical};

use super::build::Ending;
use super::candidate::Candidate;
use super::earlier::{Earlier, FixedSecrets};
use super::entries::{
    ApprovalEntry, ControlEntry, GateDecision, GuardrailDecision, HandoffEntry, LimitEntry, ModelCallEntry,
    Note, PolicyDecision, PromptSnapshot, RequestFingerprint, StopJudgement, ToolCallEntry,
};
use super::prompts::{PromptCollector, Request};
use super::redact::{Redacting, Redaction};
use super::request::{AgentPart, Messages, SCHEMA};
use super::run_record::{RunRecord, RunStatus};
use super::subagents::Subagents;

/// Status of a tool call in flight, in the record of a run in progress.
pub(super) const RUNNING: &str = "running";

/// Options of records.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct RecordOptions {
    /// Data of the caller. Default none.
    pub metadata: Option<Json>,
    /// Redaction. Default none.
    pub redaction: Redaction,
    /// Whether to record what the models received. Default true.
    pub prompts: bool,
    /// Maximum size of the recorded [`Prompts`](super::Prompts), approximately and in bytes. Default 8 MiB. Requests
    /// beyond it are counted.
    pub prompt_bytes: u64,
    /// Known fields of the candidate; missing ones are taken from events.
    pub candidate: Candidate,
    /// Limits in force, in the caller's form. Default none.
    pub limits: Option<Json>,
}

impl Default for RecordOptions {
    fn default() -> Self {
        Self {
            metadata: None,
            redaction: Redaction::none(),
            prompts: true,
            prompt_bytes: 8 << 20,
            candidate: Candidate::default(),
            limits: None,
        }
    }
}

/// Input of a run that is not part of its events.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct RunStart {
    /// Context at the start of the run.
    pub context: Option<Json>,
    /// Messages before the run.
    pub history: Vec<Arc<Message>>,
}

impl RunStart {
    /// Creates a start from context and history.
    pub fn new(context: Option<Json>, history: impl IntoIterator<Item = Arc<Message>>) -> Self {
        Self { context, history: history.into_iter().collect() }
    }
}

/// Fold that makes the record of a run from live or stored events.
///
/// It handles consecutive runs; [`record`](Self::record) returns that of the last finished one. A turn without a run
/// counts as a run. Memory: the shared messages of the run, and a few hundred bytes per call.
#[derive(Clone, Debug, Default)]
pub struct RecordFold {
    pub(super) options: RecordOptions,
    subagents: Subagents,
    next: NextRun,
    pub(super) state: Option<State>,
}

/// Input of the next run.
#[derive(Clone, Debug, Default)]
struct NextRun {
    redacting: Option<Redacting>,
    history: Vec<Arc<Message>>,
    known: Option<Arc<Earlier>>,
}

/// Tool call in flight.
#[derive(Clone, Debug)]
struct OpenCall {
    /// Number of its start event.
    seq: u64,
    at: Time,
    call: Arc<ToolCall>,
    attempts: u32,
}

/// State of a run.
#[derive(Clone, Debug, Default)]
pub(super) struct State {
    pub(super) redacting: Redacting,
    pub(super) run_id: String,
    pub(super) thread: Option<ThreadId>,
    pub(super) descriptor_hash: Option<String>,
    pub(super) started: Time,
    has_run: bool,
    pub(super) items: Vec<Arc<Message>>,
    pub(super) earlier: usize,
    /// Start of the items, if the run before is known.
    pub(super) known: Option<Arc<Earlier>>,
    pub(super) unknown: u64,
    /// Number of items before the first model request.
    pub(super) input: Option<usize>,
    hashes: Messages,
    plan: Option<Plan>,
    pub(super) prepared: Option<Arc<PreparedAgent>>,
    agent: AgentPart,
    pub(super) first_model: Option<String>,
    /// Collects what the models receive, if it is recorded.
    pub(super) collector: Option<PromptCollector>,
    guidance: Option<((u32, u32), Arc<Message>)>,
    pub(super) controls: Vec<ControlEntry>,
    requests: u32,
    asked_at: Time,
    open_calls: HashMap<CallId, OpenCall>,
    pub(super) usage: TotalUsage,
    pub(super) prompts: Vec<PromptSnapshot>,
    pub(super) fingerprints: Vec<RequestFingerprint>,
    pub(super) model_calls: Vec<ModelCallEntry>,
    pub(super) tool_calls: Vec<ToolCallEntry>,
    pub(super) handoffs: Vec<HandoffEntry>,
    pub(super) policy: Vec<PolicyDecision>,
    pub(super) proposals: Vec<Json>,
    pub(super) guardrails: Vec<GuardrailDecision>,
    pub(super) gates: Vec<GateDecision>,
    pub(super) approvals: Vec<ApprovalEntry>,
    pub(super) stops: Vec<StopJudgement>,
    pub(super) limits: Vec<LimitEntry>,
    pub(super) notes: Vec<Note>,
    pub(super) end: Option<(Time, Arc<End>)>,
}

impl RecordFold {
    /// Creates a fold.
    pub fn new(options: RecordOptions) -> Self {
        Self { options, ..Self::default() }
    }

    /// Adds the runs of these sub-agents to the record.
    pub(super) fn with_subagents(self, subagents: Subagents) -> Self {
        Self { subagents, ..self }
    }

    /// Sets the input of the next run. Without it, the record has no context, and only the number of earlier
    /// messages.
    pub fn start(&mut self, start: RunStart) {
        self.start_after(start, None);
    }

    /// Sets the input of the next run, whose history starts with the messages of a known one.
    pub(super) fn start_after(&mut self, start: RunStart, known: Option<Arc<Earlier>>) {
        let redacting = self.options.redaction.start(start.context.as_ref());
        self.next = NextRun { redacting: Some(redacting), history: start.history, known };
    }

    /// Parts that the next run shares with the last one, whose record this is; `None` if it cannot be shared.
    pub(super) fn shared(&self, record: &RunRecord, secrets: FixedSecrets, bytes: u64) -> Option<Earlier> {
        let state = self.state.as_ref().filter(|state| state.unknown == 0)?;
        let is_whole = record.items.len() == state.items.len();
        is_whole.then(|| Earlier {
            items: state.items.clone(),
            hashes: state.hashes.clone(),
            clean: record.items.clone(),
            secrets,
            bytes,
        })
    }

    /// The secrets that messages of the last run are redacted by, if by nothing else.
    pub(super) fn fixed_secrets(&self) -> Option<FixedSecrets> {
        self.state.as_ref()?.redacting.fixed_secrets()
    }

    /// The run before the last one, if its messages are known.
    pub(super) fn known(&self) -> Option<Arc<Earlier>> {
        self.state.as_ref()?.known.clone()
    }

    /// Record of the last run; `None` until a run has ended.
    pub fn record(&self) -> Option<RunRecord> {
        let state = self.state.as_ref()?;
        let (at, end) = state.end.as_ref()?;
        let record = super::build::record(&self.options, state, *at, &Ending::of(end));
        Some(self.with_children(record, state, *at))
    }

    /// Adds sub-agents to a record.
    fn with_children(&self, record: RunRecord, state: &State, now: Time) -> RunRecord {
        let (sub_agents, omitted) = self.subagents.of_run(&state.run_id, &state.redacting, now);
        RunRecord { sub_agents, omitted_sub_agents: omitted, ..record }
    }

    /// Record of a sub-agent's run until `now`, redacted like that of its caller, whose context is not repeated.
    pub(super) fn inside(mut self, redacting: &Redacting, now: Time) -> Option<RunRecord> {
        let state = self.state.as_mut()?;
        state.redacting = redacting.clone();
        let record = self.record().or_else(|| self.progress(now))?;
        Some(RunRecord { context_snapshot: None, context_redacted: false, ..record })
    }

    /// Id of the last run.
    pub(super) fn run_id(&self) -> Option<&str> {
        self.state.as_ref().map(|state| &*state.run_id)
    }

    /// The sub-agents.
    pub(super) fn subagents(&self) -> &Subagents {
        &self.subagents
    }

    /// Record of the run in progress until `now`, with the calls in flight; `None` without one. Its status is
    /// [`Running`](super::RunStatus::Running), its outcome, stop reason and evidence mean nothing. Hashes, prompts and
    /// messages are those of the requests so far.
    pub fn progress(&self, now: Time) -> Option<RunRecord> {
        let mut state = self.state.clone().filter(|state| state.end.is_none())?;
        state.close_model_call(now);
        let mut open: Vec<_> = state.open_calls.drain().map(|(_, open)| open).collect();
        open.sort_by_key(|open| open.seq);
        for OpenCall { seq, at, call, attempts } in open {
            let entry = state.tool_entry((seq, now), &call, attempts);
            state.tool_calls.push(ToolCallEntry {
                status: RUNNING.to_owned(),
                ran: true,
                duration_ms: now.since(at).0,
                ..entry
            });
        }
        let mut record = super::build::record(&self.options, &state, now, &Ending::none(&state.usage));
        (record.status, record.error_name, record.error_message) = (RunStatus::Running, None, None);
        Some(self.with_children(record, &state, now))
    }

    /// Thread of the last run.
    pub(super) fn thread(&self) -> Option<&ThreadId> {
        self.state.as_ref()?.thread.as_ref()
    }

    /// State of the run that an event belongs to.
    fn state_for(&mut self, event: &Event) -> &mut State {
        let starts = matches!(event.kind, EventKind::RunStarted { .. });
        let is_new = starts || self.state.as_ref().is_none_or(|state| state.end.is_some());
        if is_new {
            let NextRun { redacting, history, known } = std::mem::take(&mut self.next);
            let redacting = redacting.unwrap_or_else(|| self.options.redaction.start(None));
            let mut state = State { redacting, started: event.at, has_run: starts, ..State::default() };
            let RecordOptions { prompts, prompt_bytes, .. } = self.options;
            state.collector = prompts.then(|| PromptCollector::new(prompt_bytes));
            state.earlier = history.len();
            let hashed = known.as_ref().map_or(0, |known| known.items.len());
            if let Some(known) = &known {
                state.hashes = known.hashes.clone();
            }
            for message in history.iter().skip(hashed) {
                state.hashes.push(message);
            }
            (state.items, state.known) = (history, known);
            let origin = &event.origin;
            let turn = origin.turn.as_ref().map(TurnId::as_str);
            let run_id = origin.run.as_ref().map(RunId::as_str).or(turn).unwrap_or("run");
            run_id.clone_into(&mut state.run_id);
            state.thread.clone_from(&origin.thread);
            state.descriptor_hash = origin.descriptor_hash.as_deref().map(str::to_owned);
            self.state = Some(state);
        }
        self.state.get_or_insert_default()
    }
}

impl Fold for RecordFold {
    fn apply(&mut self, event: &Event) {
        let provider = self.options.candidate.provider.clone();
        let state = self.state_for(event);
        state.usage.count(&event.kind);
        #[expect(clippy::wildcard_enum_match_arm, reason = "the rest are decisions and notes")]
        match &event.kind {
            EventKind::AgentPrepared { prepared } => state.prepared(prepared),
            EventKind::MessageAppended { index, message } => state.appended(*index, message),
            EventKind::ViewPlanned { plan, .. } => {
                state.plan = Some(plan.clone());
                state.decided(event);
            }
            EventKind::ModelStepStarted { .. } => state.requested(event, provider),
            EventKind::ModelStepFinished { output_type, usage, duration, first_token } => {
                if let Some(call) = state.open_model_call() {
                    call.output_type = Some(output_type.to_string());
                    call.usage = usage.as_deref().cloned();
                    call.duration_ms = duration.0;
                    call.first_token_ms = first_token.map(|first| first.0);
                }
            }
            EventKind::ModelStepFailed { fault, .. } => state.model_failed(event, fault),
            EventKind::ToolStarted { call } => {
                let open = OpenCall { seq: event.seq, at: event.at, call: Arc::clone(call), attempts: 1 };
                state.open_calls.entry(call.id.clone()).or_insert(open);
            }
            EventKind::ToolRetried { call, attempt, .. } => {
                if let Some(open) = state.open_calls.get_mut(&call.id) {
                    open.attempts = *attempt;
                }
            }
            EventKind::ToolFinished { call, outcome, duration, note: _ } => {
                state.tool_ended(event, call, &Ended { outcome, duration_ms: duration.0, ran: true });
            }
            EventKind::ToolFailed { call, outcome, duration, ran, .. } => {
                state.tool_ended(event, call, &Ended { outcome, duration_ms: duration.0, ran: *ran });
            }
            EventKind::TurnFinished { end } if !state.has_run => state.ended(event, end),
            EventKind::RunFinished { end } => state.ended(event, end),
            _ => state.decided(event),
        }
    }
}

/// End of a tool call.
struct Ended<'a> {
    outcome: &'a ToolOutcome,
    duration_ms: u64,
    ran: bool,
}

impl State {
    fn prepared(&mut self, prepared: &Arc<PreparedAgent>) {
        self.agent = AgentPart::of(prepared);
        if self.prepared.is_none() {
            self.first_model = prepared.model.as_ref().map(ToString::to_string);
        }
        self.prepared = Some(Arc::clone(prepared));
    }

    fn appended(&mut self, index: u64, message: &Arc<Message>) {
        if self.items.len() == self.earlier {
            self.unknown = index.saturating_sub(self.items.len() as u64);
        }
        if matches!(**message, Message::Assistant(_)) {
            let at = self.items.len() as u64;
            if let Some(call) = self.open_model_call() {
                call.item = Some(at);
            }
        }
        self.hashes.push(message);
        self.items.push(Arc::clone(message));
    }

    fn requested(&mut self, event: &Event, provider: Option<String>) {
        self.close_model_call(event.at);
        self.input.get_or_insert(self.items.len());
        self.requests += 1;
        self.asked_at = event.at;
        let Some(prepared) = self.prepared.clone() else { return };
        let timestamp = event.at.iso();
        let instructions = &*prepared.instructions;
        self.prompts.push(PromptSnapshot {
            seq: event.seq,
            timestamp: timestamp.clone(),
            turn: self.requests,
            agent_name: prepared.agent.clone(),
            model: prepared.model.clone(),
            prompt_hash: if instructions.is_empty() {
                String::new()
            } else {
                canonical::sha256_hex(instructions)
            },
            prompt_text: None,
        });
        let plan = self.plan.take();
        self.collect(event, &prepared, plan.as_ref());
        let planned = plan.map(|plan| Messages::planned(&plan, &self.items, self.unknown));
        let hashes = planned.as_ref().unwrap_or(&self.hashes).hashes(&self.agent);
        self.fingerprints.push(RequestFingerprint {
            seq: event.seq,
            timestamp: timestamp.clone(),
            turn: self.requests,
            agent_name: prepared.agent.clone(),
            provider_name: provider,
            model: prepared.model.clone(),
            runtime_version: env!("CARGO_PKG_VERSION").to_owned(),
            fingerprint_schema_version: SCHEMA.to_owned(),
            request_hash: hashes.request,
            system_prompt_hash: hashes.system_prompt,
            messages_hash: hashes.messages,
            tools_hash: hashes.tools,
            model_settings_hash: hashes.settings,
            message_count: hashes.message_count,
            tool_count: hashes.tool_count,
        });
        self.model_calls.push(ModelCallEntry {
            seq: event.seq,
            timestamp,
            turn: self.requests,
            agent_name: prepared.agent.clone(),
            model: prepared.model.clone(),
            duration_ms: 0,
            first_token_ms: None,
            output_type: None,
            usage: None,
            item: None,
            fault: None,
        });
    }

    /// Collects what the model receives in a request.
    fn collect(&mut self, event: &Event, prepared: &Arc<PreparedAgent>, plan: Option<&Plan>) {
        let EventKind::ModelStepStarted { closing, ending, .. } = &event.kind else { return };
        let Some(collector) = &mut self.collector else { return };
        collector.add(&Request {
            turn: self.requests,
            prepared,
            closing: *closing == Some(true),
            plan,
            ending: ending.as_ref(),
            items: self.items.len(),
            unknown: usize::try_from(self.unknown).unwrap_or(usize::MAX),
        });
        // Attempts of one iteration carry the same guidance.
        if let Some((of, guidance)) = &self.guidance
            && *of == (event.turn, event.iteration)
        {
            collector.guide(self.requests, guidance);
        }
    }

    /// Adds guidance behind the last request, and the further ones of its iteration.
    pub(super) fn guided(&mut self, event: &Event, text: &str) {
        let Some(collector) = &mut self.collector else { return };
        let guidance = Arc::new(Message::user(text));
        collector.guide(self.requests, &guidance);
        self.guidance = Some(((event.turn, event.iteration), guidance));
    }

    /// The model call in flight.
    fn open_model_call(&mut self) -> Option<&mut ModelCallEntry> {
        self.model_calls.last_mut().filter(|call| call.output_type.is_none() && call.fault.is_none())
    }

    /// Ends a model call in flight.
    fn close_model_call(&mut self, at: Time) {
        let asked_at = self.asked_at;
        if let Some(call) = self.open_model_call() {
            call.duration_ms = at.since(asked_at).0;
        }
    }

    fn model_failed(&mut self, event: &Event, fault: &Fault) {
        let asked_at = self.asked_at;
        if let Some(call) = self.open_model_call() {
            call.duration_ms = event.at.since(asked_at).0;
            call.fault = Some(fault.clone());
        }
    }

    fn tool_ended(&mut self, event: &Event, call: &ToolCall, done: &Ended<'_>) {
        let attempts = self.open_calls.remove(&call.id).map_or(0, |open| open.attempts);
        let entry = self.tool_entry((event.seq, event.at), call, attempts);
        self.tool_calls.push(ToolCallEntry {
            status: done.outcome.status.as_str().to_owned(),
            error_code: done.outcome.error.as_ref().map(|error| error.code.clone()),
            ran: done.ran,
            attempts: if done.ran { attempts.max(1) } else { attempts },
            duration_ms: done.duration_ms,
            ..entry
        });
    }

    /// Entry of a call without its end.
    fn tool_entry(&self, (seq, at): (u64, Time), call: &ToolCall, attempts: u32) -> ToolCallEntry {
        let agent_name = self.prepared.as_ref().map_or_else(|| AgentId::from("main"), |o| o.agent.clone());
        ToolCallEntry {
            seq,
            timestamp: at.iso(),
            turn: self.requests,
            call_id: call.id.clone(),
            name: call.name.clone(),
            agent_name,
            args_hash: canonical::hash(&call.arguments),
            status: String::new(),
            error_code: None,
            ran: false,
            attempts,
            duration_ms: 0,
        }
    }

    fn ended(&mut self, event: &Event, end: &Arc<End>) {
        self.close_model_call(event.at);
        self.end = Some((event.at, Arc::clone(end)));
    }

    /// Event number, time and number of the model request, for an entry.
    pub(super) fn stamp(&self, event: &Event) -> (u64, String, u32) {
        (event.seq, event.at.iso(), self.requests)
    }
}
