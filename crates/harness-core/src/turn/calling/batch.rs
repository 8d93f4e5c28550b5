//! The calls of one answer, and how far each has come.

use std::sync::Arc;

use crate::decide::Subject;
use crate::event::ResultNote;
use crate::json::Json;
use crate::limits::{Amount, Grant, Reached};
use crate::message::{ApprovalRequest, Message, ToolCall};
use crate::outcome::{Fault, PendingCall};
use crate::port::OpenCall;
use crate::time::Time;
use crate::tool::{RetryClass, ToolDef, ToolOutcome, ToolStatus};
use crate::turn::opening::Opening;
use crate::turn::spec::{Execution, TurnSpec};

/// How far a call has come.
#[derive(Clone, Debug)]
pub(in crate::turn) enum Progress {
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
pub(in crate::turn) struct Finished {
    pub(in crate::turn) outcome: Arc<ToolOutcome>,
    /// Its message, until that is in the transcript.
    pub(in crate::turn) message: Option<Arc<Message>>,
    /// The fault of its tool or registry.
    pub(in crate::turn) fault: Option<Fault>,
    pub(in crate::turn) ran: bool,
    /// How it differs from a plain result.
    pub(in crate::turn) note: Option<ResultNote>,
}

impl Finished {
    /// The result of a call that ran.
    pub(in crate::turn) fn ran(outcome: Box<ToolOutcome>, fault: Option<Fault>) -> Self {
        Self { outcome: Arc::from(outcome), message: None, fault, ran: true, note: None }
    }

    /// The result of a call that did not run.
    pub(in crate::turn) fn not_run(outcome: ToolOutcome) -> Self {
        Self { outcome: Arc::new(outcome), message: None, fault: None, ran: false, note: None }
    }

    /// A result of which only the message is known.
    pub(in crate::turn) fn of_message(message: Arc<Message>, ran: bool) -> Self {
        let is_error = message.as_tool_result().is_some_and(|result| result.is_error);
        let outcome = ToolOutcome {
            status: if is_error { ToolStatus::Failed } else { ToolStatus::Success },
            content: message.content().to_vec(),
            ..ToolOutcome::default()
        };
        Self { message: Some(message), ran, ..Self::not_run(outcome) }
    }
}

/// One call of a batch.
#[derive(Clone, Debug)]
pub(in crate::turn) struct CallState {
    pub(in crate::turn) call: Arc<ToolCall>,
    /// What it calls, by its place in the offer; `None` when that is not offered.
    pub(in crate::turn) tool: Option<u32>,
    /// What a restart may do with it.
    pub(in crate::turn) class: RetryClass,
    pub(in crate::turn) progress: Progress,
    pub(in crate::turn) attempt: u32,
    pub(in crate::turn) grant: Grant,
    /// Tool calls of the grant that are the call itself; the rest it may spend.
    pub(in crate::turn) own_calls: u32,
    pub(in crate::turn) started: Option<Time>,
    /// Whether its start was counted.
    pub(in crate::turn) counted: bool,
    particulars: Option<Box<Particulars>>,
}

/// What is particular about a call: few have any, and those are asked about before they run, or tried again.
#[derive(Clone, Debug)]
pub(in crate::turn) struct Particulars {
    /// Why it is held.
    pub(in crate::turn) held: Option<String>,
    /// Whether the approver changed its arguments.
    pub(in crate::turn) edited: bool,
    /// Whether anybody did: the transcript holds other ones.
    pub(in crate::turn) rewritten: bool,
    /// The gate that is asked next, once its arguments were checked.
    pub(in crate::turn) next_gate: u32,
    /// Whether it was approved while it was parked.
    pub(in crate::turn) granted: bool,
    /// What it was parked as; an approval is bound to this.
    pub(in crate::turn) parked_as: Option<Box<PendingCall>>,
    /// What the last failed attempt gave, while the next one is waited for.
    pub(in crate::turn) last: Option<Box<ToolOutcome>>,
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
    pub(in crate::turn) fn particulars(&self) -> &Particulars {
        static NONE: Particulars = Particulars::NONE;
        self.particulars.as_deref().unwrap_or(&NONE)
    }

    /// The same, to change it.
    pub(in crate::turn) fn particulars_mut(&mut self) -> &mut Particulars {
        self.particulars.get_or_insert_default()
    }

    /// Takes what the last failed attempt gave.
    pub(in crate::turn) fn take_last(&mut self) -> Option<Box<ToolOutcome>> {
        self.particulars.as_mut()?.last.take()
    }

    /// What an attempt may spend beyond itself.
    pub(in crate::turn) fn share(&self) -> Grant {
        Grant(self.grant.0.minus(Amount { tool_calls: self.own_calls, ..Amount::NONE }))
    }

    /// Puts other arguments in place; the transcript keeps those of the model.
    pub(in crate::turn) fn rewrite(&mut self, arguments: Json) {
        let mut call = ToolCall::clone(&self.call);
        call.arguments = arguments;
        call.raw_arguments = None;
        self.call = Arc::new(call);
        self.particulars_mut().rewritten = true;
    }

    /// The same, by a person: these are approved.
    pub(in crate::turn) fn edit(&mut self, arguments: Json) {
        self.rewrite(arguments);
        let particulars = self.particulars_mut();
        (particulars.edited, particulars.held) = (true, None);
    }

