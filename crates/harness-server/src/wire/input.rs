//! Request bodies.

use harness::core::message::{Block, Message, UserMessage};
use harness::core::port::Decision;
use harness::core::{CallDigest, Json};
use harness::runtime::{DeliveryMode, Prompt, ThreadAttributes};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::schema::library::UserBlock;
use crate::attributes;
use crate::fault::Fault;

/// A new thread.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct CreateThread {
    /// Its name: up to 128 letters, digits, `-`, `_` and `.`. Default: one of the server's.
    #[schema(example = "support-17")]
    pub(crate) id: Option<String>,
    /// User of its runs, up to 256 characters: memory with the scope `user` belongs to them. Default: that of the server.
    #[schema(example = "ada")]
    user: Option<String>,
    /// Values laid over the defaults of the descriptor's `context`, up to 16 KiB. Default: those of the server.
    #[schema(value_type = Option<Object>)]
    context: Option<Json>,
    /// Data of the caller, up to 16 KiB: part of the `origin` of events and calls, never seen by models.
    #[schema(value_type = Option<Object>)]
    metadata: Option<Json>,
}

impl CreateThread {
    pub(crate) fn attributes(&mut self) -> Result<ThreadAttributes, Fault> {
        attributes::checked(self.user.as_deref(), self.context.take(), self.metadata.take())
    }
}

/// Something that a user says: a text, or blocks.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Say {
    /// Text of the message.
    #[schema(example = "Where is my order 1042?")]
    text: Option<String>,
    /// Blocks of text, images, files and audio instead of `text`.
    #[schema(value_type = Option<Vec<UserBlock>>)]
    content: Option<Vec<Block>>,
}

impl Say {
    pub(crate) fn message(self, origin: &str) -> Result<Message, Fault> {
        message(self.text, self.content, origin)
    }
}

/// Message that starts a run of an idle thread.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct StartRun {
    /// Text of the message.
    #[schema(example = "Where is my order 1042?")]
    text: Option<String>,
    /// Blocks of text, images, files and sound, in place of a text.
    #[schema(value_type = Option<Vec<UserBlock>>)]
    content: Option<Vec<Block>>,
    /// JSON Schema that the answer must match. An answer that does not match goes back to the model, within the limit
    /// of invalid outputs; then the run ends `invalid_output`. Default: that of the agent.
    #[schema(value_type = Option<Object>)]
    output_schema: Option<Json>,
    /// User of the run, up to 256 characters. Default: that of the thread.
    user: Option<String>,
    /// Values laid over the defaults of the descriptor's `context`, up to 16 KiB. Default: those of the thread.
    #[schema(value_type = Option<Object>)]
    context: Option<Json>,
    /// Data of the caller, up to 16 KiB. Default: that of the thread.
    #[schema(value_type = Option<Object>)]
    metadata: Option<Json>,
}

impl StartRun {
    pub(crate) fn prompt(self) -> Result<Prompt, Fault> {
        let attributes = attributes::checked(self.user.as_deref(), self.context, self.metadata)?;
        let mut prompt = Prompt::from(message(self.text, self.content, "prompt")?);
        attributes::apply_to_run(attributes, &mut prompt.options);
        prompt.options.output = self.output_schema;
        Ok(prompt)
    }
}

/// Time of delivery to a busy thread.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Delivery {
    /// After the current run.
    #[default]
    NextTurn,
    /// Before the next model call of the current run.
    BetweenRounds,
    /// Immediately: the current run is interrupted.
    Interrupt,
}

impl From<Delivery> for DeliveryMode {
    fn from(delivery: Delivery) -> Self {
        match delivery {
            Delivery::NextTurn => Self::NextTurn,
            Delivery::BetweenRounds => Self::BetweenRounds,
            Delivery::Interrupt => Self::Interrupt,
        }
    }
}

impl From<DeliveryMode> for Delivery {
    fn from(mode: DeliveryMode) -> Self {
        match mode {
            DeliveryMode::BetweenRounds => Self::BetweenRounds,
            DeliveryMode::Interrupt => Self::Interrupt,
            DeliveryMode::NextTurn | _ => Self::NextTurn,
        }
    }
}

/// A message to a thread.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Send {
    /// Text of the message.
    #[schema(example = "Only the shoes, please.")]
    text: Option<String>,
    /// Blocks of text, images, files and audio instead of `text`.
    #[schema(value_type = Option<Vec<UserBlock>>)]
    content: Option<Vec<Block>>,
    /// Time of delivery if the thread is busy. An idle thread starts a run immediately.
    #[serde(default)]
    pub(crate) delivery: Delivery,
    /// Id of the queue entry. Default: generated by the thread.
    pub(crate) entry: Option<String>,
}

