//! The spans of one turn or run.

use std::sync::Arc;

use harness_core::event::{Event, EventKind, ResultNote};
use harness_core::message::{ApprovalRequest, AssistantMessage, FinishReason, Message, ToolCall, Usage};
use harness_core::port::PreparedAgent;
use harness_core::tool::{ToolOutcome, ToolStatus};
use harness_core::{AgentId, CallId, End, Fault, ModelName, Origin};
use tracing::{Dispatch, dispatcher};

use crate::content::{self, cut};
use crate::open::{Open, count};
use crate::parents::{Key, Parents};
use crate::spans::Shared;

/// Messages that a model has not been shown yet, at most, where content is wanted.
const FRESH: usize = 64;

/// Open spans of one machine's work.
#[derive(Debug)]
pub(crate) struct Work {
    origin: Arc<Origin>,
    shared: Arc<Shared>,
    /// Subscriber at the start of the work, which receives all its spans.
    dispatch: Dispatch,
    /// The run, or the turn that has none.
    root: Option<(Key, Open)>,
    has_run: bool,
    /// Whether the root says whose work it is.
    is_named: bool,
    turn: Option<Open>,
    /// The agent that was handed the turn.
    handed: Option<Open>,
    chat: Option<Chat>,
    tools: Vec<Call>,
    approvals: Vec<(Option<CallId>, Open)>,
    compaction: Option<Open>,
    /// Input tokens that came out of a cache or went into one, of the turn and of the run: totals leave them out.
    cached: (u64, u64),
    prepared: Option<Arc<PreparedAgent>>,
    fresh: Vec<Arc<Message>>,
}

#[derive(Debug)]
struct Call {
    id: CallId,
    key: Key,
    open: Open,
}

#[derive(Debug)]
struct Chat {
    open: Open,
    /// Whether the model that is asked is known.
    is_named: bool,
    /// Whether what it used is known already.
    is_counted: bool,
}

impl Work {
    /// Creates the state for work before its first event.
    pub(crate) fn new(origin: &Arc<Origin>, shared: &Arc<Shared>) -> Self {
        Self {
            origin: Arc::clone(origin),
            shared: Arc::clone(shared),
            dispatch: dispatcher::get_default(Dispatch::clone),
            root: None,
            has_run: false,
            is_named: false,
            turn: None,
            handed: None,
            chat: None,
            tools: Vec::new(),
            approvals: Vec::new(),
            compaction: None,
            cached: (0, 0),
            prepared: None,
            fresh: Vec::new(),
        }
    }

    /// Whether that is its origin: the turns of a run name themselves each.
    pub(crate) fn is_of(&self, origin: &Origin) -> bool {
        let own = &*self.origin;
        std::ptr::eq(own, origin)
            || (own.run == origin.run
                && own.thread == origin.thread
                && own.session == origin.session
                && own.parent == origin.parent
                && (self.has_run || own.turn == origin.turn))
    }

    /// Whether it is more than a compaction.
    pub(crate) fn has_root(&self) -> bool {
        self.root.is_some()
    }

    /// Takes an event; whether the work is over.
    pub(crate) fn record(&mut self, event: &Event) -> bool {
        if !Arc::ptr_eq(&self.origin, &event.origin) {
            self.origin = Arc::clone(&event.origin);
        }
        let dispatch = self.dispatch.clone();
        dispatcher::with_default(&dispatch, || self.take(event))
    }

    /// Ends work whose future was dropped.
    pub(crate) fn abandon(mut self) {
        let dispatch = self.dispatch.clone();
        dispatcher::with_default(&dispatch, || self.close_all("abandoned"));
    }

