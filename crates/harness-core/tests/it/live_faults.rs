//! Every port of the tokio driver panics, hangs or fails at every position, once and from then on: the run
//! still ends with a legal pair, a legal transcript, and all finished work.

use std::sync::Arc;

use harness_core::decide::{
    Check, CheckDecision, CheckVerdict, DecideCx, Gate, GateDecision, GateVerdict, OnError, Points, Subject,
    check, gate,
};
use harness_core::driver::{Ports, drive};
use harness_core::event::{Event, EventKind, Fold};
use harness_core::machine::Start;
use harness_core::message::{AssistantMessage, Invalid, Message, ToolCall};
use harness_core::port::{
    AgentConfig, AgentSource, AppendSource, ApprovalAsk, Approver, CompactAsk, Compaction, Compactor,
    ContextPipeline, Decision, Deltas, Durability, Entry, EntryHead, Loaded, Model, ModelFault,
    ModelFaultCode, ModelRequest, PrepareAsk, ProposedCall, Session, SessionError, Steering, ViewCx,
};
use harness_core::run::{Run, RunSpec};
use harness_core::testing::VirtualClock;
use harness_core::tool::{RetryClass, ToolCx, ToolDef, ToolOutcome, ToolRegistry, ToolScope};
use harness_core::transcript::{Plan, Transcript};
use harness_core::turn::Execution;
use harness_core::{
    Cancel, End, EntryId, Fault, FaultSource, Json, Millis, Origin, Outcome, StopReason, Time,
};
use parking_lot::Mutex;

use crate::laws::check_calls_and_results;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Trouble {
    Fails,
    Panics,
    Hangs,
}

/// What goes wrong: the n-th call of any port, and perhaps every later call of the same port.
#[derive(Clone, Copy, Debug)]
struct Plot {
    at: usize,
    trouble: Trouble,
    lasting: bool,
}

#[derive(Default)]
struct State {
    plot: Option<Plot>,
    /// The ports in the order in which they were called.
    called: Vec<&'static str>,
    models: u32,
    /// Calls whose tool answered.
    finished: Vec<String>,
}

/// Every port in one: quiet, but for what the plot says.
#[derive(Clone, Default)]
struct Cast(Arc<Mutex<State>>);

impl Cast {
    fn with<T>(&self, f: impl FnOnce(&mut State) -> T) -> T {
        f(&mut self.0.lock())
    }

    fn trouble(&self, port: &'static str) -> Option<Trouble> {
        self.with(|state| {
            let n = state.called.len();
            state.called.push(port);
            let plot = state.plot?;
            let again = plot.lasting && n > plot.at && state.called.get(plot.at) == Some(&port);
            (n == plot.at || again).then_some(plot.trouble)
        })
    }

    /// Whether a port that may fail does; panics and hangs are done here.
    async fn fails(&self, port: &'static str) -> bool {
        match self.trouble(port) {
            None => false,
            Some(Trouble::Fails) => true,
            Some(Trouble::Panics) => burst(port),
            Some(Trouble::Hangs) => std::future::pending().await,
        }
    }

    async fn part(&self, port: &'static str, source: FaultSource) -> Result<(), Fault> {
        if self.fails(port).await { Err(Fault::new(source, "broken", "it broke")) } else { Ok(()) }
    }

    /// A port that is called and not awaited: it can only panic.
    fn quick(&self, port: &'static str) {
        if self.trouble(port).is_some() {
            burst(port);
        }
    }
}

/// Panics without a message on the terminal.
fn burst(port: &'static str) -> ! {
    std::panic::resume_unwind(Box::new(format!("{port} burst")))
}

impl AgentSource for Cast {
    async fn prepare(&self, _: &PrepareAsk) -> Result<AgentConfig, Fault> {
        self.part("agents", FaultSource::Agent).await?;
        Ok(AgentConfig::new("main", ""))
    }
}

impl Model for Cast {
    async fn step(&self, _: ModelRequest, _: &dyn Deltas) -> Result<AssistantMessage, ModelFault> {
        if self.fails("model").await {
            return Err(ModelFault::new(ModelFaultCode::Network, "gone"));
        }
        let call = |id: &str, name: &str| ToolCall::new(id, name, Json::empty_object());
        let asked = self.with(|state| {
            state.models += 1;
            state.models
        });
        Ok(match asked {
            1 => AssistantMessage::calls([call("a", "look"), call("b", "pay"), call("c", "fail")]),
            2 => AssistantMessage::invalid(&Invalid::new("garbled")),
            3 => AssistantMessage::calls([call("d", "look")]),
            _ => AssistantMessage::text("done"),
        })
    }
}

