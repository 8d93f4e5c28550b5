//! Continuations that wait: how long, how often, and for what.

use harness_core::continuation::{CallDecision, Continuation, Resume};
use harness_core::message::Message;
use harness_core::{End, Json, Millis, Time};
use harness_session::continuation::{
    ContinuationStore, Continuations, Delivery, DeliveryStatus, Denial, FileContinuations,
    MemoryContinuations, Rules, Status, StoreError, Trigger, WaitFor,
};

const NOW: Time = Time(1_767_225_600_000);
const HOUR: i64 = 3_600_000;

fn json<T: serde::de::DeserializeOwned>(text: &str) -> T {
    Json::parse(text).unwrap().to().unwrap()
}

fn stopped(kind: &str, reason: &str) -> Continuation {
    json(&format!(
        r#"{{"version":1,"id":"t-1:{kind}","type":"{kind}","createdAt":0,"turnId":"t-1","sessionId":"s-1",
            "stopReason":"{reason}","transcriptLen":2,"iteration":1,"toolCallCount":0,
            "usage":{{"modelCalls":1,"toolCalls":0}}}}"#
    ))
}

fn question() -> Continuation {
    stopped("clarification", "clarification_required")
}

fn approval() -> Continuation {
    stopped("approval", "approval_required")
}

fn deferral() -> Continuation {
    stopped("deferred", "timeout_reached")
}

fn end(reason: &str, continuation: Option<&Continuation>) -> End {
    let continuation = continuation.map_or("null".to_owned(), |c| Json::of(c).unwrap().text().to_owned());
    json(&format!(
        r#"{{"stop":{{"reason":"{reason}"}},"iterations":1,"turns":1,"usage":{{}},"elapsed":0,
            "continuation":{continuation}}}"#
    ))
}

fn reply() -> Trigger {
    Trigger::UserReply { message: Box::new(Message::user("the red one")) }
}

fn decided(decision: CallDecision) -> Trigger {
    Trigger::Approval { decisions: vec![decision] }
}

fn after(ms: i64) -> Time {
    Time(NOW.0 + ms)
}

type Memory = Continuations<MemoryContinuations>;

fn waiting() -> Memory {
    Continuations::new(MemoryContinuations::new())
}

async fn created(waiting: &Memory, continuation: Continuation) -> String {
    waiting.create(continuation, NOW).await.unwrap().id
}

#[tokio::test]
async fn each_kind_waits_for_its_own_and_for_its_time() {
    for (continuation, waits, hours) in [
        (question(), WaitFor::UserReply, 1),
        (approval(), WaitFor::ApprovalResolution { approval_id: "t-1:approval".into() }, 24),
        (deferral(), WaitFor::ScheduledWake, 1),
    ] {
        let record = waiting().create(continuation, NOW).await.unwrap();
        assert_eq!((record.wait_for, record.bounds.expires_at), (waits, after(hours * HOUR)));
        assert_eq!(record.id, format!("cont_t-1_{}", NOW.0));
        assert_eq!((record.bounds.max_resume_attempts, record.bounds.resume_attempts), (3, 0));
    }
}

#[tokio::test]
async fn what_came_is_what_the_work_is_resumed_with() {
    let waiting = waiting();
    let id = created(&waiting, question()).await;
    let claim = waiting.claim(&id, reply(), after(1)).await.unwrap();
    assert_eq!(claim.turn_id, format!("{id}:resume:1").as_str());
    assert_eq!((claim.continuation, claim.resume), (question(), Resume::answer("the red one")));
    let record = waiting.finish(&id, Ok(&end("answer_finalized", None)), after(2)).await.unwrap();
    assert_eq!(
        (record.status, record.terminal_reason.as_deref()),
        (Status::Completed, Some("answer_finalized"))
    );
}

/// Why a record cannot be taken up.
#[track_caller]
fn check(found: Result<impl std::fmt::Debug, StoreError>, kind: &str, text: &str) {
    let error = found.unwrap_err();
    assert_eq!((error.kind(), error.to_string().as_str()), (kind, text));
}

