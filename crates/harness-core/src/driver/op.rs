//! Performs operations through ports.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures_util::future::{Either, select};
use tracing::Instrument as _;

use super::ports::Ports;
use super::sink::Sink;
use crate::cancel::Cancel;
use crate::ids::{AgentId, OpId, ToolName};
use crate::machine::{Machine, Op, Phase, Reply};
use crate::message::{AssistantMessage, Message};
use crate::outcome::{Fault, FaultSource};
use crate::panics::panic_text;
use crate::port::{
    AgentBrief, ApprovalAsk, ArgumentFault, BoxFuture, Clock, Decision, GateCx, HookAsk, HookCx, Inspection,
    Judgement, ModelFault, ModelFaultCode, ModelRequest, Offer, PrepareAsk, ToolCx, ToolDef, ToolOutcome,
    ToolScope, Verdict,
};
use crate::time::Millis;

/// An operation that is being performed.
pub(super) enum Running<'p> {
    /// It needed no waiting.
    Ready(Reply),
    /// A model; the agent is written into its answer, and gone with it.
    Model(BoxFuture<'p, Result<AssistantMessage, ModelFault>>, Option<AgentId>),
    /// A tool that cannot fault.
    Tool(BoxFuture<'p, ToolOutcome>),
    /// Anything else, and what a panic of it means.
    Other(BoxFuture<'p, Reply>, fn(String) -> Reply),
}

impl Running<'_> {
    /// The agent whose model this is.
    pub(super) fn model_of(&self) -> Option<&AgentId> {
        if let Self::Model(_, agent) = self { agent.as_ref() } else { None }
    }

    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Reply> {
        match catch_unwind(AssertUnwindSafe(|| self.poll_inner(cx))) {
            Ok(polled) => polled,
            Err(panic) => Poll::Ready(self.panicked(panic_text(&*panic))),
        }
    }

    fn poll_inner(&mut self, cx: &mut Context<'_>) -> Poll<Reply> {
        match self {
            Self::Ready(reply) => Poll::Ready(std::mem::replace(reply, Reply::Interrupted { partial: None })),
            Self::Model(model, agent) => model.as_mut().poll(cx).map(|result| answered(result, agent.take())),
            Self::Tool(tool) => tool.as_mut().poll(cx).map(|outcome| Reply::Tool(Ok(Arc::new(outcome)))),
            Self::Other(other, _) => Pin::new(other).poll(cx),
        }
    }

    fn panicked(&self, text: String) -> Reply {
        match self {
            Self::Ready(_) => Reply::Interrupted { partial: None },
            Self::Model(..) => model_panicked(text),
            Self::Tool(_) => tool_panicked(text),
            Self::Other(_, panicked) => panicked(text),
        }
    }
}

fn answered(result: Result<AssistantMessage, ModelFault>, agent: Option<AgentId>) -> Reply {
    Reply::Model(match result {
        Ok(mut message) => {
            if message.agent.is_none() {
                message.agent = agent;
            }
            Ok(Arc::new(Message::Assistant(message)))
        }
        Err(mut fault) => {
            if let Some(partial) = fault.partial.as_mut().filter(|partial| partial.agent.is_none()) {
                partial.agent = agent;
            }
            Err(Box::new(fault))
        }
    })
}

fn fault(part: FaultSource, text: &str) -> Fault {
    Fault::new(part, "panicked", format!("panicked: {text}"))
}

fn model_panicked(text: String) -> Reply {
    Reply::Model(Err(Box::new(ModelFault::new(
        ModelFaultCode::Unknown,
        format!("the model panicked: {text}"),
    ))))
}

fn tool_panicked(text: String) -> Reply {
    Reply::Tool(Err(Fault::new(FaultSource::Tool, "tool_panicked", format!("the tool panicked: {text}"))))
}

fn prepare_panicked(text: String) -> Reply {
    Reply::Prepared(Err(fault(FaultSource::Agent, &text)))
}

fn note_layers_panicked(text: String) -> Reply {
    Reply::Noted(Err(fault(FaultSource::Layer, &text)))
}

fn append_panicked(text: String) -> Reply {
    Reply::Appended(Err(fault(FaultSource::Layer, &text)))
}

fn recall_panicked(text: String) -> Reply {
    Reply::Recalled(Err(fault(FaultSource::Layer, &text)))
}

fn compact_panicked(text: String) -> Reply {
    Reply::Compacted(Err(fault(FaultSource::Compactor, &text)))
}

fn after_model_panicked(text: String) -> Reply {
    Reply::AfterModel(Err(fault(FaultSource::Layer, &text)))
}

fn gate_panicked(text: String) -> Reply {
    Reply::Gate(Verdict::Deny { message: format!("Denied: the gate failed ({text}).") }.into())
}

fn guard_panicked(text: String) -> Reply {
    Reply::Guarded(Err(fault(FaultSource::Guardrail, &text)))
}

fn approver_panicked(text: String) -> Reply {
    Reply::Approval(Decision::Denied { reason: format!("the approver failed ({text})") })
}

fn hook_panicked(text: String) -> Reply {
    Reply::Hooked(Err(fault(FaultSource::Hook, &text)))
}

fn note_panicked(text: String) -> Reply {
    Reply::ApprovalNoted(Err(fault(FaultSource::Approver, &text)))
}

fn stop_gate_panicked(text: String) -> Reply {
    Reply::Judged(Judgement::Continue {
        guidance: format!("A check of the work failed ({text}). Check it again."),
    })
}

/// Starts an operation. A panic while it is started counts like one while it runs.
pub(super) fn start<'p, P: Phase>(
    ports: &'p Ports,
    machine: &Machine<P>,
    sink: &'p Sink<'p>,
    token: &Cancel,
    id: OpId,
    op: &mut Op,
) -> Running<'p> {
    let panicked = panicked_by(op);
    // Taken where it is needed: an operation is large.
    let mut take = || std::mem::replace(op, Op::Drain);
    catch_unwind(AssertUnwindSafe(|| start_inner(ports, machine, sink, token, id, take())))
        .unwrap_or_else(|panic| Running::Ready(panicked(panic_text(&*panic))))
}

