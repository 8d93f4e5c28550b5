//! Hooks as gates.

use std::borrow::Cow;
use std::sync::Arc;

use super::watched::{since, within};
use super::{HookRules, OnHookError};
use crate::ids::GateName;
use crate::outcome::Fault;
use crate::port::{
    CallHookPoint, Clock, DynPreToolHook, GateAsk, GateCx, HookNote, PreTool, Ruling, ToolGate, Verdict,
};

/// A pre-tool hook as a tool gate.
pub(super) struct CallGate {
    hook: Arc<dyn DynPreToolHook>,
    rules: HookRules,
    clock: Arc<dyn Clock>,
}

impl CallGate {
    pub(super) fn new(hook: Arc<dyn DynPreToolHook>, rules: HookRules, clock: Arc<dyn Clock>) -> Self {
        Self { hook, rules, clock }
    }
}

impl ToolGate for CallGate {
    fn name(&self) -> GateName {
        self.hook.hook_name()
    }

    async fn check(&self, ask: &GateAsk, cx: &GateCx) -> Verdict {
        self.rule(ask, cx).await.verdict
    }

    async fn rule(&self, ask: &GateAsk, cx: &GateCx) -> Ruling {
        let asked_at = self.clock.now();
        let answer = within(&*self.clock, self.rules.timeout, self.hook.before_boxed(ask, cx)).await;
        let (said, fault) = match answer {
            Ok(said) => (said, None),
            Err(fault) if self.rules.on_error == Some(OnHookError::Allow) => (PreTool::Allow, Some(fault)),
            Err(fault) => (PreTool::Deny { reason: failed("pre-tool", &fault) }, Some(fault)),
        };
        let decision = Cow::Borrowed(said.kind());
        let (verdict, reason) = match said {
            PreTool::Allow => (Verdict::Allow, None),
            PreTool::Deny { reason } => {
                (Verdict::Deny { message: format!("Denied: {reason}") }, Some(reason))
            }
            PreTool::Replace(arguments) => (Verdict::Rewrite(arguments), None),
            PreTool::Ask { reason } => (Verdict::Hold { reason: reason.clone() }, Some(reason)),
        };
        let note = HookNote {
            point: CallHookPoint::PreTool,
            name: self.hook.hook_name(),
            call: Some(ask.call.id.clone()),
            decision,
            reason,
            duration: since(&*self.clock, asked_at),
            fault,
        };
        Ruling::from(verdict).with_hook(note)
    }
}

/// Why a hook that failed stands in the way.
fn failed(point: &str, fault: &Fault) -> String {
    format!("{point} hook failed: {}", fault.message)
}
