//! Collected output of an agent.

use std::collections::BTreeSet;

use harness_core::message::{Cost, Usage};
use harness_core::{CallId, Json, JsonObject, ToolName};

use super::LocalAgent;
use super::session::Session;
use crate::execution::{
    ExecutionError, ExecutionErrorCode, ExecutionEventKind, ExecutionPart, ExecutionSink,
};
use crate::label::{MAX_LABEL_BYTES, bounded_id, bounded_label};
use crate::local::ended::shortened;
use crate::local::output::ParsedOutput;
use crate::seam::{Piece, Seam};

/// The longest answer that is kept, in bytes.
const MOST_TEXT: usize = 8 * 1024 * 1024;

/// Maximum tool calls in a result; all are reported as they happen.
const MOST_CALLS: usize = 1_000;

/// Maximum bytes of a call's arguments in a result, and of its reported output.
const MOST_DETAIL: usize = 4 * 1024;

/// Maximum bytes of a reported note.
const MOST_NOTE: usize = 1024;

/// Collected output of an agent; text is forwarded to the sink immediately.
#[derive(Debug)]
pub(super) struct AgentOutput {
    agent: LocalAgent,
    /// Boundaries of text and reasoning deltas.
    said_seam: Seam,
    thought_seam: Seam,
    /// Text since the last tool call: at the end, the answer.
    said: String,
    /// Text before that.
    said_before: String,
    /// Whether anything was said at all.
    spoke: bool,
    calls: Vec<Json>,
    seen: BTreeSet<String>,
    events: Vec<(ExecutionEventKind, Json)>,
    pub(super) usage: Option<Usage>,
    pub(super) session: Session,
    facts: Vec<(&'static str, Json)>,
}

impl AgentOutput {
    pub(super) fn new(agent: LocalAgent, session: Session) -> Self {
        Self {
            agent,
            said_seam: Seam::default(),
            thought_seam: Seam::default(),
            said: String::new(),
            said_before: String::new(),
            spoke: false,
            calls: Vec::new(),
            seen: BTreeSet::new(),
            events: Vec::new(),
            usage: None,
            session,
            facts: Vec::new(),
        }
    }

    /// More of the message that it is writing.
    pub(super) fn say(&mut self, piece: Piece, sink: &dyn ExecutionSink) {
        let text = self.said_seam.join(piece);
        self.tell(text, sink);
    }

    fn tell(&mut self, text: String, sink: &dyn ExecutionSink) {
        if text.is_empty() {
            return;
        }
        self.spoke = true;
        if self.said.len() + text.len() <= MOST_TEXT {
            self.said.push_str(&text);
        }
        sink.part(ExecutionPart::Text(text));
    }

    /// More of what it thinks.
    pub(super) fn think(&mut self, piece: Piece, sink: &dyn ExecutionSink) {
        let text = self.thought_seam.join(piece);
        if !text.is_empty() {
            sink.part(ExecutionPart::Thinking(text));
        }
    }

    /// A new message begins: what was said before is not the answer.
    pub(super) fn begin_message(&mut self, sink: &dyn ExecutionSink) {
        let left = std::mem::take(&mut self.said_seam).end();
        self.tell(left.to_owned(), sink);
        if self.spoke && !self.said.is_empty() {
            sink.part(ExecutionPart::Text("\n\n".to_owned()));
        }
        self.settle();
    }

    /// Reports a call of one of its tools, once per call.
    pub(super) fn call(&mut self, id: &str, name: &str, input: Json, sink: &dyn ExecutionSink) {
        let (id, name) = (&*bounded_id(id), &*bounded_label(name.to_owned()));
        if self.seen.contains(id) {
            return;
        }
        self.begin_message(sink);
        if self.calls.len() < MOST_CALLS {
            self.seen.insert(id.to_owned());
            let shown = if input.text().len() <= MOST_DETAIL { Some(("input", input.clone())) } else { None };
            let call = [("id", Json::string(id)), ("name", Json::string(name))];
            self.calls.push(Json::object(call.iter().cloned().chain(shown)));
            self.events.push((ExecutionEventKind::ToolRequested, Json::object(call)));
        }
        sink.part(ExecutionPart::ToolStarted { id: CallId::from(id), name: ToolName::from(name), input });
    }

    /// Reports the result of one of its tools.
    pub(super) fn result(&mut self, id: &str, output: &str, failed: bool, sink: &dyn ExecutionSink) {
        let id = &*bounded_id(id);
        if self.events.len() < 2 * MOST_CALLS {
            let failed = if failed {
                Some(("failed", Json::of(&true).unwrap_or_else(|_| Json::null())))
            } else {
                None
            };
            let data = Json::object([("id", Json::string(id))].into_iter().chain(failed));
            self.events.push((ExecutionEventKind::ToolCompleted, data));
        }
        let output = shortened(output, MOST_DETAIL);
        sink.part(ExecutionPart::ToolFinished { id: CallId::from(id), output, failed });
    }