pub(super) fn panicked_by(op: &Op) -> fn(String) -> Reply {
    match op {
        Op::Prepare { .. } => prepare_panicked,
        Op::Begin { .. } | Op::Store { .. } | Op::Complete { .. } => note_layers_panicked,
        Op::Append { .. } => append_panicked,
        Op::Recall { .. } => recall_panicked,
        Op::Compact { .. } => compact_panicked,
        Op::Model { .. } => model_panicked,
        Op::AfterModel { .. } => after_model_panicked,
        Op::Arguments { .. } => |text| {
            Reply::Arguments(Err(Box::new(ArgumentFault::new(
                "",
                format!("they could not be checked ({text})"),
            ))))
        },
        Op::Gate { .. } => gate_panicked,
        Op::GuardInput { .. } | Op::GuardOutput { .. } => guard_panicked,
        Op::Approve { .. } => approver_panicked,
        Op::NoteApproval { .. } => note_panicked,
        Op::Tool { .. } => tool_panicked,
        Op::Hook { .. } => hook_panicked,
        Op::Drain => |_| Reply::Drained(Vec::new()),
        Op::StopGate { .. } => stop_gate_panicked,
    }
}

fn start_inner<'p, P: Phase>(
    ports: &'p Ports,
    machine: &Machine<P>,
    sink: &'p Sink<'p>,
    token: &Cancel,
    id: OpId,
    op: Op,
) -> Running<'p> {
    let origin = machine.origin();
    let gate_cx = || {
        GateCx::new(machine.log().prefix(), Arc::clone(origin), token.clone(), ports.clock.now())
            .with_facts(!ports.hub.is_silent())
    };
    match op {
        Op::Prepare { agent, iteration } => {
            let ask = PrepareAsk::new(agent, Arc::clone(origin), iteration);
            Running::Other(
                Box::pin(async move { Reply::Prepared(prepare(ports, ask).await) }),
                prepare_panicked,
            )
        }
        op @ (Op::Begin { .. }
        | Op::Append { .. }
        | Op::Recall { .. }
        | Op::Compact { .. }
        | Op::AfterModel { .. }
        | Op::Store { .. }
        | Op::Complete { .. }) => super::view::start(ports, machine, token, op),
        Op::Model { progress, plan, offer, with_tools, .. } => {
            let (view, deadline, cancel) = (machine.view(plan), machine.cut_off(), token.clone());
            let request = ModelRequest { view, offer, with_tools, progress, deadline, cancel };
            start_model(ports, sink, id, request)
        }
        Op::Arguments { call } => {
            Running::Ready(Reply::Arguments(ports.tools.check_dyn(&call).map_err(Box::new)))
        }
        Op::Gate { gate, ask } => match ports.gates.get(gate as usize) {
            Some(gate) => {
                let cx = gate_cx();
                let asked = async move { Reply::Gate(Box::new(gate.rule_boxed(&ask, &cx).await)) };
                Running::Other(Box::pin(asked), gate_panicked)
            }
            None => Running::Ready(gate_panicked("it is not there".into())),
        },
        Op::GuardInput { guardrail, messages, timeout } => {
            match ports.input_guardrails.get(guardrail as usize) {
                Some(guardrail) => {
                    let cx = gate_cx();
                    let asked = async move {
                        let asked = guardrail.inspect_boxed(&messages, &cx);
                        Reply::Guarded(in_time(&*ports.clock, timeout, asked).await.map(Box::new))
                    };
                    Running::Other(Box::pin(asked), guard_panicked)
                }
                None => Running::Ready(guard_panicked("it is not there".into())),
            }
        }
        Op::GuardOutput { guardrail, answer, timeout } => {
            match ports.output_guardrails.get(guardrail as usize) {
                Some(guardrail) => {
                    let cx = gate_cx();
                    let asked = async move {
                        let asked = guardrail.inspect_boxed(&answer, &cx);
                        Reply::Guarded(in_time(&*ports.clock, timeout, asked).await.map(Box::new))
                    };
                    Running::Other(Box::pin(asked), guard_panicked)
                }
                None => Running::Ready(guard_panicked("it is not there".into())),
            }
        }
        Op::Approve { call, reason } => match &ports.approver {
            Some(approver) => {
                let ask = ApprovalAsk::new(call, reason, Arc::clone(origin), token.clone());
                let asked = async move { Reply::Approval(approver.decide_boxed(ask).await) };
                Running::Other(Box::pin(asked), approver_panicked)
            }
            None => Running::Ready(Reply::Approval(Decision::Later)),
        },
        Op::NoteApproval { request } => {
            let Some(approver) = &ports.approver else {
                let prepared = crate::port::Prepared::new(*request, None);
                return Running::Ready(Reply::ApprovalNoted(Ok(Box::new(prepared))));
            };
            let asked =
                async move { Reply::ApprovalNoted(approver.prepare_boxed(*request).await.map(Box::new)) };
            Running::Other(Box::pin(asked), note_panicked)
        }
        Op::Tool { call, agent, iteration, message, index, attempt, grant } => {
            let (origin, deadline, cancel) = (Arc::clone(origin), machine.cut_off(), token.clone());
            let place =
                ToolCx { call, origin, agent, iteration, message, index, attempt, deadline, grant, cancel };
            start_tool(ports, place)
        }
        Op::Hook { ask, progress, from } => {
            let Some(hooks) = &ports.hooks else { return Running::Ready(Reply::Hooked(Ok(None))) };
            let cx = HookCx {
                log: machine.log().prefix(),
                from: usize::try_from(from).unwrap_or(usize::MAX),
                origin: Arc::clone(origin),
                progress,
                deadline: machine.cut_off(),
                cancel: token.clone(),
            };
            let asked = async move {
                let answer = hooks.ask_boxed(&ask, &cx).await;
                if let (HookAsk::Finished(_), Err(fault)) = (&*ask, &answer) {
                    tracing::warn!(code = %fault.code, "the hook of the turn's end failed: {}", fault.message);
                }
                Reply::Hooked(answer.map(|question| question.map(Box::new)))
            };
            Running::Other(Box::pin(asked), hook_panicked)
        }
        Op::Drain => Running::Ready(Reply::Drained(
            ports.steering.as_ref().map(|steering| steering.waiting()).unwrap_or_default(),
        )),
        Op::StopGate { gate, end } => match ports.stop_gates.get(gate as usize) {
            Some(gate) => {
                let cx = gate_cx();
                let asked = async move { Reply::Judged(gate.judge_boxed(&end, &cx).await) };
                Running::Other(Box::pin(asked), stop_gate_panicked)
            }
            None => Running::Ready(stop_gate_panicked("it is not there".into())),
        },
    }
}

