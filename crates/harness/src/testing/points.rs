//! Points at which a process dies.

use std::collections::HashMap;
use std::sync::Arc;

use harness_core::tool::{RetryClass, ToolCx, ToolDef};
use harness_core::{CallId, ToolName};
use parking_lot::Mutex;
use tokio::sync::Notify;

/// Crash points of one process of a [`Scenario`](super::Scenario). [`every_crash`](super::every_crash) has points around
/// model calls, tool calls, and writes of the session and the checkpoints; [`pass`](Self::pass) adds points.
///
/// ```
/// use harness::testing::CrashPoints;
///
/// async fn transfer(points: CrashPoints) {
///     // Take the money from one account.
///     points.pass("between the accounts").await;
///     // Put it into the other.
/// }
/// # let _ = transfer;
/// ```
#[derive(Clone, Debug, Default)]
pub struct CrashPoints(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    death: Notify,
}

#[derive(Debug, Default)]
struct State {
    /// The point to die at, from 1.
    target: Option<usize>,
    passed: Vec<String>,
    is_dead: bool,
    classes: HashMap<ToolName, RetryClass>,
    executions: Vec<Execution>,
}

/// Execution of a call that started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Execution {
    pub(super) message: u64,
    pub(super) call: CallId,
    pub(super) tool: ToolName,
    pub(super) class: RetryClass,
}

impl Execution {
    pub(super) fn is_of_call(&self, other: &Self) -> bool {
        (self.message, &self.call) == (other.message, &other.call)
    }
}

impl CrashPoints {
    pub(super) fn new(target: Option<usize>) -> Self {
        let points = Self::default();
        points.0.state.lock().target = target;
        points
    }

    /// Passes a point, or never returns when the process dies there. Equal runs must pass equal points.
    pub async fn pass(&self, name: impl Into<String>) {
        if self.strikes(name) {
            self.die().await;
        }
    }

    /// Whether the process dies at this point, or is dead; then nothing but [`Self::die`] may follow.
    pub(super) fn strikes(&self, name: impl Into<String>) -> bool {
        let mut state = self.0.state.lock();
        if !state.is_dead {
            state.passed.push(name.into());
            state.is_dead = state.target == Some(state.passed.len());
            return state.is_dead;
        }
        true
    }

    pub(super) async fn die(&self) {
        self.0.death.notify_one();
        std::future::pending::<()>().await;
    }

    /// Waits for the death of the process.
    pub(super) async fn death(&self) {
        self.0.death.notified().await;
    }

    pub(super) fn is_dead(&self) -> bool {
        self.0.state.lock().is_dead
    }

    pub(super) fn passed(&self) -> Vec<String> {
        self.0.state.lock().passed.clone()
    }

    pub(super) fn learn(&self, defs: &[ToolDef]) {
        self.0.state.lock().classes.extend(defs.iter().map(|def| (def.name.clone(), def.class)));
    }

    pub(super) fn execute(&self, cx: &ToolCx) {
        let mut state = self.0.state.lock();
        let class = state.classes.get(&cx.call.name).copied().unwrap_or_default();
        let (call, tool) = (cx.call.id.clone(), cx.call.name.clone());
        state.executions.push(Execution { message: cx.message, call, tool, class });
    }

    pub(super) fn executions(&self) -> Vec<Execution> {
        self.0.state.lock().executions.clone()
    }
}
