//! The calls of one answer, and how far each has come.

use std::sync::Arc;

use crate::event::ResultNote;
use crate::json::Json;
use crate::limits::{Amount, Grant, Reached};
use crate::message::{ApprovalRequest, Message, ToolCall};
use crate::outcome::{Fault, PendingCall, PendingWork};
use crate::port::OpenCall;
use crate::time::Time;
use crate::tool::{RetryClass, ToolDef, ToolOutcome, ToolStatus};
use crate::turn::opening::Opening;
use crate::turn::spec::{Execution, TurnSpec};

/// The progress of a call.
#[derive(Clone, Debug)]
pub(in crate::turn) enum Progress {
    /// Nothing is decided about it.
    New,
    /// Its arguments are validated, or a gate or the approver decides.
    Asking,
    /// It may run.
    Ready,
    Running,
    /// The next attempt starts then.
    Waiting(Time),
    /// It has a result.
    Finished(Finished),
    /// It waits for a decision after this turn.
    Parked,
}

#[derive(Clone, Debug)]
pub(in crate::turn) struct Finished {
    pub(in crate::turn) outcome: Arc<ToolOutcome>,
    /// Its message, until that is in the transcript.
    pub(in crate::turn) message: Option<Arc<Message>>,
    /// The error of its tool or registry itself.
    pub(in crate::turn) fault: Option<Fault>,
    pub(in crate::turn) ran: bool,
    /// Whether a person denied the call.
    pub(in crate::turn) is_denied: bool,
    /// How it differs from a plain result.
    pub(in crate::turn) note: Option<ResultNote>,
}

impl Finished {
    pub(in crate::turn) fn ran(outcome: Arc<ToolOutcome>, fault: Option<Fault>) -> Self {
        Self { outcome, message: None, fault, ran: true, is_denied: false, note: None }
    }

    pub(in crate::turn) fn not_run(outcome: ToolOutcome) -> Self {
        Self {
            outcome: Arc::new(outcome),
            message: None,
            fault: None,
            ran: false,
            is_denied: false,
            note: None,
        }
    }

    /// The result of a call that a person denied.
    pub(in crate::turn) fn denied(reason: &str) -> Self {
        let outcome = ToolOutcome::error("tool_blocked", format!("Denied: {reason}"));
        Self { is_denied: true, ..Self::not_run(outcome) }
    }

    /// Whether it is stored before its turn in call order: a later run must neither repeat the call nor ask about it again.
    pub(in crate::turn) fn is_lasting(&self) -> bool {
        self.ran || self.is_denied
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

#[derive(Clone, Debug)]
pub(in crate::turn) struct CallState {
    pub(in crate::turn) call: Arc<ToolCall>,
    /// The index of its tool in the offer; `None` when it is not offered.
    pub(in crate::turn) tool: Option<u32>,
    /// Whether a restart may repeat it.
    pub(in crate::turn) class: RetryClass,
    pub(in crate::turn) progress: Progress,
    pub(in crate::turn) attempt: u32,
    pub(in crate::turn) grant: Grant,
    /// Tool calls of the grant that are the call itself; the rest it may spend.
    pub(in crate::turn) own_calls: u32,
    /// When its first attempt started here.
    pub(in crate::turn) started: Option<Time>,
    /// The reason of a hold.
    pub(in crate::turn) held: Option<String>,
    /// Whether its arguments differ from those in the transcript.
    pub(in crate::turn) rewritten: bool,
    /// Whether a person changed them.
    pub(in crate::turn) edited: bool,
    /// The gate that is asked once its arguments are checked.
    pub(in crate::turn) next_gate: u32,
    /// Whether it was approved while it was parked.
    pub(in crate::turn) granted: bool,
    /// The parked call; an approval is bound to it.
    pub(in crate::turn) parked_as: Option<Box<PendingCall>>,
    /// Its work that waits for approval, until the call has another result.
    pub(in crate::turn) work: Option<Box<PendingWork>>,
    /// The outcome of the last failed attempt, until the next one ends.
    pub(in crate::turn) last: Option<Arc<ToolOutcome>>,
}

impl CallState {
    fn new(call: Arc<ToolCall>, tool: Option<u32>, class: RetryClass) -> Self {
        Self {
            call,
            tool,
            class,
            progress: Progress::New,
            attempt: 1,
            grant: Grant::default(),
            own_calls: 0,
            started: None,
            held: None,
            rewritten: false,
            edited: false,
            next_gate: 0,
            granted: false,
            parked_as: None,
            work: None,
            last: None,
        }
    }

    /// The budget of an attempt beyond the call itself.
    pub(in crate::turn) fn share(&self) -> Grant {
        Grant(self.grant.0.minus(Amount { tool_calls: self.own_calls, ..Amount::NONE }))
    }

    /// Replaces the arguments; the transcript keeps those of the model.
    pub(in crate::turn) fn rewrite(&mut self, arguments: Json) {
        let call = Arc::make_mut(&mut self.call);
        (call.arguments, call.raw_arguments) = (arguments, None);
        self.rewritten = true;
    }

    /// Replaces the arguments by those of a person, which are approved.
    pub(in crate::turn) fn edit(&mut self, arguments: Json) {
        self.rewrite(arguments);
        (self.edited, self.held) = (true, None);
    }

    /// Its definition, when it is offered.
    pub(in crate::turn) fn def_in<'t>(&self, tools: &'t [ToolDef]) -> Option<&'t ToolDef> {
        tools.get(self.tool? as usize)
    }