    #[expect(clippy::wildcard_enum_match_arm, reason = "everything else is noted, or nothing")]
    fn take(&mut self, event: &Event) -> bool {
        match &event.kind {
            EventKind::RunStarted { .. } | EventKind::RunTakenUp { .. } => self.begin_run(&event.kind),
            EventKind::AgentPrepared { prepared } => self.prepared = Some(Arc::clone(prepared)),
            EventKind::TurnStarted { agent, resumed } => self.begin_turn(event.turn, agent, *resumed),
            EventKind::MessageAppended { message, .. } => self.appended(message),
            EventKind::ModelStepStarted { agent, model, .. } => {
                self.asked(agent, model.as_ref(), event.iteration);
            }
            EventKind::ModelStepFinished { output_type, usage, .. } => {
                self.answered(output_type, usage.as_deref());
            }
            EventKind::ModelStepFailed { fault, .. } => {
                if let Some(Chat { open, .. }) = self.chat.take() {
                    open.fail(&fault.code, Some(&fault.message));
                }
            }
            EventKind::ToolStarted { call } => self.begin_tool(call, event.iteration),
            EventKind::ToolRetried { call, attempt, .. } => {
                if let Some(Call { open, .. }) = self.call(&call.id) {
                    open.set("harness.tool.attempts", count(*attempt));
                    open.note(&event.kind);
                }
            }
            EventKind::ToolFinished { call, outcome, note, .. } => {
                self.end_tool(call, outcome, true, None, *note, event.iteration);
            }
            EventKind::ToolFailed { call, outcome, ran, fault, note, .. } => {
                self.end_tool(call, outcome, *ran, fault.as_ref(), *note, event.iteration);
            }
            EventKind::HandedOff { from, to, .. } => {
                self.handed = self.turn_or_root().map(|turn| turn.handed(to, from));
            }
            EventKind::ApprovalRequested { request, .. } => self.begin_approval(request),
            EventKind::ApprovalDecided { call, decision, .. } => self.end_approval(call, decision),
            EventKind::CompactionStarted { trigger } => {
                self.compaction = Some(Open::compaction(self.current(), trigger));
            }
            EventKind::CompactionCompleted { note, permanent, usage, duration, .. } => {
                if let Some(open) = self.compaction.take() {
                    open.compacted(note, *permanent, usage, *duration);
                }
                return self.root.is_none();
            }
            EventKind::CompactionFailed { fault } => {
                let open = self.compaction.take();
                let open = open.unwrap_or_else(|| Open::compaction(self.current(), "request"));
                open.fail(&fault.code, Some(&fault.message));
                return self.root.is_none();
            }
            EventKind::TurnFinished { end } => return self.end_turn(end),
            EventKind::RunFinished { end } => {
                self.end(end);
                return true;
            }
            other => self.note(other),
        }
        false
    }

    /// The model has answered; its usage counts once.
    fn answered(&mut self, output_type: &str, usage: Option<&Usage>) {
        let Some(Chat { open, is_counted, .. }) = self.chat.take() else { return };
        open.set("harness.output_type", output_type);
        if let Some(usage) = usage.filter(|_| !is_counted) {
            self.count(&open, usage);
        }
    }

    fn root(&self) -> Option<&Open> {
        self.root.as_ref().map(|(_, open)| open)
    }

    fn turn_or_root(&self) -> Option<&Open> {
        self.turn.as_ref().or(self.root())
    }

    /// Parent of new spans.
    fn current(&self) -> Option<&Open> {
        self.handed.as_ref().or(self.turn_or_root())
    }

    fn call(&self, id: &CallId) -> Option<&Call> {
        self.tools.iter().find(|call| call.id == *id)
    }

    fn note(&self, kind: &EventKind) {
        if let Some(open) = self.current() {
            open.note(kind);
        }
    }

    fn parents(&self) -> &Parents {
        &self.shared.parents
    }

    fn begin_run(&mut self, kind: &EventKind) {
        if self.has_run {
            return;
        }
        self.close_all("superseded");
        self.has_run = true;
        let root = self.begin_root();
        if matches!(kind, EventKind::RunTakenUp { .. }) {
            root.set("harness.resumed", true);
        }
    }

    fn begin_root(&mut self) -> &Open {
        let parent = self.origin.parent.as_ref().and_then(|parent| self.parents().of(parent));
        let root = Open::work(parent.as_ref(), &self.origin);
        (self.is_named, self.cached) = (false, (0, 0));
        let key = if self.has_run { Key::run(&self.origin) } else { Key::turn(&self.origin) };
        self.parents().put(key.clone(), root.span().clone());
        let (_, root) = self.root.insert((key, root));
        root
    }

