//! Content that the models of a run received.

mod collector;

use std::sync::Arc;

use harness_core::message::Message;
use harness_core::{Json, ToolName};
use serde::{Deserialize, Serialize};

pub(super) use collector::{PromptCollector, Request};

use super::entries::is_zero;
use super::run_record::RunRecord;

/// Content that the models of a run received: instructions, tools and messages, each stored once, and one [`PromptRequest`] per
/// model request that refers to them by position.
///
/// A request over the limit of [`RecordOptions::prompt_bytes`](super::RecordOptions::prompt_bytes) is left out and
/// counted in [`omitted`](Self::omitted); its hashes are in
/// [`request_fingerprints`](super::RunRecord::request_fingerprints) all the same. Tools are those that were offered in
/// the form of the loop; a protocol may add its own tokens around them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct Prompts {
    /// Distinct instructions.
    pub instructions: Vec<String>,
    /// Distinct tools.
    pub tools: Vec<OfferedTool>,
    /// Messages that models received and that are not in `items` of the record: summaries and memories of a planned view,
    /// and guidance.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub messages: Vec<Arc<Message>>,
    /// Distinct combinations of instructions, tools and settings.
    pub offers: Vec<Offer>,
    /// Model requests in order.
    pub requests: Vec<PromptRequest>,
    /// Number of requests that were left out because of the limit.
    #[serde(skip_serializing_if = "is_zero")]
    pub omitted: u64,
    /// Limit in bytes, if requests were left out.
    #[serde(skip_serializing_if = "is_zero")]
    pub limit: u64,
}

/// Tool or handoff as a model saw it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct OfferedTool {
    /// Name.
    pub name: ToolName,
    /// Description.
    pub description: String,
    /// JSON Schema of the arguments; `{}` without one.
    pub parameters: Json,
}

/// Parts of a request besides messages. Numbers are positions in the lists of [`Prompts`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Offer {
    /// Position of the instructions.
    pub instructions: usize,
    /// Positions of the tools, in order.
    pub tools: Vec<usize>,
    /// Settings of the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settings: Option<Json>,
    /// JSON Schema of the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<Json>,
}

/// One model request.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct PromptRequest {
    /// Number of the model request, starting at 1.
    pub turn: u32,
    /// Position in [`Prompts::offers`].
    pub offer: usize,
    /// Whether it was a closing request, in which the model could not call tools.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub closing: bool,
    /// Messages in order.
    pub view: Vec<ViewPart>,
}

/// Part of the messages of a request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum ViewPart {
    /// Messages `from..to` of [`RunRecord::items`].
    Items {
        /// First position.
        from: usize,
        /// Position after the last one.
        to: usize,
    },
    /// Positions in [`Prompts::messages`].
    Messages(Vec<usize>),
    /// Number of messages that the recorder did not receive.
    Unknown(u64),
}

/// A request with its parts in place of their positions.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct SeenRequest<'a> {
    /// Instructions.
    pub instructions: &'a str,
    /// Tools in order.
    pub tools: Vec<&'a OfferedTool>,
    /// Settings of the model.
    pub settings: Option<&'a Json>,
    /// JSON Schema of the answer.
    pub output: Option<&'a Json>,
    /// Whether it was a closing request.
    pub closing: bool,
    /// Messages in order.
    pub messages: Vec<SeenMessage<'a>>,
}

/// A message of a request.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum SeenMessage<'a> {
    /// A message of the transcript, and its position in [`RunRecord::items`].
    Item(usize, &'a Message),
    /// A message for this request that is not in the transcript.
    Made(&'a Message),
    /// Messages that the recorder did not receive, or that were redacted.
    Missing(u64),
}

impl RunRecord {
    /// Content that the model received in a request, numbered from 1; `None` if the record does not have it.
    pub fn seen_request(&self, turn: u32) -> Option<SeenRequest<'_>> {
        let prompts = self.prompts.as_ref()?;
        let request = prompts.requests.iter().find(|request| request.turn == turn)?;
        let offer = prompts.offers.get(request.offer)?;
        let tools = offer.tools.iter().filter_map(|at| prompts.tools.get(*at));
        Some(SeenRequest {
            instructions: prompts.instructions.get(offer.instructions)?,
            tools: tools.collect(),
            settings: offer.settings.as_ref(),
            output: offer.output.as_ref(),
            closing: request.closing,
            messages: request.view.iter().flat_map(|part| self.seen_part(prompts, part)).collect(),
        })
    }

    fn seen_part<'a>(&'a self, prompts: &'a Prompts, part: &ViewPart) -> Vec<SeenMessage<'a>> {
        match part {
            ViewPart::Items { from, to } => {
                let until = (*to).min(self.items.len());
                let known = self.items.get(*from..until).unwrap_or_default();
                let lost = to.saturating_sub(until.max(*from)) as u64;
                let known = (*from..).zip(known).map(|(at, item)| SeenMessage::Item(at, item));
                known.chain((lost > 0).then_some(SeenMessage::Missing(lost))).collect()
            }
            ViewPart::Messages(at) => {
                let made = at.iter().filter_map(|at| prompts.messages.get(*at));
                made.map(|message| SeenMessage::Made(message)).collect()
            }
            ViewPart::Unknown(count) => vec![SeenMessage::Missing(*count)],
        }
    }

    /// Instructions of a request, if they are recorded.
    pub(super) fn instructions(&self, turn: u32) -> Option<&str> {
        let seen = self.seen_request(turn).map(|seen| seen.instructions);
        // Records of earlier versions have the text beside its hash.
        let snapshot = || self.prompt_snapshots.iter().find(|prompt| prompt.turn == turn);
        seen.or_else(|| snapshot()?.prompt_text.as_deref())
    }
}