    /// The call waits with its work, and is performed again when it is granted.
    pub(in crate::turn) fn park(&mut self, requests: &[ApprovalRequest]) {
        self.work = Some(Box::new(PendingWork::new(self.attempt, requests.to_vec())));
        self.held = Some(format!("the work of `{}` waits for approval", self.call.name));
        self.progress = Progress::Parked;
    }

    /// Requests for a person while it is parked.
    pub(in crate::turn) fn requests(&self) -> Vec<ApprovalRequest> {
        match &self.work {
            Some(work) => work.requests.clone(),
            None => vec![ApprovalRequest::of_call(&self.call, self.hold_reason())],
        }
    }

    /// The reason of a hold, for the person who decides.
    pub(in crate::turn) fn hold_reason(&self) -> String {
        self.held.clone().unwrap_or_else(|| format!("`{}` needs approval", self.call.name))
    }

    pub(in crate::turn) fn finished(&self) -> Option<&Finished> {
        if let Progress::Finished(finished) = &self.progress { Some(finished) } else { None }
    }

    pub(in crate::turn) fn is_parked(&self) -> bool {
        matches!(self.progress, Progress::Parked)
    }

    /// Its next action, when no other call has to be considered.
    fn action(&self, at: u32) -> Action {
        match self.progress {
            Progress::New => Action::Prepare(at),
            Progress::Ready => Action::Start(at),
            Progress::Asking | Progress::Running | Progress::Waiting(_) => Action::Wait,
            Progress::Finished(_) | Progress::Parked => Action::Done,
        }
    }
}

/// The next action in a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::turn) enum Action {
    /// Take a call through its gates.
    Prepare(u32),
    /// Run a call.
    Start(u32),
    /// Wait for a reply.
    Wait,
    /// Every call is finished or parked.
    Done,
}

/// The calls of one answer, in call order.
#[derive(Debug, Default)]
pub(in crate::turn) struct Batch {
    pub(in crate::turn) slots: Vec<CallState>,
    /// Results that are in the transcript.
    pub(in crate::turn) flushed: usize,
    /// The position of the answer in the transcript.
    pub(in crate::turn) answer_at: usize,
    sequential: bool,
    /// Whether an earlier process has asked for the calls.
    pub(in crate::turn) is_reopened: bool,
    /// Whether the turn stops and ignores further results.
    pub(in crate::turn) is_stopped: bool,
    /// The opening that continues once calls of an earlier process are settled.
    pub(in crate::turn) opening: Option<Box<Opening>>,
    /// The limit that refused a call of the batch.
    pub(in crate::turn) refused: Option<Reached>,
    /// The call whose result checks judge.
    pub(in crate::turn) checking: Option<u32>,
    /// Results, in call order, that layers have seen.
    pub(in crate::turn) seen: usize,
    /// Results that they will have seen when they reply.
    pub(in crate::turn) showing: Option<usize>,
    /// Messages that layers added: they follow all results.
    pub(in crate::turn) added: Vec<Arc<Message>>,
}

