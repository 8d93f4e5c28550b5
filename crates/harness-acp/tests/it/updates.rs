//! What an editor is told, and in which order.

use std::sync::Arc;

use agent_client_protocol::v1::schema::StopReason;
use harness::core::Json;
use harness::core::message::{AssistantMessage, Block, ToolCall};
use harness::core::tool::Toolbox;
use harness::tools::{Keep, WorkTools};

use crate::support::{Scripted, Step, call, config, threads, tools, with_editor};

/// Prompts once with `go`, and compares what is told.
#[track_caller]
fn check(steps: impl IntoIterator<Item = Step>, expected: &[&str]) {
    let model = Scripted::new(steps);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let lines = runtime.block_on(async {
        let mut lines = Vec::new();
        with_editor(threads(config(&model)), [], async |editor| {
            let session = editor.session().await;
            assert_eq!(editor.prompt(&session, "go").await.unwrap(), StopReason::EndTurn);
            lines = editor.lines(&session);
        })
        .await;
        lines
    });
    assert_eq!(lines, expected);
}

#[test]
fn an_answer_comes_in_pieces() {
    check([Step::Say("Hello")], &["m1 says Hel", "m1 says lo"]);
}

#[test]
fn an_answer_that_comes_at_once_is_told_once() {
    let mut answer = AssistantMessage::text("Done.");
    answer.content.insert(0, Block::thinking("hm"));
    check([Step::Give(Box::new(answer))], &["m1 thinks hm", "m1 says Done."]);
}

#[test]
fn a_call_is_told_from_its_wish_to_its_end() {
    check(
        [call("c1", "read_note", r#"{"path":"a"}"#), Step::Say("ok")],
        &[
            r#"call c1 Read pending `read_note: a` {"path":"a"}"#,
            "c1 in_progress",
            "c1 completed `text of a`",
            "m2 says o",
            "m2 says k",
        ],
    );
}

#[test]
fn a_call_that_fails_says_why() {
    check(
        [call("c1", "broken", "{}"), Step::Say("")],
        &["call c1 Other pending `broken` {}", "c1 in_progress", "c1 failed `out of paper`"],
    );
}

#[test]
fn a_call_that_never_runs_is_over_too() {
    check(
        [call("c1", "unheard_of", "{}"), Step::Say("")],
        &[
            "call c1 Other pending `unheard_of` {}",
            "c1 failed `There is no tool named `unheard_of`. Available: `read_note`, `delete_note`, `slow`, `broken`.`",
        ],
    );
}

#[tokio::test]
async fn ids_that_a_provider_repeats_become_unique() {
    let again = || call("c1", "read_note", r#"{"path":"a"}"#);
    let model = Scripted::new([again(), again(), Step::Say("")]);
    with_editor(threads(config(&model)), [], async |editor| {
        let session = editor.session().await;
        editor.prompt(&session, "go").await.unwrap();
        let lines = editor.lines(&session);
        let ends: Vec<&String> = lines.iter().filter(|line| line.contains("completed")).collect();
        assert_eq!(ends, ["c1 completed `text of a`", "c1-2 completed `text of a`"]);
    })
    .await;
}

#[tokio::test]
async fn two_calls_of_one_answer_keep_apart() {
    let calls = ["a", "b"].map(|path| {
        let arguments = Json::parse(&format!(r#"{{"path":"{path}"}}"#)).unwrap();
        ToolCall::new(format!("c-{path}"), "read_note", arguments)
    });
    let model = Scripted::new([Step::Give(Box::new(AssistantMessage::calls(calls))), Step::Say("")]);
    with_editor(threads(config(&model)), [], async |editor| {
        let session = editor.session().await;
        editor.prompt(&session, "go").await.unwrap();
        let lines = editor.lines(&session);
        for path in ["a", "b"] {
            let of: Vec<String> =
                lines.iter().filter(|line| line.contains(&format!("c-{path}"))).cloned().collect();
            assert_eq!(
                of,
                [
                    format!(r#"call c-{path} Read pending `read_note: {path}` {{"path":"{path}"}}"#),
                    format!("c-{path} in_progress"),
                    format!("c-{path} completed `text of {path}`"),
                ]
            );
        }
    })
    .await;
}

#[tokio::test]
async fn work_items_are_the_plan_of_the_editor() {
    let model = Scripted::new([
        call("c1", "work_item_add", r#"{"items":[{"title":"look"},{"title":"write","priority":"high"}]}"#),
        call("c2", "work_item_update", r#"{"item_id":"00000001","status":"done"}"#),
        Step::Say(""),
    ]);
    let mut config = config(&model);
    let clock = Arc::clone(&config.ports.clock);
    config.ports.tools = Arc::new(WorkTools::new(Keep::Thread, clock).into_list());
    with_editor(threads(config), [], async |editor| {
        let session = editor.session().await;
        editor.prompt(&session, "go").await.unwrap();
        let plans: Vec<String> =
            editor.lines(&session).into_iter().filter(|line| line.starts_with("plan")).collect();
        assert_eq!(plans, ["plan Pending look Pending write", "plan Completed look Pending write"]);
    })
    .await;
}

#[tokio::test]
async fn progress_of_a_tool_is_shown_while_it_runs() {
    let model = Scripted::new([call("c1", "slow", "{}"), Step::Say("")]);
    let mut config = config(&model);
    config.ports.tools = Arc::new(Toolbox::new(tools()));
    with_editor(threads(config), [], async |editor| {
        let session = editor.session().await;
        let act = async {
            editor.until(&session, "c1 in_progress `half`").await;
            editor.cancel(&session);
        };
        let (stopped, ()) = tokio::join!(editor.prompt(&session, "go"), act);
        assert_eq!(stopped.unwrap(), StopReason::Cancelled);
    })
    .await;
}
