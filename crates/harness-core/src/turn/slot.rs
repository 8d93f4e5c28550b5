//! The calls of one answer, and how far each has come.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::spec::{Execution, ResultRule, TurnSpec};
use crate::event::ResultNote;
use crate::limits::{Grant, Reached};
use crate::message::{ApprovalRequest, Message, ToolCall};
use crate::outcome::Fault;
use crate::policy::call_digest;
use crate::port::{Offer, OpenCall, RetryClass, ToolDef, ToolOutcome};
use crate::time::Time;

/// How far a call has come.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum Progress {
    /// Nothing was asked about it yet.
    New,
    /// Its arguments, a gate or the approver is being asked.
    Asking,
    /// It may run.
    Ready,
    /// An attempt runs.
    Running,
    /// The next attempt begins then.
    Waiting(Time),
    /// Its result is there.
    Finished(Finished),
    /// It waits for a decision that comes after this turn.
    Parked,
}

/// A call's result.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Finished {
    pub(super) outcome: Arc<ToolOutcome>,
    pub(super) message: Arc<Message>,
    /// The fault of its tool or registry.
    pub(super) fault: Option<Fault>,
    pub(super) ran: bool,
    /// How it differs from a plain result.
    pub(super) note: Option<ResultNote>,
    /// Whether it was told already.
    pub(super) told: bool,
}

/// One call of a batch.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Slot {
    pub(super) call: Arc<ToolCall>,
    /// What it calls, by its place in the offer; `None` when that is not offered.
    pub(super) tool: Option<u32>,
    /// What a restart may do with it.
    pub(super) class: RetryClass,
    pub(super) progress: Progress,
    pub(super) attempt: u32,
    pub(super) grant: Grant,
    pub(super) started: Option<Time>,
    /// Why it is held.
    pub(super) held: Option<String>,
    /// Whether the approver changed its arguments.
    pub(super) edited: bool,
    /// Whether it was approved while it was parked.
    pub(super) granted: bool,
    /// What it was parked as; an approval is bound to this.
    pub(super) parked_as: Option<Box<str>>,
    /// Whether its start was counted.
    pub(super) counted: bool,
    /// What the last failed attempt gave, while the next one is waited for.
    pub(super) last: Option<Arc<ToolOutcome>>,
}

impl Slot {
    /// A call that nothing was asked about yet.
    pub(super) fn new(call: Arc<ToolCall>, offer: Option<&Offer>) -> Self {
        let tools = offer.map_or(&[][..], |offer| &offer.tools);
        let at = tools.iter().position(|def| def.name == call.name);
        Self {
            class: at.and_then(|at| tools.get(at)).map_or(RetryClass::Unsafe, |def| def.class),
            tool: at.and_then(|at| u32::try_from(at).ok()),
            call,
            progress: Progress::New,
            attempt: 1,
            grant: Grant::default(),
            started: None,
            held: None,
            edited: false,
            granted: false,
            parked_as: None,
            counted: false,
            last: None,
        }
    }

    /// What it calls, of the tools that were offered.
    pub(super) fn def_in<'t>(&self, tools: &'t [ToolDef]) -> Option<&'t ToolDef> {
        tools.get(self.tool? as usize)
    }

    /// Why it is held, for the one who decides.
    pub(super) fn hold_reason(&self) -> String {
        self.held.clone().unwrap_or_else(|| format!("`{}` needs approval", self.call.name))
    }

    /// What an approval of it is bound to: what it was parked as, or else what it is now.
    pub(super) fn digest(&self, def: Option<&ToolDef>) -> String {
        match (&self.parked_as, def) {
            (Some(parked_as), _) => parked_as.to_string(),
            (None, Some(def)) => call_digest(def, &self.call.arguments),
            (None, None) => String::new(),
        }
    }

    /// What the one who decides is told.
    pub(super) fn held_request(&self) -> ApprovalRequest {
        let mut request =
            ApprovalRequest::new(self.call.id.as_str(), self.call.name.as_str(), self.hold_reason());
        request.details = Some(self.call.arguments.text().to_owned());
        request.call_id = Some(self.call.id.clone());
        request
    }

    pub(super) fn is_answered(&self) -> bool {
        matches!(self.progress, Progress::Finished(_))
    }
}

