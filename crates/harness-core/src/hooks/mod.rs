//! Runs hooks: each with its time limit, and with a meaning for its failure.
//!
//! An agent-stop hook becomes a stop gate; a post-tool hook is only shown what happened. What each did is told as
//! [`EventKind::Hook`](crate::event::EventKind::Hook).

mod gate;
mod watched;

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::driver::Ports;
use crate::port::{AgentStopHook, DynAgentStopHook, DynPostToolHook, PostToolHook};
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
    post_tool: Vec<(Arc<dyn DynPostToolHook>, HookRules)>,
    agent_stop: Vec<(Arc<dyn DynAgentStopHook>, HookRules)>,
}

impl fmt::Debug for Hooks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hooks")
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
        self.post_tool.extend(others.post_tool);
        self.agent_stop.extend(others.agent_stop);
        self
    }

    /// Puts the hooks behind the gates and stop gates that `ports` have, on the clock that they have now.
    pub fn install(self, ports: &mut Ports) {
        for (hook, rules) in self.post_tool {
            ports.post_tool.push(Arc::new(watched::Timed::new(hook, rules, Arc::clone(&ports.clock))));
        }
        for (hook, rules) in self.agent_stop {
            ports.stop_gates.push(Arc::new(gate::EndGate::new(hook, rules, Arc::clone(&ports.clock))));
        }
    }
}