    /// What it calls, of the tools that were offered.
    pub(in crate::turn) fn def_in<'t>(&self, tools: &'t [ToolDef]) -> Option<&'t ToolDef> {
        tools.get(self.tool? as usize)
    }

    /// Why it is held, for the one who decides.
    pub(in crate::turn) fn hold_reason(&self) -> String {
        self.particulars().held.clone().unwrap_or_else(|| format!("`{}` needs approval", self.call.name))
    }

    /// The question whether it may run.
    pub(in crate::turn) fn held_request(&self) -> ApprovalRequest {
        ApprovalRequest::of_call(&self.call, self.hold_reason())
    }

    /// Its result, once it has one.
    pub(in crate::turn) fn finished(&self) -> Option<&Finished> {
        if let Progress::Finished(finished) = &self.progress { Some(finished) } else { None }
    }

    pub(in crate::turn) fn is_parked(&self) -> bool {
        matches!(self.progress, Progress::Parked)
    }
}

/// What can be done in a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::turn) enum Action {
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
#[derive(Debug, Default)]
pub(in crate::turn) struct Batch {
    pub(in crate::turn) slots: Vec<CallState>,
    /// How many results are in the transcript.
    pub(in crate::turn) flushed: usize,
    /// The position of the answer in the transcript.
    pub(in crate::turn) answer_at: usize,
    sequential: bool,
    /// Whether an earlier process has asked for the calls.
    pub(in crate::turn) is_reopened: bool,
    /// What follows once what an earlier process left open is settled.
    pub(in crate::turn) opening: Option<Box<Opening>>,
    /// The limit that a call of the batch was refused for.
    pub(in crate::turn) refused: Option<Reached>,
    /// The call whose result checks look at, and what they see of it.
    pub(in crate::turn) checking: Option<(u32, Box<Subject>)>,
    /// How many results, in call order, layers have seen.
    pub(in crate::turn) seen: usize,
    /// How many they will have seen when they answer.
    pub(in crate::turn) showing: Option<usize>,
    /// What layers added to the results: it comes after all of them.
    pub(in crate::turn) added: Vec<Arc<Message>>,
}

impl Batch {
    /// The calls of the answer at a position of the transcript.
    pub(in crate::turn) fn new(
        calls: impl Iterator<Item = Arc<ToolCall>>,
        answer_at: usize,
        spec: &TurnSpec,
        tools: &[ToolDef],
    ) -> Self {
        let sequential = spec.execution == Execution::Sequential;
        let mut batch = Self { answer_at, sequential, ..Self::default() };
        for call in calls {
            let at = tools.iter().position(|def| def.name == call.name);
            let def = at.and_then(|at| tools.get(at));
            batch.sequential |= def.is_some_and(|def| def.sequential);
            let class = def.map_or(RetryClass::Unsafe, |def| def.class);
            batch.slots.push(CallState::new(call, at.and_then(|at| u32::try_from(at).ok()), class));
        }
        batch
    }

    pub(in crate::turn) fn is_sequential(&self) -> bool {
        self.sequential
    }

    pub(in crate::turn) fn slot(&self, at: u32) -> Option<&CallState> {
        self.slots.get(at as usize)
    }

    pub(in crate::turn) fn slot_mut(&mut self, at: u32) -> Option<&mut CallState> {
        self.slots.get_mut(at as usize)
    }

    pub(in crate::turn) fn is_parked(&self) -> bool {
        self.slots.iter().any(CallState::is_parked)
    }

    /// The places of the calls that something holds for, in call order.
    pub(in crate::turn) fn places(&self, is_one: impl Fn(&CallState) -> bool) -> Vec<u32> {
        (0..).zip(&self.slots).filter(|(_, slot)| is_one(slot)).map(|(at, _)| at).collect()
    }

    /// Calls that have started and whose results are not in the transcript.
    pub(in crate::turn) fn started(&self) -> impl Iterator<Item = OpenCall> {
        self.slots.iter().skip(self.flushed).filter_map(|slot| {
            let finished = slot.finished();
            let result = finished.and_then(|finished| finished.message.clone());
            let is_open = finished.is_none_or(|finished| finished.ran) && (slot.counted || result.is_some());
            is_open.then(|| OpenCall::new(slot.call.id.clone(), slot.attempt, slot.class, result))
        })
    }

    /// When the next retry starts.
    pub(in crate::turn) fn wake_at(&self) -> Option<Time> {
        self.slots
            .iter()
            .filter_map(|slot| if let Progress::Waiting(until) = slot.progress { Some(until) } else { None })
            .min()
    }

    /// What can be done now.
    pub(in crate::turn) fn next(&self, spec: &TurnSpec) -> Action {
        if self.is_looked_at() {
            return Action::Wait;
        }
        match spec.execution {
            Execution::Parallel { max } if !self.sequential => self.next_of_all(max.max(1)),
            Execution::Parallel { .. } | Execution::Sequential => self.next_in_order(),
        }
    }

    /// In sequence, the first call that is open holds up what follows.
    fn next_in_order(&self) -> Action {
        for (at, slot) in (0..).zip(&self.slots).skip(self.flushed) {
            return match slot.progress {
                Progress::Finished(_) | Progress::Parked => continue,
                Progress::New => Action::Prepare(at),
                Progress::Ready => Action::Start(at),
                Progress::Asking | Progress::Running | Progress::Waiting(_) => Action::Wait,
            };
        }
        Action::Done
    }

    /// One call is prepared at a time while at most `max` others run.
    fn next_of_all(&self, max: u32) -> Action {
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
            return Action::Done;
        }
        match (ready.filter(|_| running < max), new.filter(|_| !asking)) {
            (Some(ready), new) if new.is_none_or(|new| ready < new) => Action::Start(ready),
            (_, Some(new)) => Action::Prepare(new),
            (_, None) => Action::Wait,
        }
    }

    /// Whether somebody looks at a result: nothing new is started meanwhile.
    pub(in crate::turn) fn is_looked_at(&self) -> bool {
        self.checking.is_some() || self.showing.is_some()
    }
}
