//! Something said to the agents, with its options.

use std::fmt;
use std::future::IntoFuture;

use harness_core::machine::Resume;
use harness_core::message::{Message, UserMessage};
use harness_core::outcome::Continuation;
use harness_core::port::BoxFuture;
use harness_core::{AgentId, Cancel, RunId};
use harness_descriptor::Map;

use crate::error::HarnessError;
use crate::harness::Harness;
use crate::report::Report;

/// What may be set for one prompt.
#[derive(Debug, Default)]
pub(crate) struct Options {
    pub(crate) cancel: Cancel,
    pub(crate) context: Option<Map>,
    pub(crate) agent: Option<AgentId>,
    pub(crate) resume_from: Option<ResumeFrom>,
    /// The earlier run that goes on.
    pub(crate) run: Option<RunId>,
    pub(crate) any_descriptor: bool,
}

/// Earlier work that a run takes up.
#[derive(Debug)]
pub(crate) struct ResumeFrom {
    pub(crate) continuation: Box<Continuation>,
    /// How; `None` when the prompt says it.
    pub(crate) resume: Option<Resume>,
}

/// Something said to the agents. Nothing happens before it is awaited; options may be set until then.
///
/// Dropping the future is like a crash: what the session acknowledged is safe, and the next prompt first
/// settles what was left open. To stop a run in good order, use [`cancel_with`](Self::cancel_with).
///
/// ```
/// use harness::prelude::*;
/// # struct Hosted;
/// # impl Model for Hosted {
/// #     async fn step(&self, _: ModelRequest, _: &dyn Deltas) -> Result<AssistantMessage, ModelFault> {
/// #         Ok(AssistantMessage::text("hi"))
/// #     }
/// # }
///
/// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
/// let harness = Harness::new(Hosted).build()?;
/// let cancel = Cancel::new();
/// cancel.cancel();
/// let report = harness.prompt("Hello").cancel_with(cancel).await?;
/// assert_eq!(report.reason().as_str(), "cancelled");
/// # Ok::<(), harness::HarnessError>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use = "await it"]
pub struct Prompt<'h> {
    harness: &'h Harness,
    message: Option<Message>,
    options: Options,
}

impl fmt::Debug for Prompt<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Prompt").field("options", &self.options).finish_non_exhaustive()
    }
}

impl<'h> Prompt<'h> {
    pub(crate) fn new(harness: &'h Harness, message: Option<Message>) -> Self {
        Self { harness, message, options: Options::default() }
    }

    pub(crate) fn resuming(harness: &'h Harness, continuation: Continuation, resume: Resume) -> Self {
        let resume_from = Some(ResumeFrom { continuation: Box::new(continuation), resume: Some(resume) });
        Self { harness, message: None, options: Options { resume_from, ..Options::default() } }
    }

    pub(crate) fn taking_up(harness: &'h Harness, run: RunId) -> Self {
        Self { harness, message: None, options: Options { run: Some(run), ..Options::default() } }
    }

    /// Something to say to a run that is taken up: new guidance for one that had stalled, for example.
    pub fn guidance(mut self, text: impl Into<String>) -> Self {
        self.message = Some(UserMessage::text(text).into());
        self
    }

    /// Continues a session, or resumes a run, that was started under another descriptor: an explicit choice,
    /// because agents and tools may not be what they were.
    pub fn under_any_descriptor(mut self) -> Self {
        self.options.any_descriptor = true;
        self
    }

    /// Stops the run in good order when `cancel` fires: finished work is kept, every call gets its
    /// result, and the run ends `cancelled`.
    pub fn cancel_with(mut self, cancel: Cancel) -> Self {
        self.options.cancel = cancel;
        self
    }

    /// Values laid over the defaults of the descriptor's context, in place of those of the builder.
    pub fn context(mut self, overrides: Map) -> Self {
        self.options.context = Some(overrides);
        self
    }

    /// The agent to begin with. Default: the one that is active in the conversation, the entry agent at
    /// its beginning.
    pub fn agent(mut self, agent: impl Into<AgentId>) -> Self {
        self.options.agent = Some(agent.into());
        self
    }

    /// What an earlier run left to resume it, from its [`End`](harness_core::End). It must belong to this
    /// conversation, which must not have gone on since. Calls that it parked are not decided about: use
    /// [`Harness::resume_with`] for that.
    pub fn continuation(mut self, continuation: Option<Continuation>) -> Self {
        let resume = self.options.resume_from.take().and_then(|taken| taken.resume);
        self.options.resume_from =
            continuation.map(|continuation| ResumeFrom { continuation: Box::new(continuation), resume });
        self
    }
}

impl<'h> IntoFuture for Prompt<'h> {
    /// How the run ended, whatever way that was; an error means that it never began: the session could
    /// not be read, the descriptor's context could not be made, or a continuation does not fit.
    type Output = Result<Report, HarnessError>;
    type IntoFuture = BoxFuture<'h, Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.harness.run(self.message, self.options))
    }
}
