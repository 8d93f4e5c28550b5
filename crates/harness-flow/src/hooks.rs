//! Code around steps, and who hears of them.

use std::sync::Arc;

use harness_core::{GateName, Json};

use super::context::StepCx;
use super::error::FlowError;
use super::step::StepKind;

/// Which step it is.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct StepInfo {
    /// Its place in the execution: `/root#0/ask#2`.
    pub path: Arc<str>,
    /// Its name.
    pub id: Arc<str>,
    /// What sort of step it is.
    pub kind: StepKind,
}

/// Code around every step that runs, awaited, in order. A step that is taken from the ledger has none.
pub trait StepHooks: Send + Sync {
    /// Before the step; an error fails it.
    ///
    /// # Errors
    /// Why the step must not run.
    fn before(
        &self,
        step: &StepInfo,
        input: &Json,
        cx: &StepCx,
    ) -> impl Future<Output = Result<(), String>> + Send {
        let _ = (step, input, cx);
        async { Ok(()) }
    }

    /// After the step, whatever came of it; an error is told as [`FlowEvent::HookFailed`] and changes nothing.
    ///
    /// # Errors
    /// What went wrong in the hook.
    fn after(
        &self,
        step: &StepInfo,
        output: &Result<Json, FlowError>,
        cx: &StepCx,
    ) -> impl Future<Output = Result<(), String>> + Send {
        let _ = (step, output, cx);
        async { Ok(()) }
    }
}

harness_core::twin! {
    DynStepHooks of StepHooks {
        async fn before_boxed = before(
            step: &'a StepInfo,
            input: &'a Json,
            cx: &'a StepCx
        ) -> Result<(), String>;
        async fn after_boxed = after(
            step: &'a StepInfo,
            output: &'a Result<Json, FlowError>,
            cx: &'a StepCx
        ) -> Result<(), String>;
    }
}

/// What happens to steps.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FlowEvent {
    /// A step begins.
    StepStarted(StepInfo),
    /// A step has an output.
    StepCompleted(StepInfo),
    /// A step was taken from the ledger.
    StepReplayed(StepInfo),
    /// A step ended without an output.
    StepFailed(StepInfo, FlowError),
    /// A gate decided about the call of a tool step: anything but a plain `allow`, with the facts that the decision
    /// rests on.
    GateDecided {
        /// The step.
        step: StepInfo,
        /// The gate.
        gate: GateName,
        /// `allow`, `rewrite`, `hold`, `deny` or `halt`.
        verdict: &'static str,
        /// Why, or what the model would read.
        reason: Option<String>,
        /// What the decision rests on, in the gate's own form.
        facts: Option<Json>,
    },
    /// The hook after a step failed.
    HookFailed(StepInfo, String),
    /// A step has an output that is not recorded: a restored flow runs it again.
    NotRecorded(StepInfo, String),
}

/// Hears of steps, inline: be quick. Any function of an event is one.
pub trait FlowObserver: Send + Sync {
    /// Something happened.
    fn event(&self, event: &FlowEvent);
}

impl<F: Fn(&FlowEvent) + Send + Sync> FlowObserver for F {
    fn event(&self, event: &FlowEvent) {
        self(event);
    }
}
