//! The five kinds of message.

use std::fmt;
use std::sync::Arc;

use serde::de::{Error as _, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::block::{Block, ToolCall};
use super::usage::Usage;
use crate::ids::{AgentId, CallId, ModelName, ToolName};
use crate::json::{Extra, Json};
use crate::stored::{Stored, Word, read_tag, write_tagged};

/// Why a model stopped, as its message says it. (Why a *turn* stopped is [`crate::StopReason`].)
///
/// ```
/// use harness_core::message::FinishReason;
///
/// assert_eq!(FinishReason::from("toolUse"), FinishReason::ToolUse);
/// assert_eq!(FinishReason::from("tired").as_str(), "tired");
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum FinishReason {
    /// It had said everything.
    #[default]
    Stop,
    /// The output limit cut it off.
    Length,
    /// It waits for tool results.
    ToolUse,
    /// It failed; see `error_message`.
    Error,
    /// It was cut off by a cancellation or a deadline.
    Aborted,
    /// The provider's filter cut it off.
    ContentFilter,
    /// It declined.
    Refusal,
    /// The provider paused it.
    Paused,
    /// A reason that this version does not know.
    Other(String),
}

impl FinishReason {
    /// The wire name.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Stop => "stop",
            Self::Length => "length",
            Self::ToolUse => "toolUse",
            Self::Error => "error",
            Self::Aborted => "aborted",
            Self::ContentFilter => "contentFilter",
            Self::Refusal => "refusal",
            Self::Paused => "paused",
            Self::Other(text) => text,
        }
    }
}

impl From<&str> for FinishReason {
    fn from(text: &str) -> Self {
        match text {
            "stop" => Self::Stop,
            "length" => Self::Length,
            "toolUse" => Self::ToolUse,
            "error" => Self::Error,
            "aborted" => Self::Aborted,
            "contentFilter" => Self::ContentFilter,
            "refusal" => Self::Refusal,
            "paused" => Self::Paused,
            other => Self::Other(other.to_owned()),
        }
    }
}

impl Serialize for FinishReason {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for FinishReason {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Word::deserialize(deserializer).map(|Word(text)| Self::from(&*text))
    }
}

crate::slots! {
    FinishReason => Some(FinishReason::Stop),
}

crate::stored! {
    /// Instructions in the transcript's own place. Compaction never touches them.
    #[derive(Default)]
    pub struct SystemMessage {
        /// The blocks.
        content: Vec<Block> = "content",
        /// The instruction part that it came from.
        origin: Option<String> = "origin",
        /// The role it is sent as, where a protocol has several (`developer`).
        sent_as: Option<String> = "as",
        /// The provider's id.
        id: Option<String> = "id",
        /// The provider's status.
        status: Option<String> = "status",
    }
}

crate::stored! {
    /// What a user, or somebody in their place, says.
    #[derive(Default)]
    pub struct UserMessage {
        /// The blocks; a plain string is accepted when read.
        content: Vec<Block> = "content",
        /// When it was said, in milliseconds since 1970.
        timestamp: Option<i64> = "timestamp",
        /// Who says it.
        name: Option<String> = "name",
        /// `prompt`, `steering`, `follow_up`, `skill`, `template`, `summary` or `hook`.
        origin: Option<String> = "origin",
        /// The caller's own data; never sent to a model.
        metadata: Option<Json> = "metadata",
        /// The caller's or provider's id.
        id: Option<String> = "id",
        /// The provider's status.
        status: Option<String> = "status",
    }
}

crate::stored! {
    /// One response of a model, whole.
    #[derive(Default)]
    pub struct AssistantMessage {
        /// The blocks in the order in which they came.
        content: Vec<Block> = "content",
        /// The agent whose turn it was.
        agent: Option<AgentId> = "agent",
        /// What it used.
        usage: Option<Arc<Usage>> = "usage",
        /// Why the model stopped.
        stop_reason: FinishReason = "stopReason",
        /// When it came, in milliseconds since 1970.
        timestamp: Option<i64> = "timestamp",
        /// What went wrong, with `stop_reason` `error`.
        error_message: Option<String> = "errorMessage",
        /// The stable code of what went wrong.
        error_code: Option<String> = "errorCode",
        /// The protocol spoken.
        protocol: Option<String> = "protocol",
        /// The provider.
        provider: Option<String> = "provider",
        /// The model that was asked for.
        model: Option<ModelName> = "model",
        /// The model that answered.
        response_model: Option<String> = "responseModel",
        /// The provider's id of the response.
        response_id: Option<String> = "responseId",
        /// Notes of the adapter.
        diagnostics: Option<Vec<Json>> = "diagnostics",
        /// What the provider sent beside it; some of it must be sent back.
        provider_metadata: Option<Json> = "providerMetadata",
    }
}

