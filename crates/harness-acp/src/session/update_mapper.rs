//! Thread events as updates of a session.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use agent_client_protocol::v1::schema::{
    ContentBlock, ContentChunk, MessageId, SessionUpdate, ToolCall as WireCall, ToolCallContent,
    ToolCallStatus, ToolCallUpdate, ToolCallUpdateFields, UsageUpdate,
};
use harness::control::work::WorkLedger;
use harness::core::CallId;
use harness::core::event::{Event, EventKind};
use harness::core::message::{AssistantMessage, Block, Message, ToolCall, ToolResultMessage};
use harness::core::port::DeltaPart;
use harness::core::tool::ToolOutcome;
use harness::core::transcript::Prefix;
use harness::runtime::ThreadEvent;

use crate::content::{shown, shown_result, value};
use crate::{call, plan};

/// A fold over thread events.
///
/// Answers are sent as deltas, and completed from the message in the transcript, so a model without
/// streaming, and a reader that missed deltas, produce the same result.
#[derive(Debug)]
pub(crate) struct UpdateMapper {
    cwd: PathBuf,
    /// Number of sent messages.
    messages: u64,
    /// Sent text of the answer in progress.
    text: String,
    thinking: String,
    /// Text of the last answer.
    said: String,
    /// Whether deltas of the answer in progress were missed; it is sent when complete.
    missed: bool,
    /// Position in the transcript of the first unsent message, if known.
    next: u64,
    calls: HashMap<CallId, Call>,
    /// Work items so far: the plan of the editor.
    work: WorkLedger,
}

/// A call under the name that the client knows it by.
#[derive(Debug)]
struct Call {
    /// How many calls had this id; providers do not promise that ids are unique, the protocol wants them to be.
    times: u32,
    over: bool,
    /// Content shown at its start; results are appended.
    shown: Vec<ToolCallContent>,
}

impl UpdateMapper {
    /// Creates a mapper without history; relative paths are resolved against `cwd`.
    pub(crate) fn new(cwd: PathBuf) -> Self {
        Self {
            cwd,
            messages: 0,
            text: String::new(),
            thinking: String::new(),
            said: String::new(),
            missed: false,
            next: 0,
            calls: HashMap::new(),
            work: WorkLedger::default(),
        }
    }

    /// One thing that happened.
    pub(crate) fn updates_of(&mut self, event: &ThreadEvent) -> Vec<SessionUpdate> {
        let mut updates = Vec::new();
        if let ThreadEvent::Delta(part) = event {
            self.piece(part, &mut updates);
        } else if let ThreadEvent::ToolUpdate { call, content } = event {
            self.progress(call, content, &mut updates);
        } else if let ThreadEvent::Event(event) = event {
            self.happened(event, &mut updates);
        }
        updates
    }

    fn happened(&mut self, event: &Event, updates: &mut Vec<SessionUpdate>) {
        if let EventKind::ModelStepStarted { .. } = &event.kind {
            self.begin_answer();
        } else if let EventKind::MessageAppended { .. } = &event.kind {
            self.appended(event, updates);
        } else if let EventKind::CompactionCompleted { permanent: true, .. } = &event.kind {
            self.next = 0;
        } else if let EventKind::ToolRequested { calls, .. } = &event.kind {
            for call in calls {
                self.announce(call, updates);
            }
        } else if let EventKind::ToolStarted { call } = &event.kind {
            self.announce_unknown(call, updates);
            let fields = ToolCallUpdateFields::new().status(ToolCallStatus::InProgress);
            updates.push(self.update(&call.id, fields));
        } else if let EventKind::ToolFinished { call, outcome, .. } = &event.kind {
            self.finish(call, outcome, ToolCallStatus::Completed, updates);
        } else if let EventKind::ToolFailed { call, outcome, .. } = &event.kind {
            self.finish(call, outcome, ToolCallStatus::Failed, updates);
        } else if let EventKind::ContextPressure { estimate, window, .. } = &event.kind {
            updates.push(SessionUpdate::UsageUpdate(UsageUpdate::new(*estimate, *window)));
        }
    }

    /// Handles a new message of the transcript, unless it was sent from there.
    fn appended(&mut self, event: &Event, updates: &mut Vec<SessionUpdate>) {
        if let EventKind::MessageAppended { index, message } = &event.kind
            && *index >= self.next
        {
            self.message(message, false, updates);
            self.next = index + 1;
        }
    }

    /// Updates of events during a transcript read: only messages count, the rest may be in the
    /// transcript.
    pub(crate) fn updates_missed(&mut self, event: &ThreadEvent) -> Vec<SessionUpdate> {
        let mut updates = Vec::new();
        if let ThreadEvent::Event(event) = event {
            self.appended(event, &mut updates);
        }
        updates
    }

    /// The transcript is known to the client.
    pub(crate) fn passed(&mut self, messages: usize) {
        self.next = messages as u64;
    }

