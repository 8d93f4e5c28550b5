//! Performs operations through ports.

use std::sync::Arc;

use super::persist::{save, store};
use super::ports::Ports;
use super::running::{Running, Work, panicked_by};
use super::sink::Sink;
use crate::cancel::Cancel;
use crate::decide::{DecideCx, Subject};
use crate::driver::redact::RedactedUpdates;
use crate::ids::{AgentId, EntryId, OpId, ToolName};
use crate::json::Json;
use crate::machine::{Machine, Op, Phase, Reply, Standing};
use crate::message::{ApprovalRequest, Message};
use crate::outcome::{Fault, FaultSource, Purpose};
use crate::port::{
    AgentConfig, ApprovalAsk, BoxFuture, CompactAsk, CompactReason, Decision, DrainPoint, DynContextPipeline,
    Ledger, Measured, ModelRequest, PrepareAsk, Prepared, PreparedAgent, Progress, ProposedCall, ViewCx,
};
use crate::tool::{ToolCx, ToolDef, ToolScope, ToolUpdates, Updates};
use crate::transcript::Plan;

/// What an operation is started with.
pub(super) struct Performer<'p, 'm, P: Phase> {
    pub(super) ports: &'p Ports,
    pub(super) sink: &'p Sink<'p>,
    pub(super) machine: &'m Machine<P>,
    pub(super) token: &'m Cancel,
    /// Where parts reserve and settle their model calls.
    pub(super) ledger: &'m Ledger,
}

