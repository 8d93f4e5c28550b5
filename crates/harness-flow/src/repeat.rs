//! Loops.

use std::collections::VecDeque;
use std::fmt;
use std::pin::pin;
use std::sync::Arc;

use futures_util::future::{Either, select};
use harness_core::message::UserMessage;
use harness_core::{Json, Millis, Time};

use super::context::StepCx;
use super::error::FlowError;
use super::step::{Kind, Step};
use super::until::{LoopSnapshot, Until, Verdict, text_of};
use crate::channel::{ChannelError, ChannelSpec};
use crate::ended::cancelled;

/// Reaction of a loop to a failed step. An abort always ends it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnLoopError {
    /// Ends the loop with the error.
    #[default]
    Fail,
    /// Repeats the round with its input.
    Retry,
    /// Continues with the last output; without one, repeats the round.
    Skip,
}

type Prepare = Box<dyn Fn(&Json, &Verdict, &StepCx) -> Json + Send + Sync>;

pub(super) struct Rounds {
    pub(super) body: Vec<Step>,
    until: Until,
    max_iterations: u64,
    max_history: usize,
    on_error: OnLoopError,
    prepare: Option<Prepare>,
    inbox: Option<(ChannelSpec, Millis)>,
}

/// Repeats steps until a predicate stops it. Each step receives the output of the one before.
///
/// Every attempt of a round counts against [`Loop::max_iterations`]. A restored flow takes finished rounds from
/// the ledger and evaluates the predicate on them again.
///
/// ```
/// use harness_flow::{Loop, Step, Until};
///
/// let count = Step::run("count", async |n: u64, _| Ok::<_, String>(n + 1));
/// let step = Step::from(Loop::new("to five", [count], Until::output_equals("5")));
/// # let _ = step;
/// ```
#[must_use]
pub struct Loop {
    id: Arc<str>,
    rounds: Rounds,
}

impl fmt::Debug for Loop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Rounds { body, until, max_iterations, .. } = &self.rounds;
        f.debug_struct("Loop")
            .field("id", &self.id)
            .field("body", body)
            .field("until", until)
            .field("max_iterations", max_iterations)
            .finish_non_exhaustive()
    }
}

impl Loop {
    /// Creates a loop of at most 1,000 rounds that an error ends.
    pub fn new(id: impl Into<Arc<str>>, body: impl IntoIterator<Item = Step>, until: Until) -> Self {
        let rounds = Rounds {
            body: body.into_iter().collect(),
            until,
            max_iterations: 1_000,
            max_history: 100,
            on_error: OnLoopError::Fail,
            prepare: None,
            inbox: None,
        };
        Self { id: id.into(), rounds }
    }

    /// Runs steps in order, once.
    pub fn sequence(id: impl Into<Arc<str>>, steps: impl IntoIterator<Item = Step>) -> Self {
        Self::new(id, steps, Until::max_steps(1))
    }

    /// Limits the number of rounds. Default 1,000.
    pub fn max_iterations(mut self, most: u64) -> Self {
        self.rounds.max_iterations = most;
        self
    }

    /// Limits the outputs in a predicate's history. Default 100.
    pub fn max_history(mut self, most: usize) -> Self {
        self.rounds.max_history = most;
        self
    }

    /// Sets the reaction to a failed step. Default [`OnLoopError::Fail`].
    pub fn on_error(mut self, on_error: OnLoopError) -> Self {
        self.rounds.on_error = on_error;
        self
    }

    /// Computes the input of the next round from output and verdict. Default the output.
    pub fn prepare(
        mut self,
        prepare: impl Fn(&Json, &Verdict, &StepCx) -> Json + Send + Sync + 'static,
    ) -> Self {
        self.rounds.prepare = Some(Box::new(prepare));
        self
    }

    /// Receives from a channel before the loop stops, waiting at most `wait`. A received value is appended to the
    /// messages, and the loop continues.
    pub fn inbox(mut self, channel: ChannelSpec, wait: Millis) -> Self {
        self.rounds.inbox = Some((channel, wait));
        self
    }
}

impl From<Loop> for Step {
    fn from(given: Loop) -> Self {
        Self::new(given.id, Kind::Loop(Arc::new(given.rounds)))
    }
}

/// Progress of a loop.
struct LoopState {
    started: Time,
    step_count: u64,
    last: Option<Json>,
    previous_text: Option<String>,
    history: VecDeque<Json>,
}

