//! Runs hooks: each with its time limit.
//!
//! A post-tool hook is only shown what happened. What each did is told as
//! [`EventKind::Hook`](crate::event::EventKind::Hook).

mod watched;

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::driver::Ports;
use crate::port::{DynPostToolHook, PostToolHook};
use crate::time::Millis;

/// How a hook is asked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct HookRules {
    /// How long it may take. Default 30 s.
    pub timeout: Millis,
}

impl Default for HookRules {
    fn default() -> Self {
        Self { timeout: Millis(30_000) }
    }
}

impl HookRules {
    /// The same rules with another time limit.
    #[must_use]
    pub fn within(self, timeout: Millis) -> Self {
        Self { timeout }
    }
}

/// Hooks in the order in which they are asked.
#[derive(Clone, Default)]
#[must_use = "install them"]
pub struct Hooks {
    post_tool: Vec<(Arc<dyn DynPostToolHook>, HookRules)>,
}

impl fmt::Debug for Hooks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hooks").field("post_tool", &self.post_tool.len()).finish()
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

    /// The hooks of `others` behind these.
    pub fn and(mut self, others: Self) -> Self {
        self.post_tool.extend(others.post_tool);
        self
    }

    /// Puts the hooks behind those that `ports` have, on the clock that they have now.
    pub fn install(self, ports: &mut Ports) {
        for (hook, rules) in self.post_tool {
            ports.post_tool.push(Arc::new(watched::Timed::new(hook, rules, Arc::clone(&ports.clock))));
        }
    }
}
