//! Name, time limit, failure mode and points of gates and checks.

use std::fmt;
use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::sync::Arc;

use futures_util::FutureExt as _;
use futures_util::future::{Either, select};
use serde::{Deserialize, Serialize};

use super::DecideCx;
use super::check::{CheckDecision, CheckVerdict, DynCheck, Subject};
use super::gate::{DynGate, GateDecision, GateVerdict};
use crate::base::panic_text;
use crate::ids::GateName;
use crate::outcome::{Fault, FaultSource, StopMode};
use crate::port::{BoxFuture, Clock, ProposedCall};
use crate::time::Millis;

/// Failure mode of a gate or a check: the effect of an error, a panic or a timeout.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnError {
    /// Fails closed: the call is denied, the prompt or answer refused, the run continued.
    #[default]
    Strict,
    /// Skipped. The event reports the error.
    Lenient,
    /// Lenient at the end of an [interactive](crate::outcome::StopMode) run, else strict.
    LenientIfInteractive,
}

impl OnError {
    /// Whether an error blocks; `mode` is that of the run whose end is judged.
    pub(crate) fn is_strict(self, mode: Option<StopMode>) -> bool {
        match self {
            Self::Strict => true,
            Self::Lenient => false,
            Self::LenientIfInteractive => mode != Some(StopMode::Interactive),
        }
    }
}

crate::wire_enum! {
    /// Point at which a gate or a check is called.
    #[non_exhaustive]
    pub enum Point {
        /// Gate, before the arguments of a call are validated, so that it can correct them: an old field name, another
        /// unit. It may be called again after a restart, so it must be idempotent. The transcript keeps the model's
        /// arguments. It is not called for arguments that an approver edited, or that are not JSON.
        Prepare = "prepare",
        /// Gate of a tool call, with the final arguments.
        Call = "call",
        /// Gate of a handoff to another agent.
        Handoff = "handoff",
        /// Check of a prompt.
        Prompt = "prompt",
        /// Check of an answer.
        Answer = "answer",
        /// Check of the end of a turn that claims that the work of its run is done.
        End = "end",
        /// Check of the result of a call that ran.
        Result = "result",
        /// Check of an invalid output of a model.
        Invalid = "invalid",
    }
}

/// Set of points.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Points(u8);

impl Points {
    /// Before arguments are validated.
    pub const PREPARE: Self = Self::of(Point::Prepare);
    /// Before a tool call runs.
    pub const CALL: Self = Self::of(Point::Call);
    /// Before a handoff.
    pub const HANDOFF: Self = Self::of(Point::Handoff);
    /// Before a prompt enters the transcript.
    pub const PROMPT: Self = Self::of(Point::Prompt);
    /// Before an answer counts.
    pub const ANSWER: Self = Self::of(Point::Answer);
    /// Before a run ends as completed.
    pub const END: Self = Self::of(Point::End);
    /// After a call that ran.
    pub const RESULT: Self = Self::of(Point::Result);
    /// After an invalid output.
    pub const INVALID: Self = Self::of(Point::Invalid);

    /// Creates a set of one point.
    pub const fn of(point: Point) -> Self {
        Self(1 << point as u8)
    }

    /// Union of two sets.
    #[must_use]
    pub const fn and(self, others: Self) -> Self {
        Self(self.0 | others.0)
    }

    /// Removes points.
    #[must_use]
    pub const fn without(self, others: Self) -> Self {
        Self(self.0 & !others.0)
    }

    /// Whether the set is empty.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Whether the set contains a point.
    pub const fn has(self, point: Point) -> bool {
        self.0 & Self::of(point).0 != 0
    }
}

/// Settings of a gate or a check, as a machine knows them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Guard {
    /// Name in events and results.
    pub name: GateName,
    /// Time limit of a decision. Default 60 s; with `None` only the turn's deadline applies.
    pub timeout: Option<Millis>,
    /// Failure mode. Default [`OnError::Strict`].
    pub on_error: OnError,
    /// Points at which it is called.
    pub points: Points,
}

impl Guard {
    /// Creates default settings.
    pub fn new(name: impl Into<GateName>, points: Points) -> Self {
        Self { name: name.into(), timeout: Some(Millis(60_000)), on_error: OnError::Strict, points }
    }

    /// Returns the verdict of a failed gate.
    pub fn without_answer(&self, fault: &Fault) -> GateVerdict {
        if self.on_error.is_strict(None) {
            return GateVerdict::deny(format_args!("the gate `{}` failed: {}", self.name, fault.message));
        }
        GateVerdict::Allow
    }

    /// Returns the verdict of a failed check; `mode` is that of the run whose end it judges.
    pub(crate) fn check_without_answer(&self, fault: &Fault, mode: Option<StopMode>) -> CheckVerdict {
        if self.on_error.is_strict(mode) {
            return CheckVerdict::refuse(format!("the check failed: {}", fault.message));
        }
        CheckVerdict::Accept
    }
}

/// Gate or check with its settings. Created by the constructors of [`gate`](super::gate) and [`check`](super::check).
#[must_use = "add it to the ports of a run"]
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

    /// Returns the settings.
    pub fn guard(&self) -> &Guard {
        &self.guard
    }

    /// Sets the time limit of a decision; with `None` only the turn's deadline applies.
    pub fn within(mut self, timeout: impl Into<Option<Millis>>) -> Self {
        self.guard.timeout = timeout.into();
        self
    }

    /// Sets the failure mode.
    pub fn on_error(mut self, on_error: OnError) -> Self {
        self.guard.on_error = on_error;
        self
    }

    /// Sets the points.
    pub fn at(mut self, points: Points) -> Self {
        self.guard.points = points;
        self
    }

    /// Waits for a decision within the time limit, and turns panics into errors.
    async fn answer<'a, A>(
        &self,
        clock: &dyn Clock,
        decide: impl FnOnce() -> BoxFuture<'a, Result<A, Fault>> + Send,
    ) -> Answered<A> {
        let started = clock.now();
        // A panic before the first wait is caught, too.
        let decided = AssertUnwindSafe(async { decide().await }).catch_unwind();
        let answer = match self.guard.timeout {
            None => caught(decided.await),
            Some(timeout) => match select(pin!(decided), clock.sleep_until(started.after(timeout))).await {
                Either::Left((answer, _)) => caught(answer),
                Either::Right(_) => Err(fault("timeout", format!("no decision within {timeout}"))),
            },
        };
        Answered { answer, took: clock.now().since(started) }
    }
}

fn caught<A>(answer: std::thread::Result<Result<A, Fault>>) -> Result<A, Fault> {
    answer.unwrap_or_else(|panic| Err(fault("panicked", format!("panicked: {}", panic_text(&*panic)))))
}

fn fault(code: &str, text: String) -> Fault {
    Fault::new(FaultSource::Gate, code, text)
}

impl Guarded<dyn DynGate> {
    /// Decides on a call. Panics and timeouts are errors; the caller applies the failure mode ([`Guard::on_error`]).
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
    /// Judges a subject. Panics and timeouts are errors.
    pub async fn judge(
        &self,
        subject: &Subject,
        cx: &DecideCx,
        clock: &dyn Clock,
    ) -> Answered<CheckDecision> {
        self.answer(clock, || self.inner.judge_boxed(subject, cx)).await
    }
}

/// Result of a gate or a check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Answered<A> {
    /// Decision or error.
    pub answer: Result<A, Fault>,
    /// Duration.
    pub took: Millis,
}

impl<A> From<A> for Answered<A> {
    fn from(answer: A) -> Self {
        Self { answer: Ok(answer), took: Millis(0) }
    }
}
