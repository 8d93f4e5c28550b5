//! Runs call hooks: each with its time limit, and with a meaning for its failure.
//!
//! A pre-tool hook becomes a tool gate and an agent-stop hook a stop gate, so that limits, approvals and
//! policies stand around them as around any gate. A post-tool hook is only shown what happened. What each
//! did is told as [`EventKind::Hook`](crate::event::EventKind::Hook).
//!
//! ```
//! use std::sync::Arc;
//!
//! use harness_core::driver::Ports;
//! use harness_core::hooks::Hooks;
//! # use harness_core::port::{ProposedCall, GateCx, PreTool, PreToolHook};
//! # use harness_core::testing::{ScriptedModel, VirtualClock};
//! # use harness_core::{Fault, GateName, Time};
//! # struct ReadOnly;
//! # impl PreToolHook for ReadOnly {
//! #     fn name(&self) -> GateName { "read-only".into() }
//! #     async fn before(&self, _: &ProposedCall, _: &GateCx) -> Result<PreTool, Fault> { Ok(PreTool::Allow) }
//! # }
//! # let model = Arc::new(ScriptedModel::default());
//! # let clock = Arc::new(VirtualClock::still(Time(0)));
//!
//! let mut ports = Ports::new(model, clock);
//! Hooks::new().pre_tool(ReadOnly).install(&mut ports);
//! assert_eq!(ports.gates.len(), 1);
//! ```

mod gate;
mod watched;

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::driver::Ports;
use crate::port::{
    AgentStopHook, DynAgentStopHook, DynPostToolHook, DynPreToolHook, PostToolHook, PreToolHook,
};
use crate::time::Millis;

/// What the failure of a hook means: a fault, a panic, or no answer in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnHookError {
    /// The call is refused; the run does not end.
    Deny,
    /// As if it had nothing against it.
    Allow,
}

/// How a hook is asked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct HookRules {
    /// How long it may take. Default 30 s.
    pub timeout: Millis,
    /// What its failure means. Default `None`, the rule of its point: a pre-tool hook denies; an agent-stop hook
    /// allows the end of an interactive run and blocks that of a strict one. Without meaning for a post-tool hook.
    pub on_error: Option<OnHookError>,
}

impl Default for HookRules {
    fn default() -> Self {
        Self { timeout: Millis(30_000), on_error: None }
    }
}

impl HookRules {
    /// The same rules with another time limit.
    #[must_use]
    pub fn within(self, timeout: Millis) -> Self {
        Self { timeout, ..self }
    }

    /// The same rules with a meaning of failures.
    #[must_use]
    pub fn on_error(self, means: OnHookError) -> Self {
        Self { on_error: Some(means), ..self }
    }
}

/// Hooks in the order in which they are asked.
#[derive(Clone, Default)]
#[must_use = "install them"]
pub struct Hooks {
    pre_tool: Vec<(Arc<dyn DynPreToolHook>, HookRules)>,
    post_tool: Vec<(Arc<dyn DynPostToolHook>, HookRules)>,
    agent_stop: Vec<(Arc<dyn DynAgentStopHook>, HookRules)>,
}

impl fmt::Debug for Hooks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hooks")
            .field("pre_tool", &self.pre_tool.len())
            .field("post_tool", &self.post_tool.len())
            .field("agent_stop", &self.agent_stop.len())
            .finish()
    }
}

impl Hooks {
    /// No hooks.
    pub fn new() -> Self {
        Self::default()
    }

    /// One more hook before calls, with the rules of [`HookRules::default`].
    pub fn pre_tool(self, hook: impl PreToolHook + 'static) -> Self {
        self.pre_tool_with(hook, HookRules::default())
    }

    /// One more hook before calls.
    pub fn pre_tool_with(mut self, hook: impl PreToolHook + 'static, rules: HookRules) -> Self {
        self.pre_tool.push((Arc::new(hook), rules));
        self
    }

    /// One more hook after calls, with the rules of [`HookRules::default`].
    pub fn post_tool(self, hook: impl PostToolHook + 'static) -> Self {
        self.post_tool_with(hook, HookRules::default())
    }

    /// One more hook after calls.
    pub fn post_tool_with(mut self, hook: impl PostToolHook + 'static, rules: HookRules) -> Self {
        self.post_tool.push((Arc::new(hook), rules));
        self
    }

    /// One more hook before the end of a run, with the rules of [`HookRules::default`].
    pub fn agent_stop(self, hook: impl AgentStopHook + 'static) -> Self {
        self.agent_stop_with(hook, HookRules::default())
    }

    /// One more hook before the end of a run.
    pub fn agent_stop_with(mut self, hook: impl AgentStopHook + 'static, rules: HookRules) -> Self {
        self.agent_stop.push((Arc::new(hook), rules));
        self
    }

    /// The hooks of `others` behind these.
    pub fn and(mut self, others: Self) -> Self {
        self.pre_tool.extend(others.pre_tool);
        self.post_tool.extend(others.post_tool);
        self.agent_stop.extend(others.agent_stop);
        self
    }

    /// Puts the hooks behind the gates and stop gates that `ports` have, on the clock that they have now.
    pub fn install(self, ports: &mut Ports) {
        for (hook, rules) in self.pre_tool {
            ports.gates.push(Arc::new(gate::CallGate::new(hook, rules, Arc::clone(&ports.clock))));
        }
        for (hook, rules) in self.post_tool {
            ports.post_tool.push(Arc::new(watched::Timed::new(hook, rules, Arc::clone(&ports.clock))));
        }
        for (hook, rules) in self.agent_stop {
            ports.stop_gates.push(Arc::new(gate::EndGate::new(hook, rules, Arc::clone(&ports.clock))));
        }
    }
}
