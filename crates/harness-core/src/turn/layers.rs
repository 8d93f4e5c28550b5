//! What memory layers see of a turn, and what their answers mean.
//!
//! Every message from outside passes them on its way into the transcript: the prompt, results of tools,
//! what comes in between. What the machine says itself does not, nor what is still on its way when the turn
//! stops. A host without layers is asked nothing.

use std::sync::Arc;

use super::call_state::{Batch, Finished, Progress as CallProgress};
use super::closing::Closing;
use super::spec::TurnSpec;
use super::stage::{Reviewing, Stage};
use super::state::TurnState;
use crate::event::EventKind;
use crate::ids::EntryId;
use crate::machine::{Cx, Input, Op, Pending, Standing};
use crate::message::{AssistantMessage, Message, ModelOutput, ToolCall};
use crate::outcome::{End, Evidence, Fault, FaultSource, Stop, StopReason};
use crate::port::{AppendSource, Progress};

/// Messages on their way into the transcript between iterations.
#[derive(Clone, Debug)]
pub(super) struct Injecting {
    messages: Vec<Arc<Message>>,
    /// The queue's entries.
    entries: Vec<EntryId>,
}

impl TurnState {
    /// Where the work stands.
    pub(crate) fn standing(&self, cx: &Cx<'_>) -> Standing {
        let elapsed = cx.now.since(self.started_at);
        let progress = Progress::new(cx.sh.iteration, self.usage.tool_calls, elapsed, cx.sh.budgets.left());
        Standing { prepared: self.prepared.clone(), progress }
    }

    /// The operation of a question to the layers.
    pub(super) fn layers_op(&self, cx: &Cx<'_>, pending: Pending) -> Option<Op> {
        let standing = || Box::new(self.standing(cx));
        let append = |source, messages| Op::Append { source, messages, standing: standing() };
        Some(match pending {
            Pending::Begin => Op::Begin { standing: standing() },
            Pending::AppendPrompt => append(AppendSource::Prompt, self.prompt.clone()),
            Pending::AppendResults => append(AppendSource::ToolResults, self.batch.as_ref()?.shown()),
            Pending::AppendSteering => {
                append(AppendSource::Steering, self.injecting.as_ref()?.messages.clone())
            }
            Pending::Recall => Op::Recall { standing: standing() },
            Pending::AfterModel => {
                let Some(Reviewing::Layers(answer)) = self.reviewing() else { return None };
                Op::AfterModel { answer: Arc::clone(answer), standing: standing() }
            }
            Pending::LayerStore => {
                let Some(Reviewing::Learning(answer)) = self.reviewing() else { return None };
                Op::LayerStore { answer: Arc::clone(answer), standing: standing() }
            }
            Pending::Complete => {
                let Stage::Closing(closing) = &self.stage else { return None };
                closing.op()
            }
            Pending::Prepare
            | Pending::Compact
            | Pending::Model
            | Pending::Arguments(_)
            | Pending::Gate(..)
            | Pending::Check(..)
            | Pending::Approve(_)
            | Pending::Tool(_)
            | Pending::NoteApproval
            | Pending::Drain
            | Pending::Facts
            | Pending::Shorten => return None,
        })
    }

    /// Whether layers have to hear first that an execution begins: with the first turn of this machine.
    pub(super) fn begins(&mut self, cx: &mut Cx<'_>) -> bool {
        let begins = cx.ports.layers.is_some() && cx.sh.turn == 1;
        if begins {
            self.issue(cx, Pending::Begin);
        }
        begins
    }

    pub(super) fn on_begun(
        &mut self,
        spec: &TurnSpec,
        cx: &mut Cx<'_>,
        result: Result<(), Fault>,
    ) -> Option<End> {
        if let Err(fault) = result {
            let stop = Stop::new(StopReason::RuntimeError, Evidence::Fault(fault));
            return self.stop_now(spec, cx, stop);
        }
        let start = self.start.take()?;
        self.open(spec, cx, *start)
    }