#[tokio::test]
async fn what_does_not_fit_leaves_the_record_as_it_was() {
    let waiting = waiting();
    check(
        waiting.claim("x", reply(), NOW).await,
        "continuation.not_found",
        "there is no continuation record `x`",
    );
    let id = created(&waiting, approval()).await;
    let before = waiting.get(&id, NOW).await.unwrap();
    let text = format!("continuation record `{id}` waits for approval_resolution, and was given user_reply");
    check(waiting.claim(&id, reply(), NOW).await, "continuation.trigger_mismatch", &text);
    assert_eq!(waiting.get(&id, NOW).await.unwrap(), before);
}

#[tokio::test]
async fn only_one_gets_hold_of_a_record() {
    let waiting = waiting();
    let id = created(&waiting, question()).await;
    waiting.claim(&id, reply(), NOW).await.unwrap();
    let text = format!("continuation record `{id}` is resuming");
    check(waiting.claim(&id, reply(), NOW).await, "continuation.already_terminal", &text);

    let mut stale = waiting.store().get(&id).await.unwrap().unwrap();
    stale.revision = 2;
    let text = format!("continuation record `{id}` was changed by somebody else at the same time");
    check(waiting.store().put(stale).await, "continuation.conflict", &text);
}

#[tokio::test]
async fn a_resumption_that_never_ends_is_given_to_another_after_its_lease() {
    let waiting = waiting();
    let id = created(&waiting, question()).await;
    for attempt in 0..3 {
        let at = after(attempt * HOUR / 2);
        waiting.claim(&id, reply(), at).await.unwrap();
    }
    let text = format!("continuation record `{id}` was tried 3 times, which is all that is permitted");
    check(waiting.claim(&id, reply(), after(2 * HOUR)).await, "continuation.attempts_used", &text);
}

#[tokio::test]
async fn after_its_time_a_record_is_expired() {
    let waiting = waiting();
    let id = created(&waiting, question()).await;
    assert_eq!(waiting.get(&id, after(HOUR - 1)).await.unwrap().unwrap().status, Status::Pending);
    let text = format!("continuation record `{id}` has expired");
    check(waiting.claim(&id, reply(), after(HOUR)).await, "continuation.expired", &text);
    assert_eq!(waiting.get(&id, after(HOUR)).await.unwrap().unwrap().status, Status::Expired);
    let mut rules = Rules::default();
    rules.clarification = Millis(5);
    let short = self::waiting().with_rules(rules);
    let id = created(&short, question()).await;
    assert_eq!(short.get(&id, after(5)).await.unwrap().unwrap().status, Status::Expired);
}

#[tokio::test]
async fn a_refused_approval_is_told_to_the_model_or_ends_the_matter() {
    let denied = || decided(CallDecision::denied("c1", "no"));
    let waiting = waiting();
    let id = created(&waiting, approval()).await;
    let claim = waiting.claim(&id, denied(), NOW).await.unwrap();
    assert_eq!(claim.resume, Resume::decided([CallDecision::denied("c1", "no")]));

    let mut rules = Rules::default();
    rules.denial = Denial::Cancel;
    let waiting = self::waiting().with_rules(rules);
    let id = created(&waiting, approval()).await;
    let text = format!("continuation record `{id}` is cancelled");
    check(waiting.claim(&id, denied(), NOW).await, "continuation.already_terminal", &text);
    let record = waiting.get(&id, NOW).await.unwrap().unwrap();
    assert_eq!(record.terminal_reason.as_deref(), Some("approval_denied"));
}

#[tokio::test]
async fn work_that_stops_again_waits_again() {
    let waiting = waiting();
    let id = created(&waiting, question()).await;
    waiting.claim(&id, reply(), after(1)).await.unwrap();
    let again = end("approval_required", Some(&approval()));
    let record = waiting.finish(&id, Ok(&again), after(2)).await.unwrap();
    assert_eq!((record.status, record.continuation), (Status::Pending, approval()));
    assert_eq!((record.bounds.resume_attempts, record.bounds.expires_at), (1, after(2 + 24 * HOUR)));
    assert!(waiting.claim(&id, decided(CallDecision::granted("c1")), after(3)).await.is_ok());
}

