//! The tests of this crate, one module per topic, about a scripted run and what is made of its events.
#![cfg(test)]

mod compare;
mod fold;
mod governance;
mod inspect;
mod policies;
mod prompts;
mod recent;
mod redact;
mod regress;
mod replay;
mod source;
mod subagents;
mod traffic;

use std::sync::Arc;

use harness_core::decide::{DecideCx, DynCheck, DynGate, Gate, GateDecision, GateVerdict, Guarded, gate};
use harness_core::driver::{Ports, drive};
use harness_core::event::{Event, Fold};
use harness_core::machine::Start;
use harness_core::message::{AssistantMessage, Message, ToolCall, Usage};
use harness_core::port::{AgentConfig, AgentSource, DynModel, PrepareAsk, ProposedCall};
use harness_core::run::{Run, RunSpec};
use harness_core::testing::{EventLog, ModelStep, ScriptedModel, ScriptedTools, ToolStep, VirtualClock};
use harness_core::tool::{DynToolRegistry, RetryClass, ToolDef, ToolOutcome};
use harness_core::transcript::Transcript;
use harness_core::{Cancel, Fault, Json, Millis, Origin, RunId, Time};
use harness_record::{RecordFold, RecordOptions, RunRecord, RunStart};
use parking_lot::Mutex;

/// When every scripted run begins: 2026-01-01T00:00:00.000Z.
pub(crate) const BEGIN: Time = Time(1_767_225_600_000);

pub(crate) fn json(text: &str) -> Json {
    Json::parse(text).unwrap()
}

pub(crate) fn call(id: &str, name: &str, arguments: &str) -> ToolCall {
    ToolCall::new(id, name, json(arguments))
}

/// An answer that asks for calls, which took 40 ms and 100 + 7 tokens.
pub(crate) fn asks(calls: impl IntoIterator<Item = ToolCall>) -> ModelStep {
    let message = AssistantMessage::calls(calls).with_usage(Usage::tokens(100, 7));
    ModelStep::answer(message).taking(Millis(40))
}

pub(crate) fn says(text: &str) -> ModelStep {
    let message = AssistantMessage::text(text).with_usage(Usage::tokens(120, 5));
    ModelStep::answer(message).taking(Millis(30))
}

/// `desk` with three tools, who may hand over to `expert` with one.
struct Desk;