impl<'p, P: Phase> Performer<'p, '_, P> {
    /// Starts an operation, which is taken out of its place.
    pub(super) fn start(&self, id: OpId, op: &mut Op) -> Running<'p> {
        Running::start(panicked_by(op), || self.perform(id, op.take()))
    }

    /// Starts the work of an operation; `None` when its gate or check is not there.
    fn perform(&self, id: OpId, op: Op) -> Option<Work<'p>> {
        let noted = Reply::Noted(Ok(()));
        Some(match op {
            Op::Prepare { agent, iteration } => self.prepare(agent, iteration),
            Op::Begin { standing } => self.layers(*standing, noted, |layers, cx| {
                Box::pin(async move { Reply::Noted(layers.begin_boxed(&cx).await) })
            }),
            Op::Append { source, messages, standing } => {
                let absent = Reply::Appended(Ok(messages.clone()));
                self.layers(*standing, absent, move |layers, cx| {
                    Box::pin(async move { Reply::Appended(layers.append_boxed(source, messages, &cx).await) })
                })
            }
            Op::Recall { standing } => self.layers(*standing, Reply::Recalled(Ok(None)), |layers, cx| {
                Box::pin(async move { Reply::Recalled(layers.recall_boxed(&cx).await) })
            }),
            Op::AfterModel { answer, standing } => {
                self.layers(*standing, Reply::AfterModel(Ok(None)), move |layers, cx| {
                    Box::pin(async move { Reply::AfterModel(layers.after_model_boxed(&answer, &cx).await) })
                })
            }
            Op::LayerStore { answer, standing } => self.layers(*standing, noted, move |layers, cx| {
                Box::pin(async move { Reply::Noted(layers.store_boxed(&answer, &cx).await) })
            }),
            Op::Complete { outcome, standing } => self.layers(*standing, noted, move |layers, cx| {
                Box::pin(async move { Reply::Noted(layers.complete_boxed(outcome, &cx).await) })
            }),
            Op::Compact { reason, plan, measured, standing } => {
                self.compact(reason, plan, measured, *standing)
            }
            Op::Model { progress, plan, prepared, with_tools, .. } => {
                self.model(id, progress, plan, prepared, with_tools)
            }
            Op::Arguments { call } => {
                Work::Ready(Reply::Arguments(self.ports.tools.check_dyn(&call).map_err(Box::new)))
            }
            Op::Gate { gate, proposed } => self.gate(gate, proposed)?,
            Op::Check { check, subject } => self.check(check, subject)?,
            Op::Approve { proposed } => self.approve(*proposed),
            Op::NoteApproval { request } => self.note_approval(*request),
            Op::Tool { call, agent, iteration, message, index, attempt, grant } => self.tool(ToolCx {
                call,
                origin: Arc::clone(self.machine.origin()),
                agent,
                iteration,
                message,
                index,
                attempt,
                deadline: self.machine.cut_off(),
                grant,
                cancel: self.token.clone(),
                updates: Updates::to(self.updates()),
                ledger: self.ledger.for_purpose(Purpose::Child),
            }),
            Op::Drain { point } => Work::Ready(Reply::Drained(self.waiting_at(point))),
            Op::Facts { ask } => self.facts(ask),
            Op::Store { records } => store(self.ports, self.machine, records),
            Op::Save { messages, state } => save(self.ports, self.machine, messages, state),
        })
    }

    fn prepare(&self, agent: Option<AgentId>, iteration: u32) -> Work<'p> {
        let (ports, log) = (self.ports, self.machine.log().prefix());
        let ask = PrepareAsk::new(agent, Arc::clone(self.machine.origin()), iteration).over(log);
        Work::Other(Box::pin(async move { Reply::Prepared(prepare(ports, ask).await) }))
    }

    /// Asks the layers; `absent` is what layers answer that are not there.
    fn layers(
        &self,
        standing: Standing,
        absent: Reply,
        ask: impl FnOnce(&'p dyn DynContextPipeline, ViewCx) -> BoxFuture<'p, Reply>,
    ) -> Work<'p> {
        let Some(layers) = self.ports.layers.as_deref() else { return Work::Ready(absent) };
        Work::Other(ask(layers, self.view_cx(standing, Purpose::Layer)))
    }

    fn compact(
        &self,
        reason: CompactReason,
        plan: Option<Plan>,
        measured: Option<Box<Measured>>,
        standing: Standing,
    ) -> Work<'p> {
        let Some(compactor) = self.ports.compactor.as_deref() else {
            return Work::Ready(Reply::Compacted(Ok(Box::default())));
        };
        let cx = self.view_cx(standing, Purpose::Compaction);
        let ask = CompactAsk::new(self.machine.view(plan.clone()), plan, cx)
            .because(reason)
            .with_measured(measured.map(|measured| *measured));
        Work::Other(Box::pin(
            async move { Reply::Compacted(compactor.compact_boxed(ask).await.map(Box::new)) },
        ))
    }

    /// What layers and the compactor know of the request that they look at.
    fn view_cx(&self, standing: Standing, purpose: Purpose) -> ViewCx {
        let (log, origin) = (self.machine.log().prefix(), Arc::clone(self.machine.origin()));
        let cx = ViewCx::new(log, origin, self.ports.clock.now())
            .with_progress(standing.progress)
            .with_ledger(self.ledger.for_purpose(purpose))
            .until(self.machine.cut_off(), self.token.clone());
        ViewCx { prepared: standing.prepared, ..cx }
    }

    fn model(
        &self,
        id: OpId,
        progress: Progress,
        plan: Option<Plan>,
        prepared: Arc<PreparedAgent>,
        with_tools: bool,
    ) -> Work<'p> {
        self.sink.begin(id);
        let (view, deadline) = (self.machine.view(plan), self.machine.cut_off());
        let (agent, cancel, thinking, key) = (prepared.agent.clone(), self.token.clone(), None, None);
        let request = ModelRequest { view, prepared, with_tools, progress, deadline, thinking, key, cancel };
        Work::Model(self.ports.model.step_boxed(request, self.sink), Some(agent))
    }

    fn tool(&self, cx: ToolCx) -> Work<'p> {
        match self.ports.tools.call_plain(cx) {
            Ok(tool) => Work::Tool(tool),
            Err(cx) => {
                let tool = self.ports.tools.call_boxed(*cx);
                Work::Other(Box::pin(async move { Reply::Tool(tool.await.map(Box::new)) }))
            }
        }
    }

    /// Who hears what a tool reports while it runs.
    fn updates(&self) -> Option<Arc<dyn ToolUpdates>> {
        let inner = Arc::clone(self.ports.updates.as_ref()?);
        Some(match &self.ports.redactor {
            Some(redactor) => Arc::new(RedactedUpdates { inner, redactor: redactor.clone() }),
            None => inner,
        })
    }

    fn gate(&self, gate: u32, proposed: Box<ProposedCall>) -> Option<Work<'p>> {
        let gate = self.ports.gates.get(gate as usize)?;
        let (cx, clock) = (self.decide_cx(Purpose::Judge), &*self.ports.clock);
        let asked = async move { Reply::Gate(Box::new(gate.decide(&proposed, &cx, clock).await)) };
        Some(Work::Other(Box::pin(asked)))
    }

    fn check(&self, check: u32, subject: Box<Subject>) -> Option<Work<'p>> {
        let check = self.ports.checks.get(check as usize)?;
        let purpose = match *subject {
            Subject::Prompt(_) | Subject::Answer { .. } => Purpose::Guardrail,
            Subject::Result { .. } | Subject::Invalid { .. } => Purpose::Judge,
            Subject::End { .. } => Purpose::StopGate,
        };
        let (cx, clock) = (self.decide_cx(purpose), &*self.ports.clock);
        let asked = async move { Reply::Check(Box::new(check.judge(&subject, &cx, clock).await)) };
        Some(Work::Other(Box::pin(asked)))
    }

    fn waiting_at(&self, point: DrainPoint) -> Vec<(EntryId, Arc<Message>)> {
        self.ports.steering.as_ref().map(|queue| queue.waiting_at(point)).unwrap_or_default()
    }

    fn facts(&self, ask: Arc<Json>) -> Work<'p> {
        let Some(facts) = self.ports.facts.as_deref() else {
            return Work::Ready(Reply::Facts(Ok(Json::null())));
        };
        let cx = self.decide_cx(Purpose::Judge);
        Work::Other(Box::pin(async move { Reply::Facts(facts.gather_boxed(&ask, &cx).await) }))
    }

    fn decide_cx(&self, purpose: Purpose) -> DecideCx {
        let (log, origin) = (self.machine.log().prefix(), Arc::clone(self.machine.origin()));
        DecideCx::new(log, origin, self.token.clone(), self.ports.clock.now())
            .with_ledger(self.ledger.for_purpose(purpose))
    }

    fn approve(&self, proposed: ProposedCall) -> Work<'p> {
        let Some(approver) = self.ports.approver.as_deref() else {
            return Work::Ready(Reply::Approval(Decision::Later));
        };
        let ask = ApprovalAsk::new(proposed, self.token.clone());
        Work::Other(Box::pin(async move { Reply::Approval(approver.decide_boxed(ask).await) }))
    }

    fn note_approval(&self, request: ApprovalRequest) -> Work<'p> {
        let Some(approver) = self.ports.approver.as_deref() else {
            return Work::Ready(Reply::ApprovalNoted(Ok(Box::new(Prepared::new(request, None)))));
        };
        Work::Other(Box::pin(async move {
            Reply::ApprovalNoted(approver.prepare_boxed(request).await.map(Box::new))
        }))
    }
}

