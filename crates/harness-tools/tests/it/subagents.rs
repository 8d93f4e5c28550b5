//! The tool that gives work to another agent.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use harness_core::decide::{
    Check, CheckDecision, CheckVerdict, DecideCx, DynGate, GateVerdict, Guarded, Points, Subject, check, gate,
};
use harness_core::driver::{Ports, drive};
use harness_core::event::{Event, EventKind, Fold};
use harness_core::limits::{Amount, Grant, Limits};
use harness_core::machine::Start;
use harness_core::message::{AssistantMessage, Message, ToolCall, Usage};
use harness_core::outcome::Purpose;
use harness_core::port::{ContextPipeline, ViewCx};
use harness_core::testing::{ModelStep, ScriptedModel, ScriptedTools, ToolStep, VirtualClock};
use harness_core::tool::{RetryClass, Tool as _, ToolDef, ToolOutcome, Toolbox};
use harness_core::transcript::Transcript;
use harness_core::turn::{Turn, TurnSpec};
use harness_core::{Cancel, End, Fault, Json, Origin, ParentCall};
use harness_tools::{
    Subagent, SubagentAsk, SubagentCode, SubagentReport, SubagentRunner, SubagentTool, TurnRunner,
};
use parking_lot::Mutex;

use crate::support::{block_on, cx, told};

/// Does what the description says.
struct Obedient;

impl SubagentRunner for Obedient {
    async fn run(&self, ask: SubagentAsk) -> SubagentReport {
        let mut report = match &*ask.description {
            "fail" => SubagentReport::failed(
                SubagentCode::MaxIterations,
                "it took too long",
                ask.subagent.max_iterations,
            ),
            "long" => SubagentReport::answered("ä".repeat(40_000), 1),
            other => SubagentReport::answered(format!("{}: {other}", ask.subagent.instructions), 2),
        };
        let mut spent = Amount::NONE;
        spent.tool_calls = 3;
        report.spent = spent;
        report
    }
}

fn tool() -> SubagentTool {
    let agents = [
        Subagent::new("scout", "looks", "old"),
        Subagent::new("smith", "makes", "You make things."),
        Subagent::new("scout", "looks further", "You look around."),
    ];
    SubagentTool::new(agents, Arc::new(Obedient)).unwrap()
}

#[track_caller]
fn check(arguments: &str, expected: &str) {
    assert_eq!(told(&block_on(tool().call(cx(arguments)))), expected);
}

#[test]
fn work_is_given_to_the_agent_of_that_name() {
    check(
        r#"{"description":"go","subagent_type":"scout"}"#,
        "success\n{\n  \"ok\": true,\n  \"output\": \"You look around.: go\",\n  \"iterations\": 2,\n  \"subagent\": \"scout\"\n}",
    );
    let def = tool().def().clone();
    assert!(def.description.ends_with("\n- scout: looks further\n- smith: makes"), "{}", def.description);
}

