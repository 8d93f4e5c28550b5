//! Performs operations through ports.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures_util::FutureExt as _;

use super::persist::{save, store};
use super::ports::Ports;
use super::redact::RedactedUpdates;
use super::sink::Sink;
use crate::base::panic_text;
use crate::cancel::Cancel;
use crate::decide::{Answered, DecideCx, Subject};
use crate::ids::{AgentId, OpId, ToolName};
use crate::json::Json;
use crate::machine::{AgentProgress, Op, Reply};
use crate::origin::Origin;
use crate::outcome::{Fault, FaultSource, Purpose};
use crate::port::{
    AgentConfig, ApprovalAsk, BoxFuture, CompactAsk, Decision, DynContextPipeline, Ledger, ModelFault,
    ModelFaultCode, ModelRequest, PrepareAsk, PreparedAgent, ViewCx,
};
use crate::time::{Millis, Time};
use crate::tool::{ArgumentFault, ToolCx, ToolDef, ToolScope, ToolUpdates, Updates};
use crate::transcript::{Plan, Prefix, View};

/// Performs one operation, over the transcript as it was when the operation started.
pub(super) struct Performer<'p> {
    pub(super) ports: &'p Ports,
    pub(super) sink: &'p Sink<'p>,
    pub(super) log: Prefix,
    pub(super) origin: Arc<Origin>,
    /// The turn of the run, from 1.
    pub(super) turn: u32,
    /// When the operation is cut off; `None` when nothing cuts it off.
    pub(super) deadline: Option<Time>,
    pub(super) cancel: Cancel,
    /// Reserves and charges model calls that ports make.
    pub(super) ledger: Ledger,
}