    /// Shows the layers the results that are next in call order. They are stored already.
    pub(super) fn show_results(&mut self, cx: &mut Cx<'_>) {
        let Some(batch) = &mut self.batch else { return };
        let next = batch.slots.iter().skip(batch.flushed).take_while(|slot| slot.is_answered()).count();
        batch.showing = Some(batch.flushed + next);
        self.issue(cx, Pending::AppendResults);
    }

    pub(super) fn on_results_seen(
        &mut self,
        spec: &TurnSpec,
        cx: &mut Cx<'_>,
        result: Result<Vec<Arc<Message>>, Fault>,
    ) -> Option<End> {
        self.take_seen_results(cx, result);
        self.flush(spec, cx, false);
        self.run_batch(spec, cx)
    }

    /// Takes what layers gave in place of results.
    pub(super) fn take_seen_results(&mut self, cx: &mut Cx<'_>, result: Result<Vec<Arc<Message>>, Fault>) {
        let given = cx.tolerate(result);
        let refused = self.batch.as_mut().map_or(0, |batch| batch.take_seen(given));
        emit_refused(cx, refused);
    }

    /// Brings what layers added to results into the transcript: behind the last result, or, behind a parked
    /// call, later.
    pub(super) fn keep_what_layers_added(&mut self, cx: &mut Cx<'_>) {
        let Some(batch) = self.batch.as_mut().filter(|batch| !batch.added.is_empty()) else { return };
        let added = std::mem::take(&mut batch.added);
        if self.is_parked() {
            self.steering.splice(0..0, added);
        } else {
            cx.append(added);
        }
    }

    /// Injects messages, through the layers when there are any, and goes on with the next iteration.
    pub(super) fn inject(
        &mut self,
        spec: &TurnSpec,
        cx: &mut Cx<'_>,
        messages: Vec<Arc<Message>>,
        entries: Vec<EntryId>,
    ) -> Option<End> {
        let injecting = Injecting { messages, entries };
        if cx.ports.layers.is_some() {
            self.injecting = Some(Box::new(injecting));
            self.issue(cx, Pending::AppendSteering);
            return None;
        }
        injecting.append(cx);
        self.answer = None;
        self.iterate(spec, cx)
    }

    pub(super) fn on_steering_seen(
        &mut self,
        spec: &TurnSpec,
        cx: &mut Cx<'_>,
        result: Result<Vec<Arc<Message>>, Fault>,
    ) -> Option<End> {
        self.take_seen_steering(cx, result);
        self.answer = None;
        self.iterate(spec, cx)
    }

    /// Injects what layers gave in place of messages that come in between.
    pub(super) fn take_seen_steering(&mut self, cx: &mut Cx<'_>, result: Result<Vec<Arc<Message>>, Fault>) {
        let Some(injecting) = self.injecting.take() else { return };
        let Injecting { messages, entries } = *injecting;
        Injecting { messages: admitted(cx, messages, result), entries }.append(cx);
    }

    /// Whether layers first learn from the answer that is the last message, if it counts.
    pub(super) fn stores(&mut self, cx: &mut Cx<'_>) -> bool {
        let counts = |message: &AssistantMessage| !matches!(message.output(), ModelOutput::Invalid(_));
        let last = cx.log.last().filter(|last| last.as_assistant().is_some_and(counts));
        let Some(answer) = last.cloned() else { return false };
        self.stage = Stage::Reviewing(Reviewing::Learning(answer));
        self.issue(cx, Pending::LayerStore);
        true
    }

    pub(super) fn on_stored(
        &mut self,
        spec: &TurnSpec,
        cx: &mut Cx<'_>,
        result: Result<(), Fault>,
    ) -> Option<End> {
        cx.tolerate(result);
        self.take_reviewing()?;
        self.act_on_last(spec, cx)
    }

    /// The turn stops: what layers were looking at goes on without them.
    pub(super) fn stop_showing(&mut self, cx: &mut Cx<'_>) {
        if let Some(batch) = &mut self.batch {
            (batch.watched, batch.showing) = (None, None);
        }
        if let Some(injecting) = self.injecting.take() {
            injecting.append(cx);
        }
    }