/// What a guardrail says, or a fault when it takes longer than it may.
async fn in_time(
    clock: &dyn Clock,
    timeout: Option<Millis>,
    asked: BoxFuture<'_, Result<Inspection, Fault>>,
) -> Result<Inspection, Fault> {
    let Some(timeout) = timeout else { return asked.await };
    match select(asked, clock.sleep_until(clock.now().after(timeout))).await {
        Either::Left((found, _)) => found,
        Either::Right(_) => {
            let text = format!("it gave no answer within {timeout}");
            Err(Fault::new(FaultSource::Guardrail, "timeout", text))
        }
    }
}

fn start_model<'p>(ports: &'p Ports, sink: &'p Sink<'p>, id: OpId, request: ModelRequest) -> Running<'p> {
    sink.begin(id);
    let agent = request.offer.agent.clone();
    let span = tracing::info_span!(
        "chat",
        gen_ai.operation.name = "chat",
        gen_ai.request.model = request.offer.model.as_ref().map(crate::ModelName::as_str),
        gen_ai.agent.id = agent.as_str(),
        iteration = request.progress.iteration,
    );
    let step = ports.model.step_boxed(request, sink);
    if span.is_disabled() {
        return Running::Model(step, Some(agent));
    }
    Running::Model(Box::pin(step.instrument(span)), Some(agent))
}