/// The calls of one answer, in call order.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Batch {
    pub(super) slots: Vec<Slot>,
    /// How many results are in the transcript.
    pub(super) flushed: usize,
    /// The position of the answer in the transcript.
    pub(super) answer_at: u64,
    sequential: bool,
    /// The limit that a call of the batch was refused for.
    pub(super) refused: Option<Reached>,
    /// The call whose result a hook looks at.
    pub(super) watched: Option<u32>,
    /// How many results, in call order, layers have seen.
    pub(super) seen: usize,
    /// How many they will have seen when they answer.
    pub(super) showing: Option<usize>,
    /// What layers added to the results: it comes after all of them.
    pub(super) added: Vec<Arc<Message>>,
    /// Whether results are looked at when all calls have run.
    defers: bool,
    /// Whether the prompt still has to be appended after it: the batch is a repair.
    pub(super) repairs: bool,
}

impl Batch {
    pub(super) fn new(slots: Vec<Slot>, answer_at: usize, spec: &TurnSpec, offer: Option<&Offer>) -> Self {
        let demanded =
            slots.iter().filter_map(|slot| offer?.tools.get(slot.tool? as usize)).any(|def| def.sequential);
        Self {
            slots,
            flushed: 0,
            answer_at: answer_at as u64,
            sequential: demanded || spec.execution == Execution::Sequential,
            refused: None,
            watched: None,
            seen: 0,
            showing: None,
            added: Vec::new(),
            defers: spec.results == ResultRule::AfterBatch,
            repairs: false,
        }
    }

    /// Whether its results wait until all of its calls have run.
    pub(super) fn defers(&self) -> bool {
        self.defers && !self.repairs
    }

    pub(super) fn is_sequential(&self) -> bool {
        self.sequential
    }

    pub(super) fn slot(&self, at: u32) -> Option<&Slot> {
        self.slots.get(at as usize)
    }

    pub(super) fn slot_mut(&mut self, at: u32) -> Option<&mut Slot> {
        self.slots.get_mut(at as usize)
    }

    /// Calls that have begun and whose results are not in the transcript.
    pub(super) fn begun(&self) -> impl Iterator<Item = OpenCall> {
        self.slots.iter().skip(self.flushed).filter_map(|slot| {
            let finished = match &slot.progress {
                Progress::Finished(finished) if finished.ran => Some(Arc::clone(&finished.message)),
                Progress::Finished(_) => return None,
                Progress::New
                | Progress::Asking
                | Progress::Ready
                | Progress::Running
                | Progress::Waiting(_)
                | Progress::Parked => None,
            };
            (slot.counted || finished.is_some())
                .then(|| OpenCall::new(slot.call.id.clone(), slot.attempt, slot.class, finished))
        })
    }

    pub(super) fn wake_at(&self) -> Option<Time> {
        self.slots
            .iter()
            .filter_map(|slot| if let Progress::Waiting(until) = slot.progress { Some(until) } else { None })
            .min()
    }

    /// The next call to prepare or to start.
    pub(super) fn next(&self, spec: &TurnSpec) -> Option<(u32, bool)> {
        if self.is_looked_at() {
            return None;
        }
        let (mut running, mut asking) = (0, false);
        let (mut open, mut ready, mut new) = (None, None, None);
        for (at, slot) in self.slots.iter().enumerate() {
            match slot.progress {
                Progress::New => new = new.or(Some(at)),
                Progress::Ready => ready = ready.or(Some(at)),
                Progress::Asking => asking = true,
                Progress::Running | Progress::Waiting(_) => running += 1,
                Progress::Finished(_) | Progress::Parked => continue,
            }
            open = open.or(Some(at));
        }
        let room = match spec.execution {
            Execution::Parallel { max } if !self.sequential => running < max.max(1) as usize,
            Execution::Parallel { .. } | Execution::Sequential => running == 0 && !asking,
        };
        // In sequence, whatever is open holds up what follows.
        let next = |at: &usize| !self.sequential || open == Some(*at);
        let ready = ready.filter(|_| room).filter(next);
        let new = new.filter(|_| !asking && (!self.sequential || room)).filter(next);
        match (ready, new) {
            (Some(ready), new) if new.is_none_or(|new| ready < new) => {
                Some((u32::try_from(ready).ok()?, true))
            }
            (_, new) => Some((u32::try_from(new?).ok()?, false)),
        }
    }

    pub(super) fn is_done(&self) -> bool {
        let over = |slot: &Slot| matches!(slot.progress, Progress::Finished(_) | Progress::Parked);
        !self.is_looked_at() && self.slots.iter().all(over)
    }

    /// Whether somebody looks at a result: nothing new is started meanwhile.
    pub(super) fn is_looked_at(&self) -> bool {
        self.watched.is_some() || self.showing.is_some()
    }
}
