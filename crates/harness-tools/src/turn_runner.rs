//! Runs a sub-agent as a separate run.

use std::sync::Arc;

use harness_core::driver::{ChildRun, Ports, drive};
use harness_core::event::{Fold, Hub};
use harness_core::limits::{Amount, Limits};
use harness_core::machine::Start;
use harness_core::message::{ApprovalRequest, AssistantMessage, Message, ToolCall, Usage};
use harness_core::outcome::{Continuation, ContinuationKind};
use harness_core::port::{AgentConfig, DynContextPipeline, SingleAgent};
use harness_core::run::{Run, RunSpec};
use harness_core::tool::{
    ArgumentFault, DynToolRegistry, ToolCx, ToolDef, ToolOutcome, ToolRegistry, ToolScope,
};
use harness_core::transcript::Transcript;
use harness_core::turn::TurnSpec;
use harness_core::{End, Evidence, Fault, Origin, Outcome, ParentCall, RunId, StopReason, Time, ToolName};

use crate::subagent::{Exchange, SubagentAsk, SubagentCode, SubagentReport, SubagentRunner};

/// Runs each sub-agent as a run with its own instructions and tools. It receives its task and nothing else
/// of the thread.
///
/// It spends the grant of the call: its limits of iterations, tool calls, tokens and cost are the smaller of
/// its own and the granted ones, its time limit is the remaining time of the caller's turn. The usage of its
/// model, layers and compactor is reported as its spending. A call that needs approval and gets none ends it
/// with `subagent_error`, unless it runs elsewhere ([`ToolCx::children`]): then the call is pending with it.
///
/// Its work has a separate [`Origin`], whose [`parent`](Origin::parent) is the call that started it. Tools,
/// gates and observers see it.
///
/// ```
/// use std::sync::Arc;
///
/// use harness_core::driver::Ports;
/// use harness_core::message::AssistantMessage;
/// use harness_core::testing::{ModelStep, ScriptedModel, VirtualClock};
/// use harness_tools::{Subagent, SubagentTool, TurnRunner};
///
/// let model = ScriptedModel::new([ModelStep::answer(AssistantMessage::text("Nothing there."))]);
/// let clock = VirtualClock::frozen(harness_core::Time(0));
/// let runner = TurnRunner::new(&Ports::new(Arc::new(model), Arc::new(clock)));
/// let scout = Subagent::new("scout", "looks around", "You look around and tell what you see.");
/// let tool = SubagentTool::new([scout], Arc::new(runner));
/// assert!(tool.is_some());
/// ```
#[derive(Clone, derive_more::Debug)]
pub struct TurnRunner {
    ports: Ports,
    #[debug(skip)]
    listeners: Vec<Listen>,
}

type Listen = Arc<dyn Fn(&mut Hub) + Send + Sync>;

impl TurnRunner {
    /// Creates a runner with the [ports of a child](Ports::for_child): the model, allowed tools, gates, checks,
    /// approver and compactor. A check that does not accept an end gives a sub-agent another turn, within
    /// [`Subagent::max_turns`](crate::Subagent::max_turns).
    pub fn new(ports: &Ports) -> Self {
        Self { ports: ports.for_child(), listeners: Vec::new() }
    }

    /// Sets memory layers. [`Origin::parent`] identifies the caller of a sub-agent.
    #[must_use]
    pub fn layers(mut self, layers: Arc<dyn DynContextPipeline>) -> Self {
        self.ports.layers = Some(layers);
        self
    }

    /// Adds an observer of the events of every sub-agent. Events are numbered per sub-agent;
    /// [`Origin::parent`] and [`Origin::run`] identify it. Share an observer as `Arc<Mutex<F>>`.
    #[must_use]
    pub fn fold<F: Fold + Clone + Sync + 'static>(mut self, fold: F) -> Self {
        self.listeners.push(Arc::new(move |hub: &mut Hub| hub.fold(fold.clone())));
        self
    }

    /// Hides tools from the agents, such as those that start further agents.
    #[must_use]
    pub fn without<N: Into<ToolName>>(mut self, names: impl IntoIterator<Item = N>) -> Self {
        let hidden = names.into_iter().map(Into::into).collect();
        self.ports.tools = Arc::new(Hiding { tools: self.ports.tools, hidden });
        self
    }

    fn ports(&self, ask: &SubagentAsk) -> Ports {
        let subagent = &ask.subagent;
        let mut config = AgentConfig::new(&*subagent.name, &*subagent.instructions);
        config.tools =
            subagent.tools.as_ref().map(|names| names.iter().map(|name| (&**name).into()).collect());
        let mut ports = self.ports.clone();
        ports.agents = Arc::new(SingleAgent::of(config));
        self.listeners.iter().for_each(|listen| listen(&mut ports.hub));
        ports
    }
}

/// The settings of a sub-agent that starts now.
fn spec(ask: &SubagentAsk, now: Time) -> RunSpec {
    let limits = ask.subagent.limits().min(ask.cx.grant.0);
    let mut turn = TurnSpec::default();
    (turn.limits.iterations, turn.limits.tool_calls) = (limits.iterations, limits.tool_calls);
    (turn.limits.tokens, turn.limits.cost) = (limits.tokens, limits.cost);
    let longest = Limits::default().elapsed;
    let left = ask.cx.deadline.map(|deadline| deadline.since(now));
    turn.limits.elapsed = [longest, left].into_iter().flatten().min();
    let mut run = RunSpec { turn, ..RunSpec::default() };
    run.limits.turns = ask.subagent.max_turns.max(1);
    run.limits.amount = limits;
    run.limits.elapsed = run.turn.limits.elapsed;
    run
}

