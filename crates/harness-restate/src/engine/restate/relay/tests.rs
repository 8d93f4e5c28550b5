//! A worker's outbox and the hubs of front ends, first without and then with sockets between them.

use std::sync::Arc;
use std::time::Duration;

use harness::core::message::{Block, ToolCall};
use harness::core::port::DeltaPart;
use harness::core::{Cancel, Json as CoreJson, OpId, ThreadId};
use tokio::net::TcpListener;
use tokio::time::Instant;

use super::outbox::{Batch, Lane};
use super::*;
use crate::durable::DeltaReceiver as _;
use crate::durable::deltas::AnswerFeed as _;

fn answer(thread: &str, log: u64, attempt: u64) -> AnswerId {
    AnswerId { thread: thread.into(), log, shown: log + 2, op: OpId(log), attempt }
}

fn text(text: &str) -> DeltaPart {
    DeltaPart::Text(text.to_owned())
}

/// The texts of a batch, with the number of the first: `THREAD FROM: TEXT, TEXT`.
fn answers(batch: Option<&Batch>) -> Vec<String> {
    let pushed = batch.map(|batch| &*batch.push.answers).unwrap_or_default();
    let line = |pushed: &PushedAnswer| {
        let parts: Vec<_> = pushed.parts.iter().map(said).collect();
        format!("{} {}: {}", pushed.id.thread, pushed.from, parts.join(", "))
    };
    pushed.iter().map(line).collect()
}

fn said(part: &DeltaPart) -> &str {
    if let DeltaPart::Text(text) = part { text } else { "" }
}

fn changed(batch: Option<&Batch>) -> Vec<&str> {
    batch.map(|batch| batch.push.changed.iter().map(ThreadId::as_str).collect()).unwrap_or_default()
}

/// Hands a batch over.
fn hand_over(outbox: &Outbox, lane: &mut Lane, hub: &RelayHub, now: Instant) -> Vec<String> {
    let Some(batch) = outbox.batch(lane, now) else { return Vec::new() };
    let lines = answers(Some(&batch));
    let Batch { push, .. } = &batch;
    let copy = serde_json::from_str(&serde_json::to_string(push).unwrap()).unwrap();
    let reply = hub.take(copy);
    lane.sent(&batch, reply, now);
    lines
}

/// The text that a reader has.
fn read(reader: &FeedReader) -> String {
    let parts = reader.answer(|_| 0).map(|(_, parts)| parts).unwrap_or_default();
    parts.iter().map(said).collect()
}

#[test]
fn progress_of_tools_goes_to_readers() {
    let (outbox, hub, now) = (Outbox::default(), RelayHub::new(), Instant::now());
    let report = |thread: &str, text: &str| {
        let call = Arc::new(ToolCall::new("c1", "look", CoreJson::empty_object()));
        ToolProgress { thread: thread.into(), shown: 3, call, content: vec![Block::text(text)] }
    };
    outbox.progress(report("t1", "before the front end came"));
    let (mut lane, reader) = (outbox.lane(), hub.reader(&"t1".into()));
    outbox.progress(report("t1", "a half"));
    outbox.progress(report("t2", "nobody looks"));
    hand_over(&outbox, &mut lane, &hub, now);
    assert_eq!(reader.report(0), Some((0, report("t1", "a half"))));
    assert_eq!(reader.report(1), None);
    assert_eq!(hub.reader(&"t1".into()).reported(), 1, "a later reader does not have it");
    outbox.progress(report("t2", "nobody looks"));
    assert!(outbox.batch(&mut lane, now).is_none(), "the front end has no reader of it");
    assert!(lane.asks_at().is_some());
}

#[test]
fn deltas_are_joined_until_they_are_sent() {
    let (outbox, mut lane, hub, now) = (Outbox::default(), Lane::default(), RelayHub::new(), Instant::now());
    let (reader, id) = (hub.reader(&"t1".into()), answer("t1", 4, 0));
    outbox.start(&id);
    assert!(outbox.batch(&mut lane, now).is_none());
    for part in ["Te", "a "] {
        outbox.delta(&id, text(part));
    }
    assert_eq!(hand_over(&outbox, &mut lane, &hub, now), ["t1 0: Tea "]);
    for part in ["and", " milk"] {
        outbox.delta(&id, text(part));
    }
    outbox.delta(&id, DeltaPart::Thinking("hm".to_owned()));
    outbox.delta(&id, text("."));
    outbox.end(&id);
    assert_eq!(hand_over(&outbox, &mut lane, &hub, now), ["t1 1: and milk, , ."]);
    assert!(outbox.batch(&mut lane, now).is_none());
    assert_eq!(read(&reader), "Tea and milk.");
}

