//! Agents that work in the background.

use std::sync::Arc;

use harness_core::driver::{Ports, drive};
use harness_core::limits::Amount;
use harness_core::machine::Start;
use harness_core::message::{AssistantMessage, Message, ToolCall, Usage};
use harness_core::outcome::Purpose;
use harness_core::run::{Run, RunSpec};
use harness_core::testing::{ModelStep, ScriptedModel, VirtualClock};
use harness_core::tool::{ToolCx, ToolOutcome, ToolRegistry as _, Toolbox};
use harness_core::transcript::Transcript;
use harness_core::{Cancel, End, Json, Origin, ParentCall, Time};
use harness_tools::{
    BackgroundAgents, Keep, Subagent, SubagentAsk, SubagentCode, SubagentReport, SubagentRunner, TaskStatus,
    ToolSet,
};
use tokio::sync::Semaphore;

use crate::support::{block_on, told};

/// Does what it is asked: `fail`, `panic`, `wait` (until it is let go or cancelled), or answers with it.
struct Obedient(Arc<Semaphore>);

impl SubagentRunner for Obedient {
    async fn run(&self, ask: SubagentAsk) -> SubagentReport {
        let earlier = ask.earlier.iter().map(|before| format!("{} {}; ", before.asked, before.answered));
        let earlier: String = earlier.collect();
        let mut report = match &*ask.description {
            "fail" => SubagentReport::failed(SubagentCode::MaxIterations, "it took too long", 8),
            "long" => SubagentReport::answered("x".repeat(64 * 1024), 1),
            "panic" => panic!("a runner breaks down"),
            "wait" => tokio::select! {
                _ = self.0.acquire() => SubagentReport::answered("waited", 1),
                () = ask.cx.cancel.cancelled() => SubagentReport::failed(SubagentCode::Aborted, "stopped", 1),
            },
            other => SubagentReport::answered(format!("{earlier}did {other}"), 1),
        };
        report.spent.iterations = 1;
        report.usage = Some(Arc::new(Usage::tokens(100, 10)));
        report
    }
}

fn agents(gate: &Arc<Semaphore>) -> BackgroundAgents {
    let all = [Subagent::new("scout", "looks", "Look."), Subagent::new("smith", "makes", "Make.")];
    BackgroundAgents::new(all, Arc::new(Obedient(Arc::clone(gate))), Keep::Run).unwrap()
}

async fn ask(set: &ToolSet, name: &str, arguments: &str) -> ToolOutcome {
    let name = format!("background_agents_{name}");
    let call = ToolCall::new("c", name, Json::parse(arguments).unwrap());
    set.call(ToolCx::for_call(Arc::new(call))).await.unwrap()
}

/// What the last of some calls says.
#[track_caller]
fn check(calls: &[(&str, &str)], expected: &str) {
    let said = block_on(async {
        let set = agents(&Arc::new(Semaphore::new(0))).into_set();
        let mut said = String::new();
        for (name, arguments) in calls {
            said = told(&ask(&set, name, arguments).await);
        }
        said
    });
    assert_eq!(said, expected);
}