/// Origin of a sub-agent's work.
fn origin(cx: &ToolCx) -> Origin {
    let parent = ParentCall::new(cx.call.id.clone(), cx.agent.clone(), &cx.origin);
    let mut origin = cx.origin.child(parent);
    // Calls of a sub-agent have keys of their own, equal on every attempt of the call that runs it.
    origin.run = Some(RunId::from(cx.idempotency_key()));
    origin
}

/// Earlier tasks and answers.
fn earlier(ask: &SubagentAsk) -> Transcript {
    let both = |Exchange { asked, answered }: &Exchange| {
        [Message::user(&**asked), Message::Assistant(AssistantMessage::text(&**answered))]
    };
    ask.earlier.iter().flat_map(both).map(Arc::new).collect()
}

impl SubagentRunner for TurnRunner {
    fn delegates(&self) -> bool {
        true
    }

    async fn run(&self, ask: SubagentAsk) -> SubagentReport {
        let (ports, origin, prompt) = (self.ports(&ask), origin(&ask.cx), Message::user(&*ask.description));
        if let Some(children) = ask.cx.children.clone().filter(|_| ask.earlier.is_empty()) {
            let spec = Arc::new(spec(&ask, children.started()));
            return match children.run(ChildRun::new(ports, spec, origin, Arc::new(prompt)).into()).await {
                Ok(end) => SubagentReport { approvals: approvals(&end), ..report(&end) },
                Err(why) => SubagentReport::failed(SubagentCode::SubagentError, why, 0),
            };
        }
        let spec = Arc::new(spec(&ask, self.ports.clock.now()));
        let mut run = Run::new(spec, origin, earlier(&ask));
        let start = Start::prompt(prompt);
        let end = Box::pin(drive(&mut run, &ports, &ask.cx.cancel, start)).await;
        report(&end)
    }
}

fn report(end: &End) -> SubagentReport {
    let said = end.answer.clone().filter(|answer| !answer.is_empty());
    let iterations = end.iterations;
    let mut report = match (end.outcome(), said) {
        (Outcome::Completed, Some(answer)) => SubagentReport::answered(answer, iterations),
        (_, said) => {
            #[expect(
                clippy::wildcard_enum_match_arm,
                reason = "every other reason is an error of the sub-agent"
            )]
            let code = match end.reason() {
                StopReason::MaxIterationsReached => SubagentCode::MaxIterations,
                StopReason::ModelInvalidResponse | StopReason::InvalidOutput => SubagentCode::InvalidOutput,
                StopReason::Cancelled => SubagentCode::Aborted,
                _ => SubagentCode::SubagentError,
            };
            let so_far = said.map(|said| format!("; partial answer: {said}")).unwrap_or_default();
            let why = if let Evidence::Fault(fault) = &end.stop.evidence {
                format!(": {}", fault.message)
            } else {
                String::new()
            };
            let message = format!("it stopped with {}{why}{so_far}", end.reason().as_str());
            SubagentReport::failed(code, message, iterations)
        }
    };
    let used = &end.usage;
    report.spent = Amount::NONE;
    (report.spent.iterations, report.spent.tool_calls) = (iterations, end.usage.tool_calls);
    // Tokens and cost are reported as usage, which is charged to the budget, too.
    let mut usage = Usage::default();
    (usage.input, usage.output) = (used.input_tokens, used.output_tokens);
    usage.total_tokens = Some(used.amount().tokens);
    usage.requests = Some(u64::from(used.model_calls));
    usage.estimated = used.estimated_tokens.map(|tokens| tokens > 0);
    report.usage = Some(Arc::new(match used.cost {
        Some(cost) => usage.with_cost(cost),
        None => usage,
    }));
    report
}

/// Requests that a sub-agent waits for and that can be continued.
fn approvals(end: &End) -> Vec<ApprovalRequest> {
    let is_pending = |made: &Continuation| made.kind == ContinuationKind::Approval;
    if !end.continuation.as_deref().is_some_and(is_pending) {
        return Vec::new();
    }
    #[expect(clippy::wildcard_enum_match_arm, reason = "no other evidence has requests")]
    match &end.stop.evidence {
        Evidence::Held(requests) => requests.clone(),
        Evidence::Approval(request) => vec![request.clone()],
        _ => Vec::new(),
    }
}

/// A registry with hidden tools.
struct Hiding {
    tools: Arc<dyn DynToolRegistry>,
    hidden: Vec<ToolName>,
}

impl ToolRegistry for Hiding {
    async fn list(&self, scope: &ToolScope) -> Result<Arc<[ToolDef]>, Fault> {
        let all = self.tools.list_boxed(scope).await?;
        Ok(all.iter().filter(|def| !self.hidden.contains(&def.name)).cloned().collect())
    }

    fn check(&self, call: &ToolCall) -> Result<(), ArgumentFault> {
        self.tools.check_dyn(call)
    }

    fn delegates(&self, call: &ToolCall, origin: &Origin) -> bool {
        self.tools.delegates_dyn(call, origin)
    }

    async fn call(&self, cx: ToolCx) -> Result<ToolOutcome, Fault> {
        self.tools.call_boxed(cx).await
    }
}
