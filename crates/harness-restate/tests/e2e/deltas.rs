//! Deltas: a client of any front end sees an answer while it comes.
//!
//! The pieces of the answer are the times at which the worker made them.

use std::time::Duration;

use harness::core::port::Clock as _;
use harness::system::SystemClock;
use reqwest::{Method, Response, StatusCode};
use serde_json::json;

use crate::cluster::run;
use crate::front::{Frame, Front, frame_of};
use crate::processes::{Cluster, PATIENCE, until};
use crate::worker::STAMPS;

/// The longest delay at the 95th percentile, in ms, of release builds.
const P95: i64 = 80;

/// Events with the time at which they came, in ms since 1970.
type Timed = Vec<(i64, Frame)>;

/// Begins to follow a thread to the end of its run.
async fn follow(front: &Front, thread: &str, kind: &str) -> Response {
    let path = format!("/{thread}/events?from=replay&kind={kind}&until=run_end");
    let response = front.request(Method::GET, &path).send().await.unwrap();
    assert_eq!(response.status(), StatusCode::OK);
    response
}

/// Reads events to the end.
async fn read(mut response: Response) -> Timed {
    let (clock, mut events, mut text) = (SystemClock::new(), Vec::new(), String::new());
    let reads = async {
        while let Some(chunk) = response.chunk().await.unwrap() {
            let now = clock.now().0;
            text.push_str(std::str::from_utf8(&chunk).unwrap());
            while let Some(end) = text.find("\n\n") {
                events.extend(frame_of(&text[..end]).map(|frame| (now, frame)));
                text.drain(..end + 2);
            }
        }
    };
    tokio::time::timeout(PATIENCE, reads).await.unwrap();
    events
}

async fn start(front: &Front, thread: &str) {
    assert_eq!(front.post("", json!({ "id": thread })).await.0, 201);
}

async fn prompt(front: &Front, thread: &str) {
    let (status, started) = front.post(&format!("/{thread}/prompt"), json!({ "text": "Order tea." })).await;
    assert_eq!(status, 202, "{started}");
}

/// The text of the last answer, by the end of its run.
fn answer(events: &Timed) -> &str {
    let end = events.iter().find(|(_, frame)| frame.event == "run_ended").unwrap();
    end.1.data["report"]["text"].as_str().unwrap()
}

/// The text of a delta.
fn piece(frame: &Frame) -> Option<&str> {
    (frame.event == "delta").then(|| frame.data["part"]["text"].as_str()).flatten()
}

/// Delays of the pieces of an answer, in ms.
fn delays(events: &Timed) -> Vec<i64> {
    let pieces = events.iter().filter_map(|(at, frame)| Some((*at, piece(frame)?)));
    pieces
        .flat_map(|(at, text)| text.split_whitespace().map(move |made| at - made.parse::<i64>().unwrap()))
        .collect()
}

pub(crate) fn another_front_end_sees_deltas() {
    run(async {
        let cluster = Cluster::of_servers(1, "");
        let (front, other) = (Front::with_relay(&cluster).await, Front::with_relay(&cluster).await);
        let url = cluster.add_workers(2).await;
        cluster.register(&url).await;
        let (mut all, mut logged) = (Vec::new(), Vec::new());
        for number in 0..5 {
            let thread = format!("front-deltas.{number}");
            start(&front, &thread).await;
            let own = follow(&front, &thread, "full").await;
            let (seen, texts) =
                (follow(&other, &thread, "full").await, follow(&other, &thread, "text").await);
            prompt(&front, &thread).await;
            let (own, seen, texts) = tokio::join!(read(own), read(seen), read(texts));
            for events in [&own, &seen] {
                let whole: String = events.iter().filter_map(|(_, frame)| piece(frame)).collect();
                assert_eq!(whole, answer(events));
                assert_eq!(whole.split_whitespace().count(), STAMPS);
                laws_kept(events);
            }
            let text: String = texts.iter().filter_map(|(_, frame)| frame.data["text"].as_str()).collect();
            assert_eq!(text, answer(&own));
            all.extend(delays(&seen));
            logged.extend(delays_of_log(&seen));
        }
        let p95 = print("deltas", all);
        let of_log = print("events of the log", logged);
        assert!(p95 <= P95 || cfg!(debug_assertions), "{p95} ms");
        assert!(p95 <= 10 * P95, "{p95} ms");
        // The end of an answer of 2 s comes a second late to a reader that only looks from time to time.
        assert!(of_log < 1_000, "{of_log} ms");
    });
}