fn start_tool(ports: &Ports, cx: ToolCx) -> Running<'_> {
    let span = tracing::info_span!(
        "execute_tool",
        gen_ai.operation.name = "execute_tool",
        gen_ai.tool.name = cx.call.name.as_str(),
        gen_ai.tool.call.id = cx.call.id.as_str(),
        attempt = cx.attempt,
    );
    match ports.tools.call_plain(cx) {
        Ok(tool) if span.is_disabled() => Running::Tool(tool),
        Ok(tool) => Running::Tool(Box::pin(tool.instrument(span))),
        Err(cx) => {
            let tool = ports.tools.call_boxed(cx).instrument(span);
            let called = async move { Reply::Tool(tool.await.map(Arc::new)) };
            Running::Other(Box::pin(called), tool_panicked)
        }
    }
}

/// Asks for an agent and looks its tools up.
async fn prepare(ports: &Ports, ask: PrepareAsk) -> Result<Arc<Offer>, Fault> {
    let brief = ports.agents.prepare_boxed(&ask).await?;
    let allowed = match (&brief.tools, &ask.origin.allowed_tools) {
        (Some(own), Some(most)) => Some(own.iter().filter(|name| most.contains(name)).cloned().collect()),
        (Some(names), None) | (None, Some(names)) => Some(Arc::clone(names)),
        (None, None) => None,
    };
    let scope = ToolScope::new(Arc::clone(&ask.origin), allowed.clone());
    let listed = ports.tools.list_boxed(&scope).await?;
    let own = match (&brief.tools, &allowed) {
        (Some(_), Some(names)) => pick(&listed, names, &brief.agent)?,
        (None, Some(names)) => listed.iter().filter(|def| names.contains(&def.name)).cloned().collect(),
        (_, None) if brief.handoffs.is_empty() => return Ok(Arc::new(offer(brief, listed))),
        (_, None) => listed.to_vec(),
    };
    let tools: Arc<[ToolDef]> = own.into_iter().chain(brief.handoffs.iter().cloned()).collect();
    Ok(Arc::new(offer(brief, tools)))
}

fn offer(brief: AgentBrief, tools: Arc<[ToolDef]>) -> Offer {
    Offer::new(brief.agent, brief.instructions, tools).with_model(brief.model, brief.settings)
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
