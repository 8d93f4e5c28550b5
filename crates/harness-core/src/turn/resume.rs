//! A turn that an earlier process had begun, taken up where its messages end.

use std::sync::Arc;

use super::call_state::Batch;
use super::spec::TurnSpec;
use super::state::TurnState;
use crate::event::RepairHow;
use crate::limits::{Amount, Grant};
use crate::machine::Cx;
use crate::message::{AssistantMessage, Message};
use crate::outcome::{End, Purpose, TotalUsage};
use crate::transcript::Transcript;

/// What a turn had used when its process ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct PriorUsage {
    /// The length of the transcript when it began.
    began: u64,
    /// Its answers so far.
    iterations: u32,
    usage: TotalUsage,
    /// What it had used, which no limit has been charged with.
    used: Amount,
}

impl PriorUsage {
    /// A turn that began with the message at `began`.
    pub(crate) fn new(began: usize, log: &Transcript) -> Self {
        let (mut usage, mut used) = (TotalUsage::default(), Amount::NONE);
        for message in log.range(began..log.len()) {
            match &**message {
                Message::Assistant(answer) => {
                    usage.add_call(Purpose::Answer, answer.usage.as_deref(), true);
                    used.iterations = used.iterations.saturating_add(1);
                    if let Some(tokens) = &answer.usage {
                        used.tokens = used.tokens.saturating_add(tokens.all_tokens());
                        used.cost = used.cost.plus(tokens.total_cost().unwrap_or_default());
                    }
                }
                Message::ToolResult(_) => {
                    usage.tool_calls = usage.tool_calls.saturating_add(1);
                    used.tool_calls = used.tool_calls.saturating_add(1);
                }
                Message::System(_) | Message::User(_) | Message::Custom(_) => {}
            }
        }
        let answers = log.range(began..log.len()).filter(|message| message.as_assistant().is_some());
        let iterations = u32::try_from(answers.count()).unwrap_or(u32::MAX);
        Self { began: began as u64, iterations, usage, used }
    }
}

impl TurnState {
    /// A turn of a run that was begun before.
    pub(crate) fn resumed(carried: PriorUsage) -> Self {
        Self { carried: Some(Box::new(carried)), ..Self::of_run() }
    }

    /// Charges what was used before.
    pub(super) fn charge_carried(&mut self, cx: &mut Cx<'_>) {
        let Some(carried) = &self.carried else { return };
        self.began = carried.began;
        self.usage.clone_from(&carried.usage);
        cx.sh.iteration = carried.iterations;
        (self.asked, self.asked_in) = (carried.iterations, carried.iterations);
        cx.sh.budgets.settle(Grant::default(), carried.used);
    }

    /// A call that had started, and does not start again, counts.
    pub(super) fn count_repaired(&mut self, cx: &mut Cx<'_>, how: RepairHow) {
        let started = match how {
            RepairHow::Recovered | RepairHow::Interrupted => self.carried.is_some(),
            RepairHow::Rerun | RepairHow::NotRun | RepairHow::Run => false,
        };
        if started {
            self.usage.tool_calls = self.usage.tool_calls.saturating_add(1);
            cx.sh.budgets.settle(Grant::default(), Amount { tool_calls: 1, ..Amount::NONE });
        }
    }

    /// Whether the turn goes on from an answer of its own, or from the results of one, and not with a request.
    pub(super) fn goes_on_from_last(&self, log: &Transcript) -> bool {
        self.carried.is_some()
            && self.prompt.is_empty()
            && self.began() < log.len()
            && log.last().is_some_and(|last| match &**last {
                Message::Assistant(answer) => answer.tool_calls().next().is_none(),
                Message::ToolResult(_) => true,
                Message::System(_) | Message::User(_) | Message::Custom(_) => false,
            })
    }

    /// Does what would have followed the last message.
    pub(super) fn go_on_from_last(&mut self, spec: &TurnSpec, cx: &mut Cx<'_>) -> Option<End> {
        self.carried = None;
        self.announce(cx);
        if cx.log.last()?.as_assistant().is_some() {
            return self.act_on_last(spec, cx);
        }
        let answer_at = (0..cx.log.len()).rev().find(|at| as_answer(cx.log, *at).is_some())?;
        let calls = as_answer(cx.log, answer_at)?.tool_calls().cloned();
        let mut batch = Box::<Batch>::default();
        batch.open(calls, answer_at, spec, self.prepared.as_deref());
        for (at, slot) in batch.slots.iter_mut().enumerate() {
            if let Some(result) = cx.log.get(answer_at + 1 + at) {
                slot.progress = super::repair::finished(Arc::clone(result), false);
            }
        }
        (batch.flushed, batch.seen) = (batch.slots.len(), batch.slots.len());
        self.batch = Some(batch);
        self.run_batch(spec, cx)
    }
}

fn as_answer(log: &Transcript, at: usize) -> Option<&AssistantMessage> {
    log.get(at)?.as_assistant()
}