#[tokio::test]
async fn work_that_fails_is_over() {
    for (ended, reason) in [
        (Ok(end("runtime_error", None)), "runtime_error"),
        (Err("the session is in use".to_owned()), "resume_runtime_error: the session is in use"),
    ] {
        let waiting = waiting();
        let id = created(&waiting, question()).await;
        waiting.claim(&id, reply(), NOW).await.unwrap();
        let record = waiting.finish(&id, ended.as_ref().map_err(Clone::clone), NOW).await.unwrap();
        assert_eq!((record.status, record.terminal_reason.as_deref()), (Status::Failed, Some(reason)));
    }
}

#[tokio::test]
async fn a_newer_stop_of_a_session_supersedes_what_waits() {
    let waiting = waiting();
    let first = created(&waiting, question()).await;
    let second = waiting.create(approval(), after(1)).await.unwrap().id;
    let status = async |id: &str| waiting.get(id, after(1)).await.unwrap().unwrap().status;
    assert_eq!((status(&first).await, status(&second).await), (Status::Superseded, Status::Pending));
    waiting.stop(&second, "the user left", after(2)).await.unwrap();
    let text = format!("continuation record `{second}` is cancelled");
    check(waiting.stop(&second, "again", after(3)).await, "continuation.already_terminal", &text);
}

#[tokio::test]
async fn an_outside_operation_is_waited_for_by_its_id() {
    let waiting = waiting();
    let wait = |id: &str| WaitFor::ExternalResult { operation_id: id.into() };
    let target = Delivery::to(Json::string("inbox"));
    let record = waiting.create_waiting(deferral(), wait("op-1"), Some(target), NOW).await.unwrap();
    let result = |id: &str| Trigger::ExternalResult {
        operation_id: id.into(),
        message: Box::new(Message::user("the export is ready")),
    };
    let text = format!(
        "continuation record `{}` waits for external_result `op-1`, and was given external_result `op-2`",
        record.id
    );
    check(waiting.claim(&record.id, result("op-2"), NOW).await, "continuation.trigger_mismatch", &text);
    waiting.claim(&record.id, result("op-1"), NOW).await.unwrap();
    waiting.finish(&record.id, Ok(&end("answer_finalized", None)), NOW).await.unwrap();
    let told = waiting.delivered(&record.id, true, NOW).await.unwrap();
    assert_eq!(told.delivery.unwrap().status, DeliveryStatus::Delivered);
    let text = "a continuation of kind clarification cannot wait for external_result";
    check(waiting.create_waiting(question(), wait("x"), None, NOW).await, "continuation.wrong_wait", text);
}

#[tokio::test]
async fn files_keep_records_between_processes() {
    let folder = tempfile::tempdir().unwrap();
    let open = || Continuations::new(FileContinuations::open(folder.path().join("waiting")).unwrap());
    let mut odd = approval();
    odd.turn_id = "../t/1".into();
    let id = open().create(odd.clone(), NOW).await.unwrap().id;
    let found = open().store().of_session("s-1").await.unwrap();
    assert_eq!(found.iter().map(|record| &record.id).collect::<Vec<_>>(), [&id]);
    assert_eq!(open().store().of_session("s-2").await.unwrap(), []);

    let claim = open().claim(&id, decided(CallDecision::granted("c1")), NOW).await.unwrap();
    assert_eq!(claim.continuation, odd);
    let mut stale = found.into_iter().next().unwrap();
    stale.revision += 1;
    assert_eq!(open().store().put(stale).await.unwrap_err().kind(), "continuation.conflict");
    assert!(open().store().delete(&id).await.unwrap());
    assert!(!open().store().delete(&id).await.unwrap());
    assert_eq!(open().get(&id, NOW).await.unwrap(), None);
}

#[tokio::test]
async fn a_file_that_is_no_record_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let store = FileContinuations::open(folder.path()).unwrap();
    let waiting = Continuations::new(store.clone());
    let record = waiting.create(question(), NOW).await.unwrap();
    let path = folder.path().join(format!("{}.json", record.id));
    let newer = std::fs::read_to_string(&path).unwrap().replacen(r#""version":1"#, r#""version":2"#, 1);
    std::fs::write(&path, newer).unwrap();
    let error = store.get(&record.id).await.unwrap_err();
    assert_eq!(error.kind(), "continuation.unreadable");
    assert!(error.to_string().contains("continuation record version 2 is not supported"), "{error}");
}