    /// The whole transcript, from the beginning.
    pub(crate) fn replay(&mut self, transcript: &Prefix) -> Vec<SessionUpdate> {
        *self = Self::new(std::mem::take(&mut self.cwd));
        let mut updates = Vec::new();
        for message in transcript.iter() {
            self.message(message, true, &mut updates);
        }
        self.next = transcript.len() as u64;
        updates
    }

    /// Updates of the transcript beyond the sent ones, after missed events.
    pub(crate) fn catch_up(&mut self, transcript: &Prefix) -> Vec<SessionUpdate> {
        let mut updates = Vec::new();
        self.missed = true;
        let from = usize::try_from(self.next).unwrap_or(usize::MAX).min(transcript.len());
        for message in transcript.range(from..transcript.len()) {
            self.message(message, false, &mut updates);
        }
        self.next = self.next.max(transcript.len() as u64);
        updates
    }

    /// Sends text outside the transcript, unless the last answer contains it.
    pub(crate) fn say(&mut self, text: &str) -> Vec<SessionUpdate> {
        if text.is_empty() || self.said.contains(text) {
            return Vec::new();
        }
        self.messages += 1;
        vec![self.chunk(SessionUpdate::AgentMessageChunk, text.to_owned().into())]
    }

    fn piece(&mut self, part: &DeltaPart, updates: &mut Vec<SessionUpdate>) {
        if self.missed {
            return;
        }
        match part {
            DeltaPart::Text(text) if !text.is_empty() => {
                self.text.push_str(text);
                updates.push(self.chunk(SessionUpdate::AgentMessageChunk, text.clone().into()));
            }
            DeltaPart::Thinking(text) if !text.is_empty() => {
                self.thinking.push_str(text);
                updates.push(self.chunk(SessionUpdate::AgentThoughtChunk, text.clone().into()));
            }
            DeltaPart::Note(text) => {
                updates.push(self.chunk(SessionUpdate::AgentThoughtChunk, text.clone().into()));
            }
            DeltaPart::BackendToolStarted { id, name, input } => {
                let call = Arc::new(ToolCall::new(id.clone(), name.clone(), input.clone()));
                self.announce(&call, updates);
                let fields = ToolCallUpdateFields::new().status(ToolCallStatus::InProgress);
                updates.push(self.update(id, fields));
            }
            DeltaPart::BackendToolFinished { id, output, failed } => {
                let content = vec![ToolCallContent::from(output.clone())];
                self.end(id, status_of(*failed), content, None, updates);
            }
            DeltaPart::Text(_)
            | DeltaPart::Thinking(_)
            | DeltaPart::CallStarted { .. }
            | DeltaPart::CallArguments { .. }
            | _ => {}
        }
    }

    fn progress(&mut self, call: &Arc<ToolCall>, content: &[Block], updates: &mut Vec<SessionUpdate>) {
        if self.calls.get(&call.id).is_some_and(|known| !known.over) {
            let fields =
                ToolCallUpdateFields::new().status(ToolCallStatus::InProgress).content(shown_result(content));
            updates.push(self.update(&call.id, fields));
        }
    }

    fn begin_answer(&mut self) {
        self.messages += 1;
        self.text.clear();
        self.thinking.clear();
        self.missed = false;
    }

    /// Handles a message of the transcript. User messages are sent unless the client has just sent
    /// them.
    fn message(&mut self, message: &Arc<Message>, past: bool, updates: &mut Vec<SessionUpdate>) {
        match &**message {
            Message::User(user) if past && user.origin.as_deref() != Some("hook") => {
                self.messages += 1;
                for block in user.content.iter().filter_map(shown) {
                    updates.push(self.chunk(SessionUpdate::UserMessageChunk, block));
                }
            }
            Message::Assistant(answer) => {
                if past || (self.missed && self.text.is_empty() && self.thinking.is_empty()) {
                    self.messages += 1;
                }
                self.rest_of(answer, updates);
                for call in answer.content.iter().filter_map(Block::as_tool_call) {
                    self.announce(call, updates);
                }
                self.text.clear();
                self.thinking.clear();
            }
            Message::ToolResult(result) => self.result(result, updates),
            Message::User(_) | Message::System(_) | Message::Custom(_) | _ => {}
        }
    }