    /// Tells the layers that the execution is over, when this turn is all of it.
    pub(super) fn close_layers(&mut self, cx: &mut Cx<'_>, end: End) -> Option<End> {
        if cx.ports.layers.is_none() || self.inner {
            return Some(Self::emit_end(cx, end));
        }
        let standing = self.standing(cx);
        self.stage = Stage::Closing(Closing::begin(cx, end, standing));
        None
    }

    /// Goes on while the layers take note of the end.
    pub(super) fn leave(&mut self, cx: &mut Cx<'_>, pending: Option<Pending>, input: Input) -> Option<End> {
        let Stage::Closing(closing) = &mut self.stage else { return None };
        if !closing.step(cx, pending, input) {
            return None;
        }
        let Stage::Closing(closing) = std::mem::replace(&mut self.stage, Stage::Ended) else { return None };
        Some(Self::emit_end(cx, closing.into_end(cx)))
    }
}

impl Injecting {
    fn append(self, cx: &mut Cx<'_>) {
        cx.append(self.messages);
        cx.event(|| EventKind::SteeringInjected { entries: self.entries });
    }
}

impl Batch {
    /// The results that layers are looking at.
    fn shown(&self) -> Vec<Arc<Message>> {
        let slots = self.slots.iter().take(self.showing.unwrap_or(0)).skip(self.flushed);
        slots.filter_map(|slot| finished(&slot.progress)?.message.clone()).collect()
    }

    /// Takes what layers gave in place of the results that they looked at; without it these stay. A result
    /// that was left out, or is one of another call, is put back (law 1). How many messages were refused.
    fn take_seen(&mut self, given: Option<Vec<Arc<Message>>>) -> usize {
        let Some(upto) = self.showing.take() else { return 0 };
        self.seen = upto;
        let Some(mut given) = given else { return 0 };
        for slot in self.slots.iter_mut().take(upto).skip(self.flushed) {
            let Some(at) = given.iter().position(|message| is_result_of(message, &slot.call)) else {
                continue;
            };
            let message = given.remove(at);
            if let CallProgress::Finished(finished) = &mut slot.progress {
                finished.message = Some(message);
            }
        }
        let (added, refused): (Vec<_>, Vec<_>) = given.into_iter().partition(|message| stands_alone(message));
        self.added.extend(added);
        refused.len()
    }
}

fn finished(stage: &CallProgress) -> Option<&Finished> {
    if let CallProgress::Finished(finished) = stage { Some(finished) } else { None }
}

fn is_result_of(message: &Message, call: &ToolCall) -> bool {
    let result = message.as_tool_result();
    result.is_some_and(|result| result.tool_call_id == call.id && result.tool_name == call.name)
}

/// Whether a message is neither a result nor holds calls, which need each other.
fn stands_alone(message: &Message) -> bool {
    let calls = message.as_assistant().is_some_and(|answer| answer.tool_calls().next().is_some());
    message.as_tool_result().is_none() && !calls
}

/// What layers gave in place of `shown`, as far as it may enter the transcript; `shown` when they failed.
pub(super) fn admitted(
    cx: &mut Cx<'_>,
    shown: Vec<Arc<Message>>,
    result: Result<Vec<Arc<Message>>, Fault>,
) -> Vec<Arc<Message>> {
    let Some(mut given) = cx.tolerate(result) else { return shown };
    let before = given.len();
    given.retain(|message| stands_alone(message) || shown.contains(message));
    emit_refused(cx, before - given.len());
    given
}

fn emit_refused(cx: &mut Cx<'_>, refused: usize) {
    if refused > 0 {
        let text = format!(
            "{refused} messages were left out: a layer adds neither results of calls nor answers with calls"
        );
        let fault = Fault::new(FaultSource::Layer, "append_refused", text);
        cx.event(|| EventKind::PartFailed { fault });
    }
}
