//! Who may allow a call, and for how long.

use agent_client_protocol::v1::schema::StopReason;

use crate::support::{Reply, Scripted, Step, call, config, threads, with_editor};

const ASKED: &str = "asked c1 `delete_note` allow_once allow_always reject_once reject_always";

/// Two calls that need approval in two prompts; what was asked and what came of the calls.
async fn told(replies: impl IntoIterator<Item = Reply>) -> Vec<String> {
    let twice = || [call("c1", "delete_note", "{}"), Step::Say("")];
    let model = Scripted::new(twice().into_iter().chain(twice()));
    let mut told = Vec::new();
    with_editor(threads(config(&model)), replies, async |editor| {
        let session = editor.session().await;
        for _ in 0..2 {
            assert_eq!(editor.prompt(&session, "go").await.unwrap(), StopReason::EndTurn);
        }
        told = editor.lines(&session);
    })
    .await;
    told.retain(|line| !line.starts_with("call") && !line.contains("in_progress"));
    told
}

#[tokio::test]
async fn allowed_once_is_asked_again() {
    let told = told([Reply::Choose("allow_once"), Reply::Choose("allow_once")]).await;
    let again = ASKED.replace("c1", "c1-2");
    assert_eq!(told, [ASKED, "c1 completed `deleted`", &again, "c1-2 completed `deleted`"]);
}

#[tokio::test]
async fn allowed_for_good_is_not_asked_again() {
    let told = told([Reply::Choose("allow_always")]).await;
    assert_eq!(told, [ASKED, "c1 completed `deleted`", "c1-2 completed `deleted`"]);
}

#[tokio::test]
async fn refused_once_is_asked_again_and_the_model_goes_on() {
    let told = told([Reply::Choose("reject_once"), Reply::Choose("allow_once")]).await;
    assert_eq!(told.len(), 4, "{told:?}");
    assert!(told[1].starts_with("c1 failed") && told[1].contains("the user refuses this call"), "{told:?}");
    assert_eq!(told[3], "c1-2 completed `deleted`");
}

#[tokio::test]
async fn refused_for_good_is_not_asked_again() {
    let told = told([Reply::Choose("reject_always")]).await;
    assert_eq!(told.len(), 3, "{told:?}");
    assert!(told[2].starts_with("c1-2 failed") && told[2].contains("every call of this tool"), "{told:?}");
}

#[tokio::test]
async fn an_editor_that_cannot_ask_allows_nothing() {
    let told = told([Reply::Error, Reply::Choose("something_else")]).await;
    assert!(told[1].starts_with("c1 failed") && told[1].contains("could not ask"), "{told:?}");
    assert!(told[3].starts_with("c1-2 failed") && told[3].contains("was not offered"), "{told:?}");
}

#[tokio::test]
async fn the_call_is_known_before_it_is_asked_about() {
    let model = Scripted::new([call("c1", "delete_note", "{}"), Step::Say("")]);
    with_editor(threads(config(&model)), [Reply::Choose("allow_once")], async |editor| {
        let session = editor.session().await;
        editor.prompt(&session, "go").await.unwrap();
        assert_eq!(editor.lines(&session)[..2], ["call c1 Delete pending `delete_note` {}", ASKED]);
    })
    .await;
}

#[tokio::test]
async fn a_question_that_is_closed_stops_the_work() {
    let model = Scripted::new([call("c1", "delete_note", "{}"), Step::Say("never")]);
    with_editor(threads(config(&model)), [Reply::Cancelled], async |editor| {
        let session = editor.session().await;
        assert_eq!(editor.prompt(&session, "go").await.unwrap(), StopReason::Cancelled);
        assert!(!editor.lines(&session).iter().any(|line| line.contains("deleted") || line.contains("says")));
    })
    .await;
}

#[tokio::test]
async fn a_question_that_nobody_answers_ends_with_the_cancellation() {
    let model = Scripted::new([call("c1", "delete_note", "{}"), Step::Say("next")]);
    with_editor(threads(config(&model)), [Reply::Never], async |editor| {
        let session = editor.session().await;
        let act = async {
            editor.until(&session, "asked").await;
            editor.cancel(&session);
        };
        let (stopped, ()) = tokio::join!(editor.prompt(&session, "go"), act);
        assert_eq!(stopped.unwrap(), StopReason::Cancelled);
        assert!(!editor.lines(&session).iter().any(|line| line.contains("deleted")));
        assert_eq!(editor.prompt(&session, "and now?").await.unwrap(), StopReason::EndTurn);
    })
    .await;
}

#[tokio::test]
async fn fault_03_a_permission_shows_the_whole_call_and_names_it() {
    let arguments = r#"{"account":"ATTACKER","amount":12345678901234567890123,"note":"x"}"#;
    let model = Scripted::new([call("c1", "delete_note", arguments), Step::Say("")]);
    with_editor(threads(config(&model)), [Reply::Choose("reject_once")], async |editor| {
        let session = editor.session().await;
        editor.prompt(&session, "go").await.unwrap();
        let asked = editor.asks().remove(0);
        let shown = &asked["toolCall"];
        assert_eq!(
            (&shown["rawInput"]["account"], &shown["rawInput"]["note"]),
            (&"ATTACKER".into(), &"x".into())
        );
        let content = shown["content"].to_string();
        assert!(content.contains("`delete_note` needs approval"), "{content}");
        assert!(content.contains("12345678901234567890123"), "the exact number: {content}");
        let approval = &asked["_meta"]["harness"];
        assert_eq!((&approval["callId"], &approval["agent"]), (&"c1".into(), &"main".into()));
        assert_eq!(approval["digest"].as_str().map(str::len), Some(64), "{approval}");
        assert!(approval["approvalId"].as_str().unwrap().starts_with("apr-"), "{approval}");
    })
    .await;
}
