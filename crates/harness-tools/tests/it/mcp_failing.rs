//! MCP servers that fail: what a model is told, and what comes after.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use harness_core::port::{BoxFuture, Clock};
use harness_core::tool::{ToolOutcome, ToolRegistry};
use harness_core::{Cancel, Time};
use harness_tools::mcp::{MAX_MESSAGE, McpServer, McpSpec};
use serde_json::{Value, json};

use crate::mcp_peer::{Door, Peer, cx, read, read_file, run, server};
use crate::support::told;

/// Lists its tools and takes a call, which it does not answer.
async fn take_call(door: &mut Door, tools: Value) -> (Peer, Value) {
    let mut peer = door.serve(tools).await;
    let call = peer.expect("tools/call").await;
    (peer, call)
}

/// The outcome of a call during which the connection ends.
fn lost(configure: impl FnOnce(&mut McpSpec), hints: Value) -> ToolOutcome {
    let (server, mut door) = server(configure);
    let tools = json!([{"name": "read_file", "inputSchema": {"type": "object"}, "annotations": hints}]);
    run(async {
        let (_, mut peer) = tokio::join!(server.tools(), door.serve(tools));
        let end = async {
            peer.expect("tools/call").await;
            drop(peer);
        };
        tokio::join!(read(&server), end).0
    })
}

