//! Sub-agents as threads: the parts of the run that a call hands its work to.
//!
//! A call that delegates asks for its child when it is polled. So any worker finds the parts of a child by performing the
//! call up to there, over the parts of its caller; what is journaled is the call.

use std::sync::Arc;

use futures_util::FutureExt as _;
use harness::core::driver::{ChildRun, OpScope, Ports, perform};
use harness::core::limits::Amount;
use harness::core::machine::Op;
use harness::core::tool::{Child, ChildFuture, Children};
use harness::core::transcript::Prefix;
use harness::core::{CallId, Cancel, End, Fault, OpId, Origin, ThreadId, Time};
use harness::runtime::DeliveryRules;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

use super::host::{Agent, AgentHost, HostAsk, fault};
use super::request::AgentSettings;

/// Threads inside of each other, at most. A call that would go deeper is performed as a whole.
const DEPTH: u32 = 8;

/// The call that a run works for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Delegation {
    /// The ids of the caller's work.
    pub origin: Arc<Origin>,
    /// Settings for the agents by the message of the caller's run.
    #[serde(default, skip_serializing_if = "AgentSettings::is_default")]
    pub agents: AgentSettings,
    /// The call that the caller's driver performs.
    pub call: Op,
    /// The turn of the caller, from 1.
    pub turn: u32,
    /// When the call is cut off; `None` for never.
    pub deadline: Option<Time>,
    /// When it started.
    pub at: Time,
    /// The call that the caller itself works for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub caller: Option<Arc<Delegation>>,
}

impl Delegation {
    /// Thread of the caller; empty if its origin names none.
    pub fn thread(&self) -> ThreadId {
        self.origin.thread.clone().unwrap_or_default()
    }

    /// The run that the call hands its work to: a thread inside of the caller's. `None` for a call that is performed as a
    /// whole.
    pub(super) fn child(&self, ports: &Ports) -> Option<ChildRun> {
        let Op::Tool { call, attempt, .. } = &self.call else { return None };
        if self.origin.depth() >= DEPTH || !ports.tools.delegates_dyn(call, &self.origin) {
            return None;
        }
        let mut child = self.asked(ports)?;
        child.origin.thread = Some(child_thread(&self.thread(), &call.id));
        if *attempt > 1 {
            child.origin.run = child.origin.run.map(|run| format!("{run}#{attempt}").into());
        }
        Some(child)
    }

    /// Performs the call until it asks for its child.
    fn asked(&self, ports: &Ports) -> Option<ChildRun> {
        let asking = Arc::new(Asking { started: self.at, child: Mutex::default() });
        let mut ports = ports.clone();
        ports.children = Some(Arc::clone(&asking) as _);
        let (log, cancel) = (Prefix::default(), Cancel::never());
        let scope = OpScope {
            log: &log,
            origin: &self.origin,
            turn: self.turn,
            deadline: self.deadline,
            left: Amount::NONE,
        };
        // Without a waker: a call that has not asked by now does not delegate.
        drop(perform(&ports, OpId(0), self.call.clone(), scope, &cancel).now_or_never());
        asking.child.lock().take()
    }
}

/// The thread of the child that a call hands its work to.
pub(super) fn child_thread(parent: &ThreadId, call: &CallId) -> ThreadId {
    format!("{parent}/{call}").into()
}

/// The parts of a run: those of the host, or those that the call asks for that it works for.
pub(super) async fn parts(
    host: &impl AgentHost,
    origin: &Origin,
    settings: &AgentSettings,
    delegation: Option<&Arc<Delegation>>,
) -> Result<Agent, Fault> {
    let Some(delegation) = delegation else { return host.agent(HostAsk::new(origin, settings)).await };
    let mut calls = vec![delegation];
    while let Some(caller) = calls.last().and_then(|call| call.caller.as_ref()) {
        calls.push(caller);
    }
    let (outermost, settings) = calls.last().map_or((origin, settings), |call| (&*call.origin, &call.agents));
    let mut agent = host.agent(HostAsk::new(outermost, settings)).await?;
    for call in calls.into_iter().rev() {
        let child = call.child(&agent.ports).ok_or_else(|| {
            let text = format!("the worker has no sub-agent for the call of thread {}", call.thread());
            fault("subagent_unbound", text)
        })?;
        agent = Agent {
            ports: child.ports,
            spec: child.spec,
            control: Box::default(),
            delivery: DeliveryRules::default(),
            allowed_tools: None,
        };
    }
    Ok(agent)
}

/// Notes the child that a call asks for.
#[derive(Debug)]
struct Asking {
    started: Time,
    child: Mutex<Option<ChildRun>>,
}

impl Children for Asking {
    fn started(&self) -> Time {
        self.started
    }

    fn run(&self, child: Child) -> ChildFuture {
        *self.child.lock() = ChildRun::of(child);
        Box::pin(std::future::pending())
    }
}

/// The end of a child.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ChildEnd {
    /// When it started.
    pub started: Time,
    /// The end, or why there is none.
    pub end: Result<Arc<End>, String>,
}

/// A child that has ended gives its end to the call.
impl Children for ChildEnd {
    fn started(&self) -> Time {
        self.started
    }

    fn run(&self, _: Child) -> ChildFuture {
        Box::pin(std::future::ready(self.end.clone()))
    }
}
