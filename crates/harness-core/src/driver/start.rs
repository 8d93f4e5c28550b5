//! Starts operations through ports.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use super::op::{Running, check_panicked, facts_panicked, gate_panicked, panicked_by};
use super::persist::{start_save, start_store};
use super::ports::Ports;
use super::sink::Sink;
use crate::cancel::Cancel;
use crate::decide::{DecideCx, Subject};
use crate::driver::redact::RedactedUpdates;
use crate::ids::{AgentId, OpId, ToolName};
use crate::json::Json;
use crate::machine::{Machine, Op, Phase, Reply};
use crate::message::ApprovalRequest;
use crate::outcome::{Fault, FaultSource, Purpose};
use crate::panics::panic_text;
use crate::port::{
    AgentConfig, ApprovalAsk, Decision, Ledger, ModelRequest, PrepareAsk, Prepared, PreparedAgent,
    ProposedCall,
};
use crate::tool::{ToolCx, ToolDef, ToolScope, ToolUpdates, Updates};

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
    /// Starts an operation, which is taken out of its place. A panic while it is started counts like one while
    /// it runs.
    pub(super) fn start(&self, id: OpId, op: &mut Op) -> Running<'p> {
        let panicked = panicked_by(op);
        catch_unwind(AssertUnwindSafe(|| self.begin(id, op)))
            .unwrap_or_else(|panic| Running::Ready(panicked(panic_text(&*panic))))
    }

    fn begin(&self, id: OpId, op: &mut Op) -> Running<'p> {
        match op.take() {
            Op::Model { progress, plan, prepared, with_tools, .. } => {
                let (view, deadline) = (self.machine.view(plan), self.machine.cut_off());
                let (cancel, thinking, key) = (self.token.clone(), None, None);
                let request =
                    ModelRequest { view, prepared, with_tools, progress, deadline, thinking, key, cancel };
                self.model(id, request)
            }
            Op::Tool { call, agent, iteration, message, index, attempt, grant } => {
                let (origin, deadline) = (Arc::clone(self.machine.origin()), self.machine.cut_off());
                let cancel = self.token.clone();
                let place = ToolCx {
                    call,
                    origin,
                    agent,
                    iteration,
                    message,
                    index,
                    attempt,
                    deadline,
                    grant,
                    cancel,
                    updates: Updates::to(self.updates()),
                    ledger: self.ledger.for_purpose(Purpose::Child),
                };
                self.tool(place)
            }
            op @ (Op::Begin { .. }
            | Op::Append { .. }
            | Op::Recall { .. }
            | Op::Compact { .. }
            | Op::AfterModel { .. }
            | Op::LayerStore { .. }
            | Op::Complete { .. }) => {
                super::view::start(self.ports, self.machine, (self.token, self.ledger), op)
            }
            op @ (Op::Gate { .. } | Op::Check { .. }) => self.gate(op),
            Op::Prepare { agent, iteration } => self.prepare(agent, iteration),
            Op::Arguments { call } => {
                Running::Ready(Reply::Arguments(self.ports.tools.check_dyn(&call).map_err(Box::new)))
            }
            Op::Approve { proposed } => self.approve(*proposed),
            Op::NoteApproval { request } => self.note_approval(*request),
            Op::Facts { ask } => self.facts(ask),
            Op::Store { records } => start_store(self.ports, self.machine, records),
            Op::Save { messages, state } => start_save(self.ports, self.machine, messages, state),
            Op::Drain { point } => Running::Ready(Reply::Drained(
                self.ports.steering.as_ref().map(|queue| queue.waiting_at(point)).unwrap_or_default(),
            )),
        }
    }

    /// Who hears what a tool tells while it runs.
    fn updates(&self) -> Option<Arc<dyn ToolUpdates>> {
        let inner = Arc::clone(self.ports.updates.as_ref()?);
        Some(match &self.ports.redactor {
            Some(redactor) => Arc::new(RedactedUpdates { inner, redactor: redactor.clone() }),
            None => inner,
        })
    }

    fn model(&self, id: OpId, request: ModelRequest) -> Running<'p> {
        self.sink.begin(id);
        let agent = request.prepared.agent.clone();
        Running::Model(self.ports.model.step_boxed(request, self.sink), Some(agent))
    }

    fn tool(&self, cx: ToolCx) -> Running<'p> {
        match self.ports.tools.call_plain(cx) {
            Ok(tool) => Running::Tool(tool),
            Err(cx) => {
                let tool = self.ports.tools.call_boxed(*cx);
                let called = async move { Reply::Tool(tool.await.map(Box::new)) };
                Running::Other(Box::pin(called), super::op::tool_panicked)
            }
        }
    }

    fn prepare(&self, agent: Option<AgentId>, iteration: u32) -> Running<'p> {
        let ports = self.ports;
        let log = self.machine.log().prefix();
        let ask = PrepareAsk::new(agent, Arc::clone(self.machine.origin()), iteration).over(log);
        let asked = async move { Reply::Prepared(prepare(ports, ask).await) };
        Running::Other(Box::pin(asked), super::op::prepare_panicked)
    }

    /// Asks a gate or a check.
    #[expect(clippy::wildcard_enum_match_arm, reason = "no other operation comes here")]
    fn gate(&self, op: Op) -> Running<'p> {
        let ports = self.ports;
        let missing = || "it is not there".to_owned();
        match op {
            Op::Gate { gate, proposed } => {
                let Some(gate) = ports.gates.get(gate as usize) else {
                    return Running::Ready(gate_panicked(missing()));
                };
                let cx = self.gate_cx(Purpose::Judge);
                let clock = &*ports.clock;
                let asked = async move { Reply::Gate(Box::new(gate.decide(&proposed, &cx, clock).await)) };
                Running::Other(Box::pin(asked), gate_panicked)
            }
            Op::Check { check, subject } => {
                let Some(check) = ports.checks.get(check as usize) else {
                    return Running::Ready(check_panicked(missing()));
                };
                let cx = self.gate_cx(match *subject {
                    Subject::Prompt(_) | Subject::Answer { .. } => Purpose::Guardrail,
                    Subject::Result { .. } | Subject::Invalid { .. } => Purpose::Judge,
                    Subject::End { .. } => Purpose::StopGate,
                });
                let clock = &*ports.clock;
                let asked = async move { Reply::Check(Box::new(check.judge(&subject, &cx, clock).await)) };
                Running::Other(Box::pin(asked), check_panicked)
            }
            _ => Running::Ready(Reply::Interrupted { partial: None }),
        }
    }

    fn facts(&self, ask: Arc<Json>) -> Running<'p> {
        let (cx, facts) = (self.gate_cx(Purpose::Judge), self.ports.facts.clone());
        let asked = async move {
            let found = match facts {
                Some(facts) => facts.gather_boxed(&ask, &cx).await,
                None => Ok(Json::null()),
            };
            Reply::Facts(found)
        };
        Running::Other(Box::pin(asked), facts_panicked)
    }

    fn gate_cx(&self, purpose: Purpose) -> DecideCx {
        let (log, origin) = (self.machine.log().prefix(), Arc::clone(self.machine.origin()));
        DecideCx::new(log, origin, self.token.clone(), self.ports.clock.now())
            .with_ledger(self.ledger.for_purpose(purpose))
    }

    fn approve(&self, proposed: ProposedCall) -> Running<'p> {
        let Some(approver) = &self.ports.approver else {
            return Running::Ready(Reply::Approval(Decision::Later));
        };
        let ask = ApprovalAsk::new(proposed, self.token.clone());
        let asked = async move { Reply::Approval(approver.decide_boxed(ask).await) };
        Running::Other(Box::pin(asked), super::op::approver_panicked)
    }

    fn note_approval(&self, request: ApprovalRequest) -> Running<'p> {
        let Some(approver) = &self.ports.approver else {
            return Running::Ready(Reply::ApprovalNoted(Ok(Box::new(Prepared::new(request, None)))));
        };
        let asked = async move { Reply::ApprovalNoted(approver.prepare_boxed(request).await.map(Box::new)) };
        Running::Other(Box::pin(asked), super::op::note_panicked)
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
