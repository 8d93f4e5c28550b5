//! Requests to a backend.

use harness_core::stored::Item;
use harness_core::{Extra, Json, slots, stored};
use serde::{Deserialize, Serialize};

use super::ExecutionRequirements;

slots! {
    ExecutionMessage => None,
    ExecutionInstructions => None,
}

impl Item for ExecutionBlock {}

stored! {
    /// A whole turn for a backend.
    pub struct ExecutionRequest {
        /// The assistant that is asked.
        assistant_id: String = "assistantId",
        /// The turn; with the thread it names the request.
        turn_id: String = "turnId",
        /// Session of the request.
        session_id: Option<String> = "sessionId",
        /// User who sends the request.
        user_id: Option<String> = "userId",
        /// Thread of the request; where one is needed, the turn's id is the fallback.
        thread_id: Option<String> = "threadId",
        /// Message to answer.
        message: ExecutionMessage = "message",
        /// How to answer.
        instructions: ExecutionInstructions = "instructions",
        /// Background information.
        context: Option<ExecutionContext> = "context",
        /// Continuation of an earlier request.
        continuation: Option<ExecutionContinuation> = "continuation",
        /// Tools that may be used.
        tools: Option<Vec<ExecutionTool>> = "tools",
        /// Required capabilities.
        requirements: Option<ExecutionRequirements> = "requirements",
        /// The caller's own data.
        metadata: Option<Json> = "metadata",
    }
}

stored! {
    /// The message of a request.
    pub struct ExecutionMessage {
        /// Message id.
        id: String = "id",
        /// Its text; may be empty.
        text: String = "text",
        /// When it came, as an ISO 8601 text.
        received_at: Option<String> = "receivedAt",
        /// Attachments of the message.
        attachments: Option<Vec<ExecutionAttachment>> = "attachments",
    }
}

stored! {
    /// Something that comes with a message or an answer.
    pub struct ExecutionAttachment {
        /// Attachment id.
        id: String = "id",
        /// Media type, or a custom type known to both sides.
        kind: String = "type",
        /// Human-readable name.
        name: Option<String> = "name",
        /// Where it is.
        url: Option<String> = "url",
        /// More.
        metadata: Option<Json> = "metadata",
    }
}

stored! {
    /// How to answer.
    pub struct ExecutionInstructions {
        /// The system prompt.
        system_prompt: String = "systemPrompt",
        /// Additional instructions of the developer.
        developer_prompt: Option<String> = "developerPrompt",
        /// How the answer should look.
        response_style: Option<ResponseStyle> = "responseStyle",
    }
}

/// How an answer should look.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct ResponseStyle {
    /// Whether Markdown is welcome.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prefer_markdown: Option<bool>,
    /// The wished length, in characters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_answer_chars: Option<u64>,
}

stored! {
    /// Background information for a backend.
    #[derive(Default)]
    pub struct ExecutionContext {
        /// Texts.
        blocks: Vec<ExecutionBlock> = "blocks",
        /// Data, an object.
        structured: Option<Json> = "structured",
    }
}

stored! {
    /// One text that a backend should know.
    pub struct ExecutionBlock {
        /// Id of the text.
        id: String = "id",
        /// Heading of the text.
        label: String = "label",
        /// Content of the text.
        text: String = "text",
        /// `memory`, `workspace`, `enrichment`, `guardrail` or `other`.
        category: Option<String> = "category",
        /// More.
        metadata: Option<Json> = "metadata",
    }
}

stored! {
    /// Continuation of a deferred or earlier execution.
    #[derive(Default)]
    pub struct ExecutionContinuation {
        /// The continuation's id.
        continuation_id: Option<String> = "continuationId",
        /// `clarification`, `approval`, `deferred` or a word of the backend's own.
        kind: Option<String> = "kind",
        /// State from the backend's last result.
        state: Option<Json> = "state",
        /// More.
        metadata: Option<Json> = "metadata",
    }
}

stored! {
    /// A tool that a backend may use.
    pub struct ExecutionTool {
        /// Name of the tool.
        name: String = "name",
        /// Description of the tool.
        description: Option<String> = "description",
        /// The JSON Schema of its arguments.
        input_schema: Option<Json> = "inputSchema",
        /// Whether a person must allow each call.
        requires_approval: Option<bool> = "requiresApproval",
        /// More.
        metadata: Option<Json> = "metadata",
    }
}

impl ExecutionRequest {
    /// A request with a system prompt and a message, and nothing else.
    pub fn new(
        assistant_id: impl Into<String>,
        turn_id: impl Into<String>,
        system_prompt: impl Into<String>,
        message: ExecutionMessage,
    ) -> Self {
        Self {
            assistant_id: assistant_id.into(),
            turn_id: turn_id.into(),
            session_id: None,
            user_id: None,
            thread_id: None,
            message,
            instructions: ExecutionInstructions {
                system_prompt: system_prompt.into(),
                developer_prompt: None,
                response_style: None,
                extra: Extra::default(),
            },
            context: None,
            continuation: None,
            tools: None,
            requirements: None,
            metadata: None,
            extra: Extra::default(),
        }
    }

    /// The tools; empty when none are named.
    pub fn tools(&self) -> &[ExecutionTool] {
        self.tools.as_deref().unwrap_or_default()
    }

    /// The message's attachments.
    pub fn attachments(&self) -> &[ExecutionAttachment] {
        self.message.attachments.as_deref().unwrap_or_default()
    }

    /// The thread, else the turn.
    pub fn thread_or_turn(&self) -> &str {
        self.thread_id.as_deref().unwrap_or(&self.turn_id)
    }
}

impl ExecutionMessage {
    /// Creates a message with a text.
    pub fn new(id: impl Into<String>, text: impl Into<String>) -> Self {
        Self {
            id: id.into(),
            text: text.into(),
            received_at: None,
            attachments: None,
            extra: Extra::default(),
        }
    }
}

impl ExecutionAttachment {
    /// Something by its id and what it is.
    pub fn new(id: impl Into<String>, kind: impl Into<String>) -> Self {
        Self {
            id: id.into(),
            kind: kind.into(),
            name: None,
            url: None,
            metadata: None,
            extra: Extra::default(),
        }
    }
}

impl ExecutionBlock {
    /// A text under a label.
    pub fn new(id: impl Into<String>, label: impl Into<String>, text: impl Into<String>) -> Self {
        Self {
            id: id.into(),
            label: label.into(),
            text: text.into(),
            category: None,
            metadata: None,
            extra: Extra::default(),
        }
    }
}

impl ExecutionTool {
    /// A tool by its name alone.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            description: None,
            input_schema: None,
            requires_approval: None,
            metadata: None,
            extra: Extra::default(),
        }
    }
}
