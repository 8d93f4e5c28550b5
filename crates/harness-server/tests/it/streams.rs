//! Following threads.

use serde_json::{Value, json};

use crate::support::{Desk, Frame, within};

fn names(frames: &[Frame]) -> Vec<&str> {
    frames.iter().map(|frame| frame.event.as_str()).collect()
}

fn ids(frames: &[Frame]) -> Vec<u64> {
    frames.iter().filter_map(|frame| frame.id).collect()
}

#[tokio::test]
async fn a_run_is_followed_from_its_beginning_to_its_end() {
    let server = Desk::new().serve().await;
    let client = &server.client;
    client.create("a").await;
    let mut frames = client.follow("/v1/threads/a/events?until=run_end", None).await;
    let started = client.post("/v1/threads/a/prompt", json!({ "text": "hello" })).await.body;
    let told = frames.rest().await;
    assert_eq!(ids(&told), (0..told.len() as u64 - 1).collect::<Vec<_>>(), "numbered without gaps");
    let deltas: Vec<&Value> =
        told.iter().filter(|frame| frame.event == "delta").map(|frame| &frame.data["part"]["text"]).collect();
    assert_eq!(deltas, ["hel", "lo"]);
    assert!(told.iter().all(|frame| frame.event == "end" || frame.data["type"] == frame.event.as_str()));
    let [.., last, end] = &told[..] else { panic!("{told:?}") };
    assert_eq!((&last.event[..], &last.data["report"]["text"]), ("run_ended", &json!("hello")));
    let expected = json!({
        "reason": "run_ended", "run": started["run"], "outcome": "completed", "stopReason": "answer_finalized",
    });
    assert_eq!((&end.event[..], &end.data, end.id), ("end", &expected, None));
    server.end().await;
}

#[tokio::test]
async fn a_client_that_comes_back_gets_exactly_the_rest() {
    let server = Desk::new().serve().await;
    let client = &server.client;
    client.create("a").await;
    client.ask("a", "one").await;
    let mut all = client.follow("/v1/threads/a/events?from=replay&until=run_end", None).await;
    let all = all.rest().await;
    let numbered: Vec<&Frame> = all.iter().filter(|frame| frame.id.is_some()).collect();
    for last in [0, 3, numbered.len() - 2] {
        // Goes away in the middle, and comes back.
        let mut first = client.follow("/v1/threads/a/events?from=replay", None).await;
        while first.next().await.unwrap().id != Some(last as u64) {}
        drop(first);
        let mut rest = client.follow("/v1/threads/a/events?until=run_end", Some(last as u64)).await;
        assert_eq!(rest.rest().await, all[last + 1..]);
        let mut rest = client.follow(&format!("/v1/threads/a/events?until=run_end&from={last}"), None).await;
        assert_eq!(rest.rest().await, all[last..]);
    }
    server.end().await;
}

#[tokio::test]
async fn kinds_tell_a_part_with_the_same_numbers() {
    let server = Desk::new().serve().await;
    let client = &server.client;
    client.create("a").await;
    client.ask("a", "think deep").await;
    let told = async |query: &str| {
        client
            .follow(&format!("/v1/threads/a/events?from=turn&until=run_end&{query}"), None)
            .await
            .rest()
            .await
    };
    let full = told("kind=full").await;
    let thought = full.iter().find(|frame| frame.data["part"]["thinking"] == "deep").unwrap();
    let reasoning = told("kind=reasoning").await;
    assert_eq!(names(&reasoning), ["reasoning", "end"]);
    assert_eq!((reasoning[0].id, &reasoning[0].data), (thought.id, &json!({ "text": "deep" })));
    let text = told("kind=text").await;
    let pieces: Vec<&Value> = text.iter().filter_map(|frame| frame.data.get("text")).collect();
    assert_eq!(pieces, ["thou", "ght"]);

    let items = told("kind=items").await;
    let complete: Vec<&Value> =
        items.iter().filter(|frame| frame.data["complete"] == true).map(|frame| &frame.data).collect();
    assert_eq!(complete[0]["message"]["role"], "user");
    assert!(complete.iter().any(|item| item["block"]["text"] == "thought"));
    server.end().await;
}

#[tokio::test]
async fn items_keep_their_names_when_a_client_comes_back() {
    let server = Desk::new().serve().await;
    let client = &server.client;
    client.create("a").await;
    client.ask("a", "hello").await;
    let path = "/v1/threads/a/events?kind=items&until=run_end";
    let all = client.follow(&format!("{path}&from=turn"), None).await.rest().await;
    // In the middle of the answer: what grows on is the same item.
    let middle = all.iter().find(|frame| frame.data["coming"]["text"] == "hel").unwrap();
    let rest = client.follow(path, middle.id).await.rest().await;
    let at = all.iter().position(|frame| frame == middle).unwrap();
    assert_eq!(rest, all[at + 1..]);
    assert_eq!(rest[0].data["id"], middle.data["id"]);
    server.end().await;
}