const DIG: (&str, &str) = ("start_task", r#"{"agent":"scout","description":"dig"}"#);
const FAIL: (&str, &str) = ("start_task", r#"{"agent":"smith","description":"fail"}"#);
const WAIT: (&str, &str) = ("start_task", r#"{"agent":"smith","description":"wait"}"#);
const FIRST: (&str, &str) = ("wait_for_first_completion", "{}");

#[test]
fn a_task_is_started_waited_for_and_its_result_told() {
    check(
        &[DIG],
        r#"success
{"tasks":[{"task_id":1,"agent":"scout","description":"dig","status":"running"}]}"#,
    );
    let done = r#"success
{"tasks":[{"task_id":1,"agent":"scout","description":"dig","status":"completed","answer":"did dig"}]}"#;
    check(
        &[WAIT, ("clear_completed_task", "{}"), FIRST_OF_NONE],
        "failed background_task\ntask 7 not found; available: 1",
    );
    check(&[DIG, FIRST], done);
    check(&[DIG, FIRST, FIRST], done);
    check(&[DIG, WAIT, ("wait_for_first_completion", r#"{"task_ids":[1,2]}"#)], done);
    check(&[DIG, FIRST, ("get_task_results", r#"{"task_ids":[1]}"#)], done);
}

const FIRST_OF_NONE: (&str, &str) = ("wait_for_first_completion", r#"{"task_ids":[7]}"#);

#[test]
fn a_failure_and_a_breakdown_are_results() {
    check(
        &[FAIL, FIRST],
        r#"success
{"tasks":[{"task_id":1,"agent":"smith","description":"fail","status":"failed","error":{"code":"max_iterations","message":"it took too long"}}]}"#,
    );
    let panics = ("start_task", r#"{"agent":"scout","description":"panic"}"#);
    check(
        &[panics, FIRST],
        r#"success
{"tasks":[{"task_id":1,"agent":"scout","description":"panic","status":"failed","error":{"code":"subagent_error","message":"the agent panicked"}}]}"#,
    );
}

#[test]
fn all_tasks_are_listed_without_their_results() {
    check(
        &[DIG, FIRST, WAIT, ("get_all_tasks", "{}")],
        r#"success
{"tasks":[{"task_id":1,"agent":"scout","description":"dig","status":"completed"},{"task_id":2,"agent":"smith","description":"wait","status":"running"}]}"#,
    );
}

#[test]
fn a_task_goes_on_with_what_was_said_before() {
    let more = ("continue_task", r#"{"task_id":1,"description":"dig deeper"}"#);
    check(
        &[DIG, FIRST, more, FIRST],
        r#"success
{"tasks":[{"task_id":1,"agent":"scout","description":"dig deeper","status":"completed","answer":"dig did dig; did dig deeper"}]}"#,
    );
    check(&[WAIT, more], "failed background_task\ntask 1 is still running; wait for it first");
}

#[test]
fn tasks_that_are_over_are_forgotten_when_that_is_asked() {
    check(&[DIG, FIRST, ("clear_completed_task", "{}")], "success\n{\"cleared\":[1]}");
    check(
        &[WAIT, ("clear_completed_task", r#"{"task_ids":[1]}"#)],
        "failed background_task\ntask 1 is still running; wait for it first",
    );
    check(
        &[DIG, FIRST, ("clear_completed_task", "{}"), DIG],
        r#"success
{"tasks":[{"task_id":2,"agent":"scout","description":"dig","status":"running"}]}"#,
    );
}

#[test]
fn what_is_wrong_is_said_with_what_to_do() {
    let ghost = ("start_task", r#"{"agent":"ghost","description":"dig"}"#);
    check(&[ghost], "failed background_task\nunknown agent `ghost`; available: scout, smith");
    let empty = ("start_task", r#"{"agent":"scout","description":" "}"#);
    check(&[empty], "failed background_task\nthe description is empty; describe the task");
    check(&[FIRST], "failed background_task\nno task to wait for; start one first");
    let results = ("get_task_results", r#"{"task_ids":[3]}"#);
    check(&[results], "failed background_task\ntask 3 not found; no task was started");
    assert!(BackgroundAgents::new([], Arc::new(Obedient(Arc::new(Semaphore::new(0)))), Keep::Run).is_none());
}

#[test]
fn tasks_are_bounded() {
    block_on(async {
        let set = agents(&Arc::new(Semaphore::new(0))).most_running(2).into_set();
        ask(&set, WAIT.0, WAIT.1).await;
        ask(&set, WAIT.0, WAIT.1).await;
        let third = told(&ask(&set, WAIT.0, WAIT.1).await);
        assert_eq!(third, "failed background_task\n2 tasks are already running; wait for one of them first");
        let set = agents(&Arc::new(Semaphore::new(0))).into_set();
        for _ in 0..32 {
            ask(&set, DIG.0, DIG.1).await;
            ask(&set, FIRST.0, FIRST.1).await;
        }
        let last = told(&ask(&set, DIG.0, DIG.1).await);
        assert_eq!(last, "failed background_task\nat most 32 tasks are kept; clear finished tasks first");
    });
}

#[test]
fn one_result_tells_so_much_and_no_more() {
    block_on(async {
        let set = agents(&Arc::new(Semaphore::new(0))).into_set();
        for _ in 0..3 {
            ask(&set, "start_task", r#"{"agent":"scout","description":"long"}"#).await;
            ask(&set, FIRST.0, FIRST.1).await;
        }
        let all = ask(&set, "get_task_results", r#"{"task_ids":[1,2,3]}"#).await;
        let all: serde_json::Value = all.structured.unwrap().to().unwrap();
        let told = |n: usize| all["tasks"][n]["answer"].as_str().map(str::len);
        assert_eq!([told(0), told(1), told(2)], [Some(64 * 1024), Some(64 * 1024), None]);
        let third = ask(&set, "get_task_results", r#"{"task_ids":[3]}"#).await;
        assert!(third.structured.unwrap().text().len() > 64 * 1024);
    });
}

#[test]
fn a_subagent_starts_none_in_the_background() {
    block_on(async {
        let set = agents(&Arc::new(Semaphore::new(0))).into_set();
        let call = ToolCall::new("c", "background_agents_start_task", Json::parse(DIG.1).unwrap());
        let mut cx = ToolCx::for_call(Arc::new(call));
        cx.origin = Arc::new(cx.origin.child(ParentCall::new("p", "main", &cx.origin)));
        let refused = set.call(cx).await.unwrap();
        assert_eq!(refused.error.unwrap().code, "depth_reached");
    });
}

#[test]
fn results_are_found_again_and_what_ran_is_lost() {
    block_on(async {
        let before = agents(&Arc::new(Semaphore::new(0))).into_set();
        let mut messages = Vec::new();
        for (name, arguments) in [DIG, FIRST, FAIL, FIRST, WAIT, ("get_all_tasks", "{}")] {
            let outcome = ask(&before, name, arguments).await;
            let call =
                ToolCall::new("c", format!("background_agents_{name}"), Json::parse(arguments).unwrap());
            messages.push(Message::ToolResult(outcome.to_message(&call, None, Time(0))));
        }
        let after = agents(&Arc::new(Semaphore::new(0)));
        let origin = Origin::default();
        after.restore_from(&origin, &messages);
        let tasks = after.tasks(&origin);
        let status: Vec<TaskStatus> = tasks.iter().map(|task| task.status).collect();
        assert_eq!(status, [TaskStatus::Completed, TaskStatus::Failed, TaskStatus::Lost]);
        assert_eq!(tasks[0].answer.as_deref(), Some("did dig"));
        let set = after.into_set();
        let lost = told(&ask(&set, "wait_for_first_completion", r#"{"task_ids":[3]}"#).await);
        assert!(lost.ends_with(r#""status":"lost"}]}"#), "{lost}");
        let again = told(&ask(&set, "continue_task", r#"{"task_id":3,"description":"again"}"#).await);
        assert!(again.contains("running"), "{again}");
        let next = told(&ask(&set, DIG.0, DIG.1).await);
        assert!(next.contains(r#""task_id":4"#), "numbers go on: {next}");
    });
}

/// How a run ends whose model makes these calls, one each iteration, with so many iterations.
fn run(calls: &[(&str, &str)], iterations: u32) -> (Arc<End>, BackgroundAgents) {
    block_on(async {
        let mut share = Amount::NONE;
        (share.iterations, share.tokens) = (3, 1_000);
        let agents = agents(&Arc::new(Semaphore::new(0))).share(share);
        let call = |(n, (name, arguments)): (usize, &(&str, &str))| {
            let name = format!("background_agents_{name}");
            AssistantMessage::calls([ToolCall::new(format!("c{n}"), name, Json::parse(arguments).unwrap())])
        };
        let steps = calls.iter().enumerate().map(call).chain([AssistantMessage::text("Done.")]);
        let model = ScriptedModel::new(steps.map(ModelStep::answer));
        let mut ports = Ports::new(Arc::new(model), Arc::new(VirtualClock::frozen(Time(0))));
        ports.tools = Arc::new(Toolbox::new(agents.clone().into_set().tools().iter().cloned()));
        let mut spec = RunSpec::default();
        spec.turn.limits.iterations = iterations;
        let mut machine = Run::new(Arc::new(spec), Origin::default(), Transcript::default());
        let start = Start::prompt(Message::user("Dig."));
        let end = drive(&mut machine, &ports, &Cancel::never(), start).await;
        // Aborted tasks take note of it.
        for _ in 0..100 {
            tokio::task::yield_now().await;
        }
        (end, agents)
    })
}

#[test]
fn law_3_a_task_has_its_share_set_aside_until_it_is_settled() {
    // Three requests and three iterations for the task; the last one that is left is asked without tools.
    let reason = |calls: &[(&str, &str)], iterations| run(calls, iterations).0.reason().as_str();
    assert_eq!(reason(&[WAIT, ("get_all_tasks", "{}")], 6), "max_iterations_reached");
    assert_eq!(reason(&[WAIT, ("get_all_tasks", "{}")], 7), "answer_finalized");
    // The task gets half of the four that are left, uses one, and gives one back.
    assert_eq!(reason(&[DIG, FIRST], 4), "max_iterations_reached");
    assert_eq!(reason(&[DIG, FIRST], 5), "answer_finalized");
}

#[test]
fn what_a_task_used_is_in_the_callers_report_once() {
    let (end, _) = run(&[DIG, FIRST, ("get_task_results", r#"{"task_ids":[1]}"#)], 20);
    let child = end.usage.of(Purpose::Child);
    assert_eq!((child.input_tokens, child.output_tokens), (Some(100), Some(10)));
}

#[test]
fn tasks_end_with_the_run_that_started_them() {
    let (_, agents) = run(&[WAIT], 20);
    let mut origin = Origin::default();
    origin.turn = Some("run.1".into());
    let tasks = agents.tasks(&origin);
    assert_eq!(tasks.len(), 1, "{tasks:?}");
    assert_eq!(tasks[0].error.as_ref().map(|fault| fault.code), Some(SubagentCode::Aborted));
}
