//! Request bodies.

use harness::core::message::{Block, Message, UserMessage};
use harness::core::port::Decision;
use harness::core::{CallDigest, Json};
use harness::runtime::DeliveryMode;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::fault::Fault;

/// A new thread.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct CreateThread {
    /// Its name: up to 128 letters, digits, `-`, `_` and `.`. Default: one of the server's.
    #[schema(example = "support-17")]
    pub(crate) id: Option<String>,
}

/// Something that a user says: a text, or blocks.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Say {
    /// Text of the message.
    #[schema(example = "Where is my order 1042?")]
    text: Option<String>,
    /// Blocks of text, images, files and sound, in place of a text.
    #[schema(value_type = Option<Vec<Object>>)]
    content: Option<Vec<Block>>,
}

impl Say {
    pub(crate) fn message(self, origin: &str) -> Result<Message, Fault> {
        message(self.text, self.content, origin)
    }
}

/// When a message is delivered to a thread that is at work.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Delivery {
    /// When the run at hand is over.
    #[default]
    NextTurn,
    /// Before the next model call of the run at hand.
    BetweenRounds,
    /// At once: the run at hand is ended for it.
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

/// A message for a thread that may be at work.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Send {
    /// Text of the message.
    #[schema(example = "Only the shoes, please.")]
    text: Option<String>,
    /// Blocks of text, images, files and sound, in place of a text.
    #[schema(value_type = Option<Vec<Object>>)]
    content: Option<Vec<Block>>,
    /// When it is delivered, if the thread is at work. An idle thread begins with it at once.
    #[serde(default)]
    pub(crate) delivery: Delivery,
    /// A name for it in the queue. Default: one of the thread's.
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
        (None, Some(_)) => return Err(Fault::unreadable("there are no blocks").at("content")),
        (Some(_), Some(_)) => {
            return Err(Fault::unreadable("give `text` or `content`, not both").at("content"));
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

/// A block that no user says.
fn block_fault(at: usize) -> Fault {
    Fault::unreadable("a user says text, image, file and audio blocks only").at(format!("content[{at}].type"))
}

/// Reason for stopping a run.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct AbortThread {
    /// For the report of the run. Default `client`.
    pub(crate) reason: Option<String>,
}

/// How a transcript is made shorter.
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
    #[schema(value_type = Option<Vec<Object>>)]
    content: Option<Vec<Block>>,
    /// Its new place in the queue, from 0.
    pub(crate) place: Option<usize>,
}

impl EditEntry {
    /// New message; `None` keeps it unchanged.
    pub(crate) fn message(&mut self) -> Result<Option<Message>, Fault> {
        if self.text.is_none() && self.content.is_none() {
            return match self.place {
                Some(_) => Ok(None),
                None => Err(Fault::unreadable("nothing is changed: give `text`, `content` or `place`")),
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
    /// The digest of the call that was shown, from the list of approvals. May be given as `If-Match` instead.
    #[schema(value_type = Option<String>)]
    pub(crate) digest: Option<CallDigest>,
    /// With `edited`: the arguments with which the call runs.
    #[schema(value_type = Option<Object>)]
    arguments: Option<Json>,
    /// With `denied`: reason for the model.
    reason: Option<String>,
}

/// Kind of decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
enum Decided {
    /// The call runs as it is.
    Granted,
    /// The call runs with other arguments, which are checked again.
    Edited,
    /// The call does not run.
    Denied,
    /// Not now: the run ends with the call parked.
    Later,
}

/// The decision, when it is whole.
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
        Decided::Edited => match arguments.filter(Json::is_object) {
            Some(arguments) => Ok(Decision::Edited(arguments)),
            None => Err(Fault::unreadable("`edited` needs the arguments, an object").at("arguments")),
        },
    }
}
