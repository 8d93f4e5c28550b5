//! A question that one answer settles: no tools, no loop.

use harness_core::Millis;
use harness_core::cancel::Cancel;
use harness_core::message::Usage;
use harness_core::port::ExecutionRequest;

/// A question with what was said before it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SingleShotRequest {
    /// The system prompt.
    pub system_prompt: String,
    /// What the developer adds; a second system message when it is not blank.
    pub developer_prompt: Option<String>,
    /// What was said before, oldest first.
    pub history: Vec<Said>,
    /// The question.
    pub text: String,
}

/// One message of a history.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Said {
    /// Who said it: `user` or `assistant`.
    pub role: String,
    /// What.
    pub content: String,
}

impl SingleShotRequest {
    /// A question without a history.
    pub fn new(system_prompt: impl Into<String>, text: impl Into<String>) -> Self {
        Self { system_prompt: system_prompt.into(), text: text.into(), ..Self::default() }
    }

    /// The question of a turn: its prompts, its message, and as the history those blocks of its context
    /// that are labelled exactly `user` or `assistant`.
    pub fn of(request: &ExecutionRequest) -> Self {
        let blocks = request.context.iter().flat_map(|context| &context.blocks);
        let spoken = blocks.filter(|block| matches!(block.label.as_str(), "user" | "assistant"));
        Self {
            system_prompt: request.instructions.system_prompt.clone(),
            developer_prompt: request.instructions.developer_prompt.clone(),
            history: spoken
                .map(|block| Said { role: block.label.clone(), content: block.text.clone() })
                .collect(),
            text: request.message.text.clone(),
        }
    }
}

/// The answer to a [`SingleShotRequest`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SingleShotAnswer {
    /// The text as it came; never empty.
    pub text: String,
    /// What it used, when that was told.
    pub usage: Option<Usage>,
    /// Whether the token limit cut the text.
    pub truncated: bool,
}

impl SingleShotAnswer {
    /// An answer.
    pub fn new(text: impl Into<String>, usage: Option<Usage>, truncated: bool) -> Self {
        Self { text: text.into(), usage, truncated }
    }
}

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SingleShotFault {
    /// There is no key to ask with.
    #[error("the API key of OpenRouter is not configured")]
    NoKey,
    /// The endpoint answered with an error status.
    #[error("OpenRouter answered with HTTP {status}{}", told(message.as_deref()))]
    Http {
        /// The status.
        status: u16,
        /// What the endpoint said, without the key.
        message: Option<String>,
        /// Whether the same request may well work later.
        retryable: bool,
        /// How long the endpoint asks to wait.
        retry_after: Option<Millis>,
    },
    /// The endpoint reported an error in a reply of status 200.
    #[error("OpenRouter reported an error: {message}")]
    Reported {
        /// What it said, without the key.
        message: String,
    },
    /// The answer was stopped before its end: `error` or `content_filter`.
    #[error("OpenRouter stopped the answer: {finish_reason}")]
    Stopped {
        /// Why.
        finish_reason: String,
    },
    /// There is no text in the answer.
    #[error("the answer of OpenRouter holds no text")]
    NoText,
    /// The reply is no JSON document, or a too large one.
    #[error("the reply of OpenRouter cannot be read: {reason}")]
    Unreadable {
        /// What is wrong with it.
        reason: String,
    },
    /// There was no whole reply in time.
    #[error("OpenRouter did not answer within {after}")]
    Timeout {
        /// The limit.
        after: Millis,
    },
    /// The connection could not be made, or broke.
    #[error("{reason}")]
    Transport {
        /// What happened.
        reason: String,
    },
    /// Nobody wants the answer any more.
    #[error("the request was cancelled")]
    Cancelled,
}

fn told(message: Option<&str>) -> String {
    message.map(|message| format!(": {message}")).unwrap_or_default()
}

impl SingleShotFault {
    /// A stable code of the kind of fault.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::NoKey => "single_shot.no_key",
            Self::Http { .. } => "single_shot.http",
            Self::Reported { .. } => "single_shot.reported",
            Self::Stopped { .. } => "single_shot.stopped",
            Self::NoText => "single_shot.no_text",
            Self::Unreadable { .. } => "single_shot.unreadable",
            Self::Timeout { .. } => "single_shot.timeout",
            Self::Transport { .. } => "single_shot.transport",
            Self::Cancelled => "single_shot.cancelled",
        }
    }

    /// What to do about it, where there is something to do.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::NoKey => Some("give the adapter a key, for example that of OPENROUTER_API_KEY"),
            Self::Http { retryable: true, .. } | Self::Transport { .. } | Self::Unreadable { .. } => {
                Some("try again later")
            }
            Self::Timeout { .. } => Some("try again, or allow more time"),
            Self::Http { .. } => Some("check the key, the model's name and its settings"),
            Self::Stopped { .. } | Self::Reported { .. } | Self::NoText => Some("use another model"),
            Self::Cancelled => None,
        }
    }
}

/// Answers a question at once.
///
/// ```
/// use harness_adapters::execution::{SingleShot, SingleShotAnswer, SingleShotFault, SingleShotRequest};
/// use harness_core::cancel::Cancel;
///
/// struct Echo;
///
/// impl SingleShot for Echo {
///     async fn generate(
///         &self,
///         request: SingleShotRequest,
///         _: &Cancel,
///     ) -> Result<SingleShotAnswer, SingleShotFault> {
///         Ok(SingleShotAnswer::new(request.text, None, false))
///     }
/// }
/// ```
pub trait SingleShot: Send + Sync {
    /// Answers; ends early with [`SingleShotFault::Cancelled`] when `cancel` fires.
    fn generate(
        &self,
        request: SingleShotRequest,
        cancel: &Cancel,
    ) -> impl Future<Output = Result<SingleShotAnswer, SingleShotFault>> + Send;
}
