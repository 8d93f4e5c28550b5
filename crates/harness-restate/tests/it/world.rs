//! A world outside of the engine: a scripted model, tools with a ledger, a user who speaks at given moments.

use std::sync::Arc;

use harness::core::decide::{GateVerdict, gate};
use harness::core::driver::Ports;
use harness::core::machine::CallDecision;
use harness::core::message::{ApprovalRequest, AssistantMessage, Block, Message, ToolCall};
use harness::core::port::{
    Checked, Clock, Control, DeltaPart, Deltas, DynModel as _, Model, ModelFault, ModelFaultCode,
    ModelRequest, Review, RunNext, Secret, SingleAgent, TurnEnd,
};
use harness::core::run::{PlainControl, RunSpec};
use harness::core::testing::ScriptedModel;
use harness::core::tool::{DynTool, RetryClass, ToolCx, Toolbox, tool_fn};
use harness::core::{Fault, Json, Millis, Redactor, ThreadId};
use harness::runtime::{DeliveryMode, DeliveryRules};
use harness::tools::{Keep, Modes, Subagent, SubagentTool, TurnRunner, WorkTools};
use harness_restate::durable::sim::{SimClient, SimClock};
use harness_restate::durable::{Agent, AgentHost, HostAsk, RunOptions, ThreadAsk};
use parking_lot::Mutex;

use super::tally::tally;

/// What must be in nothing that an engine keeps.
pub(crate) const SECRET: &str = "sk-0123456789";

pub(crate) fn redactor() -> Redactor {
    Redactor::new([Secret::new(SECRET)])
}

/// What the agent is prepared with.
pub(crate) const INSTRUCTIONS: &str = "You sell tea, and never say why.";

/// What a sub-agent is prepared with.
const CHILD_INSTRUCTIONS: &str = "You sell tea, and never say why. You pay for it, too.";

/// When a message is delivered, and whether it wakes an idle thread.
pub(crate) type Way = (DeliveryMode, bool);

pub(crate) const PROMPT: Way = (DeliveryMode::NextTurn, true);
pub(crate) const STEER: Way = (DeliveryMode::BetweenRounds, false);
/// Steering that wakes an idle thread.
pub(crate) const NOTE: Way = (DeliveryMode::BetweenRounds, true);
pub(crate) const FOLLOW_UP: Way = (DeliveryMode::NextTurn, false);
pub(crate) const INTERRUPT: Way = (DeliveryMode::Interrupt, true);

