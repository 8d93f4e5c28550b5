//! Many at once.

use std::sync::Arc;

use futures_util::future::join_all;
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::support::{Desk, within};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_hundred_threads_work_side_by_side() {
    let server = Desk::new().serve().await;
    let all = (0..200).map(|n| {
        let client = server.client.clone();
        tokio::spawn(async move {
            let name = format!("thread-{n}");
            client.create(&name).await;
            for round in 0..3 {
                let said = format!("{name} says {round}");
                assert_eq!(client.ask(&name, &said).await, said);
            }
            assert_eq!(client.get(&format!("/v1/threads/{name}")).await.body["messages"], 6);
        })
    });
    for done in within("the end of all", join_all(all)).await {
        done.unwrap();
    }
    let listed = server.client.get("/v1/threads?limit=1000").await.body;
    assert_eq!(listed["threads"].as_array().unwrap().len(), 200);
    server.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_does_not_read_slows_nobody_and_is_told_what_it_missed() {
    let server = Desk::with(|builder| builder.thread_limits(|limits| limits.event_log = 16)).serve().await;
    let client = &server.client;
    client.create("a").await;
    // A client of its own kind: it asks, and reads nothing.
    let mut slow = TcpStream::connect(server.url.trim_start_matches("http://")).await.unwrap();
    slow.write_all(b"GET /v1/threads/a/events HTTP/1.1\r\nHost: localhost\r\n\r\n").await.unwrap();
    let mut head = [0; 12];
    slow.read_exact(&mut head).await.unwrap();
    assert_eq!(&head, b"HTTP/1.1 200");

    // Far more than the system keeps for a connection.
    let text: Arc<str> = "much ".repeat(100_000).into();
    for _ in 0..20 {
        assert_eq!(client.ask("a", &text).await.len(), text.len());
    }
    let told = within("what the slow client is told", async move {
        let (mut told, mut buffer) = (String::new(), vec![0; 1 << 20]);
        while !told.contains("event: lagged") {
            let read = slow.read(&mut buffer).await.unwrap();
            assert!(read > 0, "the stream ended");
            let tail = told.len().saturating_sub(64);
            told = told[tail..].to_owned() + &String::from_utf8_lossy(&buffer[..read]);
        }
        told
    });
    assert!(told.await.contains(r#"data: {"missed":"#));
    server.end().await;
}

#[tokio::test]
async fn a_full_server_refuses_and_takes_again() {
    let server = Desk::new().serve_with(|options| options.bounds(|bounds| bounds.threads = 2)).await;
    let client = &server.client;
    client.create("a").await;
    client.create("b").await;
    let refused = client.post("/v1/threads", json!({ "id": "c" })).await;
    assert_eq!((refused.status, refused.kind()), (503, "server.full"));
    client.delete("/v1/threads/a").await;
    client.create("c").await;
    server.end().await;
}

#[tokio::test]
async fn requests_at_once_are_bounded() {
    let server = Desk::new().serve_with(|options| options.bounds(|bounds| bounds.requests = 1)).await;
    let client = server.client.clone();
    client.create("a").await;
    let waits = tokio::spawn({
        let client = client.clone();
        async move { client.ask("a", "call slow").await }
    });
    within("the call", server.desk.began.notified()).await;
    let refused = client.get("/v1/threads").await;
    assert_eq!((refused.status, refused.kind()), (503, "server.full"));
    server.desk.go.add_permits(1);
    assert_eq!(within("the answer", waits).await.unwrap(), "slowly done");
    assert_eq!(client.get("/v1/threads").await.status, 200);
    server.end().await;
}
