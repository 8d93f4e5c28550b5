//! Which calls of a transcript have no result.

use std::sync::Arc;

use harness_core::message::{AssistantMessage, Message, ToolCall};
use harness_core::port::{Loaded, OpenCall};

/// A call of a loaded transcript without a result among its messages.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Unanswered {
    /// Call without a result.
    pub call: Arc<ToolCall>,
    /// How far it came: absent when it had not started, or is `pure` (those leave no trace before their
    /// result). With a result when it had finished.
    pub open: Option<OpenCall>,
}

/// The calls of the last batch that have no result among the messages, in call order.
///
/// Nothing changes: the run that continues the session settles them (a finished call gets its stored
/// result, one that may be repeated runs again, any other gets a result marked `interrupted`). Earlier
/// batches are complete, because the next model call waits until every call has its result.
///
/// ```
/// use std::sync::Arc;
/// use harness_core::Json;
/// use harness_core::message::{AssistantMessage, Message, ToolCall};
/// use harness_core::port::Loaded;
/// use harness_session::unanswered;
///
/// let call = ToolCall::new("c1", "refund", Json::empty_object());
/// let mut loaded = Loaded::default();
/// loaded.messages.push(Arc::new(Message::from(AssistantMessage::calls([call]))));
/// assert_eq!(unanswered(&loaded).len(), 1);
/// ```
pub fn unanswered(loaded: &Loaded) -> Vec<Unanswered> {
    let Some(asked) = loaded.messages.iter().rposition(|message| message.as_assistant().is_some()) else {
        return Vec::new();
    };
    let batch = loaded.messages.get(asked..).unwrap_or_default();
    let answered = |call: &ToolCall| {
        batch
            .iter()
            .filter_map(|message| message.as_tool_result())
            .any(|result| result.tool_call_id == call.id)
    };
    batch
        .first()
        .and_then(|message| Message::as_assistant(message))
        .into_iter()
        .flat_map(AssistantMessage::tool_calls)
        .filter(|call| !answered(call))
        .map(|call| Unanswered {
            call: Arc::clone(call),
            open: loaded.open_calls.iter().find(|open| open.call == call.id).cloned(),
        })
        .collect()
}