/// What the user does.
#[derive(Clone, Debug)]
pub(crate) enum Act {
    Say(Way, &'static str),
    /// Begins the next run, so long after the moment.
    SayLater(&'static str, Millis),
    /// Stops the run, so long after the moment.
    Abort(Millis),
    /// Decides about a call, so long after the moment.
    Grant(&'static str, Millis),
    Deny(&'static str, Millis),
    /// Grants a call with other arguments.
    Edit(&'static str, Millis),
}

/// The arguments of an edited call.
pub(crate) fn edited() -> Json {
    Json::parse(r#"{"what":"cake"}"#).unwrap()
}

/// A script: the answers of the model in order, and what the user does while an answer is made.
#[derive(Clone)]
pub(crate) struct Script {
    pub(crate) name: &'static str,
    pub(crate) answers: Vec<AssistantMessage>,
    pub(crate) acts: Vec<(usize, Act)>,
    /// The script of the sub-agent that the tool `task` asks. What the user does in it is about the outermost thread.
    pub(crate) child: Option<Box<Script>>,
    /// The answer that never comes.
    pub(crate) hangs: Option<usize>,
    /// Whether a model that hangs ends when it is cancelled.
    pub(crate) heeds: bool,
    /// How long the model takes for an answer.
    pub(crate) thinks: Millis,
    /// Pieces in which the last answer streams, each of which is the time; 0 for an answer as scripted.
    pub(crate) stamps: usize,
    /// Turns that the run must have.
    pub(crate) turns: u32,
    /// Whether [`SECRET`] is said, and must not be kept.
    pub(crate) is_secret: bool,
    /// How its thread delivers messages.
    pub(crate) delivery: DeliveryRules,
    /// Whether its agents have memory layers, which each process that works for a run has of its own.
    pub(crate) layers: bool,
    /// Whether its agents have modes and a list of the thread, which each process has of its own, too.
    pub(crate) modes: bool,
    /// Messages of the user that the transcript must have, in order.
    pub(crate) said: Vec<&'static str>,
}

impl Default for Script {
    fn default() -> Self {
        Self {
            name: "",
            answers: Vec::new(),
            acts: Vec::new(),
            child: None,
            hangs: None,
            heeds: false,
            thinks: Millis(100),
            stamps: 0,
            turns: 0,
            is_secret: false,
            delivery: DeliveryRules::default(),
            layers: false,
            modes: false,
            said: Vec::new(),
        }
    }
}

pub(crate) fn thread() -> ThreadId {
    "t1".into()
}

pub(crate) fn text(text: &str) -> AssistantMessage {
    AssistantMessage::text(text)
}

pub(crate) fn calls(names: &[&str]) -> AssistantMessage {
    AssistantMessage::calls(names.iter().map(|name| {
        let (id, tool) = (format!("c-{name}"), name.split('-').next().unwrap_or(name));
        ToolCall::new(id, tool, Json::parse(r#"{"what":"tea"}"#).unwrap())
    }))
}

/// A call with these arguments.
pub(crate) fn call(tool: &str, arguments: &str) -> ToolCall {
    ToolCall::new(format!("c-{tool}"), tool, Json::parse(arguments).unwrap())
}

/// Asks for an approval of its own.
pub(crate) fn request() -> AssistantMessage {
    AssistantMessage::approval_request(&ApprovalRequest::new("refund", "refund", "Refund the tea?"))
}

/// Delegates to the sub-agent, once for each name.
pub(crate) fn tasks(names: &[&'static str]) -> AssistantMessage {
    let task = Json::parse(r#"{"description":"pay","subagent_type":"payer"}"#).unwrap();
    AssistantMessage::calls(names.iter().map(|name| ToolCall::new(*name, "task", task.clone())))
}

/// What tools did: `begun TOOL CALL` and `done TOOL CALL`.
pub(crate) type Ledger = Arc<Mutex<Vec<String>>>;

/// Where tools note what they do.
pub(crate) type Note = Arc<dyn Fn(String) + Send + Sync>;

/// The user, as the script's model calls them.
pub(crate) type User = Arc<dyn Fn(usize, usize, &Act) + Send + Sync>;

/// The user of threads on an engine.
pub(crate) fn client(client: SimClient, clock: SimClock) -> User {
    Arc::new(move |answer, at, act| {
        let name = format!("act-{answer}-{at}");
        let (ask, later) = match act {
            Act::Say(delivery, said) => (say(&name, said, *delivery), Millis(0)),
            Act::SayLater(said, later) => (say(&name, said, PROMPT), *later),
            Act::Abort(later) => (ThreadAsk::Abort { reason: None }, *later),
            Act::Grant(call, later) => (ThreadAsk::Decide(CallDecision::granted(*call)), *later),
            Act::Edit(call, later) => (ThreadAsk::Decide(CallDecision::edited(*call, edited())), *later),
            Act::Deny(call, later) => (ThreadAsk::Decide(CallDecision::denied(*call, "no")), *later),
        };
        client.send(name, clock.now().after(later), &thread(), ask);
    })
}

/// A message of the user, as a request.
pub(crate) fn say(entry: &str, said: &str, (mode, wakes): Way) -> ThreadAsk {
    ThreadAsk::Deliver {
        entry: entry.into(),
        message: Arc::new(Message::user(said)),
        mode,
        wakes,
        options: RunOptions::default(),
    }
}

/// Answers of one level of sub-agents, at most: later answers are those of the next level.
pub(crate) const LEVEL: usize = 100;

struct Actor {
    script: Script,
    /// Number of its first answer, for the user.
    first: usize,
    model: ScriptedModel,
    clock: Arc<dyn Clock>,
    user: User,
}

impl Model for Actor {
    async fn step(&self, request: ModelRequest, deltas: &dyn Deltas) -> Result<AssistantMessage, ModelFault> {
        let mut answer = 0;
        request.view.for_each(|message| answer += usize::from(message.as_assistant().is_some()));
        let acts = self.script.acts.iter().enumerate().filter(|(_, (of, _))| *of == answer);
        acts.for_each(|(at, (_, act))| (self.user)(self.first + answer, at, act));
        if self.script.hangs == Some(answer) {
            if self.script.heeds {
                request.cancel.cancelled().await;
                return Err(ModelFault::new(ModelFaultCode::Cancelled, "cancelled"));
            }
            return std::future::pending().await;
        }
        self.clock.sleep_until(self.clock.now().after(self.script.thinks)).await;
        if self.script.stamps > 0 && answer + 1 == self.script.answers.len() {
            return Ok(self.stamped(deltas).await);
        }
        self.model.step_boxed(request, deltas).await
    }
}

/// The pause before each piece of an answer that streams.
const PIECE: Millis = Millis(20);

impl Actor {
    /// Streams an answer, which is another one whenever it is made.
    async fn stamped(&self, deltas: &dyn Deltas) -> AssistantMessage {
        let mut whole = String::new();
        for _ in 0..self.script.stamps {
            self.clock.sleep_until(self.clock.now().after(PIECE)).await;
            let piece = format!("{} ", self.clock.now().0);
            deltas.part(DeltaPart::Text(piece.clone()));
            whole.push_str(&piece);
        }
        AssistantMessage::text(whole)
    }
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Order {
    what: String,
}

fn tools(note: &Note, clock: &Arc<dyn Clock>) -> Vec<Arc<dyn DynTool>> {
    let tool = |name: &'static str, class: RetryClass| {
        let (note, clock) = (Arc::clone(note), Arc::clone(clock));
        let tool = tool_fn(name, "does it", move |order: Order, cx: ToolCx| {
            let (note, clock) = (Arc::clone(&note), Arc::clone(&clock));
            async move {
                let call = format!("{name} {}", cx.idempotency_key());
                note(format!("begun {call}"));
                cx.emit(vec![Block::text("half of it")]);
                let takes = if name == "slow" { Millis(1_000) } else { Millis(10) };
                clock.sleep_until(clock.now().after(takes)).await;
                note(format!("done {call}"));
                match name {
                    "boom" => panic!("out of tea"),
                    "leak" => format!("the key is {SECRET}"),
                    "huge" => "tea".repeat(1 << 20),
                    _ => format!("{name} {}", order.what),
                }
            }
        });
        let tool = match class {
            RetryClass::Pure => tool.pure(),
            RetryClass::Idempotent => tool.idempotent(),
            RetryClass::Unsafe => tool,
        };
        Arc::new(tool) as Arc<dyn DynTool>
    };
    vec![
        tool("look", RetryClass::Pure),
        tool("slow", RetryClass::Pure),
        tool("boom", RetryClass::Pure),
        tool("leak", RetryClass::Pure),
        tool("huge", RetryClass::Pure),
        tool("put", RetryClass::Idempotent),
        tool("pay", RetryClass::Unsafe),
        tool("sign", RetryClass::Unsafe),
    ]
}

/// Asks for a number of turns.
#[derive(Debug, Default)]
struct Turns {
    wanted: u32,
    done: u32,
}

impl Control for Turns {
    fn observe(&mut self, _: u64, _: &Message) {}

    fn review(&mut self, _: &TurnEnd<'_>, _: Option<&Json>) -> Review {
        Review::done()
    }

    fn decide(&mut self, turn: &TurnEnd<'_>, checks: &[Checked]) -> RunNext {
        self.done += 1;
        if self.done < self.wanted {
            return RunNext::Continue(Some("Go on.".to_owned()));
        }
        PlainControl::default().decide(turn, checks)
    }

    fn save(&self) -> Json {
        Json::of(&self.done).unwrap()
    }

    fn restore(&mut self, saved: &Json) -> Result<(), serde_json::Error> {
        self.done = saved.to()?;
        Ok(())
    }
}

/// The parts of all runs of a script.
pub(crate) struct Host {
    turns: u32,
    delivery: DeliveryRules,
    ports: Ports,
    /// Tools beside those of layers, in an agent that has these.
    layered: Option<Vec<Arc<dyn DynTool>>>,
    /// Makes the ports of a process, of agents with modes.
    moded: Option<Box<dyn Fn() -> Ports + Send + Sync>>,
    pub(crate) ledger: Ledger,
}

impl Host {
    pub(crate) fn new(script: &Script, clock: Arc<dyn Clock>, user: User) -> Self {
        let ledger = Ledger::default();
        let lines = Arc::clone(&ledger);
        let note: Note = Arc::new(move |line| lines.lock().push(line));
        Self { ledger, ..Self::noting(script, clock, user, &note) }
    }

    /// Parts that note elsewhere what they do.
    pub(crate) fn noting(script: &Script, clock: Arc<dyn Clock>, user: User, note: &Note) -> Self {
        let tools = tools(note, &clock);
        let of = script.clone();
        let of_process = {
            let tools = tools.clone();
            move || {
                let mut ports = ports(&of, 0, &tools, &clock, &user);
                ports.agents = Arc::new(SingleAgent::new(INSTRUCTIONS));
                ports.redactor = Some(redactor()).filter(|_| of.is_secret);
                ports
            }
        };
        let (ports, layered) = (of_process(), script.layers.then_some(tools));
        let moded = script.modes.then(|| Box::new(of_process) as _);
        let (turns, delivery) = (script.turns, script.delivery);
        Self { turns, delivery, ports, layered, moded, ledger: Ledger::default() }
    }

    pub(crate) fn parts(&self) -> Agent {
        let control: Box<dyn Control> = if self.turns > 1 {
            Box::new(Turns { wanted: self.turns, done: 0 })
        } else {
            Box::new(PlainControl::default())
        };
        let mut ports = self.moded.as_ref().map_or_else(|| self.ports.clone(), |ports| ports());
        if let Some(tools) = &self.layered {
            let layers = tally(&ports.clock);
            ports.tools = Arc::new(Toolbox::new(tools.iter().cloned().chain(layers.tools())));
            ports.layers = Some(Arc::new(layers));
        }
        Agent {
            ports,
            spec: Arc::new(RunSpec::default()),
            control,
            delivery: self.delivery,
            allowed_tools: None,
        }
    }
}

/// The ports of an agent, and of the sub-agents inside of it.
fn ports(
    script: &Script,
    first: usize,
    plain: &[Arc<dyn DynTool>],
    clock: &Arc<dyn Clock>,
    user: &User,
) -> Ports {
    let mut tools = plain.to_vec();
    if let Some(child) = &script.child {
        let runner = TurnRunner::new(&ports(child, first + LEVEL, plain, clock, user));
        let payer = Subagent::new("payer", "pays", CHILD_INSTRUCTIONS);
        tools.push(Arc::new(SubagentTool::new([payer], Arc::new(runner)).unwrap().max_depth(2)));
    }
    let plan_first = Modes::plan_and_execute().model_may_set();
    let work = WorkTools::new(Keep::Thread, Arc::clone(clock));
    if script.modes {
        tools.extend_from_slice(plan_first.tools().tools());
        tools.extend_from_slice(work.clone().into_list().tools());
    }
    let model = ScriptedModel::new(script.answers.clone()).repeatable();
    let has_modes = script.modes;
    let (script, user) = (script.clone(), Arc::clone(user));
    let model = Actor { script, first, model, clock: Arc::clone(clock), user };
    let mut ports = Ports::new(Arc::new(model), Arc::clone(clock));
    ports.tools = Arc::new(Toolbox::new(tools));
    ports.gates.push(gate::func("signature", |call, _| {
        if call.call.name.as_str() == "sign" {
            return GateVerdict::Hold { reason: "needs a signature".to_owned() };
        }
        GateVerdict::Allow
    }));
    if has_modes {
        ports.gates.push(plan_first.gate());
        ports.states = vec![Arc::new(plan_first), Arc::new(work)];
    }
    ports
}

impl AgentHost for Host {
    async fn agent(&self, _: HostAsk<'_>) -> Result<Agent, Fault> {
        Ok(self.parts())
    }
}
