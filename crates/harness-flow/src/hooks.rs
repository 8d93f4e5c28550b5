//! Hooks around steps, and their observers.

use std::sync::Arc;

use harness_core::{GateName, Json};

use super::context::StepCx;
use super::error::FlowError;
use super::step::StepKind;

/// Identity of a step.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct StepInfo {
    /// Path in the execution: `/root#0/ask#2`.
    pub path: Arc<str>,
    /// Id of the step.
    pub id: Arc<str>,
    /// Kind of the step.
    pub kind: StepKind,
}

/// Hooks around every step that runs, awaited in order. A step taken from the ledger runs none.
pub trait StepHooks: Send + Sync {
    /// Runs before the step.
    ///
    /// # Errors
    /// Fails the step.
    fn before(
        &self,
        step: &StepInfo,
        input: &Json,
        cx: &StepCx,
    ) -> impl Future<Output = Result<(), String>> + Send {
        let _ = (step, input, cx);
        async { Ok(()) }
    }

    /// Runs after the step, even when it failed.
    ///
    /// # Errors
    /// Emitted as [`FlowEvent::HookFailed`], without effect on the step.
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

/// Event of a step.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FlowEvent {
    /// A step started.
    StepStarted(StepInfo),
    /// A step returned an output.
    StepCompleted(StepInfo),
    /// A step was taken from the ledger.
    StepReplayed(StepInfo),
    /// A step ended without an output.
    StepFailed(StepInfo, FlowError),
    /// A gate decided about the call of a tool step. A plain `allow` without facts is not reported.
    GateDecided {
        /// Tool step.
        step: StepInfo,
        /// Name of the gate.
        gate: GateName,
        /// `allow`, `rewrite`, `hold`, `deny` or `halt`.
        verdict: &'static str,
        /// Reason, or the message for the model.
        reason: Option<String>,
        /// Facts of the decision, in the gate's format.
        facts: Option<Json>,
    },
    /// An after hook failed.
    HookFailed(StepInfo, String),
    /// An output was not recorded: a restored flow runs the step again.
    NotRecorded(StepInfo, String),
}

/// Observer of steps, called inline: it must return quickly. Closures over an event implement it.
pub trait FlowObserver: Send + Sync {
    /// Receives an event.
    fn event(&self, event: &FlowEvent);
}

impl<F: Fn(&FlowEvent) + Send + Sync> FlowObserver for F {
    fn event(&self, event: &FlowEvent) {
        self(event);
    }
}
