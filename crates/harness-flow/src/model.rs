//! Model steps: a turn of core's machine.

use std::sync::Arc;

use harness_core::driver::{Ports, drive};
use harness_core::limits::{Amount, Grant, Reached};
use harness_core::machine::Start;
use harness_core::message::Message;
use harness_core::outcome::Purpose;
use harness_core::port::DynContextPipeline;
use harness_core::transcript::Transcript;
use harness_core::turn::{Turn, TurnSpec};
use harness_core::{Cancel, End, Evidence, Json, Origin, Outcome, StopReason};

use super::context::StepCx;
use super::error::FlowError;
use super::layers::{self, SavedLayers};
use super::shared_budget::{amount, smaller};
use super::until::text_of;

/// Request of a model step to its agent.
#[derive(Debug)]
#[non_exhaustive]
pub struct AgentAsk {
    /// Earlier messages.
    pub history: Transcript,
    /// Prompt of the turn.
    pub prompt: Message,
    /// Saved states of memory layers, from the model step before.
    pub layers: Option<Json>,
    /// Reserved budget.
    pub grant: Grant,
    /// Origin of the turn. The run id consists of execution and path, equal for every attempt.
    pub origin: Origin,
    /// Cancellation signal.
    pub cancel: Cancel,
}

/// Result of an agent's turn.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct AgentTurn {
    /// End of the turn; its usage is charged.
    pub end: Arc<End>,
    /// Messages of the turn including the prompt, even of a failed turn.
    pub messages: Vec<Arc<Message>>,
    /// States of memory layers for the next model step; stored in the checkpoint.
    pub layers: Option<Json>,
}

impl AgentTurn {
    /// Creates a result without layer states.
    pub fn new(end: Arc<End>, messages: Vec<Arc<Message>>) -> Self {
        Self { end, messages, layers: None }
    }
}

/// Runs the turns of model steps. [`TurnAgent`] uses the turn machine of harness-core.
pub trait StepAgent: Send + Sync {
    /// Budget to reserve for one turn, as far as it is available.
    fn wants(&self) -> Amount;

    /// Runs the turn. It must end soon after `ask.cancel` fires.
    fn turn(&self, ask: AgentAsk) -> impl Future<Output = AgentTurn> + Send;
}

harness_core::twin! {
    DynStepAgent of StepAgent {
        async fn turn_boxed = turn(ask: AgentAsk) -> AgentTurn;
        fn agent_wants = wants() -> Amount;
    }
}

/// Agent on the turn machine of harness-core, with new ports for each turn.
///
/// ```
/// use std::sync::Arc;
///
/// use harness_core::driver::Ports;
/// use harness_core::message::AssistantMessage;
/// use harness_core::testing::{ModelStep, ScriptedModel, VirtualClock};
/// use harness_flow::{Step, TurnAgent};
///
/// let model = Arc::new(ScriptedModel::new([ModelStep::answer(AssistantMessage::text("Done."))]));
/// let clock = Arc::new(VirtualClock::still(harness_core::Time(0)));
/// let agent = TurnAgent::new(move || Ports::new(model.clone(), clock.clone()));
/// let ask = Step::model("ask", Arc::new(agent));
/// # let _ = ask;
/// ```
#[derive(Clone, derive_more::Debug)]
pub struct TurnAgent {
    #[debug(skip)]
    ports: Arc<dyn Fn() -> Ports + Send + Sync>,
    spec: TurnSpec,
}

impl TurnAgent {
    /// Creates an agent with the default [`TurnSpec`].
    pub fn new(ports: impl Fn() -> Ports + Send + Sync + 'static) -> Self {
        Self { ports: Arc::new(ports), spec: TurnSpec::default() }
    }

    /// Sets the rules of its turns.
    #[must_use]
    pub fn spec(mut self, spec: TurnSpec) -> Self {
        self.spec = spec;
        self
    }
}

impl StepAgent for TurnAgent {
    fn wants(&self) -> Amount {
        self.spec.limits.amount()
    }

    async fn turn(&self, ask: AgentAsk) -> AgentTurn {
        let mut ports = (self.ports)();
        let origin = &ask.origin;
        let layers = ports.layers.take().map(|inner| SavedLayers::new(inner, origin, ask.layers.as_ref()));
        ports.layers = layers.clone().map(|layers| layers as Arc<dyn DynContextPipeline>);
        let mut spec = self.spec.clone();
        let most = smaller(spec.limits.amount(), ask.grant.0);
        spec.limits.iterations = most.iterations;
        spec.limits.tool_calls = most.tool_calls;
        (spec.limits.tokens, spec.limits.cost) = (most.tokens, most.cost);
        let known = ask.history.prefix().len();
        let mut turn = Turn::new(Arc::new(spec), ask.origin, ask.history);
        let end = Box::pin(drive(&mut turn, &ports, &ask.cancel, Start::prompt(ask.prompt))).await;
        let log = turn.log().prefix();
        let messages = log.range(known..log.len()).cloned().collect();
        AgentTurn { layers: layers.and_then(|layers| layers.saved()), ..AgentTurn::new(end, messages) }
    }
}

