//! Kinds of messages.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Error as _, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::block::{Block, ToolCall};
use super::usage::Usage;
use crate::ids::{AgentId, CallId, ModelName, ToolName};
use crate::json::Json;
use crate::schema::tagged;
use crate::stored::{Stored, Word, read_tag, write_tagged};

/// Reason why a model stopped, as reported in its message. ([`crate::StopReason`] is that of a turn.)
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum FinishReason {
    /// Complete.
    #[default]
    Stop,
    /// Output limit reached.
    Length,
    /// Tool results required.
    ToolUse,
    /// Error; see `error_message`.
    Error,
    /// Interrupted by a cancellation or a deadline.
    Aborted,
    /// Interrupted by the provider's filter.
    ContentFilter,
    /// Refusal.
    Refusal,
    /// Paused by the provider.
    Paused,
    /// Unknown reason.
    Other(String),
}

impl FinishReason {
    /// Returns the wire name.
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

impl JsonSchema for FinishReason {
    fn schema_name() -> Cow<'static, str> {
        "FinishReason".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "Reason why a model stopped: `stop`, `length`, `toolUse`, `error`, `aborted`, `contentFilter`, \
                            `refusal`, `paused`, or the provider's own word.",
            "type": "string",
        })
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

crate::schema::described! {
    /// Instructions inside of the transcript. Compaction never removes them.
    #[derive(Default)]
    pub struct SystemMessage {
        /// Blocks.
        content: Vec<Block> = "content",
        /// Instruction part of the message.
        origin: Option<String> = "origin",
        /// Role on the wire, if a protocol has several (`developer`).
        sent_as: Option<String> = "as",
        /// Provider's id.
        id: Option<String> = "id",
        /// Provider's status.
        status: Option<String> = "status",
    }
}

crate::schema::described! {
    /// Message of a user or on a user's behalf.
    #[derive(Default)]
    pub struct UserMessage {
        /// Blocks; a string is accepted when deserialized.
        content: Vec<Block> = "content",
        /// Time in milliseconds since 1970.
        timestamp: Option<i64> = "timestamp",
        /// Name of the sender.
        name: Option<String> = "name",
        /// `prompt`, `steering`, `follow_up`, `skill`, `template`, `summary` or `hook`.
        origin: Option<String> = "origin",
        /// Caller data; never sent to a model.
        metadata: Option<Json> = "metadata",
        /// Caller's or provider's id.
        id: Option<String> = "id",
        /// Provider's status.
        status: Option<String> = "status",
    }
}

crate::schema::described! {
    /// Whole response of a model.
    #[derive(Default)]
    pub struct AssistantMessage {
        /// Blocks in order of arrival.
        content: Vec<Block> = "content",
        /// Agent of the turn.
        agent: Option<AgentId> = "agent",
        /// Usage.
        usage: Option<Arc<Usage>> = "usage",
        /// Reason why the model stopped.
        stop_reason: FinishReason = "stopReason",
        /// Time in milliseconds since 1970.
        timestamp: Option<i64> = "timestamp",
        /// Message of an error, with `stop_reason` `error`.
        error_message: Option<String> = "errorMessage",
        /// Stable code of the error.
        error_code: Option<String> = "errorCode",
        /// Protocol.
        protocol: Option<String> = "protocol",
        /// Provider.
        provider: Option<String> = "provider",
        /// Requested model.
        model: Option<ModelName> = "model",
        /// Model that responded.
        response_model: Option<String> = "responseModel",
        /// Provider's id of the response.
        response_id: Option<String> = "responseId",
        /// Notes of the adapter.
        diagnostics: Option<Vec<Json>> = "diagnostics",
        /// Provider's further data; some of it must be sent back.
        provider_metadata: Option<Json> = "providerMetadata",
    }
}

crate::schema::described! {
    /// Result of one tool call.
    #[derive(Default)]
    pub struct ToolResultMessage {
        /// Id of the call.
        tool_call_id: CallId = "toolCallId",
        /// Tool name.
        tool_name: ToolName = "toolName",
        /// Blocks for the model.
        content: Vec<Block> = "content",
        /// Whether the call failed.
        is_error: bool = "isError",
        /// Result as data.
        structured: Option<Json> = "structured",
        /// `{status, errorCode?, exitCode?, data?}`.
        outcome: Option<Json> = "outcome",
        /// Duration in milliseconds.
        duration_ms: Option<u64> = "durationMs",
        /// End of the call in milliseconds since 1970.
        timestamp: Option<i64> = "timestamp",
        /// Data for users and logs; never sent to a model.
        details: Option<Json> = "details",
        /// Whether the tool requested the end of the turn.
        terminate: Option<bool> = "terminate",
        /// Provider's id.
        id: Option<String> = "id",
        /// Provider's status.
        status: Option<String> = "status",
    }
}

crate::schema::described! {
    /// Message of the application.
    #[derive(Default)]
    pub struct CustomMessage {
        /// Application's type.
        custom_type: String = "customType",
        /// Blocks to display or send.
        content: Option<Vec<Block>> = "content",
        /// Whether it is displayed.
        display: Option<bool> = "display",
        /// Application data; never sent to a model.
        data: Option<Json> = "data",
        /// Whether `content` is sent to a model as user text.
        to_model: bool = "toModel",
        /// Time in milliseconds since 1970.
        timestamp: Option<i64> = "timestamp",
    }
}

