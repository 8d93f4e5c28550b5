//! The transport over a broker, with a fake one over real sockets.

use harness_relay::{
    Delivery, RelayEventKind, RelayEvents, RelayFault, RelayMessage, RelayTransport as _, Since, SpawnAgent,
};

use crate::support::broker::{FakeBroker, KEY};

/// The next events, in short, up to the one that ends with `last`.
async fn heard(events: &mut RelayEvents, last: &str) -> Vec<String> {
    let mut heard = Vec::new();
    loop {
        let event = events.next().await;
        let seq = event.seq.map(|seq| format!("{seq} ")).unwrap_or_default();
        let what = match event.kind {
            RelayEventKind::Other(kind) => kind,
            RelayEventKind::Gap { requested, oldest } => format!("gap {requested}..{oldest}"),
            RelayEventKind::CaughtUp => "caught up".to_owned(),
            RelayEventKind::Reconnected => "reconnected".to_owned(),
            RelayEventKind::Closed { .. } => "closed".to_owned(),
            RelayEventKind::Inbound(_) | RelayEventKind::AgentGone { .. } | _ => "unexpected".to_owned(),
        };
        heard.push(format!("{seq}{what}"));
        if what == last {
            return heard;
        }
    }
}

#[tokio::test]
async fn a_broker_that_is_starting_is_waited_for() {
    let broker = FakeBroker::start().await;
    broker.answer(503, "Broker is starting, please retry");
    broker.answer(
        200,
        r#"{"broker_version":"9.1.6","protocol_version":2,"mode":"persist","workspace_key":"rk"}"#,
    );
    let transport = broker.transport();
    transport.start().await.unwrap();
    transport.start().await.unwrap();
    let session = transport.session().unwrap();
    assert_eq!((session.version.as_str(), session.protocol, session.ephemeral), ("9.1.6", Some(2), false));
    assert_eq!(broker.calls(), ["GET /api/session", "GET /api/session"]);
}