impl ToolRegistry for Cast {
    async fn list(&self, _: &ToolScope) -> Result<Arc<[ToolDef]>, Fault> {
        self.part("tool list", FaultSource::Tool).await?;
        let mut pay = ToolDef::new("pay", "");
        pay.requires_approval = true;
        let look = ToolDef::new("look", "").with_class(RetryClass::Pure);
        Ok(Arc::from([look, pay, ToolDef::new("fail", "")]))
    }

    async fn call(&self, cx: ToolCx) -> Result<ToolOutcome, Fault> {
        self.part("tool", FaultSource::Tool).await?;
        self.with(|state| state.finished.push(cx.call.id.to_string()));
        Ok(if cx.call.name == "fail" { ToolOutcome::error("bad", "no") } else { ToolOutcome::text("fine") })
    }
}

impl Gate for Cast {
    async fn decide(&self, _: &ProposedCall, _: &DecideCx) -> Result<GateDecision, Fault> {
        self.part("gate", FaultSource::Gate).await?;
        Ok(GateVerdict::Allow.into())
    }
}

impl Check for Cast {
    async fn judge(&self, subject: &Subject, _: &DecideCx) -> Result<CheckDecision, Fault> {
        let port = match subject {
            Subject::Prompt(_) => "check of the prompt",
            Subject::End { .. } => "check of the end",
            Subject::Result { .. } => "check of a result",
            Subject::Invalid { .. } => "check of an output",
            _ => "check of the answer",
        };
        self.part(port, FaultSource::Guardrail).await?;
        Ok(CheckVerdict::Accept.into())
    }
}

impl Approver for Cast {
    async fn decide(&self, _: ApprovalAsk) -> Decision {
        if self.fails("approver").await {
            Decision::Denied { reason: "no".into() }
        } else {
            Decision::Granted
        }
    }
}

impl ContextPipeline for Cast {
    async fn begin(&self, _: &ViewCx) -> Result<(), Fault> {
        self.part("layer begin", FaultSource::Layer).await
    }

    async fn append(
        &self,
        _: AppendSource,
        messages: Vec<Arc<Message>>,
        _: &ViewCx,
    ) -> Result<Vec<Arc<Message>>, Fault> {
        self.part("layer append", FaultSource::Layer).await?;
        Ok(messages)
    }

    async fn recall(&self, _: &ViewCx) -> Result<Option<Plan>, Fault> {
        self.part("layer recall", FaultSource::Layer).await?;
        Ok(None)
    }

    async fn after_model(&self, _: &Arc<Message>, _: &ViewCx) -> Result<Option<String>, Fault> {
        self.part("layer after model", FaultSource::Layer).await?;
        Ok(None)
    }

    async fn store(&self, _: &Arc<Message>, _: &ViewCx) -> Result<(), Fault> {
        self.part("layer store", FaultSource::Layer).await
    }

    async fn complete(&self, _: Outcome, _: &ViewCx) -> Result<(), Fault> {
        self.part("layer complete", FaultSource::Layer).await
    }
}

impl Compactor for Cast {
    async fn compact(&self, _: CompactAsk) -> Result<Compaction, Fault> {
        self.part("compactor", FaultSource::Compactor).await?;
        Ok(Compaction::unchanged())
    }
}

impl Session for Cast {
    async fn append(&self, _: &EntryHead, _: &[Entry<'_>], _: Durability) -> Result<(), SessionError> {
        // A store that never answers is not cut off: what is not known to be stored must not be passed over.
        match self.trouble("session") {
            None | Some(Trouble::Hangs) => Ok(()),
            Some(Trouble::Fails) => Err(SessionError::new("session.full", "the disk is full")),
            Some(Trouble::Panics) => burst("session"),
        }
    }

    async fn load(&self) -> Result<Loaded, SessionError> {
        Ok(Loaded::default())
    }
}

impl Steering for Cast {
    fn waiting(&self) -> Vec<(EntryId, Arc<Message>)> {
        self.quick("steering");
        Vec::new()
    }