macro_rules! messages {
    ($( $(#[doc = $doc:literal])* $variant:ident($ty:ty) = $tag:literal ),* $(,)?) => {
        /// Message of a transcript, tagged by `role`. Shared as `Arc<Message>`, never changed.
        #[derive(Clone, Debug, PartialEq, Eq)]
        #[non_exhaustive]
        pub enum Message {
            $( $(#[doc = $doc])* $variant($ty), )*
        }

        impl JsonSchema for Message {
            fn schema_name() -> Cow<'static, str> {
                "Message".into()
            }

            fn json_schema(generator: &mut SchemaGenerator) -> Schema {
                let all = [$( tagged::<$ty>(generator, "role", $tag) ),*];
                json_schema!({ "description": "Message of a transcript, tagged by `role`.", "oneOf": all })
            }
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
                        let (before, tag) = read_tag("role", &mut map)?;
                        match &*tag {
                            $( $tag => <$ty>::read_map(before, &mut map).map(Message::$variant)
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
    /// User message.
    User(UserMessage) = "user",
    /// Response of a model.
    Assistant(AssistantMessage) = "assistant",
    /// Result of a tool call.
    ToolResult(ToolResultMessage) = "toolResult",
    /// Message of the application.
    Custom(CustomMessage) = "custom",
}

impl Message {
    /// Creates a user message of one text block.
    pub fn user(text: impl Into<String>) -> Self {
        Self::User(UserMessage::text(text))
    }

    /// Returns the blocks of the message.
    pub fn content(&self) -> &[Block] {
        match self {
            Self::System(m) => &m.content,
            Self::User(m) => &m.content,
            Self::Assistant(m) => &m.content,
            Self::ToolResult(m) => &m.content,
            Self::Custom(m) => m.content.as_deref().unwrap_or_default(),
        }
    }

    /// Joins all text blocks.
    pub fn joined_text(&self) -> String {
        joined_text(self.content())
    }

    /// Replaces all text blocks by one; removes them if `text` is empty.
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

    /// Returns the assistant message, if it is one.
    pub fn as_assistant(&self) -> Option<&AssistantMessage> {
        if let Self::Assistant(m) = self { Some(m) } else { None }
    }

    /// Returns the tool result, if it is one.
    pub fn as_tool_result(&self) -> Option<&ToolResultMessage> {
        if let Self::ToolResult(m) = self { Some(m) } else { None }
    }

    /// Returns the wire name of the role.
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

/// Joins all text blocks, without a separator.
pub(super) fn joined_text(content: &[Block]) -> String {
    content.iter().filter_map(Block::as_text).collect()
}

impl SystemMessage {
    /// Creates a system message of one text block.
    pub fn text(text: impl Into<String>) -> Self {
        Self { content: vec![Block::text(text)], ..Self::default() }
    }
}

impl UserMessage {
    /// Whether there are no blocks but blank text.
    pub fn is_blank(&self) -> bool {
        self.content.iter().all(|block| block.as_text().is_some_and(|text| text.trim().is_empty()))
    }

    /// Creates a user message of one text block.
    pub fn text(text: impl Into<String>) -> Self {
        Self { content: vec![Block::text(text)], ..Self::default() }
    }

    /// Sets the origin (`steering`, `hook`, …).
    #[must_use]
    pub fn from_origin(mut self, origin: impl Into<String>) -> Self {
        self.origin = Some(origin.into());
        self
    }
}

impl AssistantMessage {
    /// Creates an answer of one text block.
    pub fn text(text: impl Into<String>) -> Self {
        Self { content: vec![Block::text(text)], ..Self::default() }
    }

    /// Creates a response with tool calls.
    pub fn calls(calls: impl IntoIterator<Item = ToolCall>) -> Self {
        Self {
            content: calls.into_iter().map(Block::from).collect(),
            stop_reason: FinishReason::ToolUse,
            ..Self::default()
        }
    }

    /// Sets the usage.
    #[must_use]
    pub fn with_usage(mut self, usage: Usage) -> Self {
        self.usage = Some(Arc::new(usage));
        self
    }

    /// Iterates over the calls in order, except hosted ones (run by the provider).
    pub fn tool_calls(&self) -> impl Iterator<Item = &Arc<ToolCall>> + Clone {
        self.content.iter().filter_map(Block::as_tool_call).filter(|call| call.hosted.is_none())
    }

    /// Joins all text blocks.
    pub fn joined_text(&self) -> String {
        joined_text(&self.content)
    }
}

impl ToolResultMessage {
    /// Creates the result of a call.
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
            extra: crate::Extra::default(),
        }
    }

    /// Returns the agent of an accepted handoff.
    pub fn handed_to(&self) -> Option<AgentId> {
        let handoff: Handoff = self.structured.as_ref().filter(|_| !self.is_error)?.to().ok()?;
        handoff.accepted.then_some(handoff.to)
    }
}

/// Data of the result of a handoff.
#[derive(Serialize, Deserialize)]
pub(crate) struct Handoff {
    #[serde(rename = "handoffTo")]
    pub(crate) to: AgentId,
    pub(crate) accepted: bool,
    #[serde(default)]
    pub(crate) payload: Json,
}

impl CustomMessage {
    /// Creates a message that is not sent to a model.
    pub fn new(custom_type: impl Into<String>, data: Option<Json>) -> Self {
        Self { custom_type: custom_type.into(), data, ..Self::default() }
    }
}