    /// Rest of the answer beyond the sent deltas.
    fn rest_of(&mut self, answer: &AssistantMessage, updates: &mut Vec<SessionUpdate>) {
        let (mut thought, mut said) = (String::new(), String::new());
        for block in &answer.content {
            match block {
                Block::Thinking(thinking) if thinking.redacted != Some(true) => {
                    thought.push_str(&thinking.thinking);
                }
                Block::Text(text) => said.push_str(&text.text),
                Block::Refusal(refusal) => said.push_str(&refusal.text),
                Block::Thinking(_)
                | Block::Image(_)
                | Block::File(_)
                | Block::Audio(_)
                | Block::ToolCall(_)
                | Block::Error(_)
                | Block::Approval(_)
                | Block::Extension(_)
                | Block::Unknown(_)
                | _ => {}
            }
        }
        let rest = |whole: &str, told: &str| {
            // An answer that is not what was told piece by piece, because it was cleaned, is not told twice.
            let rest = whole.strip_prefix(told).or(self.missed.then_some(whole))?;
            (!rest.is_empty()).then(|| ContentBlock::from(rest.to_owned()))
        };
        if let Some(rest) = rest(&thought, &self.thinking) {
            updates.push(self.chunk(SessionUpdate::AgentThoughtChunk, rest));
        }
        if let Some(rest) = rest(&said, &self.text) {
            updates.push(self.chunk(SessionUpdate::AgentMessageChunk, rest));
        }
        self.said = said;
    }

    fn result(&mut self, result: &ToolResultMessage, updates: &mut Vec<SessionUpdate>) {
        let output = result.structured.as_ref().and_then(value);
        let content = shown_result(&result.content);
        self.end(&result.tool_call_id, status_of(result.is_error), content, output, updates);
        if !self.work.fold(result).is_empty() {
            updates.push(SessionUpdate::Plan(plan::of_ledger(&self.work)));
        }
    }

    /// Announces a call.
    fn announce(&mut self, call: &Arc<ToolCall>, updates: &mut Vec<SessionUpdate>) {
        let known =
            self.calls.entry(call.id.clone()).or_insert(Call { times: 0, over: true, shown: Vec::new() });
        if !known.over {
            return;
        }
        let mut fields = call::fields(call, &self.cwd);
        let shown = fields.content.take().unwrap_or_default();
        (known.times, known.over, known.shown) = (known.times + 1, false, shown.clone());
        let mut told = WireCall::new(self.id_of(&call.id), fields.title.clone().unwrap_or_default())
            .name(fields.name.clone())
            .kind(fields.kind.unwrap_or_default())
            .status(ToolCallStatus::Pending)
            .content(shown)
            .locations(fields.locations.unwrap_or_default());
        told.raw_input = fields.raw_input;
        updates.push(SessionUpdate::ToolCall(told));
    }

    /// Announces a call whose message was not sent. A finished call is not announced again: its
    /// result may arrive before the event of its end.
    fn announce_unknown(&mut self, call: &Arc<ToolCall>, updates: &mut Vec<SessionUpdate>) {
        if !self.calls.contains_key(&call.id) {
            self.announce(call, updates);
        }
    }

    fn finish(
        &mut self,
        call: &Arc<ToolCall>,
        outcome: &ToolOutcome,
        status: ToolCallStatus,
        updates: &mut Vec<SessionUpdate>,
    ) {
        self.announce_unknown(call, updates);
        let mut content = shown_result(&outcome.content);
        if content.is_empty()
            && let Some(error) = &outcome.error
        {
            content.push(ToolCallContent::from(error.message.clone()));
        }
        let output = outcome.structured.as_ref().and_then(value);
        self.end(&call.id, status, content, output, updates);
    }

    fn end(
        &mut self,
        id: &CallId,
        status: ToolCallStatus,
        content: Vec<ToolCallContent>,
        output: Option<serde_json::Value>,
        updates: &mut Vec<SessionUpdate>,
    ) {
        let Some(known) = self.calls.get_mut(id).filter(|known| !known.over) else { return };
        known.over = true;
        let shown = std::mem::take(&mut known.shown);
        let mut fields = ToolCallUpdateFields::new().status(status);
        // Content replaces what was there.
        if !content.is_empty() {
            fields = fields.content(shown.into_iter().chain(content).collect::<Vec<_>>());
        }
        fields.raw_output = output;
        updates.push(self.update(id, fields));
    }

    fn update(&self, id: &CallId, fields: ToolCallUpdateFields) -> SessionUpdate {
        SessionUpdate::ToolCallUpdate(ToolCallUpdate::new(self.id_of(id), fields))
    }

    /// Directory for relative paths.
    pub(crate) fn cwd(&self) -> &Path {
        &self.cwd
    }

    /// The name of a call towards the client.
    pub(crate) fn id_of(&self, id: &CallId) -> String {
        match self.calls.get(id).map_or(1, |known| known.times) {
            0 | 1 => id.as_str().to_owned(),
            times => format!("{id}#{times}"),
        }
    }

    fn chunk(&self, make: fn(ContentChunk) -> SessionUpdate, content: ContentBlock) -> SessionUpdate {
        make(ContentChunk::new(content).message_id(MessageId::from(format!("m{}", self.messages))))
    }
}

fn status_of(failed: bool) -> ToolCallStatus {
    if failed { ToolCallStatus::Failed } else { ToolCallStatus::Completed }
}