crate::stored! {
    /// The answer to one tool call.
    pub struct ToolResultMessage {
        /// The call's id.
        tool_call_id: CallId = "toolCallId",
        /// The tool's name.
        tool_name: ToolName = "toolName",
        /// What the model reads.
        content: Vec<Block> = "content",
        /// Whether the call failed.
        is_error: bool = "isError",
        /// The result as data.
        structured: Option<Json> = "structured",
        /// `{status, errorCode?, exitCode?, data?}`.
        outcome: Option<Json> = "outcome",
        /// How long it ran, in milliseconds.
        duration_ms: Option<u64> = "durationMs",
        /// When it ended, in milliseconds since 1970.
        timestamp: Option<i64> = "timestamp",
        /// Data for people and logs; never sent to a model.
        details: Option<Json> = "details",
        /// Whether the tool asked to end the turn.
        terminate: Option<bool> = "terminate",
        /// The provider's id.
        id: Option<String> = "id",
        /// The provider's status.
        status: Option<String> = "status",
    }
}

crate::stored! {
    /// Something that the application keeps in the transcript.
    pub struct CustomMessage {
        /// The application's word for it.
        custom_type: String = "customType",
        /// What is shown or sent.
        content: Option<Vec<Block>> = "content",
        /// Whether a person is shown it.
        display: Option<bool> = "display",
        /// The application's data; never sent.
        data: Option<Json> = "data",
        /// Whether a model is sent `content`, as user text.
        to_model: bool = "toModel",
        /// When it was made, in milliseconds since 1970.
        timestamp: Option<i64> = "timestamp",
    }
}

macro_rules! messages {
    ($( $(#[$doc:meta])* $variant:ident($ty:ty) = $tag:literal ),* $(,)?) => {
        /// One message of a transcript, tagged by `role`. Shared as `Arc<Message>`, never changed.
        #[derive(Clone, Debug, PartialEq, Eq)]
        #[non_exhaustive]
        pub enum Message {
            $( $(#[$doc])* $variant($ty), )*
        }

        impl Serialize for Message {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                match self {
                    $( Self::$variant(body) => write_tagged(serializer, "role", $tag, body), )*
                }
            }
        }

        impl<'de> Deserialize<'de> for Message {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                struct Roles;
                impl<'de> Visitor<'de> for Roles {
                    type Value = Message;

                    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                        f.write_str("a message: an object with a `role`")
                    }

                    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Message, A::Error> {
                        let (kept, tag) = read_tag("role", &mut map)?;
                        match &*tag {
                            $( $tag => <$ty>::read_map(kept, &mut map).map(Message::$variant)
                                .map_err(|e| A::Error::custom(format_args!("{} message: {e}", $tag))), )*
                            _ => Err(A::Error::unknown_variant(&tag, &[$($tag),*])),
                        }
                    }
                }
                deserializer.deserialize_map(Roles)
            }
        }

        $(
            impl From<$ty> for Message {
                fn from(body: $ty) -> Self {
                    Self::$variant(body)
                }
            }
        )*
    };
}

messages! {
    /// Instructions.
    System(SystemMessage) = "system",
    /// A user's message.
    User(UserMessage) = "user",
    /// A model's response.
    Assistant(AssistantMessage) = "assistant",
    /// The answer to a tool call.
    ToolResult(ToolResultMessage) = "toolResult",
    /// The application's own.
    Custom(CustomMessage) = "custom",
}

impl Message {
    /// A user message of one text block.
    pub fn user(text: impl Into<String>) -> Self {
        Self::User(UserMessage::text(text))
    }

    /// The blocks of the message.
    pub fn content(&self) -> &[Block] {
        match self {
            Self::System(m) => &m.content,
            Self::User(m) => &m.content,
            Self::Assistant(m) => &m.content,
            Self::ToolResult(m) => &m.content,
            Self::Custom(m) => m.content.as_deref().unwrap_or_default(),
        }
    }

    /// All text blocks joined.
    pub fn joined_text(&self) -> String {
        joined_text(self.content())
    }

    /// The same message with this text in place of all its text blocks; without any when it is empty.
    pub(crate) fn with_text(&self, text: String) -> Self {
        let mut message = self.clone();
        let content = match &mut message {
            Self::System(m) => &mut m.content,
            Self::User(m) => &mut m.content,
            Self::Assistant(m) => &mut m.content,
            Self::ToolResult(m) => &mut m.content,
            Self::Custom(m) => m.content.get_or_insert_default(),
        };
        let at = content.iter().position(|block| block.as_text().is_some()).unwrap_or(content.len());
        content.retain(|block| block.as_text().is_none());
        if !text.is_empty() {
            content.insert(at.min(content.len()), Block::text(text));
        }
        message
    }

    /// The assistant message, when it is one.
    pub fn as_assistant(&self) -> Option<&AssistantMessage> {
        if let Self::Assistant(m) = self { Some(m) } else { None }
    }

    /// The tool result, when it is one.
    pub fn as_tool_result(&self) -> Option<&ToolResultMessage> {
        if let Self::ToolResult(m) = self { Some(m) } else { None }
    }

    /// The wire name of the role.
    pub fn role(&self) -> &'static str {
        match self {
            Self::System(_) => "system",
            Self::User(_) => "user",
            Self::Assistant(_) => "assistant",
            Self::ToolResult(_) => "toolResult",
            Self::Custom(_) => "custom",
        }
    }
}

