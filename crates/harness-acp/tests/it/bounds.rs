//! Broken, endless, slow and silent clients.

use harness::runtime::Limits as ThreadLimits;
use harness_acp::{AcpServer, Threads};
use serde_json::Value;
use std::sync::Arc;
use tokio::io::{
    AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream, ReadHalf, WriteHalf, split,
};

use crate::support::{Counted, Scripted, Step, call, config, digits, runtime, serve, threads};

/// A client that writes and reads lines as it likes.
struct Raw {
    from: tokio::io::Lines<BufReader<ReadHalf<DuplexStream>>>,
    to: WriteHalf<DuplexStream>,
}

impl Raw {
    fn new(near: DuplexStream) -> Self {
        let (from, to) = split(near);
        Self { from: BufReader::new(from).lines(), to }
    }

    async fn write(&mut self, line: &str) {
        self.to.write_all(line.as_bytes()).await.unwrap();
        self.to.write_all(b"\n").await.unwrap();
    }

    async fn read(&mut self) -> Value {
        let line = self.from.next_line().await.unwrap().expect("a line");
        serde_json::from_str(&line).expect("JSON, and nothing else")
    }

    /// The answer to a request; what is told meanwhile goes by.
    async fn answer(&mut self, id: u64) -> Value {
        loop {
            let line = self.read().await;
            if line["id"] == id && line.get("method").is_none() {
                return line;
            }
        }
    }

    async fn begin(&mut self) {
        self.write(r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1}}"#).await;
        assert_eq!(self.answer(0).await["result"]["protocolVersion"], 1);
        self.write(
            r#"{"jsonrpc":"2.0","id":1,"method":"session/new","params":{"cwd":"/desk","mcpServers":[]}}"#,
        )
        .await;
        assert_eq!(self.answer(1).await["result"]["sessionId"], "s1");
    }

    async fn prompt(&mut self, id: u64) {
        let params = r#"{"sessionId":"s1","prompt":[{"type":"text","text":"go"}]}"#;
        self.write(&format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"session/prompt","params":{params}}}"#))
            .await;
    }
}

