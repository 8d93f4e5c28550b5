//! Hooks as stop gates.

use std::borrow::Cow;
use std::sync::Arc;

use super::watched::{since, within};
use super::{HookRules, OnHookError};
use crate::decide::DecideCx;
use crate::ids::GateName;
use crate::outcome::{End, Fault};
use crate::port::{
    AgentStop, AgentStopAsk, CallHookPoint, Clock, DynAgentStopHook, HookNote, Judged, Judgement, StopGate,
};
use crate::run::StopMode;

/// An agent-stop hook as a stop gate.
pub(super) struct EndGate {
    hook: Arc<dyn DynAgentStopHook>,
    rules: HookRules,
    clock: Arc<dyn Clock>,
}

impl EndGate {
    pub(super) fn new(hook: Arc<dyn DynAgentStopHook>, rules: HookRules, clock: Arc<dyn Clock>) -> Self {
        Self { hook, rules, clock }
    }

    /// What the failure of the hook means.
    fn without_answer(&self, fault: &Fault, mode: StopMode) -> AgentStop {
        let usual = match mode {
            StopMode::Interactive => OnHookError::Allow,
            StopMode::StrictAutomation => OnHookError::Deny,
        };
        match self.rules.on_error.unwrap_or(usual) {
            OnHookError::Allow => AgentStop::Allow,
            OnHookError::Deny => AgentStop::Block { reason: failed(fault) },
        }
    }
}

impl StopGate for EndGate {
    fn name(&self) -> GateName {
        self.hook.hook_name()
    }

    async fn judge(&self, end: &End, cx: &DecideCx) -> Judgement {
        self.weigh(end, cx).await.judgement
    }

    async fn weigh(&self, end: &End, cx: &DecideCx) -> Judged {
        let asked_at = self.clock.now();
        let standing = cx.standing.clone().unwrap_or_default();
        let mode = standing.mode;
        let ask = AgentStopAsk {
            end: end.clone(),
            standing,
            log: cx.log.clone(),
            origin: Arc::clone(&cx.origin),
            cancel: cx.cancel.clone(),
        };
        let answer = within(&*self.clock, self.rules.timeout, self.hook.stopping_boxed(&ask)).await;
        let (said, fault) = match answer {
            Ok(said) => (said, None),
            Err(fault) => (self.without_answer(&fault, mode), Some(fault)),
        };
        let decision = Cow::Borrowed(said.kind());
        let (judgement, reason) = match said {
            AgentStop::Allow => (Judgement::Accept, None),
            AgentStop::Block { reason } => (Judgement::Continue { guidance: reason.clone() }, Some(reason)),
        };
        let note = HookNote {
            point: CallHookPoint::AgentStop,
            name: self.hook.hook_name(),
            call: None,
            decision,
            reason,
            duration: since(&*self.clock, asked_at),
            fault,
        };
        Judged::from(judgement).with_hook(note)
    }
}

/// Why a hook that failed stands in the way.
fn failed(fault: &Fault) -> String {
    format!("agent-stop hook failed: {}", fault.message)
}
