//! What the events of a run prove.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use harness_core::Json;
use harness_core::event::{Event, EventKind, Fold};
use harness_core::message::{Block, Message, ToolCall, ToolResultMessage};
use serde::{Deserialize, Serialize};

use super::{PredicateKind, SchemaSource, TaskContract, TextField};

/// How many results of one tool are kept, the latest.
const RESULTS: usize = 64;
/// How many tools are kept apart.
const TOOLS: usize = 512;
/// How many characters of an answer are kept: its end.
const ANSWER: usize = 8_000;
/// How many bytes the texts of one turn may have, before only their end is kept; that is still more than is
/// kept of an answer.
const SAID: usize = 16 * ANSWER;
/// How many answers are kept, the latest.
const ANSWERS: usize = 64;
/// How many bytes the arguments of a call may have to be kept.
const ARGUMENTS: usize = 8_000;
/// How many bytes of arguments and values are kept in all.
const BYTES: usize = 4 << 20;

/// One result of a tool.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
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

impl ToolFact {
    fn bytes(&self) -> usize {
        let texts = [self.error.as_deref(), self.value.as_deref()];
        self.arguments.text().len() + texts.into_iter().flatten().map(str::len).sum::<usize>()
    }
}

/// What a contract asks for: the rest need not be kept.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
enum Keeps {
    #[default]
    Everything,
    Asked {
        /// Results of these tools.
        tools: BTreeSet<String>,
        /// Their arguments.
        arguments: bool,
        answers: bool,
    },
}

impl Keeps {
    fn of(contract: &TaskContract) -> Self {
        let (mut tools, mut arguments, mut answers) = (BTreeSet::new(), false, false);
        for output in &contract.required_outputs {
            match &output.predicate.kind {
                PredicateKind::ContainsText { field: TextField::Transcript, .. } => return Self::Everything,
                PredicateKind::ContainsText {
                    field: TextField::Response | TextField::AnyResponse, ..
                }
                | PredicateKind::JsonSchemaValid { source: SchemaSource::Response, .. } => answers = true,
                PredicateKind::ToolResultSuccess { tool_name, args_match, .. } => {
                    tools.insert(tool_name.clone());
                    arguments |= args_match.is_some();
                }
                PredicateKind::JsonSchemaValid { source: SchemaSource::Tool(tool), .. } => {
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
        Self::Asked { tools, arguments, answers }
    }

    fn tool(&self, name: &str) -> bool {
        match self {
            Self::Everything => true,
            Self::Asked { tools, .. } => tools.contains(name),
        }
    }

    fn arguments(&self) -> bool {
        matches!(self, Self::Everything | Self::Asked { arguments: true, .. })
    }

    fn answers(&self) -> bool {
        matches!(self, Self::Everything | Self::Asked { answers: true, .. })
    }
}

/// One answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
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
/// Bounded: the latest 64 results of each of 512 tools, the latest 64 answers, of each the last 8,000
/// characters, and 4 MiB in all. Arguments of more than 8,000 bytes are not kept.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct EvidenceIndex {
    pub(super) tools: BTreeMap<String, VecDeque<ToolFact>>,
    pub(super) answers: VecDeque<AnswerFact>,
    keeps: Keeps,
    /// The texts of the turn that runs, to be one answer.
    said: String,
    said_in: Option<String>,
    /// The calls of the latest answer, whose results follow.
    calls: Vec<Arc<ToolCall>>,
    /// How many bytes the results hold.
    bytes: usize,
    /// How many results of each tool there were, and how many answers.
    results_noted: BTreeMap<String, u64>,
    answers_noted: u64,
}

impl EvidenceIndex {
    /// Nothing is proven.
    pub fn new() -> Self {
        Self::default()
    }

    /// The same for one contract: what it does not ask for is not kept.
    pub fn of(contract: &TaskContract) -> Self {
        Self { keeps: Keeps::of(contract), ..Self::default() }
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
        let is_full = self.tools.len() >= TOOLS && !self.tools.contains_key(tool);
        if is_full || !self.keeps.tool(tool) {
            return;
        }
        *self.results_noted.entry(tool.to_owned()).or_default() += 1;
        let kept = self.keeps.arguments() && arguments.text().len() <= ARGUMENTS;
        let arguments = if kept { arguments } else { Json::empty_object() };
        // A value that is cut is no JSON any more: a schema then says so instead of judging a part.
        let value = value.map(|text| end_of(text, ANSWER).to_owned());
        let error = error.map(|text| end_of(&text, ANSWER).to_owned());
        let fact = ToolFact { event: event.into(), arguments, error, value };
        self.bytes += fact.bytes();
        let facts = self.tools.entry(tool.to_owned()).or_default();
        facts.push_back(fact);
        if facts.len() > RESULTS {
            self.bytes -= facts.pop_front().map_or(0, |fact| fact.bytes());
        }
        while self.bytes > BYTES && self.let_go_of_one() {}
    }

    /// Lets go of the oldest result of the tool that has the most; of each tool the latest stays.
    fn let_go_of_one(&mut self) -> bool {
        let most = self.tools.values_mut().max_by_key(|facts| facts.len()).filter(|facts| facts.len() > 1);
        let Some(fact) = most.and_then(VecDeque::pop_front) else { return false };
        self.bytes -= fact.bytes();
        true
    }

    /// An answer, in which event; `event` may be empty.
    pub fn note_answer(&mut self, event: impl Into<String>, text: &str) {
        if !self.keeps.answers() {
            return;
        }
        if self.answers.len() >= ANSWERS {
            self.answers.pop_front();
        }
        self.answers_noted += 1;
        let end = end_of(text, ANSWER);
        let truncated = end.len() < text.len();
        self.answers.push_back(AnswerFact { event: event.into(), text: end.to_owned(), truncated });
    }

    /// Tells whether there is something newer to judge a predicate by; `None` when it rests on other things.
    pub(super) fn version(&self, predicate: &PredicateKind) -> Option<u64> {
        let results = |tool: &str| self.results_noted.get(tool).copied().unwrap_or(0);
        match predicate {
            PredicateKind::AlwaysTrue => Some(0),
            PredicateKind::ContainsText { field: TextField::Response | TextField::AnyResponse, .. } => {
                Some(self.answers_noted)
            }
            PredicateKind::ContainsText { field: TextField::Transcript, .. } => {
                Some(self.answers_noted + self.results_noted.values().sum::<u64>())
            }
            PredicateKind::ToolResultSuccess { tool_name, .. } => Some(results(tool_name)),
            PredicateKind::ContainsText { field: TextField::Artifact(_) | TextField::Data(_), .. }
            | PredicateKind::JsonSchemaValid { .. }
            | PredicateKind::FileExists { .. }
            | PredicateKind::Custom { .. } => None,
        }
    }

    /// The newest answer that has text.
    pub(super) fn newest_answer(&self) -> Option<&AnswerFact> {
        self.answers.iter().rev().find(|answer| !answer.text.is_empty())
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
            EventKind::MessageAppended { message, .. } => self.note_message(event.seq, message),
            EventKind::TurnFinished { .. } => self.note_turn_end(),
            _ => {}
        }
    }
}

impl EvidenceIndex {
    /// A message of the transcript, in the event that told it: an answer, or the result of a call of the
    /// answer before it.
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

    /// The turn is over: what was said in it is one answer.
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
