//! MCP servers that keep to the protocol.

use std::sync::Arc;

use harness_core::Json;
use harness_core::message::ToolCall;
use harness_core::tool::{ToolDef, ToolOutcome, ToolRegistry, ToolScope};
use harness_tools::mcp::McpSpec;
use serde_json::{Value, json};

use crate::mcp_peer::{cx, read, read_file, run, server};
use crate::support::told;

/// The definitions that a server's tools become.
fn defs(configure: impl FnOnce(&mut McpSpec), tools: Value) -> Arc<[ToolDef]> {
    let (server, mut door) = server(configure);
    run(async { tokio::join!(server.tools(), door.serve(tools)).0.unwrap() })
}

/// The outcome of a call that is answered with `result`.
fn outcome(result: Value) -> ToolOutcome {
    outcome_of(|_| {}, result)
}

fn outcome_of(configure: impl FnOnce(&mut McpSpec), result: Value) -> ToolOutcome {
    let (server, mut door) = server(configure);
    let speak = async {
        let mut peer = door.greet().await;
        peer.list(read_file()).await;
        let call = peer.expect("tools/call").await;
        peer.reply(&call, result).await;
        peer
    };
    run(async { tokio::join!(read(&server), speak).0 })
}

#[test]
fn tools_are_named_after_their_server_and_keep_their_schema() {
    let defs = defs(|_| {}, read_file());
    let [def] = &*defs else { panic!("{defs:?}") };
    assert_eq!((def.name.as_str(), &*def.description), ("files__read_file", "Reads a file"));
    let schema = r#"{"properties":{"path":{"type":"string"}},"required":["path"],"type":"object"}"#;
    assert_eq!(def.input_schema.as_ref().map(Json::text), Some(schema));
    insta::assert_snapshot!(
        def.metadata.as_ref().unwrap(),
        @r#"{"mcp":{"annotations":null,"server":"files","title":null,"tool":"read_file"}}"#
    );
}

#[test]
fn hints_decide_the_class_only_when_they_are_trusted() {
    #[track_caller]
    fn check(hints: Value, untrusted: &str, trusted: &str) {
        let tools = json!([{"name": "t", "inputSchema": {"type": "object"}, "annotations": hints}]);
        let class = |trusts| defs(|spec| spec.trust_annotations = trusts, tools.clone())[0].class.as_str();
        assert_eq!((class(false), class(true)), (untrusted, trusted));
    }
    check(json!({"readOnlyHint": true}), "unsafe", "pure");
    check(json!({"readOnlyHint": true, "idempotentHint": true}), "unsafe", "pure");
    check(json!({"idempotentHint": true}), "unsafe", "idempotent");
    check(json!({"destructiveHint": false}), "unsafe", "unsafe");
    check(json!({}), "unsafe", "unsafe");
}

#[test]
fn a_tool_without_description_has_its_title_and_of_two_with_one_name_the_first_counts() {
    let tools = json!([
        {"name": "a", "title": "Title", "inputSchema": {}},
        {"name": "b", "annotations": {"title": "Hinted"}, "inputSchema": {}},
        {"name": "a", "description": "again", "inputSchema": {}},
    ]);
    let told: Vec<_> =
        defs(|_| {}, tools).iter().map(|def| format!("{}: {}", def.name, def.description)).collect();
    assert_eq!(told, ["files__a: Title", "files__b: Hinted"]);
}

#[test]
fn the_host_decides_about_approval_and_order() {
    let defs = defs(|spec| (spec.requires_approval, spec.sequential) = (true, true), read_file());
    assert!(defs[0].requires_approval && defs[0].sequential);
}

#[test]
fn all_pages_are_listed() {
    let (server, mut door) = server(|_| {});
    let speak = async {
        let mut peer = door.greet().await;
        let tool = |name: &str| json!([{"name": name, "inputSchema": {}}]);
        let first = peer.expect("tools/list").await;
        assert_eq!(first["params"].get("cursor"), None);
        peer.reply(&first, json!({"tools": tool("a"), "nextCursor": "2"})).await;
        let second = peer.expect("tools/list").await;
        assert_eq!(second["params"]["cursor"], "2");
        peer.reply(&second, json!({"tools": tool("b")})).await;
        peer
    };
    let (defs, _peer) = run(async { tokio::join!(server.tools(), speak) });
    let names: Vec<_> = defs.unwrap().iter().map(|def| def.name.to_string()).collect();
    assert_eq!(names, ["files__a", "files__b"]);
}

