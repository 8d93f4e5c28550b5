//! What strangers can hold open.

use std::time::Duration;

use harness_server::Bounds;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::support::{Desk, Server, within};

const HEALTH: &str = "GET /v1/health HTTP/1.1\r\nHost: localhost\r\n\r\n";
const SLOW_BODY: &str = "POST /v1/threads HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
                         Content-Length: 100\r\n\r\n{";

const SHORT: Duration = Duration::from_millis(50);
/// Longer than any test waits.
const NEVER: Duration = Duration::from_hours(1);

async fn serve(bounds: impl FnOnce(&mut Bounds)) -> Server {
    Desk::new().serve_with(|options| options.bounds(bounds)).await
}

/// A connection on which exactly that is said.
struct Raw(TcpStream);

impl Raw {
    async fn says(server: &Server, text: &str) -> Self {
        let stream = TcpStream::connect(server.url.trim_start_matches("http://")).await.unwrap();
        let mut raw = Self(stream);
        raw.say(text).await;
        raw
    }

    async fn say(&mut self, text: &str) {
        self.0.write_all(text.as_bytes()).await.unwrap();
    }

    /// What the server says up to and with that text.
    async fn hears(&mut self, expected: &str) -> String {
        let heard = async {
            let mut heard = String::new();
            while !heard.contains(expected) {
                let byte = self.0.read_u8().await.unwrap_or_else(|end| panic!("{end} after {heard}"));
                heard.push(char::from(byte));
            }
            heard
        };
        within(expected, heard).await
    }

    /// What the server says until it closes the connection.
    async fn rest(&mut self) -> String {
        let mut rest = Vec::new();
        within("the end of the connection", self.0.read_to_end(&mut rest)).await.unwrap();
        String::from_utf8(rest).unwrap()
    }
}

#[tokio::test]
async fn who_sends_no_whole_head_in_time_is_closed() {
    let server = serve(|bounds| bounds.head = SHORT).await;
    for said in ["", "G", "GET /v1/health HTTP/1.1\r\nHost: localhost\r\n"] {
        assert_eq!(Raw::says(&server, said).await.rest().await, "", "{said}");
    }
    server.end().await;
}

#[tokio::test]
async fn a_connection_that_is_idle_after_its_answer_is_closed() {
    let server = serve(|bounds| bounds.head = SHORT).await;
    let answers = Raw::says(&server, &HEALTH.repeat(2)).await.rest().await;
    assert_eq!(answers.matches("HTTP/1.1 200 OK").count(), 2, "{answers}");
    server.end().await;
}

#[tokio::test]
async fn a_stream_may_be_silent_for_longer_than_a_head_may_take() {
    let server = serve(|bounds| bounds.head = SHORT).await;
    let thread = server.desk.runtime.thread("a");
    let ask = "GET /v1/threads/a/events HTTP/1.1\r\nHost: localhost\r\n\r\n";
    let mut stream = Raw::says(&server, ask).await;
    stream.hears("text/event-stream").await;
    // Each of them begins after the stream has, and lasts as long as a head may.
    for _ in 0..3 {
        Raw::says(&server, "").await.rest().await;
    }
    thread.prompt("still there").await.unwrap();
    stream.hears("run_ended").await;
    server.end().await;
}

#[tokio::test]
async fn a_head_that_is_too_large_is_refused() {
    let server = serve(|_| {}).await;
    let begin = "GET /v1/health HTTP/1.1\r\nX: ";
    let head = begin.to_owned() + &"x".repeat(64 * 1024 - begin.len());
    let answer = Raw::says(&server, &head).await.rest().await;
    assert!(answer.starts_with("HTTP/1.1 431 "), "{answer}");
    server.end().await;
}

#[tokio::test]
async fn a_body_that_does_not_come_is_not_waited_for() {
    let server = serve(|bounds| bounds.body_time = SHORT).await;
    let answer = Raw::says(&server, SLOW_BODY).await.rest().await;
    assert!(answer.starts_with("HTTP/1.1 408 ") && answer.contains("request.too_slow"), "{answer}");
    server.end().await;
}

#[tokio::test]
async fn a_stranger_is_refused_before_the_body_is_read() {
    let guarded = |options: harness_server::ServerOptions| {
        options.token("0123456789abcdef").unwrap().bounds(|bounds| bounds.body_time = NEVER)
    };
    let server = Desk::new().serve_with(guarded).await;
    let answer = Raw::says(&server, SLOW_BODY).await.rest().await;
    assert!(answer.starts_with("HTTP/1.1 401 "), "{answer}");
    server.end().await;
}

#[tokio::test]
async fn connections_beyond_the_bound_wait_until_one_ends() {
    let server = serve(|bounds| (bounds.connections, bounds.head) = (2, NEVER)).await;
    let (mut first, mut second) = (Raw::says(&server, HEALTH).await, Raw::says(&server, HEALTH).await);
    first.hears("\r\n\r\n").await;
    second.hears("\r\n\r\n").await;
    let mut third = Raw::says(&server, HEALTH).await;
    for _ in 0..20 {
        first.say(HEALTH).await;
        first.hears("HTTP/1.1 200 OK").await;
    }
    let early = third.0.try_read(&mut [0]).map_err(|none| none.kind());
    assert_eq!(early, Err(std::io::ErrorKind::WouldBlock));
    drop(second);
    third.hears("HTTP/1.1 200 OK").await;
    server.end().await;
}

#[tokio::test]
async fn silent_connections_keep_nobody_out() {
    let server = serve(|bounds| (bounds.connections, bounds.head) = (2, SHORT)).await;
    let mut silent = Vec::new();
    for _ in 0..6 {
        silent.push(Raw::says(&server, "").await);
    }
    Raw::says(&server, HEALTH).await.hears("HTTP/1.1 200 OK").await;
    server.end().await;
}

#[tokio::test]
async fn connections_without_a_request_do_not_hold_up_the_end() {
    let mut server = serve(|bounds| (bounds.head, bounds.drain) = (NEVER, NEVER)).await;
    let mut silent = Raw::says(&server, "").await;
    let mut idle = Raw::says(&server, HEALTH).await;
    idle.hears("\r\n\r\n").await;
    server.stop();
    idle.rest().await;
    assert_eq!(silent.rest().await, "");
    server.end().await;
}

#[tokio::test]
async fn connections_that_do_not_end_are_cut() {
    let mut server = serve(|bounds| (bounds.body_time, bounds.drain) = (NEVER, SHORT)).await;
    let mut stuck = Raw::says(&server, SLOW_BODY).await;
    // An answer behind it shows that the server has taken the first one, too.
    Raw::says(&server, HEALTH).await.hears("HTTP/1.1 200 OK").await;
    server.stop();
    assert_eq!(stuck.rest().await, "");
    server.end().await;
}