impl<'p> Performer<'p> {
    /// Starts an operation. The reply reports a port that is missing or panics.
    pub(super) fn start(self, id: OpId, op: Op) -> BoxFuture<'p, Reply> {
        let failed = failed_reply(&op);
        Box::pin(async move {
            match AssertUnwindSafe(self.perform(id, op)).catch_unwind().await {
                Ok(reply) => reply.unwrap_or_else(|| failed("its port is not configured")),
                Err(panic) => failed(&panic_text(&*panic)),
            }
        })
    }

    /// Performs an operation; `None` when its port is missing.
    async fn perform(self, id: OpId, op: Op) -> Option<Reply> {
        let ports = self.ports;
        Some(match op {
            Op::Prepare { agent, iteration } => {
                let ask = PrepareAsk { agent, origin: self.origin, iteration, log: self.log };
                Reply::Prepared(prepare(ports, ask).await)
            }
            Op::Begin { standing } => {
                let (layers, cx) = self.layers(*standing)?;
                Reply::Noted(layers.begin_boxed(&cx).await)
            }
            Op::Append { source, messages, standing } => {
                let (layers, cx) = self.layers(*standing)?;
                Reply::Appended(layers.append_boxed(source, messages, &cx).await)
            }
            Op::Recall { standing } => {
                let (layers, cx) = self.layers(*standing)?;
                Reply::Recalled(layers.recall_boxed(&cx).await)
            }
            Op::AfterModel { answer, standing } => {
                let (layers, cx) = self.layers(*standing)?;
                Reply::AfterModel(layers.after_model_boxed(&answer, &cx).await)
            }
            Op::LayerStore { answer, standing } => {
                let (layers, cx) = self.layers(*standing)?;
                Reply::Noted(layers.store_boxed(&answer, &cx).await)
            }
            Op::Complete { outcome, standing } => {
                let (layers, cx) = self.layers(*standing)?;
                Reply::Noted(layers.complete_boxed(outcome, &cx).await)
            }
            Op::Compact { reason, plan, measured, standing } => {
                let (view, cx) = (self.view(plan.clone()), self.view_cx(*standing, Purpose::Compaction));
                let measured = measured.map(|measured| *measured);
                let ask = CompactAsk { reason, view, plan, measured, cx };
                Reply::Compacted(ports.compactor.as_deref()?.compact_boxed(ask).await.map(Box::new))
            }
            op @ Op::Model { .. } => self.model(id, op).await?,
            Op::Arguments { call } => Reply::Arguments(ports.tools.check_dyn(&call).map_err(Box::new)),
            Op::Gate { gate, proposed } => {
                let (gate, cx) = (ports.gates.get(gate as usize)?, self.decide_cx(Purpose::Judge));
                Reply::Gate(Box::new(gate.decide(&proposed, &cx, &*ports.clock).await))
            }
            Op::Check { check, subject } => self.check(check, &subject).await?,
            Op::Approve { proposed } => {
                let ask = ApprovalAsk { proposed: *proposed, cancel: self.cancel };
                Reply::Approval(ports.approver.as_deref()?.decide_boxed(ask).await)
            }
            Op::NoteApproval { request } => {
                let noted = ports.approver.as_deref()?.prepare_boxed(*request).await;
                Reply::ApprovalNoted(noted.map(Box::new))
            }
            op @ Op::Tool { .. } => self.tool(op).await?,
            Op::Drain { point } => Reply::Drained(ports.steering.as_ref()?.waiting_at(point)),
            Op::Facts { ask } => Reply::Facts(self.facts(&ask).await),
            Op::Store { records } => store(&self, &records).await?,
            Op::Save { messages, state } => save(&self, messages, state).await?,
        })
    }

    async fn facts(self, ask: &Json) -> Result<Json, Fault> {
        let Some(facts) = self.ports.facts.as_deref() else { return Ok(Json::null()) };
        facts.gather_boxed(ask, &self.decide_cx(Purpose::Judge)).await
    }

    fn layers(&self, standing: AgentProgress) -> Option<(&'p dyn DynContextPipeline, ViewCx)> {
        Some((self.ports.layers.as_deref()?, self.view_cx(standing, Purpose::Layer)))
    }

    async fn model(self, id: OpId, op: Op) -> Option<Reply> {
        let Op::Model { progress, plan, prepared, with_tools, .. } = op else { return None };
        let (view, agent) = (self.view(plan), prepared.agent.clone());
        self.sink.start(id, agent.clone());
        let (deadline, cancel) = (self.deadline, self.cancel);
        let (thinking, key) = (None, None);
        let request = ModelRequest { view, prepared, with_tools, progress, deadline, thinking, key, cancel };
        Some(Reply::Model(match self.ports.model.step_boxed(request, self.sink).await {
            Ok(mut answer) => {
                answer.agent.get_or_insert(agent);
                Ok(Arc::new(answer.into()))
            }
            Err(mut fault) => {
                if let Some(partial) = &mut fault.partial {
                    partial.agent.get_or_insert(agent);
                }
                Err(Box::new(fault))
            }
        }))
    }

    async fn check(self, check: u32, subject: &Subject) -> Option<Reply> {
        let check = self.ports.checks.get(check as usize)?;
        let purpose = match subject {
            Subject::Prompt(_) | Subject::Answer { .. } => Purpose::Guardrail,
            Subject::Result { .. } | Subject::Invalid { .. } => Purpose::Judge,
            Subject::End { .. } => Purpose::StopGate,
        };
        let cx = self.decide_cx(purpose);
        Some(Reply::Check(Box::new(check.judge(subject, &cx, &*self.ports.clock).await)))
    }

    async fn tool(self, op: Op) -> Option<Reply> {
        let Op::Tool { call, agent, iteration, message, index, attempt, grant } = op else { return None };
        let updates = self.ports.updates.clone().map(|inner| match &self.ports.redactor {
            Some(redactor) => {
                Arc::new(RedactedUpdates { inner, redactor: redactor.clone() }) as Arc<dyn ToolUpdates>
            }
            None => inner,
        });
        let cx = ToolCx {
            call,
            origin: self.origin,
            agent,
            iteration,
            message,
            index,
            attempt,
            deadline: self.deadline,
            grant,
            cancel: self.cancel,
            updates: Updates::to(updates),
            ledger: self.ledger.for_purpose(Purpose::Child),
        };
        Some(Reply::Tool(self.ports.tools.call_boxed(cx).await.map(Box::new)))
    }

    fn view(&self, plan: Option<Plan>) -> View {
        match plan {
            Some(plan) => View::planned(self.log.clone(), plan),
            None => View::whole(self.log.clone()),
        }
    }

    fn view_cx(&self, standing: AgentProgress, purpose: Purpose) -> ViewCx {
        ViewCx {
            log: self.log.clone(),
            origin: Arc::clone(&self.origin),
            prepared: standing.prepared,
            progress: standing.progress,
            now: self.ports.clock.now(),
            deadline: self.deadline,
            cancel: self.cancel.clone(),
            ledger: self.ledger.for_purpose(purpose),
        }
    }

    fn decide_cx(&self, purpose: Purpose) -> DecideCx {
        let (log, origin, cancel) = (self.log.clone(), Arc::clone(&self.origin), self.cancel.clone());
        let (now, ledger) = (self.ports.clock.now(), self.ledger.for_purpose(purpose));
        DecideCx { log, origin, cancel, now, ledger }
    }
}

