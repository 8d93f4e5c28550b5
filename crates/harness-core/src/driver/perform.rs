//! Performs operations through ports.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

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
use crate::limits::Amount;
use crate::machine::{AgentProgress, Machine, Op, Phase, Reply};
use crate::message::{AssistantMessage, Message};
use crate::origin::Origin;
use crate::outcome::{Fault, FaultSource, Purpose};
use crate::port::{
    AgentConfig, ApprovalAsk, BoxFuture, CompactAsk, Decision, DynContextPipeline, Ledger, ModelFault,
    ModelFaultCode, ModelRequest, PrepareAsk, PreparedAgent, ViewCx,
};
use crate::time::{Millis, Time};
use crate::tool::{ArgumentFault, ToolCx, ToolDef, ToolOutcome, ToolScope, ToolUpdates, Updates};
use crate::transcript::{Plan, Prefix, View};

/// Values that an operation reads from its machine: enough to perform it elsewhere, see [`perform`](super::perform).
///
/// ```
/// use harness_core::driver::OpScope;
/// use harness_core::run::Run;
/// use harness_core::transcript::Transcript;
/// use harness_core::Origin;
///
/// let run = Run::new(Default::default(), Origin::default(), Transcript::default());
/// let scope = OpScope::of(&run);
/// assert_eq!((scope.log.len(), scope.turn, scope.deadline), (0, 1, None));
/// ```
#[derive(Clone, Copy, Debug)]
pub struct OpScope<'m> {
    /// The transcript when the operation starts.
    pub log: &'m Prefix,
    /// The ids of the work.
    pub origin: &'m Arc<Origin>,
    /// The turn of the run, from 1.
    pub turn: u32,
    /// When the operation is cut off; `None` when nothing cuts it off.
    pub deadline: Option<Time>,
    /// Rest of the budgets, for model calls that ports make.
    pub left: Amount,
}

impl<'m> OpScope<'m> {
    /// The scope of an operation that the machine starts now.
    pub fn of<P: Phase>(machine: &'m Machine<P>) -> Self {
        Self {
            log: machine.log(),
            origin: machine.origin(),
            turn: machine.turn(),
            deadline: machine.cut_off(),
            left: machine.left(),
        }
    }
}

/// Starts operations over a machine as it is now.
pub(super) struct Starter<'p, 'm> {
    pub(super) ports: &'p Ports,
    pub(super) sink: &'p Sink<'p>,
    /// Reserves and charges model calls that ports make.
    pub(super) ledger: &'p Ledger,
    pub(super) scope: OpScope<'m>,
    pub(super) cancel: &'m Cancel,
}

impl<'p> Starter<'p, '_> {
    /// Starts an operation.
    pub(super) fn start(&self, id: OpId, op: Op) -> Work<'p> {
        let failed = failed_reply(&op);
        let started = catch_unwind(AssertUnwindSafe(|| self.future(id, op)));
        let future = started.unwrap_or_else(|panic| {
            let reply = failed(&panic_text(&*panic));
            PortFuture::Other(Box::pin(std::future::ready(Some(reply))))
        });
        Work { future, failed }
    }

    #[expect(clippy::wildcard_enum_match_arm, reason = "one performer performs all other operations")]
    fn future(&self, id: OpId, op: Op) -> PortFuture<'p> {
        let Self { ports, scope, .. } = *self;
        let (deadline, cancel) = (scope.deadline, self.cancel.clone());
        match op {
            Op::Model { progress, plan, prepared, with_tools, .. } => {
                let (view, thinking, key) = (view(scope.log.clone(), plan), None, None);
                let origin = Arc::clone(scope.origin);
                let request = ModelRequest {
                    view,
                    prepared,
                    with_tools,
                    progress,
                    origin,
                    deadline,
                    thinking,
                    key,
                    cancel,
                };
                self.sink.start(id);
                let agent = Some(request.prepared.agent.clone());
                PortFuture::Model(agent, ports.model.step_boxed(request, self.sink))
            }
            Op::Tool { call, agent, iteration, message, index, attempt, grant, class: _ } => {
                let (origin, updates) = (Arc::clone(scope.origin), updates(ports));
                let ledger = self.ledger.for_purpose(Purpose::Child);
                let cx = ToolCx {
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
                    updates,
                    ledger,
                    params: ports.params.clone(),
                    children: ports.children.clone(),
                };
                match ports.tools.tool_dyn(&cx.call.name) {
                    Some(tool) => PortFuture::Tool(tool.call_boxed(cx)),
                    None => PortFuture::Registry(ports.tools.call_boxed(cx)),
                }
            }
            op => {
                let (log, origin, turn) = (scope.log.clone(), Arc::clone(scope.origin), scope.turn);
                let performer = Performer { ports, ledger: self.ledger, log, origin, turn, deadline, cancel };
                PortFuture::Other(Box::pin(performer.perform(op)))
            }
        }
    }
}