pub(crate) fn another_front_end_sees_progress() {
    run(async {
        let cluster = Cluster::of_servers(1, "");
        let (front, other) = (Front::with_relay(&cluster).await, Front::with_relay(&cluster).await);
        let url = cluster.add_workers(2).await;
        cluster.register(&url).await;
        start(&front, "front-progress.1").await;
        let seen = follow(&other, "front-progress.1", "full").await;
        prompt(&front, "front-progress.1").await;
        let events = read(seen).await;
        let kind = |(_, frame): &(i64, Frame)| match frame.event.as_str() {
            "tool_update" => Some((frame.id, frame.data["content"][0]["text"].as_str()?.to_owned())),
            _ => Some((None, frame.data["event"]["type"].as_str()?.to_owned())),
        };
        let told: Vec<_> = events.iter().filter_map(kind).collect();
        let at = |word: &str| told.iter().position(|(_, told)| told == word).unwrap();
        let (began, half, ended) = (at("tool_started"), at("half of it"), at("tool_finished"));
        assert!(began < half && half < ended, "{told:?}");
        assert_eq!(told[half].0, None, "it has no number");
    });
}

/// Delays of the events of the log, in ms.
fn delays_of_log(events: &Timed) -> Vec<i64> {
    let at = |frame: &Frame| frame.data["event"]["at"].as_i64();
    events.iter().filter_map(|(came, frame)| Some(came - at(frame)?)).collect()
}

/// Prints delays at another front end, and gives the 95th percentile.
fn print(what: &str, mut delays: Vec<i64>) -> i64 {
    delays.sort_unstable();
    let at = |percent: usize| delays[(delays.len() - 1) * percent / 100];
    let (p50, p95, most) = (at(50), at(95), at(100));
    println!("{what} at another front end: p50 {p50} ms, p95 {p95} ms, most {most} ms of {}", delays.len());
    p95
}

/// Numbers grow, deltas have none, and none comes behind the message of its answer.
fn laws_kept(events: &Timed) {
    let numbers: Vec<u64> = events.iter().filter_map(|(_, frame)| frame.id).collect();
    assert!(numbers.is_sorted_by(|one, next| one < next), "{numbers:?}");
    assert!(events.iter().all(|(_, frame)| piece(frame).is_none() || frame.id.is_none()));
    let at =
        |is_wanted: &dyn Fn(&Frame) -> bool| events.iter().rposition(|(_, frame)| is_wanted(frame)).unwrap();
    let last = at(&|frame| piece(frame).is_some());
    let message = at(&|frame| {
        let event = &frame.data["event"];
        event["type"] == "message_appended" && event["message"]["role"] == "assistant"
    });
    assert!(last < message, "delta {last} comes behind message {message}");
}

pub(crate) fn an_answer_of_a_killed_worker_starts_again() {
    run(async {
        let cluster = Cluster::of_servers(1, "");
        let front = Front::with_relay(&cluster).await;
        let url = cluster.add_workers(2).await;
        cluster.register(&url).await;
        let mut restarts = 0;
        for number in 0..4 {
            let thread = format!("front-deltas.{number}");
            start(&front, &thread).await;
            let kill = async {
                prompt(&front, &thread).await;
                let is_half = || async { cluster.ledger(&thread).len() > 1 };
                until("the tool's end", is_half).await;
                tokio::time::sleep(Duration::from_secs(1)).await;
                // One of the two is at work; the other one may start first.
                (0..2).for_each(|at| cluster.kill(at));
                tokio::time::sleep(Duration::from_millis(500)).await;
                (0..2).for_each(|at| cluster.restart(at));
            };
            let events = follow(&front, &thread, "full").await;
            let (events, ()) = tokio::join!(read(events), kill);
            let mut shown = String::new();
            for (_, frame) in &events {
                if frame.event == "answer_restarted" {
                    restarts += 1;
                    shown.clear();
                }
                shown.push_str(piece(frame).unwrap_or_default());
            }
            assert_eq!(shown, answer(&events));
            laws_kept(&events);
        }
        println!("{restarts} of 4 answers started again");
        assert!(restarts > 0, "no killed worker was at work");
    });
}