impl Send {
    pub(crate) fn message(&mut self) -> Result<Message, Fault> {
        message(self.text.take(), self.content.take(), "queue")
    }
}

fn message(text: Option<String>, content: Option<Vec<Block>>, origin: &str) -> Result<Message, Fault> {
    let at = if text.is_some() { "text" } else { "content" };
    let message = match (text, content) {
        (Some(text), None) => UserMessage::text(text),
        (None, Some(content)) if !content.is_empty() => {
            if let Some(at) = content.iter().position(|block| !a_user_says(block)) {
                return Err(block_fault(at));
            }
            let mut message = UserMessage::default();
            message.content = content;
            message
        }
        (None, Some(_)) => return Err(Fault::unreadable("`content` is empty").at("content")),
        (Some(_), Some(_)) => {
            return Err(Fault::unreadable("set `text` or `content`, not both").at("content"));
        }
        (None, None) => return Err(Fault::unreadable("missing field `text`").at("text")),
    };
    if message.is_blank() {
        return Err(Fault::unreadable("the message is empty").at(at));
    }
    Ok(message.from_origin(origin).into())
}

fn a_user_says(block: &Block) -> bool {
    matches!(block, Block::Text(_) | Block::Image(_) | Block::File(_) | Block::Audio(_))
}

/// Error for a block that a user message must not contain.
fn block_fault(at: usize) -> Fault {
    Fault::unreadable("only text, image, file and audio blocks are allowed").at(format!("content[{at}].type"))
}

/// Reason for stopping a run.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct AbortThread {
    /// Actor named in the report of the run. Default: `client`.
    pub(crate) reason: Option<String>,
}

/// Options of a compaction.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Compact {
    /// Content that a summary must keep.
    pub(crate) instructions: Option<String>,
}

/// Changes to a queued message.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct EditEntry {
    /// New text.
    text: Option<String>,
    /// New content, as blocks.
    #[schema(value_type = Option<Vec<UserBlock>>)]
    content: Option<Vec<Block>>,
    /// New position in the queue, from 0.
    pub(crate) place: Option<usize>,
}

impl EditEntry {
    /// New message; `None` keeps it unchanged.
    pub(crate) fn message(&mut self) -> Result<Option<Message>, Fault> {
        if self.text.is_none() && self.content.is_none() {
            return match self.place {
                Some(_) => Ok(None),
                None => Err(Fault::unreadable("no change: set `text`, `content` or `place`")),
            };
        }
        message(self.text.take(), self.content.take(), "queue").map(Some)
    }
}

/// Decision on a call.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Answer {
    decision: Decided,
    /// Digest of the call, from the list of approvals. May be sent as `If-Match` instead.
    #[schema(value_type = Option<String>)]
    pub(crate) digest: Option<CallDigest>,
    /// Arguments of the call; required with `edited`.
    #[schema(value_type = Option<Object>)]
    arguments: Option<Json>,
    /// Reason for the model; allowed with `denied`.
    reason: Option<String>,
}

/// Kind of decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
enum Decided {
    /// The call runs unchanged.
    Granted,
    /// The call runs with other arguments, which are validated again.
    Edited,
    /// The call does not run.
    Denied,
    /// The decision comes later: the run ends and the call stays parked.
    Later,
}

/// Converts a complete decision.
pub(crate) fn decision(answer: Answer) -> Result<Decision, Fault> {
    let Answer { decision, arguments, reason, digest: _ } = answer;
    if arguments.is_some() && decision != Decided::Edited {
        return Err(Fault::unreadable("`arguments` go with the decision `edited` only").at("arguments"));
    }
    if reason.is_some() && decision != Decided::Denied {
        return Err(Fault::unreadable("`reason` goes with the decision `denied` only").at("reason"));
    }
    match decision {
        Decided::Granted => Ok(Decision::Granted),
        Decided::Later => Ok(Decision::Later),
        Decided::Denied => {
            Ok(Decision::Denied { reason: reason.unwrap_or_else(|| "not approved".to_owned()) })
        }
        Decided::Edited => {
            match arguments.filter(Json::is_object) {
                Some(arguments) => Ok(Decision::Edited(arguments)),
                None => Err(Fault::unreadable("the decision `edited` requires `arguments`, an object")
                    .at("arguments")),
            }
        }
    }
}
