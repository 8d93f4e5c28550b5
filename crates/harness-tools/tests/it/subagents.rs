//! The tool that gives work to another agent.

use std::sync::Arc;

use harness_core::limits::Amount;
use harness_core::port::Tool as _;
use harness_tools::{Subagent, SubagentAsk, SubagentCode, SubagentReport, SubagentRunner, SubagentTool};

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
