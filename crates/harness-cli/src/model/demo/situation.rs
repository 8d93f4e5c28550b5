//! The visible state of a request: the question, the finished calls and the available tools.

use std::sync::Arc;

use harness::core::message::{Block, Message, ToolCall, ToolResultMessage};
use harness::core::port::ModelRequest;
use harness::core::tool::{ToolDef, ToolKind};
use serde_json::Value;

/// Results that are looked at, the newest.
const RESULTS: usize = 32;

/// A call and its result.
#[derive(Debug)]
pub(super) struct Done {
    pub(super) call: Arc<ToolCall>,
    pub(super) result: ToolResultMessage,
}

impl Done {
    /// The text of the result.
    pub(super) fn text(&self) -> String {
        self.result.content.iter().filter_map(Block::as_text).collect()
    }
}

/// The visible state of a request.
#[derive(Debug)]
pub(super) struct Situation<'r> {
    /// The last message of the user.
    pub(super) question: String,
    /// The first text of that message, without attached files.
    pub(super) asked: String,
    /// Calls since then.
    pub(super) done: Vec<Done>,
    /// Known texts: memory, earlier messages with the newest first, and the instructions.
    pub(super) known: Vec<String>,
    /// The callable tools.
    pub(super) tools: &'r [ToolDef],
}

impl<'r> Situation<'r> {
    pub(super) fn of(request: &'r ModelRequest) -> Self {
        let mut messages: Vec<Arc<Message>> = Vec::new();
        request.view.for_each(|message| messages.push(Arc::clone(message)));
        let asked = |message: &Arc<Message>| matches!(&**message, Message::User(_));
        let mut at = messages.iter().rposition(asked).unwrap_or(messages.len());
        // Notes of the host, such as one about the mode, may follow the user's message.
        while at > 0
            && messages.get(at).is_some_and(|message| is_note(message))
            && messages.get(at - 1).is_some_and(asked)
        {
            at -= 1;
        }
        let since = messages.split_off(at);
        let question = since.first().map(|message| message.joined_text()).unwrap_or_default();
        let texts = since.first().and_then(|message| message.content().iter().find_map(Block::as_text));
        let asked = texts.unwrap_or_default().to_owned();
        let calls: Vec<Arc<ToolCall>> = since
            .iter()
            .filter_map(|message| message.as_assistant())
            .flat_map(|answer| answer.tool_calls().cloned().collect::<Vec<_>>())
            .collect();
        let results = since.iter().filter_map(|message| message.as_tool_result());
        let done = results.filter_map(|result| {
            let call = calls.iter().rfind(|call| call.id == result.tool_call_id)?;
            Some(Done { call: Arc::clone(call), result: result.clone() })
        });
        let mut done: Vec<Done> = done.collect();
        done.drain(..done.len().saturating_sub(RESULTS));
        let earlier = messages.iter().rev().map(|message| message.joined_text());
        let shown = since.iter().filter(|message| matches!(&***message, Message::System(_)));
        let shown = shown.map(|message| message.joined_text());
        let known = shown.chain(earlier).chain([request.prepared.instructions.to_string()]).collect();
        Self { question, asked, done, known, tools: request.tools() }
    }

    /// Whether this call was made already, or this handoff taken.
    pub(super) fn was_made(&self, def: &ToolDef, arguments: &Value) -> bool {
        let handoff = matches!(def.kind, ToolKind::Handoff(_));
        self.done.iter().any(|done| {
            done.call.name == def.name
                && (handoff || done.call.arguments.to::<Value>().is_ok_and(|made| made == *arguments))
        })
    }

    /// Results of tools, in their order; not those of handoffs.
    pub(super) fn results(&self) -> impl Iterator<Item = &Done> {
        self.done.iter().filter(|done| done.result.handed_to().is_none())
    }

    /// Keys and values of good results, the newest first.
    pub(super) fn found(&self) -> Vec<(String, Value)> {
        let good = self.results().filter(|done| !done.result.is_error);
        let mut found = Vec::new();
        for done in good.collect::<Vec<_>>().into_iter().rev() {
            if let Some(Value::Object(entries)) = data(&done.result) {
                found.extend(entries);
            }
        }
        found
    }
}

fn is_note(message: &Message) -> bool {
    matches!(message, Message::User(user) if user.origin.as_deref() == Some("hook"))
}

/// The result as data, if it is any.
fn data(result: &ToolResultMessage) -> Option<Value> {
    let text: String = result.content.iter().filter_map(Block::as_text).collect();
    serde_json::from_str(text.trim()).ok()
}