    /// Reports its usage.
    pub(super) fn uses(&mut self, usage: Usage, sink: &dyn ExecutionSink) {
        sink.part(ExecutionPart::Usage(usage.clone()));
        self.usage = Some(usage);
    }

    /// Something for the result's metadata.
    pub(super) fn fact(&mut self, name: &'static str, value: Option<Json>) {
        if let Some(value) = value.filter(|value| value.text().len() <= MOST_DETAIL) {
            self.facts.retain(|(known, _)| *known != name);
            self.facts.push((name, value));
        }
    }

    /// A failure in the agent's own words.
    pub(super) fn failure(&self, words: &str, retryable: Option<bool>) -> ExecutionError {
        let words = shortened(words.trim(), MOST_NOTE);
        let told = match words.as_str() {
            "" => format!("{} failed and does not say why.", self.agent),
            words => format!("{} failed: {words}", self.agent),
        };
        let error = ExecutionError::new(ExecutionErrorCode::BackendExecutionError, told);
        match retryable {
            Some(retryable) => error.retryable(retryable),
            None => error,
        }
    }

    /// Parsed output. `answer` is the answer as the agent repeats it at the end.
    pub(super) fn parsed(mut self, answer: Option<String>, failure: Option<ExecutionError>) -> ParsedOutput {
        self.said.push_str(self.said_seam.end());
        self.settle();
        let mut metadata = Vec::new();
        // A session's id becomes an argument of the next run; a part of it would name another session.
        let id = Some(&self.session.id).filter(|id| (1..=MAX_LABEL_BYTES).contains(&id.len()));
        metadata.extend(id.map(|id| ("sessionId", Json::string(id))));
        metadata
            .extend(self.usage.as_ref().and_then(|usage| Json::of(usage).ok()).map(|usage| ("usage", usage)));
        metadata.append(&mut self.facts);
        ParsedOutput {
            text: answer.or((!self.said_before.is_empty()).then_some(self.said_before)),
            continuation: id.and_then(|_| self.session.continuation(self.agent)),
            tool_calls: (!self.calls.is_empty()).then_some(self.calls),
            metadata: (!metadata.is_empty()).then(|| Json::object(metadata)),
            failure,
            events: self.events,
            ..ParsedOutput::default()
        }
    }

    fn settle(&mut self) {
        if !self.said.is_empty() {
            self.said_before = std::mem::take(&mut self.said);
        }
    }
}

/// Parses a line as an event. Any other line becomes a note, unless it is blank.
pub(super) fn event_of(line: &str, sink: &dyn ExecutionSink) -> Option<JsonObject> {
    let event = JsonObject::parse(line);
    if event.is_none() && !line.trim().is_empty() {
        note(line, sink);
    }
    event
}

/// Something for a log.
pub(super) fn note(text: &str, sink: &dyn ExecutionSink) {
    sink.part(ExecutionPart::Note(shortened(text, MOST_NOTE)));
}

/// Sum of two usages, field by field; fields absent in both stay absent.
pub(super) fn plus(one: &Usage, other: &Usage) -> Usage {
    let sum = |a: Option<u64>, b: Option<u64>| match (a, b) {
        (Some(a), Some(b)) => Some(a.saturating_add(b)),
        (a, b) => a.or(b),
    };
    each(one, other, sum)
}

/// Difference between a usage and an earlier one.
pub(super) fn since(now: &Usage, earlier: &Usage) -> Usage {
    each(now, earlier, |now, earlier| now.map(|now| now.saturating_sub(earlier.unwrap_or(0))))
}

fn each(one: &Usage, other: &Usage, of: impl Fn(Option<u64>, Option<u64>) -> Option<u64>) -> Usage {
    let mut usage = Usage::default();
    usage.input = of(one.input, other.input);
    usage.output = of(one.output, other.output);
    usage.cache_read = of(one.cache_read, other.cache_read);
    usage.cache_write = of(one.cache_write, other.cache_write);
    usage.reasoning = of(one.reasoning, other.reasoning);
    usage.total_tokens = of(one.total_tokens, other.total_tokens);
    usage
}

/// Cost as an agent writes it: a sum of doubles, whose last digits are noise. Zero is treated as
/// absent, because agents write it for unknown prices.
pub(super) fn cost(value: Option<&Json>) -> Option<Cost> {
    let amount: f64 = value?.to().ok()?;
    format!("{amount:.9}").parse().ok().filter(|cost| *cost != Cost(0))
}

/// Whether a request that a provider answered with this HTTP status may work later.
pub(super) fn may_work_later(status: u64) -> bool {
    matches!(status, 408 | 409 | 425 | 429) || status >= 500
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(written: &str, expected: Option<&str>) {
        let value = Json::parse(written).unwrap();
        assert_eq!(cost(Some(&value)).map(|cost| cost.to_string()).as_deref(), expected);
    }

    #[test]
    fn a_cost_is_read_without_the_noise_of_sums() {
        check("0.0018000000000000002", Some("0.0018"));
        check("1.2e-3", Some("0.0012"));
        check("2", Some("2"));
        check("0", None);
        check("-1", None);
        check("\"free\"", None);
    }
}