impl LoopState {
    fn succeeded(&mut self, output: &Json, max_history: usize) {
        self.step_count += 1;
        self.previous_text = self.last.as_ref().map(text_of);
        self.last = Some(output.clone());
        self.history.push_back(output.clone());
        while self.history.len() > max_history {
            self.history.pop_front();
        }
    }

    fn snapshot(&self, cx: &StepCx) -> LoopSnapshot {
        let (used, last_output) = (cx.used(), self.last.clone().unwrap_or_else(Json::null));
        LoopSnapshot {
            step_count: self.step_count,
            tokens: used.tokens,
            cost: used.cost,
            elapsed: cx.shared().clock().now().since(self.started),
            last_text: text_of(&last_output),
            last_output,
            previous_text: self.previous_text.clone(),
            history: self.history.iter().cloned().collect(),
            depth: cx.depth(),
            last_tool_calls: cx.context().log.lock().last_calls(),
        }
    }
}

pub(super) async fn perform(
    id: &Arc<str>,
    rounds: &Rounds,
    mut input: Json,
    cx: &StepCx,
) -> Result<Json, FlowError> {
    let started = cx.shared().clock().now();
    let mut state =
        LoopState { started, step_count: 0, last: None, previous_text: None, history: VecDeque::new() };
    for _ in 0..rounds.max_iterations {
        let numbers = cx.numbers();
        match round(rounds, input.clone(), cx).await {
            Ok(output) => state.succeeded(&output, rounds.max_history),
            Err(error) if !error.may_be_retried() => return Err(error),
            Err(error) => match (rounds.on_error, &state.last) {
                (OnLoopError::Fail, _) => return Err(error),
                // The steps before the failed one run again.
                (OnLoopError::Retry, _) => {
                    cx.reset_numbers(numbers);
                    continue;
                }
                (OnLoopError::Skip, None) => continue,
                (OnLoopError::Skip, Some(_)) => {}
            },
        }
        let verdict = judged(rounds, &state.snapshot(cx), cx).await?;
        let output = state.last.clone().unwrap_or_else(Json::null);
        if verdict.stop && !found_in_inbox(rounds, cx).await? {
            return Ok(output);
        }
        input = match &rounds.prepare {
            Some(prepare) => prepare(&output, &verdict, cx),
            None => output,
        };
    }
    Err(FlowError::LoopExhausted { step: Arc::clone(id), most: rounds.max_iterations })
}

async fn round(rounds: &Rounds, mut value: Json, cx: &StepCx) -> Result<Json, FlowError> {
    for step in &rounds.body {
        value = step.perform(value, cx).await?;
    }
    Ok(value)
}

/// Evaluates the predicate until it is cancelled.
async fn judged(rounds: &Rounds, snapshot: &LoopSnapshot, cx: &StepCx) -> Result<Verdict, FlowError> {
    match select(rounds.until.judge(snapshot), pin!(cancelled(cx.cancel()))).await {
        Either::Left((verdict, _)) => Ok(verdict),
        Either::Right((reason, _)) => Err(FlowError::Cancelled { reason }),
    }
}

/// Receives from the inbox in a step, so that a received value is recorded with its message.
async fn found_in_inbox(rounds: &Rounds, cx: &StepCx) -> Result<bool, FlowError> {
    let Some((channel, wait)) = &rounds.inbox else { return Ok(false) };
    let (channel, wait) = (channel.clone(), *wait);
    let look = Step::run("inbox", move |(): (), cx: StepCx| {
        let channel = cx.channel(&channel);
        async move {
            let Some(found) = look(channel?, wait).await? else { return Ok::<_, ChannelError>(false) };
            cx.append(harness_core::message::Message::from(
                UserMessage::text(text_of(&found)).from_origin("inbox"),
            ));
            Ok(true)
        }
    });
    let found = look.perform(Json::null(), cx).await?;
    Ok(found.to::<bool>().unwrap_or_default())
}

async fn look(channel: crate::channel::Channel, wait: Millis) -> Result<Option<Json>, ChannelError> {
    if wait == Millis(0) {
        return Ok(channel.try_recv());
    }
    match channel.timeout(Some(wait)).recv().await {
        Ok(found) => Ok(Some(found)),
        Err(ChannelError::Timeout { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}
