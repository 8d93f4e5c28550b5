//! Asking the user because of what a tool found: nothing, or too much.

use std::collections::BTreeMap;

use serde_json::Value;

use harness_core::decide::{
    Check, CheckDecision, CheckVerdict, DecideCx, DynCheck, Guarded, OnError, Points, Subject, check,
};
use harness_core::message::{Block, ToolCall};
use harness_core::outcome::{AskReason, Question};
use harness_core::tool::ToolOutcome;
use harness_core::{Fault, ToolName};

/// Lists whose emptiness means that nothing was found, when nothing else is said.
const LISTS: [&str; 6] = ["results", "items", "matches", "entries", "records", "data"];

/// Lists of which more than one entry means that what was asked for is ambiguous.
const CANDIDATES: [&str; 3] = ["candidates", "possibleMatches", "ambiguousMatches"];

/// Asks the user when a tool's result is empty or ambiguous, or itself says what to ask.
///
/// The texts that it looks for occur in ordinary prose, too ("there were no matches for X but Y is fine"):
/// exclude tools that return prose.
///
/// ```
/// use harness_control::checks::UnclearResults;
///
/// let check = UnclearResults::default().excluding(["read_file"]).check();
/// assert_eq!(check.guard().name.as_str(), "unclear-results");
/// ```
#[derive(Clone, Debug, Default)]
pub struct UnclearResults {
    questions: BTreeMap<AskReason, String>,
    empty_result_keys: Option<Vec<String>>,
    excluded: Vec<ToolName>,
}

impl UnclearResults {
    /// The same with a question of the host's own for a reason. A blank one counts as none.
    #[must_use]
    pub fn asking(mut self, reason: AskReason, question: impl Into<String>) -> Self {
        self.questions.insert(reason, question.into());
        self
    }

    /// The same, which looks for empty lists under these keys only.
    #[must_use]
    pub fn with_empty_result_keys<K: Into<String>>(mut self, keys: impl IntoIterator<Item = K>) -> Self {
        self.empty_result_keys = Some(keys.into_iter().map(Into::into).collect());
        self
    }

    /// The same, which does not guess about results of these tools. What such a result itself asks
    /// is still asked.
    #[must_use]
    pub fn excluding<N: Into<ToolName>>(mut self, names: impl IntoIterator<Item = N>) -> Self {
        self.excluded.extend(names.into_iter().map(Into::into));
        self
    }

    /// As a check of results, named `unclear-results`.
    pub fn check(self) -> Guarded<dyn DynCheck> {
        check::new("unclear-results", Points::RESULT, self).on_error(OnError::Lenient)
    }

    /// What the user has to be asked because of a result, if anything. In this order:
    ///
    /// 1. a failure worth another try asks nothing;
    /// 2. a hint of the tool itself: `clarification` or `clarificationHint` in its metadata, then in its
    ///    data, as a text or as an object with `question`, `reason?` and `metadata?`;
    /// 3. any other failure, and an excluded tool, ask nothing;
    /// 4. ambiguous: `ambiguous: true`, more than one of `candidates`, `possibleMatches` or
    ///    `ambiguousMatches`, or a text that says so;
    /// 5. empty: `empty: true`, `resultCount` or `total` of 0, an empty list under one of the keys, or a text
    ///    that says so.
    pub fn detect(&self, call: &ToolCall, outcome: &ToolOutcome) -> Option<Question> {
        if outcome.is_retryable() {
            return None;
        }
        let data = outcome.structured.as_ref().and_then(|data| data.to::<Value>().ok());
        let metadata = outcome.metadata.as_ref().and_then(|data| data.to::<Value>().ok());
        let hints = ["clarification", "clarificationHint"];
        let sources = [metadata.as_ref(), data.as_ref()].into_iter().flatten();
        let hint = sources.flat_map(|source| hints.iter().filter_map(|key| source.get(*key)));
        if let Some(question) = hint.into_iter().find_map(|hint| explicit(call, hint)) {
            return Some(question);
        }
        if outcome.is_error() || self.excluded.contains(&call.name) {
            return None;
        }
        let text: String = outcome.content.iter().filter_map(Block::as_text).collect();
        let words = words(&text);
        let data = data.unwrap_or(Value::Null);
        if is_ambiguous(&data, &words) {
            return Some(self.guess(call, AskReason::AmbiguousIdentifier));
        }
        self.is_empty(&data, &words).then(|| self.guess(call, AskReason::EmptyResults))
    }

