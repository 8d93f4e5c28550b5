//! A gate or a check with what everybody must know of it.

use std::fmt;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures_util::FutureExt as _;
use futures_util::future::{Either, select};
use serde::{Deserialize, Serialize};

use super::DecideCx;
use super::check::{CheckDecision, CheckVerdict, DynCheck, Subject};
use super::gate::{DynGate, GateDecision, GateVerdict};
use crate::ids::GateName;
use crate::outcome::{Fault, FaultSource, StopMode};
use crate::panics::panic_text;
use crate::port::{BoxFuture, Clock, ProposedCall};
use crate::time::Millis;

/// What it means that a gate or a check gave no answer: it failed, panicked, or took too long.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnError {
    /// No: the call is denied, the prompt or the answer refused, the run goes on.
    #[default]
    Strict,
    /// As if it had not been there. What went wrong is told all the same.
    Lenient,
    /// Lenient at the end of a run whose [mode](crate::outcome::StopMode) is interactive, else strict.
    LenientIfInteractive,
}

impl OnError {
    /// Whether the failure stands in the way; `mode` is that of the run whose end is judged.
    pub(crate) fn is_strict(self, mode: Option<StopMode>) -> bool {
        match self {
            Self::Strict => true,
            Self::Lenient => false,
            Self::LenientIfInteractive => mode != Some(StopMode::Interactive),
        }
    }
}

/// Where something is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Point {
    /// A gate, before the arguments of a call are checked against the tool's schema, so that it can mend what would be
    /// refused: an old field name, a value in another unit. It may be asked again about a call after a restart, so
    /// preparing prepared arguments must change nothing. The transcript keeps the arguments of the model. It is not
    /// asked about arguments that an approver has edited, nor about arguments that are no JSON.
    Prepare,
    /// A gate, about a call whose arguments are what the tool will get.
    Call,
    /// A gate, about a handoff to another agent.
    Handoff,
    /// A check, about what somebody asks.
    Prompt,
    /// A check, about an answer.
    Answer,
    /// A check, about the end of a turn that claims that the work of its run is done.
    End,
    /// A check, about the result of a call that ran.
    Result,
    /// A check, about an output of a model that is of no use.
    Invalid,
}

impl Point {
    /// Its name in events.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Prepare => "prepare",
            Self::Call => "call",
            Self::Handoff => "handoff",
            Self::Prompt => "prompt",
            Self::Answer => "answer",
            Self::End => "end",
            Self::Result => "result",
            Self::Invalid => "invalid",
        }
    }
}

/// Several points.
///
/// ```
/// use harness_core::decide::{Guard, Point, Points};
///
/// let points = Points::PROMPT.and(Points::ANSWER);
/// assert!(points.has(Point::Prompt) && !points.has(Point::Call));
/// assert_eq!(Guard::new("no-secrets", points).points, points);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Points(u8);

impl Points {
    /// Before arguments are checked.
    pub const PREPARE: Self = Self::of(Point::Prepare);
    /// Before a tool call runs.
    pub const CALL: Self = Self::of(Point::Call);
    /// Before a handoff.
    pub const HANDOFF: Self = Self::of(Point::Handoff);
    /// Before a prompt is in the transcript.
    pub const PROMPT: Self = Self::of(Point::Prompt);
    /// Before an answer counts.
    pub const ANSWER: Self = Self::of(Point::Answer);
    /// Before a run ends as completed.
    pub const END: Self = Self::of(Point::End);
    /// Behind a call that ran, before the turn goes on.
    pub const RESULT: Self = Self::of(Point::Result);
    /// Behind an output of no use, before the model is asked again.
    pub const INVALID: Self = Self::of(Point::Invalid);

    /// One point.
    pub const fn of(point: Point) -> Self {
        Self(1 << point as u8)
    }

    /// These and those.
    #[must_use]
    pub const fn and(self, others: Self) -> Self {
        Self(self.0 | others.0)
    }

    /// These without those.
    #[must_use]
    pub const fn without(self, others: Self) -> Self {
        Self(self.0 & !others.0)
    }

    /// Whether there is none.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Whether the point is among them.
    pub const fn has(self, point: Point) -> bool {
        self.0 & Self::of(point).0 != 0
    }
}

/// What a machine knows of a gate or a check: plain data.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Guard {
    /// Its name, in events and results.
    pub name: GateName,
    /// How long one answer may take. Default 60 s; `None` is bounded by the turn alone.
    pub timeout: Option<Millis>,
    /// What it means that it gave no answer. Default [`OnError::Strict`].
    pub on_error: OnError,
    /// Where it is asked.
    pub points: Points,
}

impl Guard {
    /// One of this name, asked there, with the defaults.
    pub fn new(name: impl Into<GateName>, points: Points) -> Self {
        Self { name: name.into(), timeout: Some(Millis(60_000)), on_error: OnError::Strict, points }
    }

    /// What it means that the gate gave no answer.
    pub fn without_answer(&self, fault: &Fault) -> GateVerdict {
        if self.on_error.is_strict(None) {
            return GateVerdict::deny(format_args!("the gate `{}` failed: {}", self.name, fault.message));
        }
        GateVerdict::Allow
    }