#[test]
fn about_a_thread_without_readers_a_front_end_is_asked_in_pauses() {
    let (outbox, mut lane, hub, now) = (Outbox::default(), Lane::default(), RelayHub::new(), Instant::now());
    let (id, after) = (answer("t1", 4, 0), |millis| now + Duration::from_millis(millis));
    outbox.start(&id);
    outbox.delta(&id, text("Tea"));
    assert_eq!(hand_over(&outbox, &mut lane, &hub, now), ["t1 0: Tea"]);
    outbox.delta(&id, text(" and"));
    // Each pause is twice the one before, up to 1 s, and a question has no text.
    for (asked, next) in [(100, 300), (300, 700), (700, 1_500), (1_500, 2_500), (2_500, 3_500)] {
        assert!(outbox.batch(&mut lane, after(asked - 1)).is_none());
        assert_eq!(lane.asks_at(), Some(after(asked)));
        let batch = outbox.batch(&mut lane, after(asked)).unwrap();
        assert_eq!((answers(Some(&batch)).len(), changed(Some(&batch))), (0, vec!["t1"]), "{asked}");
        let reply = hub.take(Push { changed: batch.push.changed.clone(), ..Push::default() });
        lane.sent(&batch, reply, after(asked));
        assert!(outbox.batch(&mut lane, after(asked)).is_none());
        assert_eq!(lane.asks_at(), Some(after(next)));
    }
    // A reader that comes later has the whole answer.
    let reader = hub.reader(&"t1".into());
    assert_eq!(hand_over(&outbox, &mut lane, &hub, after(3_500)), [""; 0]);
    assert_eq!(hand_over(&outbox, &mut lane, &hub, after(3_500)), ["t1 0: Tea,  and"]);
    assert_eq!((&*read(&reader), reader.changes()), ("Tea and", 1));
    drop(reader);
    outbox.delta(&id, text(" milk"));
    assert_eq!(hand_over(&outbox, &mut lane, &hub, after(3_530)), ["t1 2:  milk"]);
    // The next answer is sent at once.
    let next = answer("t1", 9, 0);
    outbox.start(&next);
    outbox.delta(&next, text("More"));
    assert_eq!(hand_over(&outbox, &mut lane, &hub, after(3_560)), ["t1 0: Tea,  and,  milk", "t1 0: More"]);
}

#[test]
fn each_change_of_a_thread_is_reported() {
    let (outbox, mut lane, hub, now) = (Outbox::default(), Lane::default(), RelayHub::new(), Instant::now());
    let reader = hub.reader(&"t1".into());
    for changes in 1..4 {
        (0..changes).for_each(|_| outbox.changed(&"t1".into()));
        hand_over(&outbox, &mut lane, &hub, now);
        assert_eq!(reader.changes(), changes);
    }
}

#[test]
fn a_thread_without_news_is_not_asked_about() {
    let (outbox, mut lane, hub, now) = (Outbox::default(), Lane::default(), RelayHub::new(), Instant::now());
    outbox.changed(&"t1".into());
    assert_eq!(hand_over(&outbox, &mut lane, &hub, now), [""; 0]);
    let batch = outbox.batch(&mut lane, now + Duration::from_millis(500));
    assert!(batch.is_none() && lane.asks_at().is_none());
}

#[test]
fn a_front_end_that_failed_gets_what_it_missed() {
    let (outbox, mut lane, hub, now) = (Outbox::default(), Lane::default(), RelayHub::new(), Instant::now());
    let (reader, id) = (hub.reader(&"t1".into()), answer("t1", 4, 0));
    outbox.start(&id);
    outbox.delta(&id, text("Tea"));
    outbox.changed(&"t1/c1".into());
    let lost = outbox.batch(&mut lane, now).unwrap();
    lane.failed(lost);
    outbox.delta(&id, text("."));
    let batch = outbox.batch(&mut lane, now);
    assert_eq!(changed(batch.as_ref()), ["t1", "t1/c1"]);
    drop(batch);
    hand_over(&outbox, &mut lane, &hub, now);
    assert_eq!(read(&reader), "Tea.");
    // So does one that was started again.
    let hub = RelayHub::new();
    let reader = hub.reader(&"t1".into());
    outbox.delta(&id, text(" Milk."));
    assert_eq!(hand_over(&outbox, &mut lane, &hub, now), ["t1 2:  Milk."]);
    hand_over(&outbox, &mut lane, &hub, now);
    assert_eq!(read(&reader), "Tea. Milk.");
}

#[test]
fn a_later_attempt_replaces_an_earlier_one_that_is_no_longer_wanted() {
    let (outbox, mut lane, hub, now) = (Outbox::default(), Lane::default(), RelayHub::new(), Instant::now());
    let (reader, lost, next) = (hub.reader(&"t1".into()), answer("t1", 4, 0), answer("t1", 4, 1_700));
    outbox.start(&lost);
    outbox.delta(&lost, text("Tea"));
    hand_over(&outbox, &mut lane, &hub, now);
    outbox.start(&next);
    outbox.delta(&next, text("Milk"));
    outbox.delta(&lost, text(" and"));
    assert_eq!(hand_over(&outbox, &mut lane, &hub, now), ["t1 1:  and", "t1 0: Milk"]);
    outbox.delta(&lost, text(" more"));
    assert_eq!(hand_over(&outbox, &mut lane, &hub, now), ["t1 2:  more"]);
    outbox.delta(&lost, text(" more"));
    assert_eq!(hand_over(&outbox, &mut lane, &hub, now), [""; 0]);
    assert_eq!(read(&reader), "Milk");
}

