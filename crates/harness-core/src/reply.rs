//! What a product can say to its user about a stop, so that no turn ends in silence.

use crate::outcome::StopReason;

/// What is said about a reason that is not known.
const UNKNOWN: &str = "I could not finish this. Please try again.";

impl StopReason {
    /// The reason with this wire name.
    pub fn of(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|reason| reason.as_str() == name)
    }

    /// A sentence for the user, for every reason. With `can_retry` the sentence announces that the product
    /// tries again, where that may help, in place of advice to the user.
    ///
    /// ```
    /// use harness_core::StopReason;
    ///
    /// let said = StopReason::TimeoutReached.user_message(false);
    /// assert!(said.contains("too long"));
    /// assert_ne!(said, StopReason::TimeoutReached.user_message(true));
    /// ```
    pub fn user_message(self, can_retry: bool) -> &'static str {
        match (self, can_retry) {
            (Self::AnswerFinalized, _) => "That is my answer; I have nothing to add.",
            (Self::CompletionWaived, _) => {
                "That is my answer, but I could not confirm that every part of the work is done."
            }
            (Self::ClarificationRequired, _) => "I need a little more detail before I can go on.",
            (Self::ApprovalRequired, _) => "I need your approval before I can go on.",
            (Self::MaxIterationsReached | Self::MaxToolCallsReached, false) => {
                "I used up my steps before I was done. Please rephrase the request or split it into smaller parts."
            }
            (Self::MaxIterationsReached | Self::MaxToolCallsReached, true) => {
                "I used up my steps before I was done. I will try again another way."
            }
            (Self::TimeoutReached, false) => "This took too long. Please ask for something narrower.",
            (Self::TimeoutReached, true) => "This took too long. I will try again.",
            (Self::BudgetReached, _) => "The budget for this request is used up, so I had to stop.",
            (Self::ContextOverflow, _) => {
                "Our conversation has become too long for me to go on. Please start a new one, or ask me to shorten it."
            }
            (Self::MaxTurnsReached, _) => {
                "I worked on this for as many rounds as I may. Tell me to go on if I should."
            }
            (Self::Stalled, _) => "I am not getting any further with this. A hint from you would help.",
            (Self::BackendDeferred, _) => "I had to stop before the end. I can go on from here.",
            (Self::RedundantToolLoop, false) => {
                "I kept making the same calls without learning anything new. Please rephrase what you need."
            }
            (Self::RedundantToolLoop, true) => {
                "I kept making the same calls without learning anything new. I will try again another way."
            }
            (Self::ToolUnavailable, _) => {
                "A tool that I need is not available just now. Please try again shortly."
            }
            (Self::ToolErrorUnrecoverable, _) => "A tool that I need failed. Please try again shortly.",
            (Self::ModelRefused, _) => "I cannot help with this request.",
            (Self::ModelInvalidResponse, false) => {
                "I could not produce a usable reply. Please rephrase the request."
            }
            (Self::ModelInvalidResponse, true) => "I could not produce a usable reply. I will try again.",
            (Self::RuntimeError, _) => "Something went wrong on my side. Please try again shortly.",
            (Self::EvidenceDensityViolation, _) => {
                "I found too little to answer this reliably. Please be more specific about what you want to know."
            }
            (Self::PolicyDenied, _) => "I am not allowed to do what this would need.",
            (Self::GuardrailTriggered, _) => "This request or its answer is not allowed here.",
            (Self::Cancelled, _) => "This request was cancelled.",
            (Self::InternalInvariant, _) => {
                "Something went wrong inside the program. Please report it, and try again."
            }
        }
    }
}

/// [`StopReason::user_message`] for a wire name, and a general sentence for a name that is not known.
pub fn stop_reason_to_user_message(reason: &str, can_retry: bool) -> &'static str {
    StopReason::of(reason).map_or(UNKNOWN, |reason| reason.user_message(can_retry))
}

/// How [`truthful_failure_reply`] is built.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ReplyOptions {
    /// Added after a space, unless it is empty.
    pub suffix: String,
    /// Whether the wire name of the reason follows, in backticks and square brackets.
    pub include_stop_reason: bool,
    /// Whether the product tries again.
    pub can_retry: bool,
}

impl ReplyOptions {
    /// The message alone.
    pub fn new() -> Self {
        Self::default()
    }

    /// The same with a suffix.
    #[must_use]
    pub fn with_suffix(mut self, suffix: impl Into<String>) -> Self {
        self.suffix = suffix.into();
        self
    }

    /// The same with the wire name of the reason at the end.
    #[must_use]
    pub fn with_stop_reason(mut self) -> Self {
        self.include_stop_reason = true;
        self
    }
}

/// A reply that says truthfully why there is no better one.
///
/// ```
/// use harness_core::reply::{ReplyOptions, truthful_failure_reply};
///
/// let options = ReplyOptions::new().with_suffix("Your draft is safe.").with_stop_reason();
/// let reply = truthful_failure_reply("cancelled", &options);
/// assert_eq!(reply, "This request was cancelled. Your draft is safe. [`cancelled`]");
/// ```
pub fn truthful_failure_reply(reason: &str, options: &ReplyOptions) -> String {
    let mut reply = stop_reason_to_user_message(reason, options.can_retry).to_owned();
    if !options.suffix.is_empty() {
        reply.push(' ');
        reply.push_str(&options.suffix);
    }
    if options.include_stop_reason {
        for part in [" [`", reason, "`]"] {
            reply.push_str(part);
        }
    }
    reply
}