#[test]
fn a_list_without_end_is_refused() {
    let (server, mut door) = server(|_| {});
    let speak = async {
        let mut peer = door.greet().await;
        loop {
            let page = peer.expect("tools/list").await;
            peer.reply(&page, json!({"tools": [], "nextCursor": "again"})).await;
        }
    };
    let fault = run(async {
        tokio::select! { tools = server.tools() => tools.unwrap_err(), () = speak => unreachable!() }
    });
    assert_eq!(fault.kind(), "tools.mcp_protocol");
    insta::assert_snapshot!(fault, @r"
    cannot use MCP server `files`: it does not follow the protocol: it lists its tools in more than 100 pages
    ");
}

#[test]
fn too_many_tools_are_refused() {
    let (server, mut door) = server(|_| {});
    let tools: Vec<_> = (0..1001).map(|n| json!({"name": format!("t{n}"), "inputSchema": {}})).collect();
    let (fault, _peer) = run(async { tokio::join!(server.tools(), door.serve(json!(tools))) });
    insta::assert_snapshot!(fault.unwrap_err(), @r"
    cannot use MCP server `files`: it does not follow the protocol: it lists more than 1000 tools
    ");
}

#[test]
fn a_server_without_tools_is_not_asked_for_them() {
    let (server, mut door) = server(|_| {});
    let speak = async {
        let mut peer = door.open().await;
        let hello = peer.expect("initialize").await;
        let info = json!({"name": "test", "version": "1"});
        peer.reply(&hello, json!({"protocolVersion": "2024-11-05", "capabilities": {}, "serverInfo": info}))
            .await;
        peer.expect("notifications/initialized").await;
        peer
    };
    let (tools, _peer) = run(async { tokio::join!(server.tools(), speak) });
    assert!(tools.unwrap().is_empty());
}

#[test]
fn a_call_reaches_the_server_with_its_arguments_and_key() {
    let (server, mut door) = server(|_| {});
    let speak = async {
        let mut peer = door.serve(read_file()).await;
        let call = peer.expect("tools/call").await;
        peer.reply(&call, json!({"content": [{"type": "text", "text": "found"}]})).await;
        (call, peer)
    };
    let (outcome, (call, _peer)) = run(async { tokio::join!(read(&server), speak) });
    assert_eq!(told(&outcome), "success\nfound");
    let params = &call["params"];
    assert_eq!((&params["name"], &params["arguments"]), (&json!("read_file"), &json!({"path": "a"})));
    assert_eq!(params["_meta"]["harness/idempotencyKey"], "-/-/0/0/call-7");
}

#[test]
fn results_are_read_as_they_are_meant() {
    #[track_caller]
    fn check(result: Value, expected: &str) {
        assert_eq!(told(&outcome(result)), expected);
    }
    check(
        json!({"content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}),
        "success\na\n---\nb",
    );
    check(json!({"content": []}), "success\n(no output)");
    check(json!({"content": [], "structuredContent": {"n": 1}}), "success\n{\"n\":1}");
    check(
        json!({"content": [{"type": "text", "text": "no such file"}], "isError": true}),
        "failed mcp_tool_failed\nno such file",
    );
    check(
        json!({"content": [], "isError": true}),
        "failed mcp_tool_failed\n`read_file` failed and said nothing",
    );
}

#[test]
fn data_and_metadata_of_a_result_are_kept() {
    let outcome = outcome(json!({
        "content": [{"type": "text", "text": "one"}, {"type": "image", "data": "aGk=", "mimeType": "image/png"}],
        "structuredContent": {"n": 9_007_199_254_740_993_u64},
        "_meta": {"k": "v"},
    }));
    assert_eq!(outcome.structured, Some(Json::parse(r#"{"n":9007199254740993}"#).unwrap()));
    assert_eq!(outcome.metadata, Some(Json::parse(r#"{"_meta":{"k":"v"}}"#).unwrap()));
    let kinds: Vec<_> = outcome.content.iter().map(|block| Json::of(block).unwrap().to_string()).collect();
    insta::assert_snapshot!(kinds.join("\n"), @r#"
    {"type":"text","text":"one"}
    {"type":"image","data":"aGk=","mimeType":"image/png"}
    "#);
}

#[test]
fn output_has_a_bound() {
    let long = json!({
        "content": [{"type": "text", "text": "x".repeat(1000)}],
        "structuredContent": {"text": "x".repeat(1000)},
    });
    let outcome = outcome_of(|spec| spec.max_output = 10, long);
    assert_eq!(told(&outcome), "success\nxxxxx\n[... 990 bytes left out ...]\nxxxxx");
    assert_eq!(outcome.structured, None);
}

#[test]
fn an_error_of_the_protocol_is_a_result_with_its_code() {
    let (server, mut door) = server(|_| {});
    let speak = async {
        let mut peer = door.serve(read_file()).await;
        let call = peer.expect("tools/call").await;
        peer.refuse(&call, json!({"code": -32602, "message": "no such argument", "data": {"at": "path"}}))
            .await;
        peer
    };
    let (outcome, _peer) = run(async { tokio::join!(read(&server), speak) });
    assert_eq!(
        told(&outcome),
        "failed mcp_error\nthe MCP server `files` answered with error -32602: no such argument"
    );
    let data = outcome.error.and_then(|error| error.metadata).unwrap();
    assert_eq!(data.text(), r#"{"code":-32602,"data":{"at":"path"}}"#);
}

#[test]
fn a_changed_list_is_seen_at_the_next_turn_and_an_unchanged_one_is_not_asked_for() {
    let (server, mut door) = server(|_| {});
    run(async {
        let (first, mut peer) = tokio::join!(server.tools(), door.serve(read_file()));
        assert_eq!(first.unwrap().len(), 1);
        assert_eq!(server.tools().await.unwrap().len(), 1);
        peer.say(&json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"})).await;
        // Its answer comes behind the notification, so that both have arrived.
        let flush = async {
            let call = peer.expect("tools/call").await;
            peer.reply(&call, json!({"content": []})).await;
        };
        tokio::join!(read(&server), flush);
        let tools = json!([{"name": "a", "inputSchema": {}}, {"name": "b", "inputSchema": {}}]);
        let (second, ()) = tokio::join!(server.tools(), peer.list(tools));
        assert_eq!(second.unwrap().len(), 2);
        let gone = read(&server).await;
        assert_eq!(told(&gone), "failed mcp_unknown_tool\nthe MCP server `files` has no tool `read_file`");
    });
}

#[test]
fn an_agent_gets_the_tools_that_it_may_use() {
    let (server, mut door) = server(|_| {});
    let tools = json!([{"name": "a", "inputSchema": {}}, {"name": "b", "inputSchema": {}}]);
    run(async {
        let scope = ToolScope::new(Arc::default(), Some(["files__b".into()].into()));
        let (listed, _peer) = tokio::join!(server.list(&scope), door.serve(tools));
        let names: Vec<_> = listed.unwrap().iter().map(|def| def.name.to_string()).collect();
        assert_eq!(names, ["files__b"]);
        let all = server.list(&ToolScope::new(Arc::default(), None)).await.unwrap();
        assert_eq!(all.len(), 2);
    });
}

#[test]
fn instructions_are_told() {
    let (server, mut door) = server(|_| {});
    let (told, _peer) = run(async { tokio::join!(server.instructions(), door.greet()) });
    assert_eq!(told.unwrap().as_deref(), Some("Read before you write."));
}

#[test]
fn arguments_that_are_no_object_are_not_sent() {
    let (server, mut door) = server(|_| {});
    let outcome = run(server.call(cx("files__read_file", "[1]"))).unwrap();
    assert_eq!(
        told(&outcome),
        "failed invalid_arguments\nthe arguments are wrong: expected an object, not a list"
    );
    assert!(door.is_quiet());
}

#[cfg(feature = "schema-validation")]
#[test]
fn arguments_are_checked_against_the_schema_as_soon_as_it_is_known() {
    let (server, mut door) = server(|_| {});
    let (tools, _peer) = run(async { tokio::join!(server.tools(), door.serve(read_file())) });
    tools.unwrap();
    let call = ToolCall::new("call-7", "files__read_file", Json::parse(r#"{"path":1}"#).unwrap());
    let fault = server.check(&call).unwrap_err();
    assert_eq!(fault.to_string(), "argument `path` is wrong: expected string, found 1");
}

#[test]
fn what_a_server_asks_of_its_client_is_declined() {
    let (server, mut door) = server(|_| {});
    let speak = async {
        let mut peer = door.serve(read_file()).await;
        let call = peer.expect("tools/call").await;
        let sampling = json!({"messages": [], "maxTokens": 1});
        peer.say(
            &json!({"jsonrpc": "2.0", "id": 99, "method": "sampling/createMessage", "params": sampling}),
        )
        .await;
        let answer = peer.next().await;
        peer.reply(&call, json!({"content": []})).await;
        (answer, peer)
    };
    let (outcome, (answer, _peer)) = run(async { tokio::join!(read(&server), speak) });
    assert!(!outcome.is_error());
    assert_eq!(answer["error"]["code"], -32601);
}