#[tokio::test]
async fn the_lease_of_an_ephemeral_broker_is_renewed_until_the_end() {
    let broker = FakeBroker::start().await;
    broker.answer(200, r#"{"mode":"ephemeral"}"#);
    let transport = broker.transport();
    transport.start().await.unwrap();
    let renewed =
        |calls: &[String]| calls.iter().filter(|call| *call == "POST /api/session/renew {}").count();
    broker.until_calls(|calls| renewed(calls) >= 3).await;
    transport.shutdown().await.unwrap();
}

#[tokio::test]
async fn what_a_broker_says_to_a_message_is_told() {
    let broker = FakeBroker::start().await;
    let transport = broker.transport();
    let mut message = RelayMessage::new("w1", "orch", "hi");
    message.thread_id = Some("th".to_owned());
    for (status, answer, expected) in [
        (200, r#"{"success":true,"event_id":"e1","local":true,"delivered":2}"#, Ok(Delivery::Local(2))),
        (200, r#"{"success":true,"event_id":"e1","local":false}"#, Ok(Delivery::Published)),
        (
            404,
            r#"{"success":false,"error":"Agent \"w1\" not found"}"#,
            Err("the broker refused POST /api/send with status 404: Agent \"w1\" not found"),
        ),
        (
            401,
            r#"{"error":{"code":"unauthorized","message":"Missing or invalid API key"}}"#,
            Err("the broker refused POST /api/send with status 401: Missing or invalid API key"),
        ),
        (200, "[]", Err("the broker's answer to POST /api/send cannot be read: it is not a JSON object")),
    ] {
        broker.answer(status, answer);
        let got = transport.send(message.clone()).await.map(|receipt| receipt.delivery);
        assert_eq!(got.map_err(|fault| fault.to_string()), expected.map_err(str::to_owned));
    }
    let sent = r#"POST /api/send {"to":"w1","from":"orch","text":"hi","threadId":"th"}"#;
    assert_eq!(broker.calls(), [sent; 5]);
}

#[tokio::test]
async fn agents_are_started_listed_and_released() {
    let broker = FakeBroker::start().await;
    let transport = broker.transport();
    broker.answer(200, r#"{"success":true}"#);
    transport.spawn(SpawnAgent::new("w1", "cat")).await.unwrap();
    broker.answer(500, r#"{"success":false,"name":"w1","error":"agent 'w1' already exists"}"#);
    let fault = transport.spawn(SpawnAgent::new("w1", "cat")).await.unwrap_err();
    assert_eq!(fault.to_string(), "agent 'w1' already exists");
    broker.answer(200, r#"{"agents":[{"name":"w1"},{"name":"a b"},{}]}"#);
    assert_eq!(transport.agents().await.unwrap(), ["w1", "a b"]);
    transport.release("a b").await.unwrap();
    let spawn = r#"POST /api/spawn {"name":"w1","cli":"cat","args":[],"skipRelayPrompt":true}"#;
    assert_eq!(broker.calls(), [spawn, spawn, "GET /api/spawned", "DELETE /api/spawned/a%20b {}"]);
}

#[tokio::test]
async fn stored_events_come_first_then_new_ones() {
    let broker = FakeBroker::start().await;
    for name in ["a", "b", "c"] {
        broker.tell(name);
    }
    let transport = broker.transport();
    let mut events = transport.subscribe(Since::Seq(1)).await.unwrap();
    assert_eq!(heard(&mut events, "caught up").await, ["2 b", "3 c", "caught up"]);
    broker.tell("d");
    assert_eq!(heard(&mut events, "d").await, ["4 d"]);

    let mut now = transport.subscribe(Since::Now).await.unwrap();
    assert_eq!(heard(&mut now, "caught up").await, ["caught up"]);
    broker.tell("e");
    assert_eq!(heard(&mut now, "e").await, ["5 e"]);
}

#[tokio::test]
async fn fault_26_a_frame_that_cannot_be_read_ends_the_stream_and_is_quoted() {
    let broker = FakeBroker::start().await;
    broker.tell("a");
    let mut events = broker.transport().subscribe(Since::Seq(0)).await.unwrap();
    assert_eq!(heard(&mut events, "caught up").await, ["1 a", "caught up"]);
    broker.send(&format!("{{half a result \u{1b}]0; {KEY} {}", "z".repeat(10_000)));
    let RelayEventKind::Closed { reason } = events.next().await.kind else { panic!("the stream goes on") };
    assert!(reason.starts_with("the broker sent an invalid event: `{half a result"), "{reason}");
    assert!(!reason.contains(KEY) && !reason.contains('\u{1b}') && reason.len() < 1_000, "{reason}");
}

#[tokio::test]
async fn a_broken_stream_goes_on_where_it_was_and_tells_what_is_lost() {
    let broker = FakeBroker::start().await;
    broker.tell("a");
    let mut events = broker.transport().subscribe(Since::Seq(0)).await.unwrap();
    assert_eq!(heard(&mut events, "caught up").await, ["1 a", "caught up"]);
    broker.break_off(false);
    broker.tell("b");
    assert_eq!(heard(&mut events, "b").await, ["reconnected", "2 b"]);

    broker.break_off(true);
    for name in ["c", "d", "e"] {
        broker.tell(name);
    }
    broker.forget(4);
    broker.break_off(false);
    assert_eq!(heard(&mut events, "e").await, ["reconnected", "gap 2..5", "5 e"]);
    let sockets: Vec<_> = broker.calls().into_iter().filter(|call| call.starts_with("GET /ws")).collect();
    assert_eq!(sockets.first().unwrap(), "GET /ws?sinceSeq=0");
    assert_eq!(sockets.last().unwrap(), "GET /ws?sinceSeq=2");
}

#[tokio::test]
async fn a_broker_that_stays_away_is_told_once() {
    let broker = FakeBroker::start().await;
    let mut events = broker.transport().subscribe(Since::Now).await.unwrap();
    assert_eq!(heard(&mut events, "caught up").await, ["caught up"]);
    broker.break_off(true);
    assert_eq!(heard(&mut events, "closed").await, ["closed"]);
    assert_eq!(broker.calls().len(), 1 + 5);
}

#[tokio::test]
async fn the_key_is_in_no_fault_and_no_debug_output() {
    let broker = FakeBroker::start().await;
    let transport = broker.transport();
    let mut shown = vec![format!("{transport:?}"), format!("{:?}", broker.connection())];
    for (status, answer) in [(401, "{}"), (500, "<html>"), (200, "no json")] {
        broker.answer(status, answer);
        let fault = transport.agents().await.unwrap_err();
        shown.push(format!("{fault} {fault:?} {:?}", fault.hint()));
    }
    broker.break_off(true);
    let fault: RelayFault = transport.subscribe(Since::Now).await.unwrap_err();
    shown.push(format!("{fault} {fault:?}"));
    assert!(shown.iter().all(|text| !text.contains(KEY)), "{shown:?}");
}