/// All text blocks of `content`, joined without a separator.
pub(super) fn joined_text(content: &[Block]) -> String {
    content.iter().filter_map(Block::as_text).collect()
}

impl SystemMessage {
    /// A system message of one text block.
    pub fn text(text: impl Into<String>) -> Self {
        Self { content: vec![Block::text(text)], ..Self::default() }
    }
}

impl UserMessage {
    /// Whether it says nothing: no blocks, or blank text alone.
    pub fn is_blank(&self) -> bool {
        self.content.iter().all(|block| block.as_text().is_some_and(|text| text.trim().is_empty()))
    }

    /// A user message of one text block.
    pub fn text(text: impl Into<String>) -> Self {
        Self { content: vec![Block::text(text)], ..Self::default() }
    }

    /// The same message with an origin (`steering`, `hook`, …).
    #[must_use]
    pub fn from_origin(mut self, origin: impl Into<String>) -> Self {
        self.origin = Some(origin.into());
        self
    }
}

impl AssistantMessage {
    /// A response of one text block that ends the turn.
    pub fn text(text: impl Into<String>) -> Self {
        Self { content: vec![Block::text(text)], ..Self::default() }
    }

    /// A response that asks for tools.
    pub fn calls(calls: impl IntoIterator<Item = ToolCall>) -> Self {
        Self {
            content: calls.into_iter().map(Block::from).collect(),
            stop_reason: FinishReason::ToolUse,
            ..Self::default()
        }
    }

    /// The same response with its usage.
    #[must_use]
    pub fn with_usage(mut self, usage: Usage) -> Self {
        self.usage = Some(Arc::new(usage));
        self
    }

    /// The calls in order, hosted ones (already run by the provider) left out.
    pub fn tool_calls(&self) -> impl Iterator<Item = &Arc<ToolCall>> {
        self.content.iter().filter_map(Block::as_tool_call).filter(|call| call.hosted.is_none())
    }

    /// All text blocks joined.
    pub fn joined_text(&self) -> String {
        joined_text(&self.content)
    }
}

impl ToolResultMessage {
    /// The result of `call` with `content`.
    pub fn new(call: &ToolCall, content: Vec<Block>, is_error: bool) -> Self {
        Self {
            tool_call_id: call.id.clone(),
            tool_name: call.name.clone(),
            content,
            is_error,
            structured: None,
            outcome: None,
            duration_ms: None,
            timestamp: None,
            details: None,
            terminate: None,
            id: None,
            status: None,
            extra: Extra::default(),
        }
    }

    /// The agent to which the conversation moved with this result.
    pub fn handed_to(&self) -> Option<AgentId> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Moved {
            handoff_to: AgentId,
            accepted: bool,
        }
        let moved: Moved = self.structured.as_ref().filter(|_| !self.is_error)?.to().ok()?;
        moved.accepted.then_some(moved.handoff_to)
    }
}

impl CustomMessage {
    /// A message of the application's type `custom_type` that no model is sent.
    pub fn new(custom_type: impl Into<String>, data: Option<Json>) -> Self {
        Self {
            custom_type: custom_type.into(),
            content: None,
            display: None,
            data,
            to_model: false,
            timestamp: None,
            extra: Extra::default(),
        }
    }
}
