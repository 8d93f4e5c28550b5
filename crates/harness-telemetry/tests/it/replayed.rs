//! Spans of stored events: what a live run seldom has.

use harness_core::Json;
use harness_core::event::{Event, Fold as _};
use harness_telemetry::{SpanOptions, Spans};

use crate::tree::Tree;

/// `events`: one in a line, as `type {other fields}`.
fn watched(events: &str, fields: &[&str]) -> String {
    let tree = Tree::default();
    let mut spans = Spans::new(SpanOptions::new());
    tree.watch(|| {
        for (seq, line) in events.lines().map(str::trim).filter(|line| !line.is_empty()).enumerate() {
            let (kind, rest) = line.split_once(' ').unwrap_or((line, "{}"));
            let rest = rest.trim_start_matches('{').trim_end();
            let comma = if rest == "}" { "" } else { "," };
            let text = format!(r#"{{"seq":{seq},"at":0,"turn":1,"iteration":1,"type":"{kind}"{comma}{rest}"#);
            let event: Event = Json::parse(&text).unwrap().to().unwrap();
            spans.apply(&event);
        }
        spans.flush();
    });
    tree.show(fields)
}

#[test]
fn the_agent_that_was_handed_the_turn_has_a_span_of_its_own() {
    let shown = watched(
        r#"
        run_started
        turn_started {"agent":"triage","resumed":false}
        model_step_started {"agent":"triage","model":"m"}
        model_step_finished {"outputType":"tool_request","durationMs":0}
        tool_started {"call":{"id":"c1","name":"handoff_to_billing","arguments":{}}}
        handed_off {"callId":"c1","from":"triage","to":"billing"}
        tool_finished {"call":{"id":"c1","name":"handoff_to_billing","arguments":{}},"outcome":{"status":"success"},"durationMs":0}
        model_step_started {"agent":"billing","model":"m"}
        model_step_finished {"outputType":"final_answer","durationMs":0}
        "#,
        &["harness.handoff.from"],
    );
    insta::assert_snapshot!(shown, @r"
    invoke_agent triage OPEN
      turn 1 OPEN
        chat m
        execute_tool handoff_to_billing
        invoke_agent billing OPEN from=triage
          chat m
    ");
}

#[test]
fn approvals_retries_and_verdicts() {
    let shown = watched(
        r#"
        run_started
        turn_started {"agent":"main","resumed":false}
        decided {"by":"careful","point":"call","callId":"c1","verdict":"hold","reason":"hunter2","durationMs":0}
        approval_requested {"request":{"id":"c1","kind":"tool","summary":"hunter2","callId":"c1"}}
        approval_decided {"callId":"c1","decision":"granted"}
        tool_started {"call":{"id":"c1","name":"pay","arguments":{}}}
        tool_retried {"call":{"id":"c1","name":"pay","arguments":{}},"attempt":2,"maxAttempts":3,"backoffMs":100}
        tool_finished {"call":{"id":"c1","name":"pay","arguments":{}},"outcome":{"status":"success","exitCode":0},"durationMs":0}
        limit_reached {"stopReason":"max_tool_calls_reached"}
        "#,
        &["harness.approval.decision", "harness.tool.attempts", "harness.tool.exit_code"],
    );
    insta::assert_snapshot!(shown, @r"
    invoke_agent main OPEN
      turn 1 OPEN [decided: careful: hold call (c1)] [limit_reached: max_tool_calls_reached]
        approval decision=granted
        execute_tool pay attempts=2 exit_code=0 [tool_retried: attempt 2 of 3 after 100 ms]
    ");
}

#[test]
fn compactions_of_a_turn_and_alone() {
    let completed = r#"{"note":{"tokensBefore":9000,"tokensAfter":3000,"target":4000,"planVersion":1,"actions":[],"level":"compressed","firstKept":0},"permanent":true,"plan":PLAN,"usage":{"modelCalls":1,"inputTokens":9000},"durationMs":40}"#;
    let plan = Json::parse(r#"{"spans":[]}"#).unwrap();
    let completed = completed.replace("PLAN", plan.text());
    let fields =
        ["harness.compaction.trigger", "harness.compaction.tokens_after", "gen_ai.usage.input_tokens"];
    let shown = watched(
        &format!(
            "turn_started {{\"agent\":\"main\",\"resumed\":false}}
            compaction_started {{\"trigger\":\"request\"}}
            compaction_completed {completed}
            compaction_started {{\"trigger\":\"overflow\"}}
            compaction_failed {{\"fault\":{{\"source\":\"compactor\",\"code\":\"too_long\",\"message\":\"it is\"}}}}"
        ),
        &fields,
    );
    insta::assert_snapshot!(shown, @r"
    invoke_agent main OPEN
      compact trigger=request tokens_after=3000 input_tokens=9000
      compact !too_long trigger=overflow
    ");
    let alone = watched(
        &format!("compaction_started {{\"trigger\":\"requested\"}}\ncompaction_completed {completed}"),
        &fields,
    );
    insta::assert_snapshot!(alone, @"compact trigger=requested tokens_after=3000 input_tokens=9000");
}

#[test]
fn a_second_beginning_closes_the_first() {
    let shown = watched(
        r#"
        turn_started {"agent":"main","resumed":false}
        model_step_started {"agent":"main"}
        turn_started {"agent":"main","resumed":true}
        "#,
        &["harness.resumed"],
    );
    insta::assert_snapshot!(shown, @r"
    invoke_agent main !superseded resumed=false
      chat !superseded
    invoke_agent main OPEN resumed=true
    ");
}
