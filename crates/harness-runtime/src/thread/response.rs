//! Response to a prompt.

use std::fmt;
use std::marker::PhantomData;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};

use harness_core::message::Message;
use harness_core::port::BoxFuture;
use harness_core::tool::schema_of;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use tokio::sync::oneshot;

use super::handle::Thread;
use super::state::{Begin, Outcome};
use crate::error::RuntimeError;
use crate::prompt::Prompt;
use crate::report::Typed;

/// Response to a prompt: await it for the [`Report`](crate::Report). Nothing starts before it is awaited.
#[must_use = "await it"]
pub struct Response {
    thread: Thread,
    /// The prompt, until it is awaited.
    prompt: Option<Box<Prompt>>,
    waits: bool,
    aborts: bool,
    answer: Option<BoxFuture<'static, Outcome>>,
}

impl fmt::Debug for Response {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Response")
            .field("thread", &self.thread)
            .field("prompt", &self.prompt)
            .finish_non_exhaustive()
    }
}

impl Response {
    pub(super) fn new(thread: Thread, prompt: Prompt) -> Self {
        Self { thread, prompt: Some(Box::new(prompt)), waits: false, aborts: false, answer: None }
    }

    /// Waits for its turn while the thread is busy, in the order of asking; without this, a busy thread is
    /// [`RuntimeError::Busy`]. Inside of the thread's own run it would wait for itself.
    pub fn in_turn(mut self) -> Self {
        self.waits = true;
        self
    }

    /// Aborts the run in good order when this is dropped before the end; without this, the run continues.
    pub fn abort_on_drop(mut self) -> Self {
        self.aborts = true;
        self
    }
}

impl Response {
    /// Requires an answer of a type: the model is sent its JSON Schema, and the answer is validated. An invalid answer
    /// goes back to the model with the problem, within
    /// [`Limits::invalid_outputs`](harness_core::limits::Limits::invalid_outputs); then the run ends `invalid_output`.
    ///
    /// Which agent answers does not matter: the schema holds behind handoffs, too. The prompt of a resumed run repeats
    /// it.
    ///
    /// ```
    /// use harness_runtime::{RuntimeError, Thread, Typed};
    ///
    /// #[derive(serde::Deserialize, schemars::JsonSchema)]
    /// struct Weather {
    ///     celsius: f64,
    /// }
    ///
    /// # async fn example(thread: Thread) -> Result<(), RuntimeError> {
    /// let answer: Typed<Weather> = thread.prompt("How cold is Oslo?").typed().await?;
    /// match answer.value {
    ///     Ok(weather) => println!("{} °C", weather.celsius),
    ///     Err(no_answer) => println!("{no_answer}"),
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn typed<T: DeserializeOwned + JsonSchema>(mut self) -> TypedResponse<T> {
        if let Some(prompt) = &mut self.prompt {
            prompt.options.output = Some(schema_of::<T>());
        }
        TypedResponse { response: self, answer: PhantomData }
    }
}

/// Response to a prompt whose answer is a type: await it for the [`Typed`] answer.
#[derive(Debug)]
#[must_use = "await it"]
pub struct TypedResponse<T> {
    response: Response,
    answer: PhantomData<fn() -> T>,
}

impl<T: DeserializeOwned> Future for TypedResponse<T> {
    type Output = Result<Typed<T>, RuntimeError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.response).poll(cx).map_ok(Typed::from)
    }
}

impl Future for Response {
    type Output = Outcome;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Outcome> {
        if let Some(prompt) = self.prompt.take() {
            let (thread, waits, aborts) = (self.thread.clone(), self.waits, self.aborts);
            self.answer = Some(Box::pin(thread.answer(prompt, waits, aborts)));
        }
        match &mut self.answer {
            Some(answer) => answer.as_mut().poll(cx),
            None => Poll::Pending,
        }
    }
}

/// Stops a claimed run when its response is dropped.
struct AbortOnDrop {
    thread: Thread,
    /// The claim; `None` when it is over.
    claim: Option<u64>,
}

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        let Some(claim) = self.claim else { return };
        let mut state = self.thread.0.lock();
        if state.claims == claim {
            self.thread.0.stop(&mut state, Arc::from("dropped"));
        }
    }
}

impl Thread {
    async fn answer(self, prompt: Box<Prompt>, waits: bool, aborts: bool) -> Outcome {
        self.0.check_output(&prompt.options)?;
        let mut prompt = prompt;
        prompt.messages.retain(|message| !matches!(&**message, Message::User(user) if user.is_blank()));
        let (claim, waiter) = if waits { self.claim_in_turn(prompt).await } else { self.claim(prompt) }?;
        let mut guard = AbortOnDrop { thread: self.clone(), claim: aborts.then_some(claim) };
        let answered = self.answered(waiter).await;
        guard.claim = None;
        answered
    }

    /// Claims the thread once it is free, in the order of asking.
    async fn claim_in_turn(
        &self,
        prompt: Box<Prompt>,
    ) -> Result<(u64, oneshot::Receiver<Outcome>), RuntimeError> {
        let _first = self.0.turn.lock().await;
        loop {
            let mut changed = pin!(self.0.changed.notified());
            changed.as_mut().enable();
            match self.claim(prompt.clone()) {
                Err(RuntimeError::Busy { .. }) => changed.await,
                claimed => return claimed,
            }
        }
    }

    /// Claims a free thread for a run, and begins it.
    fn claim(&self, prompt: Box<Prompt>) -> Result<(u64, oneshot::Receiver<Outcome>), RuntimeError> {
        self.0.parts.tokio()?;
        let (job, claim, waiter) = {
            let mut state = self.0.lock();
            self.0.free(&state)?;
            let job = self.0.claim(&mut state, Begin::Prompt(prompt));
            let (sender, waiter) = oneshot::channel();
            state.waiters.push(sender);
            (job, state.claims, waiter)
        };
        self.0.spawn(job);
        Ok((claim, waiter))
    }
}
