//! How the end of a run answers a prompt.

use agent_client_protocol::v1::schema::StopReason;

use harness::core::message::{AssistantMessage, Block, Cost, FinishReason};
use harness::runtime::ThreadConfig;

use crate::support::{Scripted, Step, call, config, threads, with_editor};

/// One prompt, and what it is answered with: the stop reason, or the error's message and data.
async fn answered(
    steps: impl IntoIterator<Item = Step>,
    change: impl FnOnce(&mut ThreadConfig),
) -> Result<StopReason, String> {
    let model = Scripted::new(steps);
    let mut config = config(&model);
    change(&mut config);
    let mut answered = Ok(StopReason::EndTurn);
    with_editor(threads(config), [], async |editor| {
        let session = editor.session().await;
        let stopped = editor.prompt(&session, "go").await;
        answered = stopped.map_err(|error| {
            format!("{} {} {}", error.code.value(), error.message, error.data.unwrap_or_default())
        });
    })
    .await;
    answered
}

fn finished(reason: FinishReason) -> Step {
    let mut answer = AssistantMessage::text("so far");
    answer.stop_reason = reason;
    Step::Give(Box::new(answer))
}

#[tokio::test]
async fn an_answer_ends_the_turn() {
    assert_eq!(answered([Step::Say("done")], |_| {}).await, Ok(StopReason::EndTurn));
}

#[tokio::test]
async fn a_refusal_is_one() {
    let mut refusal = AssistantMessage::text("");
    (refusal.content, refusal.stop_reason) = (vec![Block::refusal("No.")], FinishReason::Refusal);
    assert_eq!(answered([Step::Give(Box::new(refusal))], |_| {}).await, Ok(StopReason::Refusal));
}

#[tokio::test]
async fn an_answer_that_was_cut_off_says_so() {
    let steps = std::iter::repeat_with(|| finished(FinishReason::Length)).take(8);
    assert_eq!(answered(steps, |_| {}).await, Ok(StopReason::MaxTokens));
}

#[tokio::test]
async fn limits_of_calls_are_told_as_such() {
    let steps = || (0..4).map(|n| call(&format!("c{n}"), "read_note", &format!(r#"{{"path":"{n}"}}"#)));
    let stopped = answered(steps(), |config| {
        config.run.turn.limits.iterations = 2;
        config.run.turn.closing_step = false;
    });
    assert_eq!(stopped.await, Ok(StopReason::MaxTurnRequests));
}

#[tokio::test]
async fn what_has_no_word_in_the_protocol_is_an_error_with_ours() {
    let failed = answered([Step::Fail("no such model")], |_| {}).await.unwrap_err();
    assert!(failed.starts_with("-32603 no such model"), "{failed}");
    assert!(failed.contains(r#""stopReason":"runtime_error""#), "{failed}");
    let spent = answered([Step::Say("done")], |config| config.run.turn.limits.cost = Cost(0)).await;
    assert!(spent.as_ref().is_err_and(|error| error.contains("budget_reached")), "{spent:?}");
}