/// Makes the reply of an operation from the reason why its port gave none.
fn failed_reply(op: &Op) -> fn(&str) -> Reply {
    fn fault(part: FaultSource, text: &str) -> Fault {
        Fault::new(part, "panicked", format!("panicked: {text}"))
    }
    match op {
        Op::Prepare { .. } => |text| Reply::Prepared(Err(fault(FaultSource::Agent, text))),
        Op::Begin { .. } | Op::LayerStore { .. } | Op::Complete { .. } => {
            |text| Reply::Noted(Err(fault(FaultSource::Layer, text)))
        }
        Op::Append { .. } => |text| Reply::Appended(Err(fault(FaultSource::Layer, text))),
        Op::Recall { .. } => |text| Reply::Recalled(Err(fault(FaultSource::Layer, text))),
        Op::Compact { .. } => |text| Reply::Compacted(Err(fault(FaultSource::Compactor, text))),
        Op::Model { .. } => |text| {
            let text = format!("the model panicked: {text}");
            Reply::Model(Err(Box::new(ModelFault::new(ModelFaultCode::Unknown, text))))
        },
        Op::AfterModel { .. } => |text| Reply::AfterModel(Err(fault(FaultSource::Layer, text))),
        Op::Arguments { .. } => |text| {
            let text = format!("they could not be checked ({text})");
            Reply::Arguments(Err(Box::new(ArgumentFault::new("", text))))
        },
        Op::Gate { .. } => |text| {
            let answer = Err(fault(FaultSource::Gate, text));
            Reply::Gate(Box::new(Answered { answer, took: Millis(0) }))
        },
        Op::Check { .. } => |text| {
            let answer = Err(fault(FaultSource::Guardrail, text));
            Reply::Check(Box::new(Answered { answer, took: Millis(0) }))
        },
        Op::Approve { .. } => {
            |text| Reply::Approval(Decision::Denied { reason: format!("the approver failed ({text})") })
        }
        Op::NoteApproval { .. } => |text| Reply::ApprovalNoted(Err(fault(FaultSource::Approver, text))),
        Op::Tool { .. } => |text| {
            let text = format!("the tool panicked: {text}");
            Reply::Tool(Err(Fault::new(FaultSource::Tool, "tool_panicked", text)))
        },
        Op::Drain { .. } => |_| Reply::Drained(Vec::new()),
        Op::Facts { .. } => |text| Reply::Facts(Err(fault(FaultSource::Facts, text))),
        Op::Store { .. } => |text| Reply::Stored(Err(format!("the session panicked: {text}"))),
        Op::Save { .. } => |text| Reply::Saved(Err(fault(FaultSource::Checkpoints, text))),
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
    prepared.output = config.output;
    prepared
}

/// Selects an agent's tools, in the agent's order.
fn pick(listed: &[ToolDef], names: &[ToolName], agent: &AgentId) -> Result<Vec<ToolDef>, Fault> {
    let find = |name: &ToolName| {
        listed.iter().find(|def| def.name == *name).cloned().ok_or_else(|| {
            let text = format!(
                "agent `{agent}` lists tool `{name}`, which is not in the registry; bind the tool or remove it from \
                 the agent"
            );
            Fault::new(FaultSource::Tool, "tool_missing", text)
        })
    };
    names.iter().map(find).collect()
}
