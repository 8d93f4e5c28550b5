//! What the events of a run prove.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use crate::event::{Event, EventKind, Fold};
use crate::json::Json;
use crate::message::{Block, Message};
use crate::port::ToolOutcome;

/// How many results of one tool are kept, the latest.
const RESULTS: usize = 64;
/// How many tools are kept apart.
const TOOLS: usize = 512;
/// How many characters of an answer are kept: its end.
const ANSWER: usize = 8_000;
/// How many answers are kept, the latest.
const ANSWERS: usize = 64;

/// One result of a tool.
#[derive(Clone, Debug)]
pub(super) struct ToolFact {
    /// The event.
    pub(super) event: String,
    /// The arguments of its call.
    pub(super) arguments: Json,
    /// Why it is no good one.
    pub(super) error: Option<String>,
    /// What came of it.
    pub(super) value: Option<String>,
}

/// One answer.
#[derive(Clone, Debug)]
pub(super) struct AnswerFact {
    /// The event; empty when nobody named one.
    pub(super) event: String,
    /// Its text, or the end of it.
    pub(super) text: String,
    /// Whether its beginning was left out.
    pub(super) truncated: bool,
}

/// Keeps what the predicates of contracts ask for, from the events of a run. A [`Fold`]: give it to the
/// run, or feed it a stored record; the outcome is the same.
///
/// Bounded: the latest 64 results of each of 512 tools, the latest 64 answers, and of each the last 8,000
/// characters.
#[derive(Clone, Debug, Default)]
pub struct EvidenceIndex {
    pub(super) tools: BTreeMap<String, VecDeque<ToolFact>>,
    pub(super) answers: VecDeque<AnswerFact>,
    /// The texts of the turn that runs, to be one answer.
    said: String,
    said_in: Option<String>,
}

impl EvidenceIndex {
    /// Nothing is proven.
    pub fn new() -> Self {
        Self::default()
    }

    /// A result of a tool: in which event, for which arguments, why it is no good one.
    pub fn note_result(
        &mut self,
        event: impl Into<String>,
        tool: &str,
        arguments: Json,
        error: Option<String>,
        value: Option<&str>,
    ) {
        if self.tools.len() >= TOOLS && !self.tools.contains_key(tool) {
            return;
        }
        let facts = self.tools.entry(tool.to_owned()).or_default();
        if facts.len() >= RESULTS {
            facts.pop_front();
        }
        // A value that is cut is no JSON any more: a schema then says so instead of judging a part.
        let value = value.map(|text| end_of(text, ANSWER).to_owned());
        facts.push_back(ToolFact { event: event.into(), arguments, error, value });
    }

    /// An answer, in which event; `event` may be empty.
    pub fn note_answer(&mut self, event: impl Into<String>, text: &str) {
        if self.answers.len() >= ANSWERS {
            self.answers.pop_front();
        }
        let end = end_of(text, ANSWER);
        let truncated = end.len() < text.len();
        self.answers.push_back(AnswerFact { event: event.into(), text: end.to_owned(), truncated });
    }

    /// The newest answer that has text.
    pub(super) fn newest_answer(&self) -> Option<&AnswerFact> {
        self.answers.iter().rev().find(|answer| !answer.text.is_empty())
    }
}

/// What a tool said: as data where it gave data, else as text.
fn value_of(outcome: &ToolOutcome) -> String {
    match &outcome.structured {
        Some(value) => value.text().to_owned(),
        None => outcome.content.iter().filter_map(Block::as_text).collect(),
    }
}

/// The last characters of a text.
fn end_of(text: &str, most: usize) -> &str {
    match text.char_indices().rev().nth(most.saturating_sub(1)) {
        Some((at, _)) => text.get(at..).unwrap_or(text),
        None => text,
    }
}

impl Fold for EvidenceIndex {
    #[expect(clippy::wildcard_enum_match_arm, reason = "evidence lies in few kinds of events")]
    fn apply(&mut self, event: &Event) {
        match &event.kind {
            EventKind::ToolFinished { call, outcome, .. } => {
                let value = value_of(outcome);
                let event = event.seq.to_string();
                self.note_result(event, call.name.as_str(), call.arguments.clone(), None, Some(&value));
            }
            EventKind::ToolFailed { call, outcome, .. } => {
                let error =
                    outcome.error.as_ref().map_or_else(|| value_of(outcome), |error| error.message.clone());
                let event = event.seq.to_string();
                self.note_result(event, call.name.as_str(), call.arguments.clone(), Some(error), None);
            }
            EventKind::MessageAppended { message, .. } => self.note_message(event.seq, message),
            EventKind::TurnFinished { .. } => {
                let said = std::mem::take(&mut self.said);
                if let Some(event) = self.said_in.take() {
                    self.note_answer(event, &said);
                }
            }
            _ => {}
        }
    }
}

impl EvidenceIndex {
    fn note_message(&mut self, seq: u64, message: &Arc<Message>) {
        if !matches!(**message, Message::Assistant(_)) {
            return;
        }
        let text = message.joined_text();
        if text.is_empty() {
            return;
        }
        if !self.said.is_empty() {
            self.said.push('\n');
        }
        self.said.push_str(&text);
        self.said_in = Some(seq.to_string());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_that_is_kept_has_a_bound() {
        let mut index = EvidenceIndex::new();
        for at in 0..TOOLS + 10 {
            index.note_result("1", &format!("tool-{at}"), Json::empty_object(), None, None);
        }
        for _ in 0..RESULTS + 10 {
            index.note_result("1", "tool-1", Json::empty_object(), None, Some(&"x".repeat(ANSWER + 5)));
        }
        for _ in 0..ANSWERS + 10 {
            index.note_answer("1", &"é".repeat(ANSWER + 5));
        }
        assert_eq!(index.tools.len(), TOOLS);
        assert_eq!(index.tools["tool-1"].len(), RESULTS);
        assert_eq!(index.tools["tool-1"][0].value.as_ref().map(String::len), Some(ANSWER));
        assert_eq!(index.answers.len(), ANSWERS);
        assert_eq!(index.answers[0].text.chars().count(), ANSWER);
        assert!(index.answers[0].truncated);
    }
}
