//! The work-item tools, as a model meets them.

use std::sync::Arc;

use harness_control::work::{WorkLedger, WorkLimits};
use harness_core::message::ToolCall;
use harness_core::port::Stateful;
use harness_core::testing::VirtualClock;
use harness_core::tool::ToolCx;
use harness_core::{Json, Origin, Time};
use harness_tools::{Keep, WorkTools, work_complete};

fn tools() -> WorkTools {
    WorkTools::new(Keep::Run, Arc::new(VirtualClock::still(Time(0))))
}

/// What the last of some calls says.
async fn said(tools: &WorkTools, calls: &[(&str, &str)]) -> String {
    let set = tools.clone().into_set();
    let mut said = String::new();
    for (name, arguments) in calls {
        let tool = set.tools().iter().find(|tool| tool.tool_def().name == *name).expect("a tool");
        let call = ToolCall::new("c", *name, Json::parse(arguments).expect("JSON"));
        let outcome = tool.call_boxed(ToolCx::for_call(Arc::new(call))).await;
        said = match outcome.error {
            Some(error) => format!("error: {}", error.message),
            None => outcome.content.iter().filter_map(|block| block.as_text()).collect(),
        };
    }
    said
}

#[track_caller]
fn check(calls: &[(&str, &str)], expected: &str) {
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    assert_eq!(runtime.block_on(said(&tools(), calls)), expected);
}

const ADD: (&str, &str) = (
    "work_item_add",
    r#"{"items":[{"title":"Report","role":"deliverable"},{"title":"Audit","role":"control","priority":"high"}]}"#,
);

