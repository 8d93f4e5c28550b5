//! Controlled runs with a scripted model and small tools, for the tests of the control plane.

use std::collections::BTreeMap;
use std::sync::Arc;

use harness_control::{ControlEvent, ControlReport, ControlSpec, SignalSpec, StandardFacts, UntilDone};
use harness_core::decide::{DynCheck, Guarded};
use harness_core::driver::{Ports, drive};
use harness_core::event::EventKind;
use harness_core::machine::Start;
use harness_core::message::{AssistantMessage, Message, ToolCall};
use harness_core::outcome::StopMode;
use harness_core::port::{DynCompactor, ModelRequest};
use harness_core::run::{Run, RunSpec};
use harness_core::testing::{EventLog, ModelStep, ScriptedModel, VirtualClock};
use harness_core::tool::{DynTool, Tool, ToolCx, ToolDef, ToolOutcome, Toolbox};
use harness_core::transcript::Transcript;
use harness_core::{Cancel, End, Json, Origin, RunId, Time};

/// A tool that answers each call with the next of its outcomes, the last one again and again.
struct Says(ToolDef, Vec<ToolOutcome>, std::sync::atomic::AtomicUsize);

impl Tool for Says {
    fn def(&self) -> &ToolDef {
        &self.0
    }

    async fn call(&self, _: ToolCx) -> ToolOutcome {
        let at = self.2.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        self.1[at.min(self.1.len() - 1)].clone()
    }
}

/// A run to be played.
pub(crate) struct Scene {
    pub(crate) spec: RunSpec,
    pub(crate) control: ControlSpec,
    pub(crate) replies: Vec<ModelStep>,
    pub(crate) facts: Option<StandardFacts>,
    pub(crate) compactor: Option<Arc<dyn DynCompactor>>,
    checks: Vec<Guarded<dyn DynCheck>>,
    tools: Vec<Arc<dyn DynTool>>,
}

/// What came of it.
pub(crate) struct Played {
    pub(crate) end: Arc<End>,
    pub(crate) events: EventLog,
    pub(crate) requests: Vec<ModelRequest>,
    pub(crate) log: Vec<Arc<Message>>,
    pub(crate) unused: usize,
}

/// An answer without calls.
pub(crate) fn says(text: &str) -> AssistantMessage {
    AssistantMessage::text(text)
}

/// An answer with calls, written as (name, arguments).
pub(crate) fn calls(calls: &[(&str, &str)]) -> AssistantMessage {
    let made = calls.iter().enumerate().map(|(at, (name, arguments))| {
        ToolCall::new(format!("{name}-{at}"), *name, Json::parse(arguments).expect("JSON"))
    });
    AssistantMessage::calls(made)
}

/// The signal.
pub(crate) fn done() -> AssistantMessage {
    calls(&[("work_complete", r#"{"summary":"finished"}"#)])
}

/// A control of nothing but the signal, which is missed at once.
pub(crate) fn impatient() -> ControlSpec {
    ControlSpec::default().with_signal(SignalSpec::default().patience(0, 1))
}

impl Scene {
    pub(crate) fn new(control: ControlSpec, replies: impl IntoIterator<Item: Into<ModelStep>>) -> Self {
        let mut spec = RunSpec::default();
        spec.limits.turns = 12;
        let mut signal = ToolDef::new("work_complete", "ends the work");
        signal.terminal = true;
        let scene = Self {
            spec,
            control,
            replies: replies.into_iter().map(Into::into).collect(),
            facts: None,
            compactor: None,
            checks: Vec::new(),
            tools: Vec::new(),
        };
        scene.with_def(signal, [ToolOutcome::text("noted")])
    }

    pub(crate) fn with_def(mut self, def: ToolDef, outcomes: impl IntoIterator<Item = ToolOutcome>) -> Self {
        self.tools.push(Arc::new(Says(def, outcomes.into_iter().collect(), 0.into())));
        self
    }

    pub(crate) fn with_tool(self, name: &str, outcomes: impl IntoIterator<Item = ToolOutcome>) -> Self {
        self.with_def(ToolDef::new(name, name), outcomes)
    }

    pub(crate) fn with_check(mut self, check: Guarded<dyn DynCheck>) -> Self {
        self.checks.push(check);
        self
    }

    pub(crate) fn strict(mut self) -> Self {
        self.spec.mode = StopMode::StrictAutomation;
        self
    }

    pub(crate) fn turns(mut self, most: u32) -> Self {
        self.spec.limits.turns = most;
        self
    }

    pub(crate) fn play(self) -> Played {
        let Self { spec, control, replies, facts, compactor, checks, tools } = self;
        assert_eq!(control.check(), []);
        let model = ScriptedModel::new(replies);
        let mut ports = Ports::new(Arc::new(model.clone()), Arc::new(VirtualClock::still(Time(7))));
        ports.tools = Arc::new(Toolbox::new(tools));
        (ports.checks, ports.compactor) = (checks, compactor);
        ports.facts = Some(Arc::new(facts.unwrap_or_default()));
        let events = EventLog::default();
        ports.hub.fold(events.clone());
        let mut origin = Origin::default();
        origin.run = Some(RunId::from("r"));
        let mut run = Run::new(Arc::new(spec), origin, Transcript::default())
            .with_control(Box::new(UntilDone::new(control)));
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        let begin = Start::prompt(Message::user("go"));
        let end = runtime.block_on(drive(&mut run, &ports, &Cancel::never(), begin));
        let log = run.log().iter().map(Arc::clone).collect();
        Played { end, events, requests: model.requests(), log, unused: model.unused() }
    }
}

impl Played {
    /// The decisions, one for each turn.
    pub(crate) fn decisions(&self) -> Vec<String> {
        let decided = self.control_events().into_iter().filter_map(|event| match event {
            ControlEvent::StopDecided { decision } => Some(decision.code.to_string()),
            _ => None,
        });
        decided.collect()
    }

    /// What the control told.
    pub(crate) fn control_events(&self) -> Vec<ControlEvent> {
        self.events.events().iter().filter_map(|event| ControlEvent::of(&event.kind)).collect()
    }

    /// What the control reported at the end.
    pub(crate) fn report(&self) -> ControlReport {
        ControlReport::of(&self.end).expect("a report")
    }

    /// How often each request holds a text.
    pub(crate) fn told(&self, text: &str) -> Vec<usize> {
        let count = |request: &ModelRequest| {
            let mut count = 0;
            request.view.for_each(|message| count += message.joined_text().matches(text).count());
            count
        };
        self.requests.iter().map(count).collect()
    }

    /// The events by their numbers.
    pub(crate) fn numbered(&self) -> BTreeMap<String, EventKind> {
        self.events.events().into_iter().map(|event| (event.seq.to_string(), event.kind)).collect()
    }

    /// The end in words: stop reason, status, each gate with what it said.
    pub(crate) fn ended(&self) -> String {
        let report = self.report();
        let gates = report.gates.iter().map(|gate| format!(" {}:{}", gate.gate, gate.judgement.as_str()));
        format!("{} {}{}", self.end.reason(), report.status.as_str(), gates.collect::<String>())
    }
}
