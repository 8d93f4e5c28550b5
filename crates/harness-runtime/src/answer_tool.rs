//! Structured output for models without it: the answer is the call of a tool, which the transcript holds as text.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use harness_core::message::{AssistantMessage, Block, FinishReason, ToolCall};
use harness_core::port::{DeltaPart, Deltas, ModelRequest, PreparedAgent};
use harness_core::tool::ToolDef;
use harness_core::{Json, ToolName};

const NAME: &str = "final_answer";

const DESCRIPTION: &str = "Gives the final answer. Call it once, alone, when the work is done. Only its arguments are \
                           read, no text beside it.";

/// Key of an answer other than an object; arguments must be an object.
const WRAPPER: &str = "answer";

/// The tool by whose call a model answers in the form of a schema.
pub(crate) struct AnswerTool {
    name: ToolName,
    /// Whether the arguments hold the answer under [`WRAPPER`].
    is_wrapped: bool,
}

impl AnswerTool {
    /// Offers the tool in a request whose agent has an output schema.
    pub(crate) fn offer(request: &mut ModelRequest) -> Option<Self> {
        let schema = request.prepared.output.clone()?;
        let is_wrapped = field(&schema, "type") != Some(Json::string("object"));
        let taken = |name: &str| request.prepared.tools.iter().any(|def| def.name.as_str() == name);
        let mut name = NAME.to_owned();
        while taken(&name) {
            name.push('_');
        }
        let arguments = if is_wrapped { wrapped(&schema) } else { schema };
        let def = ToolDef::new(name.as_str(), DESCRIPTION).with_schema(arguments);
        let tools: Arc<[ToolDef]> = request.tools().iter().cloned().chain([def]).collect();
        // In the closing step this is the only tool.
        request.with_tools = true;
        let mut prepared = PreparedAgent::clone(&request.prepared);
        (prepared.tools, prepared.output) = (tools, None);
        request.prepared = Arc::new(prepared);
        Some(Self { name: name.into(), is_wrapped })
    }

    /// The message with the call as its text. Beside calls of other tools the call is dropped: their results come
    /// first.
    pub(crate) fn read(&self, mut message: AssistantMessage) -> AssistantMessage {
        let Some(call) = message.tool_calls().find(|call| call.name == self.name) else { return message };
        let answer = Block::text(self.answer(call));
        let is_alone = message.tool_calls().all(|call| call.name == self.name);
        let is_call = |block: &Block| matches!(block, Block::ToolCall(call) if call.name == self.name);
        message.content.retain(|block| !(is_call(block) || is_alone && block.as_text().is_some()));
        if is_alone {
            message.content.push(answer);
            message.stop_reason = FinishReason::Stop;
        }
        message
    }

    fn answer(&self, call: &ToolCall) -> String {
        let inner = if self.is_wrapped { field(&call.arguments, WRAPPER) } else { None };
        let raw = call.raw_arguments.as_deref().filter(|_| call.arguments_mode.as_deref() == Some("invalid"));
        match (raw, inner) {
            (Some(raw), _) => raw.to_owned(),
            (None, Some(inner)) => inner.text().to_owned(),
            (None, None) => call.arguments.text().to_owned(),
        }
    }
}

fn field(object: &Json, name: &str) -> Option<Json> {
    object.entries().ok()?.into_iter().find(|(key, _)| key == name).map(|(_, value)| value)
}

fn wrapped(schema: &Json) -> Json {
    let text =
        format!(r#"{{"type":"object","properties":{{"{WRAPPER}":{schema}}},"required":["{WRAPPER}"]}}"#);
    Json::parse(&text).unwrap_or_default()
}

/// No call of the answer has started.
const NO_CALL: u32 = u32::MAX;

/// Passes the arguments of the tool on as text.
pub(crate) struct AnswerDeltas<'d> {
    tool: &'d AnswerTool,
    inner: &'d dyn Deltas,
    call: AtomicU32,
}

impl<'d> AnswerDeltas<'d> {
    pub(crate) fn new(tool: &'d AnswerTool, inner: &'d dyn Deltas) -> Self {
        Self { tool, inner, call: AtomicU32::new(NO_CALL) }
    }
}

impl Deltas for AnswerDeltas<'_> {
    fn part(&self, part: DeltaPart) {
        if let DeltaPart::CallStarted { index, name, .. } = &part
            && *name == self.tool.name
        {
            return self.call.store(*index, Ordering::Relaxed);
        }
        if let DeltaPart::CallArguments { index, text } = &part
            && *index == self.call.load(Ordering::Relaxed)
        {
            // Arguments around an answer would not be its text.
            if !self.tool.is_wrapped {
                self.inner.part(DeltaPart::Text(text.clone()));
            }
            return;
        }
        self.inner.part(part);
    }
}

#[cfg(test)]
mod tests {
    use harness_core::transcript::{Transcript, View};

    use super::*;

    #[track_caller]
    fn check(schema: &str, message: AssistantMessage, expected: &str) {
        let mut prepared = PreparedAgent::new("main", "", [ToolDef::new("look", "Looks")]);
        prepared.output = Some(Json::parse(schema).unwrap());
        let mut request = ModelRequest::new(View::whole(Transcript::default().prefix()), Arc::new(prepared));
        let tool = AnswerTool::offer(&mut request).unwrap();
        assert_eq!(request.tools().len(), 2);
        assert_eq!(request.prepared.output, None);
        let read = tool.read(message);
        let calls: Vec<&str> = read.tool_calls().map(|call| call.name.as_str()).collect();
        assert_eq!(format!("{} {calls:?}", read.joined_text()), expected);
    }

    fn call(name: &str, arguments: &str) -> ToolCall {
        ToolCall::new(name, name, Json::parse(arguments).unwrap())
    }

    #[test]
    fn call_of_the_answer_becomes_the_text() {
        let object = r#"{"type":"object"}"#;
        check(object, AssistantMessage::calls([call(NAME, r#"{"n":1}"#)]), r#"{"n":1} []"#);
        check(object, AssistantMessage::text("plain"), "plain []");
        check(r#"{"type":"array"}"#, AssistantMessage::calls([call(NAME, r#"{"answer":[1]}"#)]), "[1] []");
        let mut talkative = AssistantMessage::calls([call(NAME, "{}")]);
        talkative.content.insert(0, Block::text("Here it is:"));
        check(object, talkative, "{} []");
    }

    #[test]
    fn calls_of_other_tools_come_before_the_answer() {
        let both = AssistantMessage::calls([call("look", "{}"), call(NAME, "{}")]);
        check(r#"{"type":"object"}"#, both, r#" ["look"]"#);
    }
}