    fn begin_turn(&mut self, turn: u32, agent: &AgentId, resumed: bool) {
        self.close_turn("superseded");
        self.cached.0 = 0;
        if !self.has_run {
            self.close_root("superseded");
            self.begin_root().set("harness.resumed", resumed);
        }
        let Some((_, root)) = &self.root else { return };
        if !self.is_named {
            self.is_named = true;
            root.set("otel.name", &*format!("invoke_agent {agent}"));
            root.set("gen_ai.agent.name", agent.as_str());
        }
        if self.has_run {
            self.turn = Some(root.turn(turn, agent, resumed));
        }
    }

    fn asked(&mut self, agent: &AgentId, model: Option<&ModelName>, iteration: u32) {
        self.cut_chat("superseded");
        let Some(current) = self.current() else { return };
        let open = current.chat(model.map(ModelName::as_str), agent, iteration);
        if let Some(bytes) = self.shared.content_bytes() {
            let told = content::messages(self.fresh.iter().map(|message| &**message), bytes);
            open.set("gen_ai.input.messages", &*told);
            if let Some(prepared) = &self.prepared {
                open.set("gen_ai.system_instructions", &*cut(&prepared.instructions, bytes));
            }
            if let (1, Some(root)) = (iteration, self.root()) {
                root.set("gen_ai.input.messages", &*told);
            }
            self.fresh.clear();
        }
        self.chat = Some(Chat { open, is_named: model.is_some(), is_counted: false });
    }

    fn appended(&mut self, message: &Arc<Message>) {
        if self.shared.content_bytes().is_some() {
            if self.fresh.len() >= FRESH {
                self.fresh.remove(0);
            }
            self.fresh.push(Arc::clone(message));
        }
        let Some(chat) = &mut self.chat else { return };
        let Some(answer) = message.as_assistant() else { return };
        describe(chat, answer);
        let open = chat.open.clone();
        if let Some(usage) = &answer.usage
            && !std::mem::replace(&mut chat.is_counted, true)
        {
            self.count(&open, usage);
        }
        if let Some(bytes) = self.shared.content_bytes() {
            let told = content::messages(std::iter::once(&**message), bytes);
            open.set("gen_ai.output.messages", &*told);
        }
        drop(open);
        if answer.stop_reason == FinishReason::Aborted {
            self.cut_chat("aborted");
        }
    }

    /// Records the usage of a model call once, because a second value would be added to the span.
    fn count(&mut self, open: &Open, usage: &Usage) {
        open.used(usage);
        let cached = [usage.cache_read, usage.cache_write].into_iter().flatten().fold(0, u64::saturating_add);
        self.cached = (self.cached.0.saturating_add(cached), self.cached.1.saturating_add(cached));
    }

    fn cut_chat(&mut self, code: &str) {
        if let Some(Chat { open, .. }) = self.chat.take() {
            open.fail(code, None);
        }
    }

    fn begin_tool(&mut self, call: &ToolCall, iteration: u32) {
        let Some(current) = self.current() else { return };
        let open = current.tool(call, iteration);
        if let Some(bytes) = self.shared.content_bytes() {
            open.set("gen_ai.tool.call.arguments", &*cut(call.arguments.text(), bytes));
        }
        let key = Key::call(&self.origin, &call.id);
        self.parents().put(key.clone(), open.span().clone());
        self.tools.push(Call { id: call.id.clone(), key, open });
    }