#[tokio::test]
async fn a_run_that_fails_ends_its_stream_with_the_reason() {
    let server = Desk::new().serve().await;
    let client = &server.client;
    client.create("a").await;
    let mut text = client.follow("/v1/threads/a/events?kind=text&until=run_end", None).await;
    client.post("/v1/threads/a/prompt", json!({ "text": "hang" })).await;
    client.post("/v1/threads/a/abort", json!({ "reason": "enough" })).await;
    let told = text.rest().await;
    let end = &told.last().unwrap().data;
    assert_eq!(
        (&end["reason"], &end["outcome"], &end["problem"]),
        (&json!("run_ended"), &json!("failed"), &json!("Cancelled: enough"))
    );
    server.end().await;
}

#[tokio::test]
async fn who_comes_too_late_is_told_how_much_and_who_comes_from_the_future_begins_anew() {
    let desk = Desk::with(|builder| builder.thread_limits(|limits| limits.event_log = 8));
    let server = desk.serve().await;
    let client = &server.client;
    client.create("a").await;
    client.ask("a", "one").await;
    let next = client.get("/v1/threads/a").await.body["nextSeq"].as_u64().unwrap();
    let kept = next - 8;
    let mut late = client.follow("/v1/threads/a/events?from=2", None).await;
    let lagged = late.next().await.unwrap();
    assert_eq!(
        lagged,
        Frame { id: Some(kept - 1), event: "lagged".to_owned(), data: json!({ "missed": kept - 2 }) }
    );
    assert_eq!(late.next().await.unwrap().id, Some(kept));

    let mut reset = client.follow("/v1/threads/a/events", Some(next + 5)).await;
    let told = [reset.next().await.unwrap(), reset.next().await.unwrap()];
    assert_eq!(names(&told), ["reset", "lagged"]);
    assert_eq!(told[0].data, json!({ "next": next }));
    server.end().await;
}

#[tokio::test]
async fn streams_end_when_their_thread_is_deleted_or_the_server_is_stopped() {
    let mut server = Desk::new().serve().await;
    for thread in ["a", "b"] {
        server.client.create(thread).await;
    }
    let mut deleted = server.client.follow("/v1/threads/a/events", None).await;
    let mut stopped = server.client.follow("/v1/threads/b/events", None).await;
    server.client.delete("/v1/threads/a").await;
    let told = deleted.rest().await;
    assert_eq!(told.last().unwrap().data, json!({ "reason": "closed" }));

    server.client.post("/v1/threads/b/prompt", json!({ "text": "hang" })).await;
    stopped.until("run_started").await;
    server.stop();
    let told = stopped.rest().await;
    let ended = told.iter().find(|frame| frame.event == "run_ended").unwrap();
    assert_eq!(ended.data["report"]["outcome"], "failed");
    assert_eq!(told.last().unwrap().data, json!({ "reason": "closed" }));
    server.end().await;
}

#[tokio::test]
async fn a_silent_stream_is_kept_alive() {
    let server = Desk::new()
        .serve_with(|options| {
            options.bounds(|bounds| bounds.keep_alive = std::time::Duration::from_millis(1))
        })
        .await;
    server.client.create("a").await;
    let path = "/v1/threads/a/events";
    let mut response = server.client.request(reqwest::Method::GET, path).send().await.unwrap();
    let chunk = within("a comment", response.chunk()).await.unwrap().unwrap();
    assert!(chunk.starts_with(b":"), "{chunk:?}");
    drop(response);
    server.end().await;
}

#[tokio::test]
async fn places_of_streams_are_bounded_and_given_back() {
    let server = Desk::new()
        .serve_with(|options| options.bounds(|bounds| (bounds.streams, bounds.streams_per_client) = (3, 2)))
        .await;
    let client = &server.client;
    client.create("a").await;
    let first = client.follow("/v1/threads/a/events", None).await;
    let _second = client.follow("/v1/threads/a/events", None).await;
    let refused = client.get("/v1/threads/a/events").await;
    assert_eq!((refused.status, refused.kind()), (429, "server.too_many_streams"));
    drop(first);
    within("a place", async {
        loop {
            let request = client.request(reqwest::Method::GET, "/v1/threads/a/events");
            if request.send().await.unwrap().status() == 200 {
                break;
            }
            tokio::task::yield_now().await;
        }
    })
    .await;
    server.end().await;
}

#[tokio::test]
async fn a_place_that_cannot_be_read_is_refused() {
    let server = Desk::new().serve().await;
    let client = &server.client;
    client.create("a").await;
    for query in ["from=yesterday", "from=-1", "kind=music", "until=later", "colour=red"] {
        let refused = client.get(&format!("/v1/threads/a/events?{query}")).await;
        assert_eq!((refused.status, refused.kind()), (400, "request.query"), "{query}");
    }
    let request = client.request(reqwest::Method::GET, "/v1/threads/a/events").header("Last-Event-ID", "x");
    assert_eq!(client.send(request).await.status, 400);
    server.end().await;
}
