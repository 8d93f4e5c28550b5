//! The tool that gives work to another agent.

use std::sync::Arc;

use harness_core::driver::{Ports, drive};
use harness_core::limits::{Amount, Grant, Limits};
use harness_core::machine::{Origin, Start};
use harness_core::message::{AssistantMessage, Message, ToolCall, Usage};
use harness_core::port::{RetryClass, Tool as _, ToolDef, ToolOutcome, Toolbox};
use harness_core::testing::{ModelStep, ScriptedModel, ScriptedTools, ToolStep, VirtualClock};
use harness_core::transcript::Transcript;
use harness_core::turn::{Turn, TurnSpec};
use harness_core::{Cancel, Json};
use harness_tools::{
    Subagent, SubagentAsk, SubagentCode, SubagentReport, SubagentRunner, SubagentTool, TurnRunner,
};

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
    let runner = TurnRunner::new(Arc::new(model.clone()), Arc::new(tools), Arc::new(clock));
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

#[test]
fn a_subagent_runs_as_a_turn_with_its_own_tools_and_reports_what_it_used() {
    let (told, spent, usage, model) = run(vec![looks(), AssistantMessage::text("I see a ship.")], 8);
    let expected =
        serde_json::json!({ "ok": true, "output": "I see a ship.", "iterations": 2, "subagent": "scout" });
    assert_eq!(told, expected);
    assert_eq!((spent.iterations, spent.tool_calls), (2, 1));
    assert_eq!(usage.map(|usage| usage.all_tokens()), Some(110));
    let requests = model.requests();
    let first = requests.first().unwrap();
    assert_eq!(&*first.offer.instructions, "You look around.");
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

#[test]
fn law_3_calls_of_a_subagent_count_for_the_turn_that_asked() {
    let clock = VirtualClock::frozen(harness_core::Time(0));
    let look = ToolDef::new("look", "").with_class(RetryClass::Pure);
    let tools = ScriptedTools::new([look]).answering([ToolStep::outcome(ToolOutcome::text("a ship"))]);
    let inner = ScriptedModel::new([looks(), AssistantMessage::text("a ship")].map(ModelStep::answer));
    let runner = TurnRunner::new(Arc::new(inner), Arc::new(tools), Arc::new(clock.clone()));
    let mut share = Limits::default().amount();
    (share.iterations, share.tool_calls) = (2, 2);
    let task = SubagentTool::new([Subagent::new("scout", "looks", "Look.")], Arc::new(runner)).unwrap();

    let ask = Json::parse(r#"{"description":"Look.","subagent_type":"scout"}"#).unwrap();
    let call = |id: &str| AssistantMessage::calls([ToolCall::new(id, "task", ask.clone())]);
    let model = ScriptedModel::new([call("p1"), call("p2")].map(ModelStep::answer));
    let mut ports = Ports::new(Arc::new(model), Arc::new(clock));
    ports.tools = Arc::new(Toolbox::new([Arc::new(task.share(share)) as _]));
    let mut spec = TurnSpec::default();
    (spec.limits.tool_calls, spec.limits.iterations) = (4, 20);
    let mut turn = Turn::new(Arc::new(ports.fit_turn(spec)), Origin::default(), Transcript::default());
    let start = Start::prompt(Message::user("What is out there?"));
    let end = block_on(drive(&mut turn, &ports, &Cancel::never(), start));
    // The first took itself and one of two more; the second would need three, and two are left.
    assert_eq!(end.reason().as_str(), "max_tool_calls_reached");
    assert_eq!(end.usage.tool_calls, 1, "the turn's own calls");
}
