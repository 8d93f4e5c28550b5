//! Shapes of values that are read and written field by field, for the description of the routes.
#![expect(dead_code, reason = "only their schemas are used")]

use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

/// A text, or a list of parts.
#[derive(Serialize, ToSchema)]
#[serde(untagged)]
pub(crate) enum Content {
    Text(String),
    Parts(Vec<ContentPart>),
}

/// Part of a message, tagged by `type`. Names with `input_` and `output_` are those of responses.
#[derive(Serialize, ToSchema)]
pub(crate) struct ContentPart {
    r#type: PartKind,
    /// Text of `text`, `input_text` and `output_text`.
    text: Option<String>,
    /// Text of `refusal`.
    refusal: Option<String>,
    /// `image_url`: an object with the `url` and the `detail`. `input_image`: the URL, which may contain the data.
    #[schema(value_type = Option<Value>)]
    image_url: Option<Value>,
    /// Level of detail of `input_image`.
    detail: Option<String>,
    /// `data` in Base64, and `format`: `wav` or `mp3`.
    #[schema(value_type = Option<Object>)]
    input_audio: Option<Value>,
    /// `filename`, and one of `file_data` (a data URL), `file_url` and `file_id`. `input_file` has them itself.
    #[schema(value_type = Option<Object>)]
    file: Option<Value>,
    /// Name of `input_file`.
    filename: Option<String>,
    /// Data URL of `input_file`.
    file_data: Option<String>,
    /// URL of `input_file`.
    file_url: Option<String>,
    /// File uploaded to the provider, of `input_file` and `input_image`.
    file_id: Option<String>,
}

/// Kind of a part.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
enum PartKind {
    Text,
    InputText,
    OutputText,
    Refusal,
    ImageUrl,
    InputImage,
    InputAudio,
    File,
    InputFile,
}

/// A text, or a list of items.
#[derive(Serialize, ToSchema)]
#[serde(untagged)]
pub(crate) enum Input {
    Text(String),
    Items(Vec<InputItem>),
}

/// Item of an input.
#[derive(Serialize, ToSchema)]
#[serde(untagged)]
pub(crate) enum InputItem {
    Message(InputMessage),
    Other(OtherItem),
}

/// A message of a conversation.
#[derive(Serialize, ToSchema)]
pub(crate) struct InputMessage {
    /// `message`, or absent.
    r#type: Option<String>,
    /// `system`, `developer`, `user` or `assistant`.
    role: String,
    content: Content,
}

/// Decision on a pending call, or an item of an earlier response.
#[derive(Serialize, ToSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(crate) enum OtherItem {
    /// Decision on an `mcp_approval_request`.
    McpApprovalResponse {
        approval_request_id: String,
        /// Whether the call may run.
        approve: bool,
        /// Reason of a denial, for the model.
        reason: Option<String>,
    },
    /// A call of an earlier response, with its result.
    McpCall {
        id: String,
        name: String,
        arguments: Option<String>,
        output: Option<String>,
        error: Option<String>,
    },
    /// Skipped.
    Reasoning {},
    /// Skipped.
    McpApprovalRequest {},
    /// Skipped.
    McpListTools {},
}

/// Item of a response, tagged by `type`.
#[derive(Serialize, ToSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(crate) enum OutputItem {
    /// Text of the assistant.
    Message {
        id: String,
        /// `assistant`.
        role: String,
        /// `in_progress` or `completed`.
        status: String,
        content: Vec<OutputPart>,
    },
    /// Reasoning of the model.
    Reasoning { id: String, summary: Vec<SummaryPart> },
    /// A call that the server ran.
    McpCall {
        id: String,
        /// `harness`.
        server_label: String,
        /// Name of the tool.
        name: String,
        /// Arguments as JSON text.
        arguments: String,
        /// `in_progress`, `completed` or `failed`.
        status: String,
        /// Result; `null` before it, or if the call failed.
        output: Option<String>,
        /// Error of a failed call.
        error: Option<String>,
    },
    /// A call that requires approval.
    McpApprovalRequest {
        /// Id for `approval_request_id`.
        id: String,
        /// `harness`.
        server_label: String,
        /// Name of the tool.
        name: String,
        /// Arguments as JSON text.
        arguments: String,
    },
}

/// Part of a message of the assistant.
#[derive(Serialize, ToSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(crate) enum OutputPart {
    OutputText {
        text: String,
        /// Always empty.
        #[schema(value_type = Vec<Object>)]
        annotations: Vec<Value>,
    },
    Refusal {
        refusal: String,
    },
}

/// Part of the reasoning.
#[derive(Serialize, ToSchema)]
pub(crate) struct SummaryPart {
    /// `summary_text`.
    r#type: String,
    text: String,
}

/// Format of an answer, tagged by `type`.
#[derive(Serialize, ToSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(crate) enum AnswerFormat {
    Text {},
    JsonSchema {
        /// `answer`.
        name: String,
        #[schema(value_type = Object)]
        schema: Value,
        strict: bool,
    },
}

/// An id, or an object with an `id`.
#[derive(Serialize, ToSchema)]
#[serde(untagged)]
pub(crate) enum ConversationParam {
    Id(String),
    Object(ConversationId),
}

/// A conversation by its id.
#[derive(Serialize, ToSchema)]
pub(crate) struct ConversationId {
    id: String,
}
