//! The source's reading of an answer: chat completions, and the items of a Responses-style `output`.

use harness_core::Json;
use harness_core::message::ToolCall;

use crate::execution::trimmed;

/// A JSON object by its keys; anything else has none.
#[derive(Debug, Default)]
pub(super) struct Record(Vec<(String, Json)>);

impl Record {
    pub(super) fn of(value: &Json) -> Self {
        Self(value.entries().unwrap_or_default())
    }

    /// The value at a key, the last one where a key is repeated; a null is none.
    pub(super) fn get(&self, key: &str) -> Option<&Json> {
        let found = self.0.iter().rfind(|(name, _)| name == key);
        found.map(|(_, value)| value).filter(|value| !value.is_null())
    }

    pub(super) fn text(&self, key: &str) -> Option<String> {
        self.get(key)?.to().ok()
    }

    fn list(&self, key: &str) -> Vec<Json> {
        self.get(key).and_then(|value| value.to().ok()).unwrap_or_default()
    }

    fn number(&self, key: &str) -> Option<u64> {
        self.get(key)?.to().ok()
    }

    fn kind(&self) -> String {
        self.text("type").unwrap_or_default().to_lowercase()
    }

    /// A text that is not blank.
    fn said(&self, key: &str) -> Option<String> {
        self.text(key).filter(|text| !trimmed(text).is_empty())
    }
}

/// The arguments of a call are no object.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct BadArguments;

/// Everything that the source takes from an answer.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) id: Option<String>,
    pub(super) finish_reason: Option<String>,
    pub(super) refusal: Option<String>,
    /// The calls; one bad one spoils them all.
    pub(super) calls: Result<Vec<ToolCall>, BadArguments>,
    /// The parts of the text, trimmed, without blank ones.
    pub(super) content: Vec<String>,
    /// Reasoning items as they came.
    pub(super) raw_reasoning: Vec<Json>,
    /// Whether there was a message or an `output` at all.
    pub(super) has_message: bool,
    pub(super) prompt_tokens: Option<u64>,
    pub(super) completion_tokens: Option<u64>,
    thoughts: Vec<String>,
}

impl Answer {
    pub(super) fn read(body: &Json) -> Self {
        let body = Record::of(body);
        let choice = body.list("choices").first().map(Record::of).unwrap_or_default();
        let message = choice.get("message").filter(|message| message.is_object());
        let output = body.list("output");
        let usage = body.get("usage").map(Record::of).unwrap_or_default();
        let has_message = message.is_some() || body.get("output").is_some();
        let message = message.map(Record::of).unwrap_or_default();
        let calls = message.list("tool_calls");
        let chat = calls.iter().map(Record::of).filter_map(|call| chat_call(&call));
        let items = output.iter().map(Record::of).filter_map(|item| output_call(&item));
        let mut answer = Self {
            id: body.text("id"),
            finish_reason: choice.text("finish_reason"),
            refusal: message.said("refusal"),
            calls: chat.chain(items).collect(),
            content: Vec::new(),
            raw_reasoning: Vec::new(),
            has_message,
            prompt_tokens: usage.number("prompt_tokens"),
            completion_tokens: usage.number("completion_tokens"),
            thoughts: Vec::new(),
        };
        for content in message.get("content").into_iter().chain(&output) {
            answer.content(content);
        }
        for key in ["reasoning", "reasoning_content"] {
            answer.reasoning_of(message.get(key));
        }
        answer.reasoning_of(body.get("output_reasoning_summary"));
        answer
    }

    /// All reasoning as one text.
    pub(super) fn reasoning(&self) -> Option<String> {
        (!self.thoughts.is_empty()).then(|| self.thoughts.join("\n\n"))
    }

