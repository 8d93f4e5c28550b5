//! Interpretation of a program's output.

use std::fmt;
use std::sync::Arc;

use harness_core::{Json, JsonObject};

use crate::execution::{
    ExecutionAttachment, ExecutionContinuation, ExecutionError, ExecutionEventKind, ExecutionRequest,
    ExecutionSink, trimmed,
};

/// Parsed output of a program.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct ParsedOutput {
    /// Text of the answer.
    pub text: Option<String>,
    /// Attachments of the answer.
    pub attachments: Option<Vec<ExecutionAttachment>>,
    /// The answer as data; an object where there are calls of tools, too.
    pub structured: Option<Json>,
    /// Calls of its tools; they become the result's `structured.toolCalls`.
    pub tool_calls: Option<Vec<Json>>,
    /// Additional data, an object; it becomes the result's metadata.
    pub metadata: Option<Json>,
    /// Continuation for a later request.
    pub continuation: Option<ExecutionContinuation>,
    /// The program says itself that it failed, whatever its exit code is.
    pub failure: Option<ExecutionError>,
    /// Events between start and end, for the trace.
    pub events: Vec<(ExecutionEventKind, Json)>,
}

impl ParsedOutput {
    /// An answer in words.
    pub fn text(text: impl Into<String>) -> Self {
        Self { text: Some(text.into()), ..Self::default() }
    }
}

/// Whether a program has anything more to say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reading {
    /// It may have.
    GoOn,
    /// It will only repeat itself: it is stopped, and what was understood so far is its result.
    Enough,
}

/// Reads a program's output line by line, while it runs.
pub trait OutputReader: Send {
    /// One line, without its line break.
    fn line(&mut self, line: &str, sink: &dyn ExecutionSink) -> Reading;

    /// Parsed output of all lines; `None` if they contain no answer.
    ///
    /// `ended_well` is whether the program exited with code 0. Otherwise it failed or was stopped,
    /// and a partial answer is expected.
    fn finish(self: Box<Self>, ended_well: bool) -> Option<ParsedOutput>;
}

type Whole = dyn Fn(&str) -> Option<ParsedOutput> + Send + Sync;
type Open = dyn Fn(&ExecutionRequest) -> Box<dyn OutputReader> + Send + Sync;

/// How a program's output is read.
#[derive(Clone)]
pub struct OutputFormat(pub(super) Kind);

#[derive(Clone)]
pub(super) enum Kind {
    Whole(Arc<Whole>),
    Lines(Arc<Open>),
}

impl OutputFormat {
    /// All of it at the program's end; `None` says that it makes no answer.
    pub fn whole(parse: impl Fn(&str) -> Option<ParsedOutput> + Send + Sync + 'static) -> Self {
        Self(Kind::Whole(Arc::new(parse)))
    }

    /// Line by line while it runs, by a new reader for each request.
    pub fn lines(open: impl Fn(&ExecutionRequest) -> Box<dyn OutputReader> + Send + Sync + 'static) -> Self {
        Self(Kind::Lines(Arc::new(open)))
    }

    /// The output is the answer, without the white space around it.
    pub fn plain_text() -> Self {
        Self::whole(|stdout| Some(ParsedOutput::text(trimmed(stdout))))
    }

    /// Expects one JSON object with at least one of `text`, `attachments`, `structured`,
    /// `toolCalls` and `metadata`.
    pub fn json_object() -> Self {
        Self::whole(object)
    }
}

impl fmt::Debug for OutputFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.0 {
            Kind::Whole(_) => "OutputFormat(whole)",
            Kind::Lines(_) => "OutputFormat(lines)",
        })
    }
}

fn object(stdout: &str) -> Option<ParsedOutput> {
    let fields = JsonObject::parse(stdout)?;
    let parsed = ParsedOutput {
        text: fields.text("text"),
        attachments: fields.get("attachments").and_then(|list| list.to().ok()),
        structured: fields.get("structured").filter(|value| !value.is_null()).cloned(),
        tool_calls: fields.to::<Vec<Json>>("toolCalls"),
        metadata: fields.get("metadata").filter(|value| value.is_object()).cloned(),
        ..ParsedOutput::default()
    };
    let anything = parsed.text.is_some()
        || parsed.attachments.is_some()
        || parsed.structured.is_some()
        || parsed.tool_calls.is_some()
        || parsed.metadata.is_some();
    anything.then_some(parsed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(stdout: &str, expected: Option<&str>) {
        let parsed = object(stdout);
        assert_eq!(parsed.map(|parsed| parsed.text.unwrap_or_default()).as_deref(), expected);
    }

    #[test]
    fn an_object_with_a_known_key_is_an_answer() {
        check(r#" {"text":"hello"} "#, Some("hello"));
        check(r#"{"toolCalls":[]}"#, Some(""));
        check(r#"{"text":7,"metadata":{}}"#, Some(""));
    }

    #[test]
    fn anything_else_is_none() {
        for stdout in ["", "[1]", "hello", "{}", r#"{"txt":"a"}"#, r#"{"text":"a"}{"text":"b"}"#, "null"] {
            check(stdout, None);
        }
    }
}
