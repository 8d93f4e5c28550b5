//! The calls of one answer, and how far each has come.

use std::sync::Arc;

use super::spec::{Execution, TurnSpec};
use crate::event::ResultNote;
use crate::ids::AgentId;
use crate::limits::{Amount, Grant, Reached};
use crate::machine::Op;
use crate::message::{ApprovalRequest, Message, ToolCall};
use crate::outcome::{Fault, PendingCall};
use crate::port::{OpenCall, PreparedAgent};
use crate::time::Time;
use crate::tool::{RetryClass, ToolDef, ToolOutcome};

/// How far a call has come.
#[derive(Clone, Debug)]
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
#[derive(Clone, Debug)]
pub(super) struct Finished {
    pub(super) outcome: Arc<ToolOutcome>,
    /// Its message, until that is in the transcript.
    pub(super) message: Option<Arc<Message>>,
    /// The fault of its tool or registry.
    pub(super) fault: Option<Fault>,
    pub(super) ran: bool,
    /// How it differs from a plain result.
    pub(super) note: Option<ResultNote>,
}

/// One call of a batch.
#[derive(Clone, Debug)]
pub(super) struct CallState {
    pub(super) call: Arc<ToolCall>,
    /// What it calls, by its place in the offer; `None` when that is not offered.
    pub(super) tool: Option<u32>,
    /// What a restart may do with it.
    pub(super) class: RetryClass,
    pub(super) progress: Progress,
    pub(super) attempt: u32,
    pub(super) grant: Grant,
    /// Tool calls of the grant that are the call itself; the rest it may spend.
    pub(super) own_calls: u32,
    pub(super) started: Option<Time>,
    /// Whether its start was counted.
    pub(super) counted: bool,
    particulars: Option<Box<Particulars>>,
}

/// What is particular about a call: few have any, and those are asked about before they run, or tried again.
#[derive(Clone, Debug)]
pub(super) struct Particulars {
    /// Why it is held.
    pub(super) held: Option<String>,
    /// Whether the approver changed its arguments.
    pub(super) edited: bool,
    /// Whether anybody did: the transcript holds other ones.
    pub(super) rewritten: bool,
    /// The gate that is asked next, once its arguments were checked.
    pub(super) next_gate: u32,
    /// Whether it was approved while it was parked.
    pub(super) granted: bool,
    /// What it was parked as; an approval is bound to this.
    pub(super) parked_as: Option<Box<PendingCall>>,
    /// What the last failed attempt gave, while the next one is waited for.
    pub(super) last: Option<Box<ToolOutcome>>,
}

impl Particulars {
    const NONE: Self = Self {
        held: None,
        edited: false,
        rewritten: false,
        next_gate: 0,
        granted: false,
        parked_as: None,
        last: None,
    };
}

impl Default for Particulars {
    fn default() -> Self {
        Self::NONE
    }
}

impl CallState {
    /// A call that nothing was asked about yet.
    fn new(call: Arc<ToolCall>, tool: Option<u32>, class: RetryClass) -> Self {
        Self {
            class,
            tool,
            call,
            progress: Progress::New,
            attempt: 1,
            grant: Grant::default(),
            own_calls: 0,
            started: None,
            counted: false,
            particulars: None,
        }
    }

    /// What is particular about it.
    pub(super) fn particulars(&self) -> &Particulars {
        static NONE: Particulars = Particulars::NONE;
        self.particulars.as_deref().unwrap_or(&NONE)
    }

    /// The same, to change it.
    pub(super) fn particulars_mut(&mut self) -> &mut Particulars {
        self.particulars.get_or_insert_default()
    }

    /// Takes what the last failed attempt gave.
    pub(super) fn take_last(&mut self) -> Option<Box<ToolOutcome>> {
        self.particulars.as_mut()?.last.take()
    }

    /// What an attempt may spend beyond itself.
    pub(super) fn share(&self) -> Grant {
        Grant(self.grant.0.minus(Amount { tool_calls: self.own_calls, ..Amount::NONE }))
    }

    /// The operation that runs an attempt of it, the call at place `index` of the answer at `message`.
    pub(super) fn op(&self, index: u32, message: u64, agent: AgentId, iteration: u32) -> Op {
        let (call, attempt, grant) = (Arc::clone(&self.call), self.attempt, self.share());
        Op::Tool { call, agent, iteration, message, index, attempt, grant }
    }

