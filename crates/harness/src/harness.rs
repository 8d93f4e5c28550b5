//! The harness: one thread of conversation, ready to be prompted.

use harness_core::ThreadId;
use harness_core::port::Model;
use harness_runtime::{Prompt, Response, ResumeFrom, Runtime, Thread};

use crate::builder::Builder;

/// One thread of conversation with its agents, tools, session and limits: a [`Thread`] and the [`Runtime`] that it
/// belongs to.
///
/// It is prompted any number of times, one run at a time; a second prompt waits for the first. Runs are driven on the
/// tokio runtime that the harness was built in, or, built outside of one, on that of its caller.
///
/// ```
/// use harness::prelude::*;
/// # struct Hosted;
/// # impl Model for Hosted {
/// #     async fn step(&self, request: ModelRequest, _: &dyn Deltas) -> Result<AssistantMessage, ModelFault> {
/// #         Ok(AssistantMessage::text(format!("I see {} messages.", request.view.len())))
/// #     }
/// # }
///
/// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
/// let harness = Harness::new(Hosted).instructions("You count.").build()?;
/// assert_eq!(harness.prompt("Hello").await?.answer(), "I see 1 messages.");
/// assert_eq!(harness.prompt("And now?").await?.answer(), "I see 3 messages.");
/// # Ok::<(), harness::HarnessError>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Harness {
    runtime: Runtime,
    thread: Thread,
}

impl Harness {
    /// Starts to put a harness together around a model.
    #[expect(clippy::new_ret_no_self, reason = "a harness is made by its builder")]
    pub fn new(model: impl Model + 'static) -> Builder {
        Builder::new(model)
    }

    pub(crate) fn of(runtime: Runtime, thread: ThreadId) -> Self {
        Self { thread: runtime.thread(thread), runtime }
    }

    /// Prompts the agents. Await it for the [`Report`](harness_runtime::Report): however the run ended; an error means
    /// that it never started. A prompt without messages, or with blank text alone, resumes the conversation.
    ///
    /// It waits [its turn](Response::in_turn). [Dropping](Response::abort_on_drop) it aborts its run in good order:
    /// finished work is kept, and every call gets a result.
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
    /// let report = harness.prompt(Prompt::from("Hello").cancel_with(cancel)).await?;
    /// assert_eq!(report.reason().as_str(), "cancelled");
    /// # Ok::<(), harness::HarnessError>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn prompt(&self, prompt: impl Into<Prompt>) -> Response {
        self.thread.prompt(prompt).in_turn().abort_on_drop()
    }

    /// Resumes earlier work without a new message, as [`Thread::resume`] does: the transcript, a continuation, or the
    /// checkpoint of a run. It waits and is dropped as [`Self::prompt`].
    ///
    /// ```
    /// # use harness::prelude::*;
    ///
    /// # async fn example(harness: Harness) -> Result<(), harness::HarnessError> {
    /// let report = harness.prompt("Pay Ada 5 cents").await?;
    /// let from = report.decide(|call| {
    ///     println!("{}: {}", call.tool, call.reason);
    ///     Decision::Granted
    /// });
    /// println!("{}", harness.resume(from).await?.answer());
    /// # Ok(())
    /// # }
    /// ```
    pub fn resume(&self, from: ResumeFrom) -> Response {
        self.prompt(Prompt::resuming(from))
    }

    /// The thread: its queue, streams, configuration, compaction, and what of its runs can be resumed.
    pub fn thread(&self) -> &Thread {
        &self.thread
    }

    /// The runtime that the thread belongs to. Further threads of it have the same parts; a
    /// [session](Builder::session) is of this thread alone.
    pub fn runtime(&self) -> &Runtime {
        &self.runtime
    }
}