    /// What it means that the check gave no answer; `mode` is that of the run whose end it judges.
    pub(crate) fn check_without_answer(&self, fault: &Fault, mode: Option<StopMode>) -> CheckVerdict {
        if self.on_error.is_strict(mode) {
            return CheckVerdict::refuse(format!("the check failed: {}", fault.message));
        }
        CheckVerdict::Accept
    }
}

/// A gate or a check, with its name, its time, what its failure means and where it is asked.
///
/// Made by the constructors of [`gate`](super::gate) and [`check`](super::check).
///
/// ```
/// use harness_core::Millis;
/// use harness_core::decide::{DynGate, GateVerdict, Guarded, OnError, gate};
///
/// let gate: Guarded<dyn DynGate> = gate::func("office-hours", |call, _| match call.call.name.as_str() {
///     "pay" => GateVerdict::deny("the bank is closed."),
///     _ => GateVerdict::Allow,
/// })
/// .within(Millis(500))
/// .on_error(OnError::Lenient);
/// assert_eq!(gate.guard().name.as_str(), "office-hours");
/// ```
#[must_use = "give it to the ports of a run"]
pub struct Guarded<T: ?Sized> {
    guard: Guard,
    inner: Arc<T>,
}

impl<T: ?Sized> Clone for Guarded<T> {
    fn clone(&self) -> Self {
        Self { guard: self.guard.clone(), inner: Arc::clone(&self.inner) }
    }
}

impl<T: ?Sized> fmt::Debug for Guarded<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.guard.fmt(f)
    }
}

impl<T: ?Sized> Guarded<T> {
    pub(super) fn new(guard: Guard, inner: Arc<T>) -> Self {
        Self { guard, inner }
    }

    /// Its name, time, rule and points.
    pub fn guard(&self) -> &Guard {
        &self.guard
    }

    /// The same with another time for an answer; `None` is bounded by the turn alone.
    pub fn within(mut self, timeout: impl Into<Option<Millis>>) -> Self {
        self.guard.timeout = timeout.into();
        self
    }

    /// The same with another meaning of its failure.
    pub fn on_error(mut self, on_error: OnError) -> Self {
        self.guard.on_error = on_error;
        self
    }

    /// The same, asked elsewhere.
    pub fn at(mut self, points: Points) -> Self {
        self.guard.points = points;
        self
    }

    /// Waits for an answer as long as it may take, and reads a panic as a fault.
    async fn answer<'a, A>(
        &self,
        clock: &dyn Clock,
        ask: impl FnOnce() -> BoxAnswer<'a, A> + Send,
    ) -> Answered<A> {
        let asked_at = clock.now();
        // What panics before it waits is caught, too.
        let asked = AssertUnwindSafe(async { ask().await }).catch_unwind();
        let answer = match self.guard.timeout {
            None => caught(asked.await),
            Some(timeout) => {
                let asked = std::pin::pin!(asked);
                match select(asked, clock.sleep_until(asked_at.after(timeout))).await {
                    Either::Left((answer, _)) => caught(answer),
                    Either::Right(_) => Err(fault("timeout", format!("it gave no answer within {timeout}"))),
                }
            }
        };
        Answered { answer, took: clock.now().since(asked_at) }
    }
}

type BoxAnswer<'a, A> = BoxFuture<'a, Result<A, Fault>>;

fn caught<A>(answer: std::thread::Result<Result<A, Fault>>) -> Result<A, Fault> {
    answer.unwrap_or_else(|panic| Err(fault("panicked", format!("it panicked: {}", panic_text(&*panic)))))
}

fn fault(code: &str, text: String) -> Fault {
    Fault::new(FaultSource::Gate, code, text)
}

impl Guarded<dyn DynGate> {
    /// Asks it about a call. A panic and an answer that takes too long are faults; what a fault means is the
    /// caller's to say ([`Guard::on_error`]).
    pub async fn decide(
        &self,
        call: &ProposedCall,
        cx: &DecideCx,
        clock: &dyn Clock,
    ) -> Answered<GateDecision> {
        self.answer(clock, || self.inner.decide_boxed(call, cx)).await
    }
}

impl Guarded<dyn DynCheck> {
    /// Asks it about a subject. A panic and an answer that takes too long are faults.
    pub async fn judge(
        &self,
        subject: &Subject,
        cx: &DecideCx,
        clock: &dyn Clock,
    ) -> Answered<CheckDecision> {
        self.answer(clock, || self.inner.judge_boxed(subject, cx)).await
    }
}

/// What came of asking.
///
/// ```
/// use harness_core::Millis;
/// use harness_core::decide::{Answered, GateDecision, GateVerdict};
///
/// let answered: Answered<GateDecision> = GateDecision::from(GateVerdict::Allow).into();
/// assert_eq!(answered.took, Millis(0));
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Answered<A> {
    /// The answer, or why there is none.
    pub answer: Result<A, Fault>,
    /// How long it took.
    pub took: Millis,
}

impl<A> From<A> for Answered<A> {
    fn from(answer: A) -> Self {
        Self { answer: Ok(answer), took: Millis(0) }
    }
}