impl AgentSource for Desk {
    async fn prepare(&self, ask: &PrepareAsk) -> Result<AgentConfig, Fault> {
        let agent = ask.agent.clone().unwrap_or_else(|| "desk".into());
        let is_desk = agent == "desk";
        let mut config =
            AgentConfig::new(agent, if is_desk { "You are the desk." } else { "You are the expert." });
        config.model = Some(if is_desk { "small".into() } else { "large".into() });
        config.settings = Some(json(r#"{"temperature":0.5}"#));
        if is_desk {
            config.handoffs = vec![ToolDef::handoff("to_expert", "Knows all.", "expert".into())];
        }
        Ok(config)
    }
}

/// A policy: `pay` above 100 needs approval, `drop` is denied, `look` is allowed with facts.
struct Policy;

impl Gate for Policy {
    async fn decide(&self, ask: &ProposedCall, _: &DecideCx) -> Result<GateDecision, Fault> {
        let resource = format!(r#""resource":{{"kind":"tool","name":"{}"}}"#, ask.call.name);
        match ask.call.name.as_str() {
            "drop" => {
                let facts = format!(
                    r#"{{"decision":"deny","reason":"too_dangerous","publicReason":"Not here.","resultMode":"tool_result","policyVersion":"p1",{resource},"proposalHash":"h-drop"}}"#
                );
                let verdict = GateVerdict::Deny { message: "Not here.".to_owned() };
                Ok(GateDecision { verdict, facts: Some(json(&facts)) })
            }
            "look" => {
                let facts = format!(
                    r#"{{"decision":"allow","reason":"harmless","policyVersion":"p1",{resource},"metadata":{{"rule":1}},"proposalHash":"h-look"}}"#
                );
                Ok(GateDecision { verdict: GateVerdict::Allow, facts: Some(json(&facts)) })
            }
            _ => Ok(GateVerdict::Allow.into()),
        }
    }
}

/// What is run.
pub(crate) struct Scene {
    pub(crate) model: Arc<dyn DynModel>,
    pub(crate) tools: Arc<dyn DynToolRegistry>,
    pub(crate) clock: VirtualClock,
    pub(crate) options: RecordOptions,
    pub(crate) context: Option<Json>,
    pub(crate) history: Vec<Arc<Message>>,
    /// Whether the fold is told of the history.
    pub(crate) tells_history: bool,
    pub(crate) policy: bool,
    pub(crate) gates: Vec<Guarded<dyn DynGate>>,
    pub(crate) checks: Vec<Guarded<dyn DynCheck>>,
    pub(crate) prompt: Option<Message>,
    pub(crate) spec: RunSpec,
}

/// What came of it.
pub(crate) struct Ran {
    pub(crate) record: RunRecord,
    pub(crate) events: Vec<Event>,
}

pub(crate) fn defs() -> [ToolDef; 3] {
    let look = ToolDef::new("look", "Looks at something.").with_schema(json(r#"{"type":"object"}"#));
    [look.with_class(RetryClass::Pure), ToolDef::new("pay", "Pays."), ToolDef::new("drop", "Drops it.")]
}

impl Scene {
    pub(crate) fn new(
        steps: impl IntoIterator<Item = ModelStep>,
        outcomes: impl IntoIterator<Item = ToolOutcome>,
    ) -> Self {
        let clock = VirtualClock::jumping(BEGIN);
        let tools = ScriptedTools::new(defs()).with_clock(clock.clone());
        let outcomes = outcomes.into_iter().map(|outcome| ToolStep::outcome(outcome).taking(Millis(5)));
        Self {
            model: Arc::new(ScriptedModel::new(steps).with_clock(clock.clone())),
            tools: Arc::new(tools.answering(outcomes)),
            clock,
            options: RecordOptions::default(),
            context: None,
            history: Vec::new(),
            tells_history: true,
            policy: false,
            gates: Vec::new(),
            checks: Vec::new(),
            prompt: Some(Message::user("Where is order 7?")),
            spec: RunSpec::default(),
        }
    }

    pub(crate) fn run(self) -> Ran {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(self.drive())
    }

    async fn drive(self) -> Ran {
        let mut ports = Ports::new(self.model, Arc::new(self.clock));
        ports.agents = Arc::new(Desk);
        ports.tools = self.tools;
        ports.gates = self.gates;
        ports.checks = self.checks;
        if self.policy {
            ports.gates.push(gate::new("policy", Policy));
        }
        let mut fold = RecordFold::new(self.options);
        let told = if self.tells_history { self.history.clone() } else { Vec::new() };
        fold.start(RunStart::new(self.context, told));
        let fold = Arc::new(Mutex::new(fold));
        let log = EventLog::default();
        ports.hub.fold(Arc::clone(&fold));
        ports.hub.fold(log.clone());
        let mut origin = Origin::default();
        origin.run = Some(RunId::from("run-1"));
        origin.descriptor_hash = Some("sha256:d".into());
        let transcript: Transcript = self.history.into_iter().collect();
        let mut run = Run::new(Arc::new(self.spec), origin, transcript);
        let start = self.prompt.map_or_else(Start::resume, Start::prompt);
        drive(&mut run, &ports, &Cancel::never(), start).await;
        let record = fold.lock().record().expect("the run has ended");
        Ran { record, events: log.events() }
    }
}

/// A run that looks twice, hands over and answers.
pub(crate) fn usual() -> Scene {
    Scene::new(
        [
            asks([call("c1", "look", r#"{"order":7}"#), call("c2", "look", r#"{"order":8}"#)]),
            asks([call("c3", "to_expert", "{}")]),
            says("It is on its way."),
        ],
        [
            ToolOutcome::structured(json(r#"{"at":"Oslo"}"#)),
            ToolOutcome::error("not_found", "there is no order 8"),
        ],
    )
}

/// The record of the same run, from its events as text.
pub(crate) fn refolded(events: &[Event], options: RecordOptions, start: RunStart) -> RunRecord {
    let mut fold = RecordFold::new(options);
    fold.start(start);
    for event in events {
        let event: Event = Json::of(event).unwrap().to().unwrap();
        fold.apply(&event);
    }
    fold.record().expect("the run has ended")
}