    /// What it calls, of the tools that were offered.
    pub(super) fn def_in<'t>(&self, tools: &'t [ToolDef]) -> Option<&'t ToolDef> {
        tools.get(self.tool? as usize)
    }

    /// Why it is held, for the one who decides.
    pub(super) fn hold_reason(&self) -> String {
        self.particulars().held.clone().unwrap_or_else(|| format!("`{}` needs approval", self.call.name))
    }

    /// The question whether it may run.
    pub(super) fn held_request(&self) -> ApprovalRequest {
        ApprovalRequest::of_call(&self.call, self.hold_reason())
    }

    pub(super) fn is_answered(&self) -> bool {
        matches!(self.progress, Progress::Finished(_))
    }
}

/// What can be done in a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// A call is to be taken through its gates.
    Prepare(u32),
    /// A call is to be run.
    Start(u32),
    /// Nothing before something answers.
    Wait,
    /// Every call is finished or parked.
    Done,
}

/// The calls of one answer, in call order.
#[derive(Clone, Debug, Default)]
pub(super) struct Batch {
    pub(super) slots: Vec<CallState>,
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
    /// Whether the prompt still has to be appended after it: the batch is a repair.
    pub(super) repairs: bool,
}

impl Batch {
    /// Begins with the calls of the answer at a position of the transcript.
    pub(super) fn open(
        &mut self,
        calls: impl Iterator<Item = Arc<ToolCall>>,
        answer_at: usize,
        spec: &TurnSpec,
        prepared: Option<&PreparedAgent>,
    ) {
        let tools = prepared.map_or(&[][..], |prepared| &prepared.tools);
        self.answer_at = answer_at as u64;
        self.sequential = spec.execution == Execution::Sequential;
        for call in calls {
            let at = tools.iter().position(|def| def.name == call.name);
            let def = at.and_then(|at| tools.get(at));
            self.sequential |= def.is_some_and(|def| def.sequential);
            let class = def.map_or(RetryClass::Unsafe, |def| def.class);
            self.slots.push(CallState::new(call, at.and_then(|at| u32::try_from(at).ok()), class));
        }
    }

    pub(super) fn is_sequential(&self) -> bool {
        self.sequential
    }

    pub(super) fn slot(&self, at: u32) -> Option<&CallState> {
        self.slots.get(at as usize)
    }

    pub(super) fn slot_mut(&mut self, at: u32) -> Option<&mut CallState> {
        self.slots.get_mut(at as usize)
    }

    /// Calls that have begun and whose results are not in the transcript.
    pub(super) fn begun(&self) -> impl Iterator<Item = OpenCall> {
        self.slots.iter().skip(self.flushed).filter_map(|slot| {
            let finished = match &slot.progress {
                Progress::Finished(finished) if finished.ran => finished.message.clone(),
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

    /// What can be done now.
    pub(super) fn next(&self, spec: &TurnSpec) -> Next {
        if self.is_looked_at() {
            return Next::Wait;
        }
        match spec.execution {
            Execution::Parallel { max } if !self.sequential => self.next_of_all(max.max(1)),
            Execution::Parallel { .. } | Execution::Sequential => self.next_in_order(),
        }
    }

    /// In sequence, the first call that is open holds up what follows.
    fn next_in_order(&self) -> Next {
        for (at, slot) in (0..).zip(&self.slots).skip(self.flushed) {
            return match slot.progress {
                Progress::Finished(_) | Progress::Parked => continue,
                Progress::New => Next::Prepare(at),
                Progress::Ready => Next::Start(at),
                Progress::Asking | Progress::Running | Progress::Waiting(_) => Next::Wait,
            };
        }
        Next::Done
    }

    /// One call is prepared at a time while at most `max` others run.
    fn next_of_all(&self, max: u32) -> Next {
        let (mut running, mut asking) = (0, false);
        let (mut ready, mut new) = (None, None);
        for (at, slot) in (0..).zip(&self.slots).skip(self.flushed) {
            match slot.progress {
                Progress::New => new = new.or(Some(at)),
                Progress::Ready => ready = ready.or(Some(at)),
                Progress::Asking => asking = true,
                Progress::Running | Progress::Waiting(_) => running += 1,
                Progress::Finished(_) | Progress::Parked => {}
            }
        }
        if running == 0 && !asking && ready.is_none() && new.is_none() {
            return Next::Done;
        }
        match (ready.filter(|_| running < max), new.filter(|_| !asking)) {
            (Some(ready), new) if new.is_none_or(|new| ready < new) => Next::Start(ready),
            (_, Some(new)) => Next::Prepare(new),
            (_, None) => Next::Wait,
        }
    }

    /// Whether somebody looks at a result: nothing new is started meanwhile.
    pub(super) fn is_looked_at(&self) -> bool {
        self.watched.is_some() || self.showing.is_some()
    }
}