#[tokio::test]
async fn what_is_no_message_is_answered_with_an_error_and_the_connection_goes_on() {
    let model = Scripted::new([Step::Say("still here")]);
    let server = AcpServer::new(threads(config(&model))).limits(|limits| limits.message = 1_000);
    let (near, serving) = serve(server);
    let mut client = Raw::new(near);
    client.begin().await;
    for (line, code) in [
        ("{ not json", -32700),
        ("17", -32600),
        ("[]", -32600),
        (r#"{"jsonrpc":"2.0","id":7,"method":5}"#, -32600),
        (&format!(r#"{{"jsonrpc":"2.0","id":8,"method":"{}"}}"#, "x".repeat(2_000)), -32600),
        (r#"{"jsonrpc":"2.0","id":9,"method":"session/dance","params":{}}"#, -32601),
        (r#"{"jsonrpc":"2.0","id":10,"method":"session/new","params":{}}"#, -32602),
    ] {
        client.write(line).await;
        loop {
            let told = client.read().await;
            if told.get("method").is_none() {
                assert_eq!(told["error"]["code"], code, "{line}: {told}");
                break;
            }
        }
    }
    client.write("").await;
    client.write("\r").await;
    client.to.write_all(b"\xff\xfe\n").await.unwrap();
    assert_eq!(client.read().await["error"]["code"], -32700);
    client.prompt(11).await;
    assert_eq!(client.answer(11).await["result"]["stopReason"], "end_turn");
    drop(client);
    serving.await.unwrap();
}

#[tokio::test]
async fn a_session_needs_an_introduction_and_one_that_is_there() {
    let model = Scripted::new([]);
    let (near, serving) = serve(AcpServer::new(threads(config(&model))));
    let mut client = Raw::new(near);
    client
        .write(r#"{"jsonrpc":"2.0","id":1,"method":"session/new","params":{"cwd":"/desk","mcpServers":[]}}"#)
        .await;
    assert!(client.answer(1).await.get("error").is_some());
    client.begin().await;
    client.write(r#"{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":"nobody"}}"#).await;
    client.write(r#"{"jsonrpc":"2.0","id":3,"method":"session/prompt","params":{"sessionId":"nobody","prompt":[]}}"#)
        .await;
    assert_eq!(client.answer(3).await["error"]["message"], "there is no session `nobody`");
    drop(client);
    serving.await.unwrap();
}

#[tokio::test]
async fn sessions_are_bounded() {
    let model = Scripted::new([]);
    let server = AcpServer::new(threads(config(&model))).limits(|limits| limits.sessions = 1);
    let (near, serving) = serve(server);
    let mut client = Raw::new(near);
    client.begin().await;
    client
        .write(r#"{"jsonrpc":"2.0","id":2,"method":"session/new","params":{"cwd":"/desk","mcpServers":[]}}"#)
        .await;
    assert_eq!(client.answer(2).await["error"]["message"], "1 sessions are open; close one first");
    drop(client);
    serving.await.unwrap();
}

#[tokio::test]
async fn a_client_that_goes_ends_what_is_going_on() {
    let model = Scripted::new([call("c1", "slow", "{}"), Step::Say("never")]);
    let built = runtime(config(&model)).build();
    let thread = built.thread("s1");
    let (near, serving) = serve(AcpServer::new(Threads::new(built, Arc::new(Counted::default()))));
    let mut client = Raw::new(near);
    client.begin().await;
    client.prompt(2).await;
    while !client.read().await.to_string().contains("half") {}
    drop(client);
    serving.await.unwrap();
    assert!(thread.prompt("anybody?").await.is_err(), "the thread was closed");
    assert_eq!(model.asked.lock().len(), 1, "the run did not go on");
}

#[tokio::test]
async fn a_slow_client_is_told_everything_once_in_the_end() {
    const MOST: usize = 500;
    let model = Scripted::new([
        Step::Count(MOST),
        call("c1", "read_note", r#"{"path":"a"}"#),
        call("c2", "read_note", r#"{"path":"b"}"#),
        Step::Count(MOST),
    ]);
    // Four events are kept, and two updates may wait: nearly everything is missed on the way.
    let built = runtime(config(&model)).limits(|limits: &mut ThreadLimits| limits.event_log = 4).build();
    let thread = built.thread("s1");
    let server = AcpServer::new(Threads::new(built, Arc::new(Counted::default())));
    let (near, far) = tokio::io::duplex(256);
    let (from, to) = split(far);
    let server = server.limits(|limits| limits.waiting = 2);
    let serving = tokio::spawn(async move { server.serve(BufReader::new(from), to).await.unwrap() });
    let mut client = Raw::new(near);
    client.begin().await;
    for id in [2, 3] {
        client.prompt(id).await;
        let mut changed = thread.events(harness::runtime::StartAt::Replay);
        while thread.status() == harness::runtime::Status::Idle && thread.messages().await.unwrap().is_empty()
        {
            changed.next().await;
        }
        thread.wait_idle().await;
        let (mut said, mut calls) = (String::new(), Vec::new());
        let answer = loop {
            let line = client.read().await;
            if line["id"] == id {
                break line;
            }
            let update = &line["params"]["update"];
            match update["sessionUpdate"].as_str() {
                Some("agent_message_chunk") => said += update["content"]["text"].as_str().unwrap(),
                Some("tool_call_update") if update["status"] == "completed" => {
                    calls.push(update["toolCallId"].as_str().unwrap().to_owned());
                }
                _ => {}
            }
        };
        assert_eq!(answer["result"]["stopReason"], "end_turn");
        let whole = digits(MOST);
        assert_eq!(said, whole);
        let expected: &[&str] = if id == 2 { &[] } else { &["c1", "c2"] };
        assert_eq!(calls, expected);
    }
    drop(client);
    serving.await.unwrap();
}