    fn injected(&self, _: &[EntryId]) {}
}

impl Fold for Cast {
    fn apply(&mut self, _: &Event) {
        self.quick("sink");
    }

    fn flush(&mut self) {
        self.quick("sink flush");
    }
}

/// What a run that ended looks like.
struct Ran {
    end: Arc<End>,
    log: Vec<Arc<Message>>,
    ends_told: usize,
    cast: Cast,
}

#[derive(Clone, Default)]
struct Ends(Arc<Mutex<usize>>);

impl Fold for Ends {
    fn apply(&mut self, event: &Event) {
        if matches!(event.kind, EventKind::RunFinished { .. }) {
            *self.0.lock() += 1;
        }
    }
}

async fn run(execution: Execution, plot: Option<Plot>) -> Ran {
    let cast = Cast::default();
    cast.with(|state| state.plot = plot);
    let mut ports = Ports::new(Arc::new(cast.clone()), Arc::new(VirtualClock::jumping(Time(0))));
    ports.agents = Arc::new(cast.clone());
    ports.tools = Arc::new(cast.clone());
    ports.gates = vec![gate::new("gate", cast.clone())];
    let points = Points::PROMPT.and(Points::ANSWER).and(Points::END);
    let looks = check::new("looks", Points::RESULT.and(Points::INVALID), cast.clone());
    ports.checks = vec![check::new("check", points, cast.clone()), looks.on_error(OnError::Lenient)];
    ports.approver = Some(Arc::new(cast.clone()));
    ports.session = Some(Arc::new(cast.clone()));
    ports.layers = Some(Arc::new(cast.clone()));
    ports.compactor = Some(Arc::new(cast.clone()));
    ports.steering = Some(Arc::new(cast.clone()));
    let ends = Ends::default();
    ports.hub.fold(cast.clone());
    ports.hub.fold(ends.clone());
    let mut spec = RunSpec::default();
    spec.turn.execution = execution;
    spec.turn.limits.elapsed = Some(Millis(10_000));
    spec.limits.turns = 4;
    spec.limits.amount.iterations = 40;
    let mut machine = Run::new(Arc::new(spec), Origin::default(), Transcript::default());
    let end = drive(&mut machine, &ports, &Cancel::never(), Start::prompt(Message::user("go"))).await;
    let log = machine.log().iter().cloned().collect();
    let ends_told = *ends.0.lock();
    Ran { end, log, ends_told, cast }
}

/// The run is over, lawfully, and every result that a tool gave is in the transcript.
#[track_caller]
fn check(ran: &Ran, what: &str) {
    check_calls_and_results(ran.log.iter(), false);
    for id in ran.cast.with(|state| state.finished.clone()) {
        let results = ran.log.iter().filter_map(|message| message.as_tool_result());
        let kept = results.filter(|result| result.tool_call_id == id.as_str()).any(|result| {
            let outcome = result.outcome.as_ref().map_or("", |outcome| outcome.text());
            !outcome.contains("not_run") && !outcome.contains("interrupted")
        });
        assert!(kept, "{what}: the result of `{id}` is lost");
    }
    assert_eq!(ran.ends_told, 1, "{what}: one end is told");
    let outcome_of_reason = ran.end.reason().outcome();
    assert_eq!(ran.end.outcome(), outcome_of_reason, "{what}");
}

const EXECUTIONS: [Execution; 2] = [Execution::Sequential, Execution::Parallel { max: 4 }];

#[tokio::test]
async fn whatever_port_fails_wherever_the_run_ends_lawfully_and_keeps_what_is_finished() {
    for execution in EXECUTIONS {
        let quiet = run(execution, None).await;
        check(&quiet, "quiet");
        assert_eq!(quiet.end.reason(), StopReason::AnswerFinalized);
        let called = quiet.cast.with(|state| state.called.clone());
        for port in [
            "agents",
            "tool list",
            "gate",
            "check of the prompt",
            "check of the answer",
            "check of the end",
            "check of a result",
        ] {
            assert!(called.contains(&port), "{port} is never called");
        }
        for (at, port) in called.iter().enumerate() {
            for trouble in [Trouble::Fails, Trouble::Panics, Trouble::Hangs] {
                for lasting in [false, true] {
                    let plot = Plot { at, trouble, lasting };
                    let ran = run(execution, Some(plot)).await;
                    check(&ran, &format!("{execution:?} {port} {plot:?}"));
                }
            }
        }
    }
}