    fn content(&mut self, value: &Json) {
        if let Ok(text) = value.to::<String>() {
            let (rest, thoughts) = without_thinking_tags(&text);
            for thought in thoughts {
                let block = format!(r#"{{"type":"thinking_tag","text":{}}}"#, Json::string(&thought));
                self.raw_reasoning.extend(Json::parse(&block).ok());
                push(&mut self.thoughts, &thought);
            }
            return push(&mut self.content, &rest);
        }
        if let Ok(parts) = value.to::<Vec<Json>>() {
            return parts.iter().for_each(|part| self.content(part));
        }
        let record = Record::of(value);
        match record.kind().as_str() {
            "reasoning" | "thinking" | "reasoning_content" | "output_reasoning_summary" => {
                self.reasoning_of(Some(value));
            }
            "message" => record.get("content").into_iter().for_each(|content| self.content(content)),
            "text" | "output_text" | "summary_text" | "" => {
                for key in ["text", "content"] {
                    record.get(key).into_iter().for_each(|content| self.content(content));
                }
            }
            _ => {}
        }
    }

    fn reasoning_of(&mut self, value: Option<&Json>) {
        const TEXTS: [&str; 6] =
            ["text", "content", "reasoning", "reasoning_content", "thinking", "summary_text"];
        let Some(value) = value else { return };
        if let Ok(parts) = value.to::<Vec<Json>>() {
            return parts.iter().for_each(|part| self.reasoning_of(Some(part)));
        }
        if let Ok(text) = value.to::<String>() {
            if !trimmed(&text).is_empty() {
                self.raw_reasoning.push(value.clone());
                push(&mut self.thoughts, &text);
            }
            return;
        }
        if value.is_object() {
            self.raw_reasoning.push(value.clone());
            let record = Record::of(value);
            for text in TEXTS.iter().filter_map(|key| record.text(key)) {
                push(&mut self.thoughts, &text);
            }
            record.list("summary").iter().for_each(|part| self.reasoning_of(Some(part)));
        }
    }
}

fn push(parts: &mut Vec<String>, text: &str) {
    let text = trimmed(text);
    if !text.is_empty() {
        parts.push(text.to_owned());
    }
}

/// A call of a chat message; `None` when it has no id or name.
fn chat_call(call: &Record) -> Option<Result<ToolCall, BadArguments>> {
    let function = Record::of(call.get("function")?);
    let (id, name) = (call.said("id")?, function.said("name")?);
    Some(arguments(function.get("arguments")).map(|arguments| ToolCall::new(id, name, arguments)))
}

/// A call among the items of an `output`.
fn output_call(item: &Record) -> Option<Result<ToolCall, BadArguments>> {
    if !matches!(item.kind().as_str(), "function_call" | "tool_call") {
        return None;
    }
    let function = item.get("function").map(Record::of).unwrap_or_default();
    let id = item.said("call_id").or_else(|| item.said("id"))?;
    let name = item.said("name").or_else(|| function.said("name"))?;
    let given = item.get("arguments").or_else(|| function.get("arguments"));
    Some(arguments(given).map(|arguments| ToolCall::new(id, name, arguments)))
}

/// Arguments that are an object, written out or as text; none at all are an empty one.
fn arguments(given: Option<&Json>) -> Result<Json, BadArguments> {
    let Some(given) = given else { return Ok(Json::empty_object()) };
    let parsed = match given.to::<String>() {
        Ok(text) if text.is_empty() => Ok(Json::empty_object()),
        Ok(text) => Json::parse(&text),
        Err(_) => Ok(given.clone()),
    };
    parsed.ok().filter(Json::is_object).ok_or(BadArguments)
}

/// The text without its `<thinking>` elements, and what stood in them.
fn without_thinking_tags(text: &str) -> (String, Vec<String>) {
    const OPEN: &str = "<thinking>";
    const CLOSE: &str = "</thinking>";
    let lower = text.to_ascii_lowercase();
    let (mut rest, mut thoughts, mut at) = (String::new(), Vec::new(), 0);
    let part = |from: usize, to: usize| text.get(from..to).unwrap_or_default();
    let find = |tag: &str, from: usize| Some(lower.get(from..)?.find(tag)?.saturating_add(from));
    while let Some(open) = find(OPEN, at) {
        let inside = open.saturating_add(OPEN.len());
        let Some(close) = find(CLOSE, inside) else { break };
        rest.push_str(part(at, open));
        thoughts.push(trimmed(part(inside, close)).to_owned());
        at = close.saturating_add(CLOSE.len());
    }
    rest.push_str(part(at, text.len()));
    thoughts.retain(|thought| !thought.is_empty());
    (rest, thoughts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_tags(text: &str, rest: &str, thoughts: &[&str]) {
        let (kept, found) = without_thinking_tags(text);
        assert_eq!((kept.as_str(), found), (rest, thoughts.iter().map(|t| (*t).to_owned()).collect()));
    }

    #[test]
    fn thinking_elements_are_cut_out_in_any_case() {
        check_tags("a<thinking> x </thinking>b<THINKING>y</Thinking>", "ab", &["x", "y"]);
        check_tags("<thinking>never closed", "<thinking>never closed", &[]);
        check_tags("ü<thinking>é</thinking></thinking>", "ü</thinking>", &["é"]);
        check_tags("<thinking> </thinking>z", "z", &[]);
    }

    #[track_caller]
    fn check_arguments(given: Option<&str>, expected: Option<&str>) {
        let given = given.map(|text| Json::parse(text).unwrap());
        let read = arguments(given.as_ref());
        assert_eq!(read.as_ref().map(Json::text).ok(), expected);
    }

    #[test]
    fn arguments_are_an_object_or_nothing() {
        check_arguments(None, Some("{}"));
        check_arguments(Some(r#""""#), Some("{}"));
        check_arguments(Some(r#"" ""#), None);
        check_arguments(Some(r#""{\"n\":1.50}""#), Some(r#"{"n":1.50}"#));
        check_arguments(Some(r#"{"n":1}"#), Some(r#"{"n":1}"#));
        check_arguments(Some("[1]"), None);
        check_arguments(Some("7"), None);
    }

    #[track_caller]
    fn check_answer(body: &str, content: &[&str], reasoning: Option<&str>, calls: Option<&[&str]>) {
        let answer = Answer::read(&Json::parse(body).unwrap());
        assert_eq!(answer.content, content);
        assert_eq!(answer.reasoning().as_deref(), reasoning);
        let names = |calls: Vec<ToolCall>| calls.iter().map(|call| call.name.to_string()).collect();
        let names: Option<Vec<String>> = answer.calls.ok().map(names);
        assert_eq!(names, calls.map(|calls| calls.iter().map(|name| (*name).to_owned()).collect()));
    }

    #[test]
    fn text_reasoning_and_calls_are_found_in_every_place() {
        check_answer(
            r#"{"choices":[{"message":{"content":["a",{"type":"THINKING","thinking":"t"},{"type":"message","content":" b "}]}}]}"#,
            &["a", "b"],
            Some("t"),
            Some(&[]),
        );
        check_answer(
            r#"{"output":[{"type":"function_call","call_id":"c","function":{"name":"f"}},{"type":"tool_call","id":"d","name":"g","arguments":"{}"}]}"#,
            &[],
            None,
            Some(&["f", "g"]),
        );
        check_answer(
            r#"{"choices":[{"message":{"tool_calls":[{"id":"c","function":{"name":"f","arguments":"x"}}]}}]}"#,
            &[],
            None,
            None,
        );
        check_answer(r#"{"choices":[{"message":"odd"}],"output":"odd"}"#, &[], None, Some(&[]));
    }
}