    fn is_empty(&self, data: &Value, words: &[String]) -> bool {
        let zero = |key: &str| data.get(key).and_then(Value::as_f64) == Some(0.0);
        let empty = |key: &str| data.get(key).and_then(Value::as_array).is_some_and(Vec::is_empty);
        let lists = match &self.empty_result_keys {
            Some(keys) => keys.iter().any(|key| empty(key)),
            None => LISTS.iter().any(|key| empty(key)),
        };
        let nothing = ["result", "match", "item", "record"];
        let said = words.windows(2).any(|pair| match pair {
            [count, what] => matches!(count.as_str(), "no" | "zero") && nothing.contains(&singular(what)),
            _ => false,
        });
        data.get("empty") == Some(&Value::Bool(true)) || zero("resultCount") || zero("total") || lists || said
    }

    fn guess(&self, call: &ToolCall, reason: AskReason) -> Question {
        let own = self.questions.get(&reason).map(|text| text.trim()).filter(|text| !text.is_empty());
        let text = own.map_or_else(|| default_question(reason, call.name.as_str()), str::to_owned);
        let metadata = serde_json::json!({ "toolName": call.name.as_str(), "callId": call.id.as_str() });
        Question::new(text, reason).with_metadata(metadata.into())
    }
}

impl Check for UnclearResults {
    async fn judge(&self, subject: &Subject, _: &DecideCx) -> Result<CheckDecision, Fault> {
        let asked = match subject {
            Subject::Result { call, outcome, .. } => self.detect(call, outcome),
            Subject::Prompt(_)
            | Subject::Answer { .. }
            | Subject::End { .. }
            | Subject::Invalid { .. }
            | _ => None,
        };
        Ok(asked.map_or(CheckVerdict::Accept, CheckVerdict::Ask).into())
    }
}

/// The question that is asked when the host has none of its own for the reason.
pub fn default_question(reason: AskReason, tool: &str) -> String {
    match reason {
        AskReason::EmptyResults => {
            format!("`{tool}` found nothing. Could you give me the exact identifier, or a different filter?")
        }
        AskReason::AmbiguousIdentifier => format!(
            "`{tool}` found several things that fit. Which one do you mean: could you give me the exact \
             identifier, or a narrower filter?"
        ),
        AskReason::TransientProviderError => {
            format!("`{tool}` cannot be reached just now. Should I try again with the same request?")
        }
        AskReason::Custom | _ => format!("`{tool}` needs more detail. What exactly are you looking for?"),
    }
}

/// A hint of the tool itself.
fn explicit(call: &ToolCall, hint: &Value) -> Option<Question> {
    let (text, reason, metadata) = match hint {
        Value::String(text) => (text.as_str(), AskReason::Custom, None),
        Value::Object(fields) => {
            let reason = fields.get("reason").cloned().and_then(|reason| serde_json::from_value(reason).ok());
            let metadata = fields.get("metadata").filter(|metadata| metadata.is_object());
            (fields.get("question")?.as_str()?, reason.unwrap_or(AskReason::Custom), metadata.cloned())
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) => return None,
    };
    let text = text.trim();
    if text.is_empty() {
        return None;
    }
    let metadata = metadata.unwrap_or_else(|| serde_json::json!({ "toolName": call.name.as_str() }));
    Some(Question::new(text, reason).with_metadata(metadata.into()))
}

fn is_ambiguous(data: &Value, words: &[String]) -> bool {
    let several = |key: &str| data.get(key).and_then(Value::as_array).is_some_and(|list| list.len() > 1);
    let many = ["match", "result", "candidate"];
    let said = words.iter().any(|word| word == "ambiguous")
        || words.windows(2).any(
            |pair| matches!(pair, [count, what] if count == "multiple" && many.contains(&singular(what))),
        )
        || words.windows(3).any(|row| row == ["more", "than", "one"]);
    data.get("ambiguous") == Some(&Value::Bool(true)) || CANDIDATES.iter().any(|key| several(key)) || said
}

/// The words of a text in lower case. What stands between two of them other than white space is a word of
/// its own, so that only neighbours look like neighbours.
fn words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    for part in text.split_whitespace() {
        let mut rest = part;
        while let Some(first) = rest.chars().next() {
            let is_word = |char: char| char.is_ascii_alphanumeric() || char == '_';
            let end = rest.find(|char| is_word(char) != is_word(first)).unwrap_or(rest.len());
            let (word, after) = rest.split_at(end);
            words.push(word.to_ascii_lowercase());
            rest = after;
        }
    }
    words
}

fn singular(word: &str) -> &str {
    match word {
        "matches" => "match",
        word => word.strip_suffix('s').unwrap_or(word),
    }
}