#[test]
fn a_connection_that_ends_during_a_call_may_have_left_effects() {
    insta::assert_snapshot!(told(&lost(|_| {}, json!({"readOnlyHint": true}))), @"
    failed mcp_server_lost
    the MCP server `files` was lost during the call of `read_file`, which may have had effects: find out before you call it again; the connection to it ended
    ");
}

#[test]
fn a_tool_that_may_be_called_again_is_said_so() {
    let trusted = |hints| told(&lost(|spec| spec.trust_annotations = true, hints));
    insta::assert_snapshot!(trusted(json!({"readOnlyHint": true})), @"
    failed mcp_server_lost retryable
    the MCP server `files` was lost during the call of `read_file`, which only reads and can be called again; the connection to it ended
    ");
    insta::assert_snapshot!(trusted(json!({"idempotentHint": true})), @"
    failed mcp_server_lost retryable
    the MCP server `files` was lost during the call of `read_file`, which may have had effects and can be called again with the same arguments; the connection to it ended
    ");
}

#[test]
fn the_call_after_a_lost_connection_opens_another_and_its_tools_count() {
    let (server, mut door) = server(|_| {});
    run(async {
        let (lost, ()) = tokio::join!(read(&server), async { drop(take_call(&mut door, read_file()).await) });
        assert!(lost.is_error());
        let answer = async {
            let mut peer = door.greet().await;
            let call = peer.expect("tools/call").await;
            peer.reply(&call, json!({"content": [{"type": "text", "text": "back"}]})).await;
            peer
        };
        let (again, mut peer) = tokio::join!(read(&server), answer);
        assert_eq!(told(&again), "success\nback");
        let (tools, ()) = tokio::join!(server.tools(), peer.list(json!([])));
        assert!(tools.unwrap().is_empty());
    });
}

#[test]
fn all_calls_under_way_are_answered_when_the_connection_ends() {
    let (server, mut door) = server(|_| {});
    run(async {
        let (_, mut peer) = tokio::join!(server.tools(), door.serve(read_file()));
        let end = async {
            peer.expect("tools/call").await;
            peer.expect("tools/call").await;
            drop(peer);
        };
        let (one, two, ()) = tokio::join!(read(&server), read(&server), end);
        for outcome in [one, two] {
            assert_eq!(outcome.error.unwrap().code, "mcp_server_lost");
        }
    });
}

#[test]
fn a_cancelled_call_is_cancelled_at_the_server() {
    let (server, mut door) = server(|_| {});
    let mut asked = cx("files__read_file", "{\"path\":\"a\"}");
    asked.cancel = Cancel::new();
    let cancel = asked.cancel.clone();
    let speak = async {
        let (mut peer, call) = take_call(&mut door, read_file()).await;
        cancel.cancel();
        let cancelled = peer.expect("notifications/cancelled").await;
        assert_eq!(cancelled["params"]["requestId"], call["id"]);
        peer
    };
    let (outcome, _peer) = run(async { tokio::join!(server.call(asked), speak) });
    insta::assert_snapshot!(told(&outcome.unwrap()), @r"
    cancelled cancelled
    the call of `read_file` on the MCP server `files` was cancelled, which may have had effects: find out before you call it again
    ");
}

#[test]
fn a_call_that_is_cancelled_before_it_begins_is_not_sent() {
    let (server, mut door) = server(|_| {});
    let mut asked = cx("files__read_file", "{}");
    asked.cancel = Cancel::new();
    asked.cancel.cancel();
    insta::assert_snapshot!(told(&run(server.call(asked)).unwrap()), @r"
    cancelled cancelled
    `read_file` was not called: the call was cancelled
    ");
    assert!(door.is_quiet());
}

#[test]
fn a_call_that_is_dropped_is_cancelled_at_the_server() {
    let (server, mut door) = server(|_| {});
    run(async {
        let (mut peer, call) = tokio::select! {
            outcome = read(&server) => panic!("nobody answered, but it gave {outcome:?}"),
            taken = take_call(&mut door, read_file()) => taken,
        };
        let cancelled = peer.expect("notifications/cancelled").await;
        assert_eq!(cancelled["params"]["requestId"], call["id"]);
    });
}

#[test]
fn a_call_without_an_answer_ends_at_its_timeout_and_is_cancelled_at_the_server() {
    let (server, mut door) = server(|spec| spec.timeout = Duration::from_secs(5));
    let speak = async {
        let (mut peer, call) = take_call(&mut door, read_file()).await;
        let cancelled = peer.expect("notifications/cancelled").await;
        assert_eq!(cancelled["params"]["requestId"], call["id"]);
        // A late answer is nobody's.
        peer.reply(&call, json!({"content": [{"type": "text", "text": "late"}]})).await;
        let next = peer.expect("tools/call").await;
        peer.reply(&next, json!({"content": [{"type": "text", "text": "in time"}]})).await;
        peer
    };
    let twice = async { (read(&server).await, read(&server).await) };
    let ((first, second), _peer) = run(async { tokio::join!(twice, speak) });
    insta::assert_snapshot!(told(&first), @r"
    timeout timeout
    the MCP server `files` did not respond within 5.0 s; the call of `read_file` was cancelled, which may have had effects: find out before you call it again
    ");
    assert_eq!(told(&second), "success\nin time");
}

/// A clock that stands still.
struct Stopped(Time);

impl Clock for Stopped {
    fn now(&self) -> Time {
        self.0
    }

    fn sleep_until(&self, _: Time) -> BoxFuture<'static, ()> {
        Box::pin(std::future::pending())
    }
}

#[test]
fn with_a_clock_a_call_ends_at_the_turns_deadline() {
    let (server, mut door) = server(|_| {});
    let server = server.with_clock(Arc::new(Stopped(Time(1_000))));
    let mut asked = cx("files__read_file", r#"{"path":"a"}"#);
    asked.deadline = Some(Time(1_200));
    let mut late = asked.clone();
    late.deadline = Some(Time(900));
    run(async {
        let (outcome, _peer) = tokio::join!(server.call(asked), take_call(&mut door, read_file()));
        insta::assert_snapshot!(told(&outcome.unwrap()), @r"
        timeout timeout
        the MCP server `files` did not respond in the 200 ms that were left of the turn; the call of `read_file` was cancelled, which may have had effects: find out before you call it again
        ");
        insta::assert_snapshot!(told(&server.call(late).await.unwrap()), @"
        timeout timeout
        the MCP server `files` was not ready in the 0 ms that were left of the turn, and `read_file` was not called
        ");
    });
}

#[test]
fn a_server_that_never_greets_is_given_up_and_left_alone_for_a_while() {
    let (server, mut door) = server(|spec| spec.connect_timeout = Duration::from_secs(3));
    run(async {
        let (fault, mut peer) = tokio::join!(server.tools(), door.open());
        insta::assert_snapshot!(fault.unwrap_err(), @r"
        cannot use MCP server `files`: it was not ready within 3.0 s
        ");
        peer.expect("initialize").await;
        assert!(peer.is_left().await);

        insta::assert_snapshot!(told(&read(&server).await), @"
        failed mcp_unavailable
        the MCP server `files` cannot be used, and `read_file` was not called: it was not ready within 3.0 s; check that the command is an MCP server over stdio, or raise `connect_timeout`
        ");
        assert!(door.is_quiet());
        tokio::time::advance(Duration::from_millis(1_001)).await;
        let (tools, _peer) = tokio::join!(server.tools(), door.serve(read_file()));
        assert_eq!(tools.unwrap().len(), 1);
    });
}

#[test]
fn each_failure_doubles_the_pause_up_to_a_bound() {
    let dialled = Arc::<AtomicU32>::default();
    let dials = Arc::clone(&dialled);
    let server = McpServer::new(
        "files",
        McpSpec::streams(move || {
            dials.fetch_add(1, Ordering::Relaxed);
            std::future::ready(Err::<(tokio::io::Empty, tokio::io::Sink), _>(std::io::Error::other("gone")))
        }),
    );
    let dials_at = |second: u64| {
        let (server, dialled) = (server.clone(), Arc::clone(&dialled));
        async move {
            tokio::time::sleep_until(tokio::time::Instant::now() + Duration::from_secs(second)).await;
            assert!(server.tools().await.is_err());
            dialled.load(Ordering::Relaxed)
        }
    };
    let counts = run(async {
        let mut counts = Vec::new();
        // Each pause, but for its last second, and then that second.
        for pause in [0, 1, 2, 4, 8, 16, 30, 30] {
            counts.push(dials_at(pause - u64::min(pause, 1)).await);
            counts.push(dials_at(u64::min(pause, 1)).await);
        }
        counts
    });
    assert_eq!(counts, [1, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7, 8]);
}

#[test]
fn a_server_that_refuses_the_greeting_says_why() {
    let (server, mut door) = server(|_| {});
    let speak = async {
        let mut peer = door.open().await;
        let hello = peer.expect("initialize").await;
        peer.refuse(&hello, json!({"code": -32001, "message": "licence expired"})).await;
        peer
    };
    let (fault, _peer) = run(async { tokio::join!(server.tools(), speak) });
    insta::assert_snapshot!(fault.unwrap_err(), @r"
    cannot use MCP server `files`: it answered `initialize` with error -32001: licence expired
    ");
}

#[test]
fn when_a_server_cannot_be_reached_any_more_its_last_list_is_offered_and_calls_say_so() {
    let (server, mut door) = server(|_| {});
    run(async {
        let (_, peer) = tokio::join!(server.tools(), door.serve(read_file()));
        drop((peer, door));
        let lost = read(&server).await;
        assert!(lost.is_error());
        assert_eq!(server.tools().await.unwrap().len(), 1);
        insta::assert_snapshot!(told(&read(&server).await), @"
        failed mcp_unavailable
        the MCP server `files` cannot be used, and `read_file` was not called: the streams to it could not be opened: nobody is at the door
        ");
    });
}

#[test]
fn lines_that_are_no_messages_are_passed_over() {
    let (server, mut door) = server(|_| {});
    let speak = async {
        let (mut peer, call) = take_call(&mut door, read_file()).await;
        peer.print("Listening on stdio...\n\n{\"half\": \n\u{1b}[32mready\u{1b}[0m\n").await;
        peer.reply(&call, json!({"content": [{"type": "text", "text": "found"}]})).await;
        peer
    };
    let (outcome, _peer) = run(async { tokio::join!(read(&server), speak) });
    assert_eq!(told(&outcome), "success\nfound");
}

#[test]
fn an_answer_that_is_no_result_is_said_so() {
    let (server, mut door) = server(|_| {});
    let speak = async {
        let (mut peer, call) = take_call(&mut door, read_file()).await;
        peer.reply(&call, json!({"tools": []})).await;
        peer
    };
    let (outcome, _peer) = run(async { tokio::join!(read(&server), speak) });
    insta::assert_snapshot!(told(&outcome), @r"
    failed mcp_unusable_answer
    the MCP server `files` answered the call of `read_file`, which may have had effects: find out before you call it again; but the response is not a tool result
    ");
}

#[test]
fn a_message_that_is_too_long_ends_the_connection() {
    let (server, mut door) = server(|_| {});
    let speak = async {
        let (mut peer, _) = take_call(&mut door, read_file()).await;
        let part = "x".repeat(64 * 1024);
        for _ in 0..=MAX_MESSAGE / part.len() {
            peer.try_print(&part).await;
        }
    };
    let (outcome, ()) = run(async { tokio::join!(read(&server), speak) });
    insta::assert_snapshot!(told(&outcome), @"
    failed mcp_message_too_long
    the MCP server `files` was lost during the call of `read_file`, which may have had effects: find out before you call it again; it sent a message of more than 16777216 bytes, and the connection was ended
    ");
}

#[test]
fn a_closed_server_is_not_used_again() {
    let (server, mut door) = server(|_| {});
    run(async {
        let (_, mut peer) = tokio::join!(server.tools(), door.serve(read_file()));
        server.close().await;
        assert!(peer.is_left().await);
        insta::assert_snapshot!(told(&read(&server).await), @"
        failed mcp_unavailable
        the MCP server `files` cannot be used, and `read_file` was not called: it was closed
        ");
        assert!(door.is_quiet());
    });
}

#[test]
fn dropping_the_last_clone_ends_the_connection() {
    let (server, mut door) = server(|_| {});
    run(async {
        let (_, mut peer) = tokio::join!(server.tools(), door.serve(read_file()));
        drop(server);
        assert!(peer.is_left().await);
    });
}