#[test]
fn items_are_added_stored_and_listed() {
    check(
        &[ADD],
        "Added [00000001] Report (role: deliverable, priority: medium)\n\
         Added [00000002] Audit (role: control, priority: high)",
    );
    check(
        &[
            ADD,
            ("work_item_set_artifact", r#"{"item_id":"00000001","artifact":"Here is the report:\n\nA\nB"}"#),
            ("work_item_update", r#"{"items":[{"item_id":"00000001","status":"done"}]}"#),
            ("work_item_list", "{}"),
        ],
        "Work items (50% complete):\n  [x] [00000001] Report\n      Artifact: A B\n  [ ] [00000002] Audit (high)\n\
         In all: 1 done, 1 pending",
    );
}

#[test]
fn an_artifact_can_be_read_back_whole() {
    check(
        &[
            ADD,
            ("work_item_set_artifact", r#"{"item_id":"00000001","artifact":"A\nB"}"#),
            ("work_item_get", r#"{"item_id":"00000001"}"#),
        ],
        "[ ] [00000001] Report\nArtifact (deliverable):\nA\nB",
    );
}

#[test]
fn what_is_wrong_is_said_with_what_to_do() {
    check(
        &[ADD, ("work_item_update", r#"{"item_id":"00000001","status":"finished"}"#)],
        "error: `finished` is not a status; use one of pending, in_progress, done, skipped",
    );
    check(
        &[ADD, ("work_item_get", r#"{"item_id":"7"}"#)],
        "error: work item [7] not found; work_item_list shows what there is",
    );
    check(
        &[ADD, ("work_item_set_artifact", r#"{"item_id":"00000002","artifact":"fine"}"#)],
        "error: invalid control artifact: expected ident at line 1 column 2. It must look like \
         {\"verdict\": \"pass\"|\"fail\", \"checks\": [{\"name\": \"...\", \"result\": \"pass\"|\"fail\", \
         \"detail\": \"...\"}], \"summary\": \"...\"}",
    );
    check(&[("work_item_add", "{}")], "error: give `title`, or `items` with at least one item");
    check(&[("work_item_add", r#"{"titel":"x"}"#)], "error: give `title`, or `items` with at least one item");
}

#[test]
fn several_changes_happen_together_or_not_at_all() {
    let tools = tools().with_limits({
        let mut limits = WorkLimits::default();
        limits.items = 1;
        limits
    });
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    assert_eq!(runtime.block_on(said(&tools, &[ADD])), "error: the limit of 1 work items is reached");
    assert_eq!(tools.ledger(&Origin::default()), WorkLedger::default());
}

#[test]
fn a_call_that_fails_changes_no_item() {
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    let set = tools().into_set();
    let mut ledger = WorkLedger::default();
    let changed = |(name, arguments): (&str, &str), ledger: &mut WorkLedger| {
        let tool = set.tools().iter().find(|tool| tool.tool_def().name == *name).expect("a tool");
        let call = Arc::new(ToolCall::new("c", name, Json::parse(arguments).expect("JSON")));
        let outcome = runtime.block_on(tool.call_boxed(ToolCx::for_call(Arc::clone(&call))));
        ledger.fold(&outcome.to_message(&call, None, Time(0))).len()
    };
    assert_eq!(changed(ADD, &mut ledger), 2);
    assert_eq!(changed(("work_item_update", r#"{"item_id":"99","status":"done"}"#), &mut ledger), 0);
    let artifact = r#"{"item_id":"00000002","artifact":"{\"verdict\":\"maybe\"}"}"#;
    assert_eq!(changed(("work_item_set_artifact", artifact), &mut ledger), 0);
}

#[test]
fn a_stored_ledger_goes_on() {
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    let (before, after, origin) = (tools(), tools(), Origin::default());
    runtime.block_on(said(&before, &[ADD]));
    after.restore(&origin, before.ledger(&origin));
    let update = ("work_item_update", r#"{"item_id":"00000002","status":"skipped"}"#);
    assert_eq!(runtime.block_on(said(&after, &[update])), "[00000002] is skipped.\n1 left, 50% complete.");
}

#[test]
fn a_ledger_is_rebuilt_from_the_results_of_the_tools() {
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    let (tools, origin) = (tools(), Origin::default());
    let calls = [
        ADD,
        (
            "work_item_set_artifact",
            r#"{"item_id":"00000001","artifact":"Let me see:\nv1","role":"deliverable"}"#,
        ),
        ("work_item_update", r#"{"item_id":"00000001","status":"done"}"#),
        ("work_item_flag_revision", r#"{"item_id":"00000001","reason":"wrong year"}"#),
        ("work_item_update", r#"{"item_id":"99","status":"done"}"#),
        ("work_item_set_artifact", r#"{"item_id":"00000003","artifact":"v2"}"#),
        ("work_item_update", r#"{"item_id":"00000003","status":"done"}"#),
        ("work_item_list", "{}"),
    ];
    let set = tools.clone().into_set();
    let mut rebuilt = WorkLedger::default();
    for (name, arguments) in calls {
        let tool = set.tools().iter().find(|tool| tool.tool_def().name == name).expect("a tool");
        let call = Arc::new(ToolCall::new("c", name, Json::parse(arguments).expect("JSON")));
        let outcome = runtime.block_on(tool.call_boxed(ToolCx::for_call(Arc::clone(&call))));
        rebuilt.fold(&outcome.to_message(&call, None, Time(0)));
        assert_eq!(rebuilt, tools.ledger(&origin), "after {name}");
    }
    assert_eq!(rebuilt.deliverables().len(), 1, "the revision took the place of what it revises");
}

#[test]
fn the_completion_signal_says_what_was_done_or_what_is_wrong_with_it() {
    #[track_caller]
    fn check(arguments: &str, expected: &str) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        let call = ToolCall::new("c", "work_complete", Json::parse(arguments).expect("JSON"));
        let outcome = runtime.block_on(work_complete().call_boxed(ToolCx::for_call(Arc::new(call))));
        let said: String = outcome.content.iter().filter_map(|block| block.as_text()).collect();
        assert_eq!(outcome.error.map_or(said, |error| error.message), expected);
    }
    assert!(work_complete().tool_def().terminal, "it ends the turn");
    check(r#"{"summary":" Counted. "}"#, "Work recorded as complete: Counted.");
    check(r#"{"summary":" "}"#, "`summary` is blank; say what was done");
    check(r#"{"summary":"x","confidence":7}"#, "`confidence` is 7, and must be between 0 and 1");
}

#[test]
fn each_run_or_thread_has_its_own_list() {
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    let listed = |tools: &WorkTools, run: &str, add: bool| {
        let set = tools.clone().into_list();
        let (name, arguments) =
            if add { ("work_item_add", r#"{"title":"scan"}"#) } else { ("work_item_list", "{}") };
        let tool = set.tools().iter().find(|tool| tool.tool_def().name == name).expect("a tool");
        let call = ToolCall::new("c", name, Json::parse(arguments).expect("JSON"));
        let mut cx = ToolCx::for_call(Arc::new(call));
        let mut origin = Origin::default();
        (origin.thread, origin.run) = (Some("thread".into()), Some(run.into()));
        cx.origin = Arc::new(origin);
        let outcome = runtime.block_on(tool.call_boxed(cx));
        outcome.content.iter().filter_map(|block| block.as_text()).collect::<String>()
    };
    let (of_run, of_thread) = (tools(), WorkTools::new(Keep::Thread, Arc::new(VirtualClock::still(Time(0)))));
    for (tools, is_shared) in [(of_run, false), (of_thread, true)] {
        listed(&tools, "a", true);
        assert_eq!(tools.is_of_thread(), is_shared);
        assert_eq!(listed(&tools, "b", false).contains("scan"), is_shared);
        assert!(listed(&tools, "a", false).contains("scan"));
    }
}

#[test]
fn a_list_is_the_same_in_another_process() {
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    let (first, second, origin) = (tools(), tools(), Origin::default());
    assert_eq!(first.save_state(&origin), None, "no tool was called yet");
    runtime.block_on(said(&first, &[ADD]));
    second.restore_state(&origin, first.save_state(&origin).as_ref());
    let list = [("work_item_list", "{}")];
    assert_eq!(runtime.block_on(said(&second, &list)), runtime.block_on(said(&first, &list)));
    second.restore_state(&origin, None);
    assert_eq!(second.save_state(&origin), None);
}
