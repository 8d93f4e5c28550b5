//! Tools that do what a test wrote down.

use std::collections::VecDeque;
use std::sync::Arc;

use parking_lot::Mutex;

use super::VirtualClock;
use crate::ids::ToolName;
use crate::outcome::{Fault, FaultSource};
use crate::time::Millis;
use crate::tool::{ToolCx, ToolDef, ToolOutcome, ToolRegistry, ToolScope};

/// The result of one execution of a tool of [`ScriptedTools`].
#[derive(Clone, Debug)]
pub struct ToolStep {
    does: Does,
    tool: Option<ToolName>,
    takes: Millis,
}

#[derive(Clone, Debug)]
enum Does {
    Outcome(Box<ToolOutcome>),
    Fault(Fault),
    Panic(String),
    Hang,
}

impl ToolStep {
    fn new(does: Does) -> Self {
        Self { does, tool: None, takes: Millis(0) }
    }

    /// Gives this outcome.
    pub fn outcome(outcome: ToolOutcome) -> Self {
        Self::new(Does::Outcome(Box::new(outcome)))
    }

    /// The registry itself fails.
    pub fn fault(fault: Fault) -> Self {
        Self::new(Does::Fault(fault))
    }

    /// Panics with this message.
    pub fn panic(message: impl Into<String>) -> Self {
        Self::new(Does::Panic(message.into()))
    }

    /// Never answers; ends when its future is dropped.
    pub fn hang() -> Self {
        Self::new(Does::Hang)
    }

    /// Limits the step to executions of this tool.
    #[must_use]
    pub fn of(mut self, tool: impl Into<ToolName>) -> Self {
        self.tool = Some(tool.into());
        self
    }

    /// Moves the clock of [`ScriptedTools::with_clock`] by this time before the result.
    #[must_use]
    pub fn taking(mut self, time: Millis) -> Self {
        self.takes = time;
        self
    }
}

impl From<ToolOutcome> for ToolStep {
    fn from(outcome: ToolOutcome) -> Self {
        Self::outcome(outcome)
    }
}

/// A [`ToolRegistry`] that takes its results from a list, in the order of the executions, and records the executions.
/// Clones share the list. When the list is empty, it fails with `script_used_up`.
///
/// ```
/// use harness_core::tool::{ToolDef, ToolOutcome};
/// use harness_core::testing::{ScriptedTools, ToolStep};
///
/// let tools = ScriptedTools::new([ToolDef::new("add", "adds"), ToolDef::new("log", "writes a line")])
///     .answering([ToolStep::outcome(ToolOutcome::text("4")), ToolStep::hang().of("log")]);
/// assert_eq!(tools.unused(), 2);
/// ```
#[derive(Clone, Debug, Default)]
pub struct ScriptedTools {
    defs: Arc<[ToolDef]>,
    script: Arc<Mutex<Script>>,
    clock: Option<VirtualClock>,
    list_fault: Option<Fault>,
    ignores_allowed: bool,
}

#[derive(Debug, Default)]
struct Script {
    steps: VecDeque<ToolStep>,
    executions: Vec<ToolCx>,
    lists: Vec<ToolScope>,
}

impl ScriptedTools {
    /// A registry with these tools and no outcomes yet.
    pub fn new(defs: impl IntoIterator<Item = ToolDef>) -> Self {
        Self { defs: defs.into_iter().collect(), ..Self::default() }
    }

    /// Adds results.
    #[must_use]
    pub fn answering<S: Into<ToolStep>>(self, steps: impl IntoIterator<Item = S>) -> Self {
        self.script.lock().steps.extend(steps.into_iter().map(Into::into));
        self
    }

    /// Sets the clock that its steps move.
    #[must_use]
    pub fn with_clock(mut self, clock: VirtualClock) -> Self {
        self.clock = Some(clock);
        self
    }

    /// Fails to list its tools.
    #[must_use]
    pub fn failing_to_list(mut self, fault: Fault) -> Self {
        self.list_fault = Some(fault);
        self
    }

    /// Lists all its tools, even those that are not allowed.
    #[must_use]
    pub fn ignoring_allowed(mut self) -> Self {
        self.ignores_allowed = true;
        self
    }

    /// Every execution, in order, repeated attempts included.
    pub fn executions(&self) -> Vec<ToolCx> {
        self.script.lock().executions.clone()
    }

    /// The scopes of all listings, in order.
    pub fn lists(&self) -> Vec<ToolScope> {
        self.script.lock().lists.clone()
    }

    /// Results that are left.
    pub fn unused(&self) -> usize {
        self.script.lock().steps.len()
    }

    fn take(&self, cx: ToolCx) -> Result<ToolStep, Fault> {
        let mut script = self.script.lock();
        let name = cx.call.name.clone();
        script.executions.push(cx);
        let fits = |step: &ToolStep| step.tool.as_ref().is_none_or(|tool| *tool == name);
        let at = script.steps.iter().position(fits);
        at.and_then(|at| script.steps.remove(at)).ok_or_else(|| {
            let message = format!("the scripted tools have no outcome left for `{name}`: add one");
            Fault::new(FaultSource::Tool, "script_used_up", message)
        })
    }
}

impl ToolRegistry for ScriptedTools {
    async fn list(&self, scope: &ToolScope) -> Result<Arc<[ToolDef]>, Fault> {
        self.script.lock().lists.push(scope.clone());
        if let Some(fault) = &self.list_fault {
            return Err(fault.clone());
        }
        match &scope.allowed {
            Some(allowed) if !self.ignores_allowed => {
                Ok(self.defs.iter().filter(|def| allowed.contains(&def.name)).cloned().collect())
            }
            Some(_) | None => Ok(Arc::clone(&self.defs)),
        }
    }

    #[expect(clippy::panic, reason = "a scripted panic is what the test asked for")]
    async fn call(&self, cx: ToolCx) -> Result<ToolOutcome, Fault> {
        let step = self.take(cx)?;
        if let Some(clock) = &self.clock {
            clock.advance(step.takes);
        }
        match step.does {
            Does::Outcome(outcome) => Ok(*outcome),
            Does::Fault(fault) => Err(fault),
            Does::Panic(message) => panic!("{message}"),
            Does::Hang => std::future::pending().await,
        }
    }
}
