//! Shapes of streamed events, for the description of the routes.
#![expect(dead_code, reason = "only their schemas are used")]

use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use super::chat::ChatUsage;
use super::described::{OutputItem, OutputPart, SummaryPart};
use super::error::OpenAiError;
use super::responses::ResponseView;
use super::verdict::RunDetail;

/// Data of an event of a streamed completion; that of the last event is the text `[DONE]`.
#[derive(Serialize, ToSchema)]
#[serde(untagged)]
pub(crate) enum ChatEvent {
    Chunk(ChatChunk),
    /// The run failed. It is the last event.
    Error(OpenAiError),
}

/// Chunk of a completion.
#[derive(Serialize, ToSchema)]
pub(crate) struct ChatChunk {
    /// Id of the completion.
    id: String,
    /// `chat.completion.chunk`.
    object: String,
    /// Time of the request in seconds since 1970.
    created: i64,
    /// Requested model.
    model: String,
    /// One choice; none in a chunk with `usage`.
    choices: Vec<ChunkChoice>,
    /// Tokens of the run, with `stream_options.include_usage`; `null` if no model reported any.
    usage: Option<ChatUsage>,
    /// End of the run in the words of harness, beside `finish_reason`.
    harness: Option<RunDetail>,
}

/// Change of the only choice.
#[derive(Serialize, ToSchema)]
struct ChunkChoice {
    /// 0.
    index: u32,
    delta: ChunkDelta,
    /// Always `null`.
    #[schema(value_type = Option<Object>)]
    logprobs: (),
    /// In the last choice: `stop`, `length` or `content_filter`.
    finish_reason: Option<String>,
}

/// What the message grows by.
#[derive(Serialize, ToSchema)]
struct ChunkDelta {
    /// `assistant`, in the first chunk.
    role: Option<String>,
    /// Text.
    content: Option<String>,
    /// Text of a refusal.
    refusal: Option<String>,
}

/// Event of a streamed response, named as its `type`.
#[derive(Serialize, ToSchema)]
pub(crate) struct ResponseEvent {
    /// Number of the event in the stream, from 0.
    sequence_number: u64,
    #[serde(flatten)]
    kind: ResponseEventKind,
}

/// What happened, tagged by `type`. Events of an item have its place in the output and its id.
#[derive(Serialize, ToSchema)]
#[serde(tag = "type")]
enum ResponseEventKind {
    #[serde(rename = "response.created")]
    Created { response: ResponseView },
    #[serde(rename = "response.in_progress")]
    InProgress { response: ResponseView },
    #[serde(rename = "response.completed")]
    Completed { response: ResponseView },
    #[serde(rename = "response.incomplete")]
    Incomplete { response: ResponseView },
    #[serde(rename = "response.failed")]
    Failed { response: ResponseView },
    #[serde(rename = "response.output_item.added")]
    ItemAdded { output_index: u32, item: OutputItem },
    #[serde(rename = "response.output_item.done")]
    ItemDone { output_index: u32, item: OutputItem },
    #[serde(rename = "response.content_part.added")]
    PartAdded { output_index: u32, item_id: String, content_index: u32, part: OutputPart },
    #[serde(rename = "response.content_part.done")]
    PartDone { output_index: u32, item_id: String, content_index: u32, part: OutputPart },
    #[serde(rename = "response.output_text.delta")]
    TextDelta {
        output_index: u32,
        item_id: String,
        content_index: u32,
        delta: String,
        /// Always empty.
        #[schema(value_type = Vec<Object>)]
        logprobs: Vec<Value>,
    },
    #[serde(rename = "response.output_text.done")]
    TextDone {
        output_index: u32,
        item_id: String,
        content_index: u32,
        text: String,
        /// Always empty.
        #[schema(value_type = Vec<Object>)]
        logprobs: Vec<Value>,
    },
    #[serde(rename = "response.reasoning_summary_part.added")]
    SummaryAdded { output_index: u32, item_id: String, summary_index: u32, part: SummaryPart },
    #[serde(rename = "response.reasoning_summary_part.done")]
    SummaryDone { output_index: u32, item_id: String, summary_index: u32, part: SummaryPart },
    #[serde(rename = "response.reasoning_summary_text.delta")]
    SummaryTextDelta { output_index: u32, item_id: String, summary_index: u32, delta: String },
    #[serde(rename = "response.reasoning_summary_text.done")]
    SummaryTextDone { output_index: u32, item_id: String, summary_index: u32, text: String },
    #[serde(rename = "response.mcp_call.in_progress")]
    CallInProgress { output_index: u32, item_id: String },
    #[serde(rename = "response.mcp_call_arguments.done")]
    CallArguments { output_index: u32, item_id: String, arguments: String },
    #[serde(rename = "response.mcp_call.completed")]
    CallCompleted { output_index: u32, item_id: String },
    #[serde(rename = "response.mcp_call.failed")]
    CallFailed { output_index: u32, item_id: String },
}