#[test]
fn a_long_answer_and_many_notices_are_cut() {
    let (outbox, mut lane, now) = (Outbox::default(), Lane::default(), Instant::now());
    let id = answer("t1", 4, 0);
    outbox.start(&id);
    for _ in 0..300 {
        outbox.delta(&id, text(&"x".repeat(1_000)));
    }
    (0..5_000).for_each(|number| outbox.changed(&format!("t{number}").into()));
    let batch = outbox.batch(&mut lane, now).unwrap();
    let sent: usize = batch.push.answers.iter().flat_map(|answer| &answer.parts).map(size_of).sum();
    assert_eq!((sent, batch.push.changed.len()), (262_000 + PART_BYTES, 1_024));
    outbox.end(&id);
    assert!(outbox.batch(&mut Lane::default(), now).is_some());
    let later = Instant::now() + Duration::from_secs(2);
    let batch = outbox.batch(&mut Lane::default(), later).unwrap();
    assert_eq!(answers(Some(&batch)), [""; 0]);
}

/// Starts a listener for a hub.
async fn listen(hub: &RelayHub, token: Option<&str>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let (hub, token) = (hub.clone(), token.map(ToOwned::to_owned));
    tokio::spawn(async move { hub.serve(listener, token, Cancel::never()).await.unwrap() });
    url
}

/// Waits until a reader has a text.
async fn until(reader: &FeedReader, text: &str) {
    let feed = reader.feed();
    let has = async {
        loop {
            let grown = feed.grown();
            if read(reader) == text {
                return;
            }
            grown.await;
        }
    };
    assert!(tokio::time::timeout(Duration::from_secs(30), has).await.is_ok(), "{:?}", read(reader));
}

#[tokio::test]
async fn front_ends_with_the_token_receive_deltas_while_others_fail() {
    let (one, two, other) = (RelayHub::new(), RelayHub::new(), RelayHub::new());
    let readers = [&one, &two].map(|hub| hub.reader(&"t1".into()));
    let stranger = other.reader(&"t1".into());
    // Nobody accepts connections there, but the system does.
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let urls = [
        format!("http://{}", silent.local_addr().unwrap()),
        "http://127.0.0.1:1".to_owned(),
        listen(&one, Some("s3cret-token-of-workers")).await,
        listen(&two, Some("s3cret-token-of-workers")).await,
        listen(&other, Some("another-token-of-others")).await,
    ];
    let relays = Relays::new(urls).unwrap().token("s3cret-token-of-workers".to_owned());
    assert_eq!(format!("{relays:?}"), "Relays { urls: 5, .. }");
    let outbox = Arc::<Outbox>::default();
    tokio::spawn(relays.send(Arc::clone(&outbox)));
    let id = answer("t1", 4, 0);
    outbox.start(&id);
    for (part, whole) in [("Tea", "Tea"), (" and", "Tea and"), (" milk.", "Tea and milk.")] {
        outbox.delta(&id, text(part));
        until(&readers[0], whole).await;
        until(&readers[1], whole).await;
    }
    outbox.changed(&"t1".into());
    FeedReader::changed(Some(&readers[0]), Some(0)).await;
    assert_eq!((read(&stranger), stranger.changes()), (String::new(), 0));
}

#[tokio::test]
async fn a_listener_takes_only_json_with_its_token() {
    let url = listen(&RelayHub::new(), Some("s3cret-token-of-workers")).await;
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    let status = async |token: &str, kind: &str, body: String| {
        let request = client.post(format!("{url}{PATH}")).header("content-type", kind).body(body);
        request.header("authorization", token).send().await.unwrap().status().as_u16()
    };
    let json = "application/json";
    assert_eq!(status("Bearer s3cret-token-of-workers", json, "{}".to_owned()).await, 200);
    assert_eq!(status("Bearer s3cret-token-of-worker", json, "{}".to_owned()).await, 401);
    assert_eq!(status("s3cret-token-of-workers", json, "{}".to_owned()).await, 401);
    assert_eq!(status("Bearer s3cret-token-of-workers", "text/plain", "{}".to_owned()).await, 415);
    assert_eq!(status("Bearer s3cret-token-of-workers", json, "[".to_owned()).await, 400);
    assert_eq!(status("Bearer s3cret-token-of-workers", json, " ".repeat(5 << 20)).await, 413);
}

#[tokio::test]
async fn a_listener_that_others_reach_needs_a_token() {
    let listener = TcpListener::bind("0.0.0.0:0").await.unwrap();
    let refused = RelayHub::new().serve(listener, None, Cancel::never()).await.unwrap_err();
    assert_eq!(refused.kind(), "deltas.open");
    let here = ([127, 0, 0, 1], 0).into();
    assert!(RelayHub::check(here, None).is_ok() && RelayHub::check(here, Some("0123456789abcdef")).is_ok());
    assert_eq!(RelayHub::check(here, Some("0123456789abcde")).unwrap_err().kind(), "deltas.weak_token");
    assert_eq!(Relays::new(["front end"]).unwrap_err().kind(), "deltas.url");
}
