//! Evidence from the events of a run.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use harness_core::Json;
use harness_core::event::{Event, EventKind, Fold};
use harness_core::message::{Block, Message, ToolCall, ToolResultMessage};
use serde::{Deserialize, Serialize};

use super::{PredicateKind, SchemaSource, TaskContract, TextField};

/// Maximum number of results per tool; the latest stay.
const RESULTS: usize = 64;
/// Maximum number of tools.
const TOOLS: usize = 512;
/// Maximum characters of an answer; its end stays.
const ANSWER: usize = 8_000;
/// Maximum bytes of the texts of one turn, before they are cut to more than an answer needs.
const SAID: usize = 16 * ANSWER;
/// Maximum number of answers; the latest stay.
const ANSWERS: usize = 64;
/// Maximum bytes of arguments; larger ones are dropped.
const ARGUMENTS: usize = 8_000;
/// Maximum bytes of all arguments and values.
const BYTES: usize = 4 << 20;

/// Result of a tool.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ToolFact {
    /// Number of the event.
    pub(super) event: String,
    /// Arguments of the call.
    pub(super) arguments: Json,
    /// Error text, unless it succeeded.
    pub(super) error: Option<String>,
    /// Value of a success.
    pub(super) value: Option<String>,
}

impl ToolFact {
    fn bytes(&self) -> usize {
        let texts = [self.error.as_deref(), self.value.as_deref()];
        self.arguments.text().len() + texts.into_iter().flatten().map(str::len).sum::<usize>()
    }
}

/// Evidence to keep.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
enum Keeps {
    #[default]
    Everything,
    /// Evidence for a contract.
    Asked { tools: BTreeSet<String>, answers: bool },
}

impl Keeps {
    fn of(contract: &TaskContract) -> Self {
        let (mut tools, mut answers) = (BTreeSet::new(), false);
        for output in &contract.required_outputs {
            match &output.predicate.kind {
                PredicateKind::ContainsText { field: TextField::Transcript, .. } => return Self::Everything,
                PredicateKind::ContainsText {
                    field: TextField::Response | TextField::AnyResponse, ..
                }
                | PredicateKind::JsonSchemaValid { source: SchemaSource::Response, .. } => answers = true,
                PredicateKind::ToolResultSuccess { tool_name: tool, .. }
                | PredicateKind::JsonSchemaValid { source: SchemaSource::Tool(tool), .. } => {
                    tools.insert(tool.clone());
                }
                PredicateKind::AlwaysTrue
                | PredicateKind::FileExists { .. }
                | PredicateKind::Custom { .. }
                | PredicateKind::ContainsText {
                    field: TextField::Artifact(_) | TextField::Data(_), ..
                }
                | PredicateKind::JsonSchemaValid {
                    source: SchemaSource::Artifact(_) | SchemaSource::Data(_),
                    ..
                } => {}
            }
        }
        Self::Asked { tools, answers }
    }

    fn tool(&self, name: &str) -> bool {
        match self {
            Self::Everything => true,
            Self::Asked { tools, .. } => tools.contains(name),
        }
    }

    fn answers(&self) -> bool {
        matches!(self, Self::Everything | Self::Asked { answers: true, .. })
    }
}

/// Answer of a turn.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct AnswerFact {
    /// Number of the event; may be empty.
    pub(super) event: String,
    /// Text, or its end.
    pub(super) text: String,
    /// Whether the beginning was cut.
    pub(super) truncated: bool,
}

/// Fold over the events of a run that keeps the evidence for contracts.
///
/// Bounded: the latest 64 results of each of 512 tools, the last 8,000 characters of each of the latest 64 answers,
/// and 4 MiB in total. Arguments of more than 8,000 bytes are not kept.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct EvidenceIndex {
    pub(super) tools: BTreeMap<String, VecDeque<ToolFact>>,
    pub(super) answers: VecDeque<AnswerFact>,
    keeps: Keeps,
    /// Texts of the current turn, one answer together.
    said: String,
    said_in: Option<String>,
    /// Calls of the latest assistant message.
    calls: Vec<Arc<ToolCall>>,
    /// Size of the results in bytes.
    bytes: usize,
}

impl EvidenceIndex {
    /// Creates an index that keeps everything.
    pub fn new() -> Self {
        Self::default()
    }

    /// Creates an index that keeps the evidence for one contract.
    pub fn of(contract: &TaskContract) -> Self {
        Self { keeps: Keeps::of(contract), ..Self::default() }
    }