/// Asks for an agent and looks its tools up.
async fn prepare(ports: &Ports, ask: PrepareAsk) -> Result<Arc<PreparedAgent>, Fault> {
    let config = ports.agents.prepare_boxed(&ask).await?;
    let allowed = match (&config.tools, &ask.origin.allowed_tools) {
        (Some(own), Some(most)) => Some(own.iter().filter(|name| most.contains(name)).cloned().collect()),
        (Some(names), None) | (None, Some(names)) => Some(Arc::clone(names)),
        (None, None) => None,
    };
    let scope = ToolScope::new(Arc::clone(&ask.origin), allowed.clone());
    let listed = ports.tools.list_boxed(&scope).await?;
    let own = match (&config.tools, &allowed) {
        (Some(_), Some(names)) => pick(&listed, names, &config.agent)?,
        (None, Some(names)) => listed.iter().filter(|def| names.contains(&def.name)).cloned().collect(),
        (_, None) if config.handoffs.is_empty() => return Ok(Arc::new(prepared(config, listed))),
        (_, None) => listed.to_vec(),
    };
    let tools: Arc<[ToolDef]> = own.into_iter().chain(config.handoffs.iter().cloned()).collect();
    Ok(Arc::new(prepared(config, tools)))
}

fn prepared(config: AgentConfig, tools: Arc<[ToolDef]>) -> PreparedAgent {
    let mut prepared = PreparedAgent::new(config.agent, config.instructions, tools)
        .with_model(config.model, config.settings);
    (prepared.provider, prepared.protocol, prepared.changes) =
        (config.provider, config.protocol, config.changes);
    prepared
}

/// The definitions of an agent's tools, in the agent's order.
fn pick(listed: &[ToolDef], names: &[ToolName], agent: &AgentId) -> Result<Vec<ToolDef>, Fault> {
    let find = |name: &ToolName| listed.iter().find(|def| def.name == *name).cloned();
    names
        .iter()
        .map(|name| {
            find(name).ok_or_else(|| {
                let text = format!(
                    "the agent `{agent}` has the tool `{name}`, which the registry does not list; \
                     bind it, or take it out of the agent's tools"
                );
                Fault::new(FaultSource::Tool, "tool_missing", text)
            })
        })
        .collect()
}