/// An operation in flight. Its reply reports a port that is missing or panics.
pub(super) struct Work<'p> {
    future: PortFuture<'p>,
    failed: fn(&str) -> Reply,
}

/// The future of a port.
enum PortFuture<'p> {
    /// The model answers; the agent is that of the request, until the answer has it.
    Model(Option<AgentId>, BoxFuture<'p, Result<AssistantMessage, ModelFault>>),
    Tool(BoxFuture<'p, ToolOutcome>),
    Registry(BoxFuture<'p, Result<ToolOutcome, Fault>>),
    /// Gives no reply when its port is missing.
    Other(BoxFuture<'p, Option<Reply>>),
}

impl Future for Work<'_> {
    type Output = Reply;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Reply> {
        let polled = catch_unwind(AssertUnwindSafe(|| self.future.poll(cx)));
        match polled {
            Ok(polled) => {
                polled.map(|reply| reply.unwrap_or_else(|| (self.failed)("its port is not configured")))
            }
            Err(panic) => Poll::Ready((self.failed)(&panic_text(&*panic))),
        }
    }
}

impl PortFuture<'_> {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<Reply>> {
        Poll::Ready(Some(match self {
            Self::Model(agent, answer) => Reply::Model(match ready!(answer.poll_unpin(cx)) {
                Ok(answer) => Ok(Arc::new(Message::Assistant(named(answer, agent)))),
                Err(mut fault) => {
                    fault.partial = fault.partial.map(|partial| Box::new(named(*partial, agent)));
                    Err(Box::new(fault))
                }
            }),
            Self::Tool(outcome) => Reply::Tool(Ok(Arc::new(ready!(outcome.poll_unpin(cx))))),
            Self::Registry(outcome) => Reply::Tool(ready!(outcome.poll_unpin(cx)).map(Arc::new)),
            Self::Other(reply) => return reply.poll_unpin(cx),
        }))
    }
}

/// An answer has the name of the requesting agent, unless it has a name.
fn named(answer: AssistantMessage, agent: &mut Option<AgentId>) -> AssistantMessage {
    AssistantMessage { agent: answer.agent.or_else(|| agent.take()), ..answer }
}

/// Performs one operation, over the transcript as it was when the operation started.
pub(super) struct Performer<'p> {
    pub(super) ports: &'p Ports,
    ledger: &'p Ledger,
    log: Prefix,
    pub(super) origin: Arc<Origin>,
    /// The turn of the run, from 1.
    pub(super) turn: u32,
    deadline: Option<Time>,
    cancel: Cancel,
}

impl<'p> Performer<'p> {
    /// Performs an operation; `None` when its port is missing.
    async fn perform(self, op: Op) -> Option<Reply> {
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
                let (view, cx) =
                    (view(self.log.clone(), plan.clone()), self.view_cx(*standing, Purpose::Compaction));
                let measured = measured.map(|measured| *measured);
                let ask = CompactAsk { reason, view, plan, measured, cx };
                Reply::Compacted(ports.compactor.as_deref()?.compact_boxed(ask).await.map(Box::new))
            }
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
            Op::Model { .. } | Op::Tool { .. } => return None,
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

/// The receiver of a tool's updates, without known secrets.
fn updates(ports: &Ports) -> Updates {
    Updates::to(ports.updates.clone().map(|inner| match &ports.redactor {
        Some(redactor) => {
            Arc::new(RedactedUpdates { inner, redactor: redactor.clone() }) as Arc<dyn ToolUpdates>
        }
        None => inner,
    }))
}

fn view(log: Prefix, plan: Option<Plan>) -> View {
    match plan {
        Some(plan) => View::planned(log, plan),
        None => View::whole(log),
    }
}

/// Makes the reply of an operation from the reason why its port gave none.
pub(super) fn failed_reply(op: &Op) -> fn(&str) -> Reply {
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