    /// Records a result of a tool: event, arguments, and either an error or a value.
    pub fn note_result(
        &mut self,
        event: impl Into<String>,
        tool: &str,
        arguments: Json,
        error: Option<String>,
        value: Option<&str>,
    ) {
        let is_full = self.tools.len() >= TOOLS && !self.tools.contains_key(tool);
        if is_full || !self.keeps.tool(tool) {
            return;
        }
        let arguments = if arguments.text().len() <= ARGUMENTS { arguments } else { Json::empty_object() };
        // A value that is cut is not valid JSON: schema predicates then report that.
        let value = value.map(|text| end_of(text, ANSWER).to_owned());
        let error = error.map(|text| end_of(&text, ANSWER).to_owned());
        let fact = ToolFact { event: event.into(), arguments, error, value };
        self.bytes += fact.bytes();
        let facts = self.tools.entry(tool.to_owned()).or_default();
        facts.push_back(fact);
        if facts.len() > RESULTS {
            self.bytes -= facts.pop_front().map_or(0, |fact| fact.bytes());
        }
        while self.bytes > BYTES && self.drop_one() {}
    }

    /// Drops the oldest result of the tool with most results; the latest of each tool stays.
    fn drop_one(&mut self) -> bool {
        let most = self.tools.values_mut().max_by_key(|facts| facts.len()).filter(|facts| facts.len() > 1);
        let Some(fact) = most.and_then(VecDeque::pop_front) else { return false };
        self.bytes -= fact.bytes();
        true
    }

    /// Records an answer; `event` may be empty.
    pub fn note_answer(&mut self, event: impl Into<String>, text: &str) {
        if !self.keeps.answers() {
            return;
        }
        if self.answers.len() >= ANSWERS {
            self.answers.pop_front();
        }
        let end = end_of(text, ANSWER);
        let truncated = end.len() < text.len();
        self.answers.push_back(AnswerFact { event: event.into(), text: end.to_owned(), truncated });
    }

    /// The newest answer with text.
    pub(super) fn newest_answer(&self) -> Option<&AnswerFact> {
        self.answers.iter().rev().find(|answer| !answer.text.is_empty())
    }
}

/// The last `most` characters of a text.
fn end_of(text: &str, most: usize) -> &str {
    match text.char_indices().rev().nth(most.saturating_sub(1)) {
        Some((at, _)) => text.get(at..).unwrap_or(text),
        None => text,
    }
}

impl Fold for EvidenceIndex {
    #[expect(clippy::wildcard_enum_match_arm, reason = "few events are evidence")]
    fn apply(&mut self, event: &Event) {
        match &event.kind {
            EventKind::MessageAppended { message, .. } => self.note_message(event.seq, message),
            EventKind::TurnFinished { .. } => self.note_turn_end(),
            _ => {}
        }
    }
}

impl EvidenceIndex {
    /// Records a message with the number of its event.
    pub(crate) fn note_message(&mut self, event: u64, message: &Message) {
        match message {
            Message::Assistant(answer) => {
                self.calls = answer.tool_calls().cloned().collect();
                let text = answer.joined_text();
                if !text.is_empty() && self.keeps.answers() {
                    if !self.said.is_empty() {
                        self.said.push('\n');
                    }
                    self.said.push_str(&text);
                    if self.said.len() > SAID {
                        self.said = end_of(&self.said, 2 * ANSWER).to_owned();
                    }
                    self.said_in = Some(event.to_string());
                }
            }
            Message::ToolResult(result) => self.note_tool_result(event, result),
            Message::System(_) | Message::User(_) | Message::Custom(_) | _ => {}
        }
    }

    /// Records the texts of the finished turn as one answer.
    pub(crate) fn note_turn_end(&mut self) {
        let said = std::mem::take(&mut self.said);
        if let Some(event) = self.said_in.take() {
            self.note_answer(event, &said);
        }
    }

    fn note_tool_result(&mut self, event: u64, result: &ToolResultMessage) {
        let call = self.calls.iter().find(|call| call.id == result.tool_call_id);
        let arguments = call.map(|call| call.arguments.clone()).unwrap_or_default();
        let text = || result.content.iter().filter_map(Block::as_text).collect::<String>();
        let (error, value) = match (&result.structured, result.is_error) {
            (_, true) => (Some(text()), None),
            (Some(data), false) => (None, Some(data.text().to_owned())),
            (None, false) => (None, Some(text())),
        };
        self.note_result(event.to_string(), result.tool_name.as_str(), arguments, error, value.as_deref());
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