#[test]
fn a_failure_is_a_result_and_what_was_spent_counts() {
    let outcome = block_on(tool().call(cx(r#"{"description":"fail","subagent_type":"smith"}"#)));
    assert_eq!(
        outcome.structured.as_ref().unwrap().text(),
        r#"{"ok":false,"error":{"message":"it took too long","code":"max_iterations"},"iterations":8,"subagent":"smith"}"#
    );
    assert_eq!(outcome.spent.tool_calls, 3);
}

#[test]
fn a_long_answer_is_cut() {
    let outcome = block_on(tool().call(cx(r#"{"description":"long","subagent_type":"smith"}"#)));
    let text = told(&outcome);
    assert!(text.contains("ä\\n[... 14464 bytes left out ...]"), "{}", &text[text.len() - 200..]);
}

#[test]
fn wrong_arguments_and_unknown_agents_are_told() {
    check("{}", "failed invalid_input\nargument `description`: Required");
    check(r#"{"description":"go"}"#, "failed invalid_input\nargument `subagent_type`: Required");
    let unknown = block_on(tool().call(cx(r#"{"description":"go","subagent_type":"ghost"}"#)));
    assert!(unknown.structured.unwrap().text().contains(r#""code":"unknown_subagent""#));
    assert!(SubagentTool::new([], Arc::new(Obedient)).is_none());
}

/// Runs the scout with this model over one tool `look`; what the caller is told, and what it spent.
fn run(
    steps: Vec<AssistantMessage>,
    granted: u32,
) -> (serde_json::Value, Amount, Option<Arc<Usage>>, ScriptedModel) {
    let model = ScriptedModel::new(steps.into_iter().map(ModelStep::answer));
    let look = ToolDef::new("look", "").with_class(RetryClass::Pure);
    let tools = ScriptedTools::new([look, ToolDef::new("pay", "")]);
    let tools = tools.answering([ToolStep::outcome(ToolOutcome::text("a ship"))]);
    let clock = VirtualClock::frozen(harness_core::Time(0));
    let mut ports = Ports::new(Arc::new(model.clone()), Arc::new(clock));
    ports.tools = Arc::new(tools);
    let runner = TurnRunner::new(&ports);
    let mut scout = Subagent::new("scout", "looks", "You look around.");
    scout.tools = Some(vec!["look".to_owned()]);
    let tool = SubagentTool::new([scout], Arc::new(runner)).unwrap();
    let mut cx = cx(r#"{"description":"What do you see?","subagent_type":"scout"}"#);
    let mut grant = Limits::default().amount();
    grant.iterations = granted;
    cx.grant = Grant(grant);
    let outcome = block_on(tool.call(cx));
    (outcome.structured.unwrap().to().unwrap(), outcome.spent, outcome.usage, model)
}

fn looks() -> AssistantMessage {
    let mut message = AssistantMessage::calls([ToolCall::new("c1", "look", Json::empty_object())]);
    message.usage = Some(Arc::new(Usage::tokens(100, 10)));
    message
}

/// An answer whose provider reports that it used nothing.
fn free(text: &str) -> AssistantMessage {
    AssistantMessage::text(text).with_usage(Usage::tokens(0, 0))
}

#[test]
fn a_subagent_runs_as_a_turn_with_its_own_tools_and_reports_what_it_used() {
    let (told, spent, usage, model) = run(vec![looks(), free("I see a ship.")], 8);
    let expected =
        serde_json::json!({ "ok": true, "output": "I see a ship.", "iterations": 2, "subagent": "scout" });
    assert_eq!(told, expected);
    assert_eq!((spent.iterations, spent.tool_calls), (2, 1));
    assert_eq!(usage.map(|usage| usage.all_tokens()), Some(110));
    let requests = model.requests();
    let first = requests.first().unwrap();
    assert_eq!(&*first.prepared.instructions, "You look around.");
    let names: Vec<&str> = first.tools().iter().map(|def| def.name.as_str()).collect();
    assert_eq!(names, ["look"], "only what it may use");
    assert_eq!(first.view.len(), 1, "it knows nothing but what it is asked");
}

#[test]
fn law_3_a_subagent_has_no_more_iterations_than_were_granted() {
    let (told, spent, _, model) = run(vec![looks(), looks(), looks()], 1);
    assert_eq!(told["error"]["code"], "max_iterations");
    assert_eq!((spent.iterations, model.requests().len()), (1, 1));
    let (told, spent, _, model) = run(vec![looks()], 0);
    assert_eq!((told["ok"].as_bool(), spent.iterations, model.requests().len()), (Some(false), 0, 0));
}

/// A turn whose model gives work to the scout, `asks` times at most; the scout looks once and answers.
struct Team {
    share: Amount,
    tool_calls: u32,
    asks: usize,
}

impl Default for Team {
    fn default() -> Self {
        Self { share: Limits::default().amount(), tool_calls: 20, asks: 1 }
    }
}

impl Team {
    /// How the turn ends, with what the scouts' events told and what the tools of the scouts were asked.
    fn run(self, change: impl FnOnce(TurnRunner) -> TurnRunner) -> (Arc<End>, Vec<Event>) {
        self.run_with(Vec::new(), change)
    }

    /// The same with these gates.
    fn run_with(
        self,
        gates: Vec<Guarded<dyn DynGate>>,
        change: impl FnOnce(TurnRunner) -> TurnRunner,
    ) -> (Arc<End>, Vec<Event>) {
        let clock = VirtualClock::frozen(harness_core::Time(0));
        let look = ToolDef::new("look", "").with_class(RetryClass::Pure);
        let ships = ToolStep::outcome(ToolOutcome::text("a ship"));
        let tools = ScriptedTools::new([look]).answering(vec![ships; self.asks]);
        let scouts = (0..self.asks).flat_map(|_| [looks(), free("a ship")]);
        let inner = ScriptedModel::new(scouts.map(ModelStep::answer));
        let heard = Arc::new(Mutex::new(Heard::default()));
        let mut ports = Ports::new(Arc::new(inner), Arc::new(clock.clone()));
        (ports.tools, ports.gates) = (Arc::new(tools), gates);
        let runner = change(TurnRunner::new(&ports).fold(Arc::clone(&heard)));
        let task = SubagentTool::new([Subagent::new("scout", "looks", "Look.")], Arc::new(runner)).unwrap();

        let ask = Json::parse(r#"{"description":"Look.","subagent_type":"scout"}"#).unwrap();
        let call = |n: usize| AssistantMessage::calls([ToolCall::new(format!("p{n}"), "task", ask.clone())]);
        let steps = (1..=self.asks).map(call).chain([AssistantMessage::text("There is a ship.")]);
        let model = ScriptedModel::new(steps.map(ModelStep::answer));
        let mut ports = Ports::new(Arc::new(model), Arc::new(clock));
        ports.tools = Arc::new(Toolbox::new([Arc::new(task.share(self.share)) as _]));
        let mut spec = TurnSpec::default();
        (spec.limits.tool_calls, spec.limits.iterations) = (self.tool_calls, 20);
        let mut origin = Origin::default();
        (origin.thread, origin.run) = (Some("t".into()), Some("r".into()));
        let mut turn = Turn::new(Arc::new(spec), origin, Transcript::default());
        let start = Start::prompt(Message::user("What is out there?"));
        let end = block_on(drive(&mut turn, &ports, &Cancel::never(), start));
        let events = std::mem::take(&mut heard.lock().0);
        (end, events)
    }
}

#[derive(Default)]
struct Heard(Vec<Event>);

impl Fold for Heard {
    fn apply(&mut self, event: &Event) {
        self.0.push(event.clone());
    }
}

#[test]
fn law_3_calls_of_a_subagent_count_for_the_turn_that_asked() {
    let mut share = Limits::default().amount();
    (share.iterations, share.tool_calls) = (2, 2);
    let (end, _) = Team { share, tool_calls: 4, asks: 2 }.run(|runner| runner);
    // Each took itself and one of two more; of the second share only that one was left.
    assert_eq!((end.reason().as_str(), end.usage.tool_calls), ("answer_finalized", 2));
    let (end, _) = Team { share, tool_calls: 3, asks: 2 }.run(|runner| runner);
    assert_eq!(end.reason().as_str(), "max_tool_calls_reached");
    assert_eq!(end.usage.tool_calls, 1, "for the second nothing was left");
}

#[test]
fn what_a_subagent_and_its_layers_used_is_in_the_callers_report() {
    let (end, _) = Team::default().run(|runner| runner.layers(Arc::new(Costly)));
    let child = end.usage.of(Purpose::Child);
    assert_eq!((child.input_tokens, child.output_tokens), (Some(1_100), Some(15)));
    assert_eq!(child.model_calls, 3, "two of the scout, and one of its layers");
}

/// Layers that spend something at the start.
struct Costly;

impl ContextPipeline for Costly {
    async fn begin(&self, cx: &ViewCx) -> Result<(), Fault> {
        cx.ledger.charge(&Usage::tokens(1_000, 5));
        Ok(())
    }
}

#[test]
fn a_subagents_events_tell_for_which_call_it_works() {
    let (_, events) = Team::default().run(|runner| runner);
    let names: Vec<&str> = events.iter().map(|event| event.kind.name()).collect();
    assert!(names.first() == Some(&"run_started") && names.last() == Some(&"run_finished"), "{names:?}");
    assert!(names.contains(&"tool_finished"), "{names:?}");
    for event in &events {
        let told = serde_json::to_value(event).unwrap();
        let parent = serde_json::json!({ "callId": "p1", "agent": "main", "run": "r", "depth": 1 });
        assert_eq!((&told["origin"]["parent"], event.origin.actor()), (&parent, "sub_agent"));
    }
}

#[test]
fn gates_see_the_calls_of_subagents() {
    let no_looking = gate::func("no-looking", |_, cx| match cx.origin.actor() {
        "sub_agent" => GateVerdict::deny("it is dark"),
        _ => GateVerdict::Allow,
    });
    let (_, events) = Team::default().run_with(vec![no_looking], |runner| runner);
    let denied = events
        .iter()
        .any(|event| matches!(&event.kind, EventKind::Decided { verdict, .. } if verdict == "deny"));
    assert!(denied);
}

#[test]
fn a_subagent_starts_no_other_unless_that_is_allowed() {
    let mut cx = cx(r#"{"description":"go","subagent_type":"smith"}"#);
    cx.origin = Arc::new(cx.origin.child(ParentCall::new("p1", "main", &cx.origin)));
    let ask = |tool: SubagentTool| block_on(tool.call(cx.clone())).structured.unwrap();
    assert!(ask(tool()).text().contains(r#""code":"depth_reached""#), "{:?}", ask(tool()));
    assert!(ask(tool().max_depth(2)).text().contains(r#""ok":true"#));
}

/// Believes the second answer.
struct Doubt(AtomicU32);

impl Check for Doubt {
    async fn judge(&self, _: &Subject, _: &DecideCx) -> Result<CheckDecision, Fault> {
        Ok(match self.0.fetch_add(1, Ordering::Relaxed) {
            0 => CheckVerdict::Continue { guidance: "Are you sure?".to_owned() },
            _ => CheckVerdict::Accept,
        }
        .into())
    }
}

/// How a scout of so many turns ends whose first answer is doubted.
#[track_caller]
fn check_turns(max_turns: u32, expected: &str) {
    let model =
        ScriptedModel::new(["a ship", "a whale"].map(|said| ModelStep::answer(AssistantMessage::text(said))));
    let clock = Arc::new(VirtualClock::frozen(harness_core::Time(0)));
    let mut ports = Ports::new(Arc::new(model), clock);
    ports.checks.push(check::new("doubt", Points::END, Doubt(AtomicU32::new(0))));
    let runner = TurnRunner::new(&ports);
    let mut scout = Subagent::new("scout", "looks", "Look.");
    scout.max_turns = max_turns;
    let tool = SubagentTool::new([scout], Arc::new(runner)).unwrap();
    let mut cx = cx(r#"{"description":"What do you see?","subagent_type":"scout"}"#);
    cx.grant = Grant(Limits::default().amount());
    let told: serde_json::Value = block_on(tool.call(cx)).structured.unwrap().to().unwrap();
    assert_eq!(told["output"].as_str().or(told["error"]["message"].as_str()), Some(expected));
}

#[test]
fn a_doubted_answer_takes_another_turn_if_there_is_one() {
    check_turns(2, "a whale");
    check_turns(1, "it stopped with max_turns_reached; partial answer: a ship");
}
