//! Running a sub-agent as a turn of its own.

use std::fmt;
use std::sync::Arc;

use harness_core::RunId;
use harness_core::driver::{Ports, drive};
use harness_core::limits::Amount;
use harness_core::machine::Start;
use harness_core::message::{Message, Usage};
use harness_core::port::{
    AgentBrief, Clock, DynApprover, DynModel, DynToolGate, DynToolRegistry, SingleAgent,
};
use harness_core::transcript::Transcript;
use harness_core::turn::{Turn, TurnSpec};
use harness_core::{End, Outcome, StopReason};

use crate::subagent::{SubagentAsk, SubagentCode, SubagentReport, SubagentRunner};

/// Runs each sub-agent as one turn with its own instructions and tools, and nothing of the conversation but
/// what it is asked.
///
/// It draws on the call's grant: of iterations, tool calls, tokens and money it has the smaller of its own
/// limits and what [`SubagentTool::share`](crate::SubagentTool::share) sets aside (without a share it may
/// ask no model), and of time what is left of the turn that asked. The same gates are asked as for the
/// host's own turn if they are given here. A call that waits for approval and gets none ends it with
/// `subagent_error`.
///
/// ```
/// use std::sync::Arc;
///
/// use harness_core::limits::{Amount, Limits};
/// use harness_core::message::AssistantMessage;
/// use harness_core::port::Toolbox;
/// use harness_core::testing::{ModelStep, ScriptedModel, VirtualClock};
/// use harness_tools::{Subagent, SubagentTool, TurnRunner};
///
/// let model = ScriptedModel::new([ModelStep::answer(AssistantMessage::text("Nothing there."))]);
/// let clock = VirtualClock::frozen(harness_core::Time(0));
/// let runner = TurnRunner::new(Arc::new(model), Arc::new(Toolbox::default()), Arc::new(clock));
/// let scout = Subagent::new("scout", "looks around", "You look around and tell what you see.");
/// let tool = SubagentTool::new([scout], Arc::new(runner)).map(|tool| tool.share(Limits::default().amount()));
/// assert!(tool.is_some());
/// ```
#[derive(Clone)]
pub struct TurnRunner {
    model: Arc<dyn DynModel>,
    tools: Arc<dyn DynToolRegistry>,
    clock: Arc<dyn Clock>,
    gates: Vec<Arc<dyn DynToolGate>>,
    approver: Option<Arc<dyn DynApprover>>,
}

impl fmt::Debug for TurnRunner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TurnRunner").field("gates", &self.gates.len()).finish_non_exhaustive()
    }
}

impl TurnRunner {
    /// A runner whose agents ask this model and have these tools, as far as each may use them. Leave the
    /// tool `task` itself out of them: what runs sub-agents that run sub-agents knows no end.
    pub fn new(model: Arc<dyn DynModel>, tools: Arc<dyn DynToolRegistry>, clock: Arc<dyn Clock>) -> Self {
        Self { model, tools, clock, gates: Vec::new(), approver: None }
    }

    /// The same runner with one more gate before each call of a sub-agent.
    #[must_use]
    pub fn gate(mut self, gate: Arc<dyn DynToolGate>) -> Self {
        self.gates.push(gate);
        self
    }

    /// The same runner with somebody who decides about calls that wait for approval.
    #[must_use]
    pub fn approver(mut self, approver: Arc<dyn DynApprover>) -> Self {
        self.approver = Some(approver);
        self
    }

    fn ports(&self, ask: &SubagentAsk) -> Ports {
        let subagent = &ask.subagent;
        let mut brief = AgentBrief::new(&*subagent.name, &*subagent.instructions);
        brief.tools =
            subagent.tools.as_ref().map(|names| names.iter().map(|name| (&**name).into()).collect());
        let mut ports = Ports::new(Arc::clone(&self.model), Arc::clone(&self.clock));
        ports.agents = Arc::new(SingleAgent::of(brief));
        ports.tools = Arc::clone(&self.tools);
        ports.gates.clone_from(&self.gates);
        ports.approver.clone_from(&self.approver);
        ports
    }

    fn spec(&self, ask: &SubagentAsk) -> TurnSpec {
        let granted = ask.cx.grant.0;
        let mut spec = TurnSpec::thread();
        spec.limits.iterations = ask.subagent.max_iterations.min(granted.iterations);
        spec.limits.tool_calls = spec.limits.tool_calls.min(granted.tool_calls);
        spec.limits.tokens = spec.limits.tokens.min(granted.tokens);
        spec.limits.cost = spec.limits.cost.min(granted.cost);
        if let Some(deadline) = ask.cx.deadline {
            let left = deadline.since(self.clock.now());
            spec.limits.elapsed = Some(spec.limits.elapsed.map_or(left, |own| own.min(left)));
        }
        spec
    }
}

impl SubagentRunner for TurnRunner {
    async fn run(&self, ask: SubagentAsk) -> SubagentReport {
        let ports = self.ports(&ask);
        let mut origin = (*ask.cx.origin).clone();
        // Calls of a sub-agent have keys of their own, equal on every attempt of the call that runs it.
        origin.run = Some(RunId::from(ask.cx.idempotency_key()));
        origin.session = None;
        origin.turn = None;
        let spec = Arc::new(ports.fit_turn(self.spec(&ask)));
        let mut turn = Turn::new(spec, origin, Transcript::default());
        let start = Start::prompt(Message::user(&*ask.description));
        let end = Box::pin(drive(&mut turn, &ports, &ask.cx.cancel, start)).await;
        report(&end)
    }
}

fn report(end: &End) -> SubagentReport {
    let iterations = end.usage.model_calls;
    let said = end.answer.clone().filter(|answer| !answer.is_empty());
    let mut report = match (end.outcome(), said) {
        (Outcome::Completed, Some(answer)) => SubagentReport::answered(answer, iterations),
        (_, said) => {
            #[expect(
                clippy::wildcard_enum_match_arm,
                reason = "every other reason is an error of the sub-agent"
            )]
            let code = match end.reason() {
                StopReason::MaxIterationsReached => SubagentCode::MaxIterations,
                StopReason::ModelInvalidResponse => SubagentCode::InvalidOutput,
                StopReason::Cancelled => SubagentCode::Aborted,
                _ => SubagentCode::SubagentError,
            };
            let so_far = said.map(|said| format!("; so far: {said}")).unwrap_or_default();
            let message = format!("it stopped with {}{so_far}", end.reason().as_str());
            SubagentReport::failed(code, message, iterations)
        }
    };
    report.spent = Amount::NONE;
    (report.spent.iterations, report.spent.tool_calls) = (iterations, end.usage.tool_calls);
    // Tokens and money are told as usage, which counts against the budget, too.
    let mut usage = Usage::default();
    (usage.input, usage.output) = (end.usage.input_tokens, end.usage.output_tokens);
    report.usage = Some(Arc::new(match end.usage.cost {
        Some(cost) => usage.with_cost(cost),
        None => usage,
    }));
    report
}