    /// `ran`: whether the call started; if not, its span has no duration.
    fn end_tool(
        &mut self,
        call: &ToolCall,
        outcome: &ToolOutcome,
        ran: bool,
        fault: Option<&Fault>,
        note: Option<ResultNote>,
        iteration: u32,
    ) {
        if self.call(&call.id).is_none() {
            self.begin_tool(call, iteration);
        }
        let Some(at) = self.tools.iter().position(|open| open.id == call.id) else { return };
        let Call { key, open, .. } = self.tools.remove(at);
        self.parents().take_out(&key);
        if !ran {
            open.set("harness.tool.ran", false);
        }
        open.set("harness.tool.status", outcome.status.as_str());
        open.set("harness.tool.exit_code", outcome.exit_code.map(count));
        open.set("harness.tool.note", note.map(note_word));
        let bytes = self.shared.content_bytes();
        if let Some(bytes) = bytes {
            let result = content::blocks_text(&outcome.content);
            if !result.is_empty() {
                open.set("gen_ai.tool.call.result", &*cut(&result, bytes));
            }
        }
        if let Some(fault) = fault {
            open.fail(&fault.code, Some(&fault.message));
        } else if outcome.status != ToolStatus::Success {
            let error = outcome.error.as_deref();
            let code = error.map_or(outcome.status.as_str(), |error| error.code.as_str());
            // What a tool says of its error is part of what the model reads.
            open.fail(code, error.map(|error| &*error.message).filter(|_| bytes.is_some()));
        }
    }

    fn begin_approval(&mut self, request: &ApprovalRequest) {
        let Some(current) = self.current() else { return };
        let call = request.call_id.clone();
        let open = current.approval(call.as_ref().map(CallId::as_str), &request.kind);
        self.approvals.push((call, open));
    }

    fn end_approval(&mut self, call: &CallId, decision: &str) {
        let Some(at) = self.approvals.iter().position(|(id, _)| id.as_ref() == Some(call)) else { return };
        let (_, open) = self.approvals.remove(at);
        open.set("harness.approval.decision", decision);
    }

    /// Whether the work is over, too.
    fn end_turn(&mut self, end: &End) -> bool {
        if let Some(turn) = self.turn.take() {
            self.close_inner("cut_off");
            turn.ended(end, self.cached.0);
            return false;
        }
        self.end(end);
        !self.has_run
    }

    fn end(&mut self, end: &End) {
        self.close_turn("cut_off");
        if let Some(root) = self.root() {
            root.ended(end, self.cached.1);
            if let (Some(bytes), Some(answer)) = (self.shared.content_bytes(), &end.answer) {
                root.set("gen_ai.output.messages", &*content::answer(answer, bytes));
            }
        }
        self.forget_root();
    }

    /// Closes the children of a turn; those without an end are marked as failed.
    fn close_inner(&mut self, code: &str) {
        self.cut_chat(code);
        for Call { key, open, .. } in std::mem::take(&mut self.tools) {
            self.parents().take_out(&key);
            open.fail(code, None);
        }
        self.approvals.clear();
        if let Some(open) = self.compaction.take() {
            open.fail(code, None);
        }
        self.handed = None;
    }

    fn close_turn(&mut self, code: &str) {
        self.close_inner(code);
        if let Some(turn) = self.turn.take() {
            turn.fail(code, None);
        }
    }

    fn close_root(&mut self, code: &str) {
        if let Some(root) = self.root() {
            root.fail(code, None);
        }
        self.forget_root();
    }

    fn forget_root(&mut self) {
        if let Some((key, _)) = self.root.take() {
            self.parents().take_out(&key);
        }
    }

    fn close_all(&mut self, code: &str) {
        self.close_turn(code);
        self.close_root(code);
    }
}

/// A listener that goes away leaves nothing open.
impl Drop for Work {
    fn drop(&mut self) {
        if self.root.is_some() || self.compaction.is_some() {
            let dispatch = self.dispatch.clone();
            dispatcher::with_default(&dispatch, || self.close_all("abandoned"));
        }
    }
}

/// Writes down what an answer says of itself.
fn describe(chat: &mut Chat, answer: &AssistantMessage) {
    let open = &chat.open;
    if let (false, Some(model)) = (chat.is_named, &answer.model) {
        chat.is_named = true;
        open.set("otel.name", &*format!("chat {model}"));
        open.set("gen_ai.request.model", model.as_str());
    }
    open.set("gen_ai.provider.name", answer.provider.as_deref());
    open.set("gen_ai.response.model", answer.response_model.as_deref());
    open.set("gen_ai.response.id", answer.response_id.as_deref());
    open.set("gen_ai.response.finish_reasons", answer.stop_reason.as_str());
}

fn note_word(note: ResultNote) -> &'static str {
    match note {
        ResultNote::Late => "late",
        _ => "other",
    }
}