impl Batch {
    /// The calls of the answer at a position of the transcript.
    pub(in crate::turn) fn new<'c>(
        calls: impl Iterator<Item = &'c Arc<ToolCall>> + Clone,
        answer_at: usize,
        spec: &TurnSpec,
        tools: &[ToolDef],
    ) -> Box<Self> {
        let mut sequential = spec.execution == Execution::Sequential;
        let mut slots = Vec::with_capacity(calls.clone().count());
        slots.extend(calls.map(|call| {
            let def = (0..).zip(tools).find(|(_, def)| def.name == call.name);
            sequential |= def.is_some_and(|(_, def)| def.sequential);
            let class = def.map_or(RetryClass::Unsafe, |(_, def)| def.class);
            CallState::new(Arc::clone(call), def.map(|(at, _)| at), class)
        }));
        Box::new(Self { slots, answer_at, sequential, ..Self::default() })
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

    /// The indexes of the calls that match, in call order.
    pub(in crate::turn) fn places(&self, is_one: impl Fn(&CallState) -> bool) -> Vec<u32> {
        (0..).zip(&self.slots).filter(|(_, slot)| is_one(slot)).map(|(at, _)| at).collect()
    }

    /// Calls that have started, or were denied, and whose results are not in the transcript.
    pub(in crate::turn) fn started(&self) -> impl Iterator<Item = OpenCall> {
        self.slots.iter().skip(self.flushed).filter_map(|slot| {
            let finished = slot.finished();
            let result = finished.and_then(|finished| finished.message.clone());
            let is_open =
                finished.is_none_or(Finished::is_lasting) && (slot.started.is_some() || result.is_some());
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

    /// The next action. In parallel one call is prepared at a time while at most `max` others run; in sequence, or when it
    /// is the only one, the first open call decides.
    pub(in crate::turn) fn next(&self, spec: &TurnSpec) -> Action {
        if self.is_looked_at() {
            return Action::Wait;
        }
        let open = |slot: &CallState| !matches!(slot.progress, Progress::Finished(_) | Progress::Parked);
        let mut open = (0..).zip(&self.slots).skip(self.flushed).filter(|(_, slot)| open(slot));
        let all = open.clone();
        let Some((first, slot)) = open.next() else { return Action::Done };
        if self.sequential || open.next().is_none() {
            return slot.action(first);
        }
        let max = if let Execution::Parallel { max } = spec.execution { max.max(1) } else { 1 };
        let (mut running, mut asking) = (0, false);
        let (mut ready, mut new) = (None, None);
        for (at, slot) in all {
            match slot.progress {
                Progress::New => new = new.or(Some(at)),
                Progress::Ready => ready = ready.or(Some(at)),
                Progress::Asking => asking = true,
                Progress::Running | Progress::Waiting(_) => running += 1,
                Progress::Finished(_) | Progress::Parked => {}
            }
        }
        match (ready.filter(|_| running < max), new.filter(|_| !asking)) {
            (Some(ready), new) if new.is_none_or(|new| ready < new) => Action::Start(ready),
            (_, Some(new)) => Action::Prepare(new),
            (_, None) => Action::Wait,
        }
    }

    /// Whether layers or checks look at a result: nothing new starts meanwhile.
    pub(in crate::turn) fn is_looked_at(&self) -> bool {
        self.checking.is_some() || self.showing.is_some()
    }
}