/// Required form of the answer.
#[derive(Clone)]
pub(super) enum AnswerForm {
    Text,
    Json(ReadsAs),
}

/// Checks that a value deserializes as the required type.
type ReadsAs = Arc<dyn Fn(&Json) -> Result<(), String> + Send + Sync>;

pub(super) async fn perform(
    id: &Arc<str>,
    agent: &Arc<dyn DynStepAgent>,
    form: &AnswerForm,
    input: Json,
    cx: &StepCx,
) -> Result<Json, FlowError> {
    let exceeded = |reached: Reached| FlowError::BudgetExceeded { step: Arc::clone(id), reached };
    if let Some(reached) = cx.shared_budget().exhausted() {
        return Err(exceeded(reached));
    }
    let mut want = smaller(agent.agent_wants(), cx.budget_left());
    // A turn needs one call of the model, so that an empty budget says which limit it is.
    want.iterations = want.iterations.max(1);
    let reserved = cx.shared_budget().reserve(want).map_err(exceeded)?;
    let mut origin = Origin::default();
    origin.thread = cx.thread().cloned();
    origin.run = Some(format!("{}{}", cx.execution(), cx.path()).into());
    let history = cx.context().log.lock().transcript();
    let (prompt, cancel) = (Message::user(text_of(&input)), cx.cancel().clone());
    let (layers, grant) = (cx.slot(layers::SLOT), Grant(want));
    let turn = agent.turn_boxed(AgentAsk { history, prompt, layers, grant, origin, cancel }).await;
    if let Some(layers) = turn.layers.clone() {
        cx.set_slot(layers::SLOT, layers);
    }
    let spent = spent(&turn.end);
    reserved.settle(spent);
    cx.note_spent(spent);
    turn.messages.into_iter().for_each(|message| cx.append(message));
    output(id, form, &turn.end, cx)
}

fn spent(end: &End) -> Amount {
    let usage = &end.usage;
    let Amount { tokens, cost, .. } = usage.amount();
    // Calls of the agent itself, as its limit counts them.
    amount(usage.of(Purpose::Answer).model_calls, usage.tool_calls, tokens, cost)
}

fn output(id: &Arc<str>, form: &AnswerForm, end: &End, cx: &StepCx) -> Result<Json, FlowError> {
    let (step, answer) = (Arc::clone(id), end.answer.clone().unwrap_or_default());
    if end.outcome() == Outcome::Completed {
        return read(step, form, answer);
    }
    #[expect(clippy::wildcard_enum_match_arm, reason = "other reasons are reported unchanged")]
    match (end.reason(), &end.stop.evidence) {
        (StopReason::ModelRefused, _) => Err(FlowError::ModelRefused { step, refusal: answer }),
        (StopReason::Cancelled, _) => {
            Err(FlowError::Cancelled { reason: cx.cancel().reason().unwrap_or_else(|| "cancelled".into()) })
        }
        (_, Evidence::Limit(reached)) => Err(FlowError::BudgetExceeded { step, reached: *reached }),
        (reason, evidence) => {
            let message = match evidence {
                Evidence::Fault(fault) => Some(fault.to_string()),
                _ => None,
            };
            Err(FlowError::TurnStopped { step, reason, message })
        }
    }
}

fn read(step: Arc<str>, form: &AnswerForm, answer: String) -> Result<Json, FlowError> {
    let AnswerForm::Json(check) = form else { return Ok(Json::string(&answer)) };
    let read = Json::parse(unfenced(&answer)).map_err(|error| error.to_string());
    read.and_then(|value| check(&value).map(|()| value)).map_err(|problem| FlowError::ModelParse {
        step,
        raw: answer.clone(),
        problem,
    })
}

/// Removes a code fence around the whole text.
fn unfenced(text: &str) -> &str {
    let text = text.trim();
    let inner = text.strip_prefix("```").and_then(|text| text.strip_suffix("```"));
    inner.and_then(|inner| inner.split_once('\n')).map_or(text, |(_, inner)| inner)
}
