//! Questions to the user about unclear tool results.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use regex::Regex;
use serde_json::Value;

use harness_core::decide::{
    Check, CheckDecision, CheckVerdict, DecideCx, DynCheck, Guarded, OnError, Points, Subject, check,
};
use harness_core::message::{Block, ToolCall};
use harness_core::outcome::{AskReason, Question};
use harness_core::tool::ToolOutcome;
use harness_core::{Fault, ToolName};

/// Lists that mean no results when empty, by default.
const LISTS: [&str; 6] = ["results", "items", "matches", "entries", "records", "data"];

/// Lists that mean an ambiguous request when they have more than one entry.
const CANDIDATES: [&str; 3] = ["candidates", "possibleMatches", "ambiguousMatches"];

/// Texts of empty and of ambiguous results.
static EMPTY: LazyLock<Option<Regex>> =
    LazyLock::new(|| words(r"(?:no|zero)\s+(?:results?|match(?:e?s)?|items?|records?)"));
static AMBIGUOUS: LazyLock<Option<Regex>> = LazyLock::new(|| {
    words(r"(?:ambiguous|multiple\s+(?:match(?:e?s)?|results?|candidates?)|more\s+than\s+one)")
});

/// Compiles a pattern of whole words. A test proves that the patterns are valid.
fn words(pattern: &str) -> Option<Regex> {
    Regex::new(&format!(r"(?i)(?-u:\b)(?:{pattern})(?-u:\b)")).ok()
}

/// Check of results: asks the user when a result is empty or ambiguous, or contains a question itself.
///
/// Its text patterns also occur in prose ("there were no matches for X but Y is fine"): exclude tools that return
/// prose.
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
    /// Sets the question for a reason; a blank one is ignored.
    #[must_use]
    pub fn asking(mut self, reason: AskReason, question: impl Into<String>) -> Self {
        self.questions.insert(reason, question.into());
        self
    }

    /// Sets the keys of lists that mean no results when empty.
    #[must_use]
    pub fn with_empty_result_keys<K: Into<String>>(mut self, keys: impl IntoIterator<Item = K>) -> Self {
        self.empty_result_keys = Some(keys.into_iter().map(Into::into).collect());
        self
    }

    /// Excludes tools. Questions that their results contain are still asked.
    #[must_use]
    pub fn excluding<N: Into<ToolName>>(mut self, names: impl IntoIterator<Item = N>) -> Self {
        self.excluded.extend(names.into_iter().map(Into::into));
        self
    }

    /// As a check of results, named `unclear-results`.
    pub fn check(self) -> Guarded<dyn DynCheck> {
        check::new("unclear-results", Points::RESULT, self).on_error(OnError::Lenient)
    }

    /// Returns the question about a result, if any. In this order:
    ///
    /// 1. a retryable error needs no question;
    /// 2. a question of the tool: `clarification` or `clarificationHint` in its metadata, then in its data, as a
    ///    string or as an object with `question`, `reason?` and `metadata?`;
    /// 3. other errors and excluded tools need no question;
    /// 4. ambiguous: `ambiguous: true`, more than one of `candidates`, `possibleMatches` or `ambiguousMatches`, or
    ///    a text such as "multiple matches";
    /// 5. empty: `empty: true`, `resultCount` or `total` of 0, an empty list under one of the keys, or a text such
    ///    as "no results".
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
        let data = data.unwrap_or(Value::Null);
        if is_ambiguous(&data, &text) {
            return Some(self.guess(call, AskReason::AmbiguousIdentifier));
        }
        self.is_empty(&data, &text).then(|| self.guess(call, AskReason::EmptyResults))
    }

    fn is_empty(&self, data: &Value, text: &str) -> bool {
        let zero = |key: &str| data.get(key).and_then(Value::as_f64) == Some(0.0);
        let empty = |key: &str| data.get(key).and_then(Value::as_array).is_some_and(Vec::is_empty);
        let lists = match &self.empty_result_keys {
            Some(keys) => keys.iter().any(|key| empty(key)),
            None => LISTS.iter().any(|key| empty(key)),
        };
        data.get("empty") == Some(&Value::Bool(true))
            || zero("resultCount")
            || zero("total")
            || lists
            || EMPTY.as_ref().is_some_and(|pattern| pattern.is_match(text))
    }

    fn guess(&self, call: &ToolCall, reason: AskReason) -> Question {
        let own = self.questions.get(&reason).map(|text| text.trim()).filter(|text| !text.is_empty());
        let text = own.map_or_else(|| default_question(reason, call.name.as_str()), str::to_owned);
        let metadata = serde_json::json!({ "toolName": call.name.as_str(), "callId": call.id.as_str() });
        Question { metadata: Some(metadata.into()), ..Question::new(text, reason) }
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

/// Default question for a reason.
pub fn default_question(reason: AskReason, tool: &str) -> String {
    match reason {
        AskReason::EmptyResults => {
            format!(
                "`{tool}` found no results. Could you give me the exact identifier, or a different filter?"
            )
        }
        AskReason::AmbiguousIdentifier => format!(
            "`{tool}` found several matches. Which one do you mean? Please give me the exact identifier, or a \
             narrower filter."
        ),
        AskReason::TransientProviderError => {
            format!("`{tool}` is not available at the moment. Should I retry the same request?")
        }
        AskReason::Custom | _ => format!("`{tool}` needs more detail. What exactly are you looking for?"),
    }
}

/// Reads a question of the tool.
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
    Some(Question { metadata: Some(metadata.into()), ..Question::new(text, reason) })
}

fn is_ambiguous(data: &Value, text: &str) -> bool {
    let several = |key: &str| data.get(key).and_then(Value::as_array).is_some_and(|list| list.len() > 1);
    data.get("ambiguous") == Some(&Value::Bool(true))
        || CANDIDATES.iter().any(|key| several(key))
        || AMBIGUOUS.as_ref().is_some_and(|pattern| pattern.is_match(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, is_empty: bool, is_ambiguous: bool) {
        let matches =
            |pattern: &Option<Regex>| pattern.as_ref().is_some_and(|pattern| pattern.is_match(text));
        assert_eq!((matches(&EMPTY), matches(&AMBIGUOUS)), (is_empty, is_ambiguous), "{text}");
    }

    #[test]
    fn only_neighboring_words_match() {
        check("There were No  matches.", true, false);
        check("zero items", true, false);
        check("no-results", false, false);
        check("no, results", false, false);
        check("casino results", false, false);
        check("Multiple\ncandidates", false, true);
        check("it is ambiguous!", false, true);
        check("unambiguous", false, false);
        check("more than one", false, true);
    }
}
