//! Responses and conversations in the form of OpenAI.

use expect_test::expect;
use reqwest::Method;
use serde_json::{Value, json};

use crate::support::{Desk, Server, redacted, within};

const PATH: &str = "/v1/responses";

async fn create(server: &Server, body: Value) -> Value {
    let mut body = body;
    body["model"] = json!("harness");
    let reply = server.client.post(PATH, body).await;
    assert_eq!(reply.status, 200, "{}", reply.body);
    reply.body
}

async fn rejected(server: &Server, mut body: Value) -> String {
    body["model"] = json!("harness");
    let reply = server.client.post(PATH, body).await;
    format!("{} {}", reply.status, reply.body["error"])
}

/// Events of a stream, each as a line.
async fn events(server: &Server, mut body: Value) -> String {
    (body["stream"], body["model"]) = (json!(true), json!("harness"));
    let response =
        within("the stream", server.client.request(Method::POST, PATH).json(&body).send()).await.unwrap();
    let text = within("the whole stream", response.text()).await.unwrap();
    let events = text.split("\n\n").filter_map(|event| event.split_once("\ndata: "));
    let line = |(name, data): (&str, &str)| {
        let mut data: Value = serde_json::from_str(data).unwrap();
        assert_eq!(name, format!("event: {}", data["type"].as_str().unwrap()));
        if let Some(response) = data.get_mut("response") {
            *response = json!([response["status"], response["output"].as_array().unwrap().len()]);
        }
        redacted(&data.to_string()) + "\n"
    };
    events.map(line).collect()
}

/// Number of messages of each thread.
async fn threads(server: &Server) -> Vec<u64> {
    let listed = server.client.get("/v1/threads").await.body;
    let mut counts = Vec::new();
    for thread in listed["threads"].as_array().unwrap() {
        let path = format!("/v1/threads/{}", thread["id"].as_str().unwrap());
        counts.push(server.client.get(&path).await.body["messages"].as_u64().unwrap());
    }
    counts.sort_unstable();
    counts
}

#[tokio::test]
async fn a_response_has_the_form_of_openai() {
    let server = Desk::new().serve().await;
    let response = create(&server, json!({ "input": "hello", "metadata": { "k": "v" } })).await;
    expect![[r#"{"id":"resp","object":"response","created_at":0,"status":"completed","error":null,"incomplete_details":null,"instructions":null,"model":"harness","output":[{"type":"message","role":"assistant","status":"completed","content":[{"type":"output_text","text":"hello","annotations":[],"logprobs":[]}],"id":"msg_resp_0"}],"previous_response_id":null,"conversation":null,"store":true,"metadata":{"k":"v"},"user":null,"parallel_tool_calls":true,"tool_choice":"auto","tools":[],"text":{"format":{"type":"text"}},"usage":{"input_tokens":68,"input_tokens_details":{"cached_tokens":0},"output_tokens":2,"output_tokens_details":{"reasoning_tokens":0},"total_tokens":70},"harness":{"run":"run","outcome":"completed","stop_reason":"answer_finalized"}}"#]].assert_eq(&redacted(&response.to_string()));
    let path = format!("{PATH}/{}", response["id"].as_str().unwrap());
    assert_eq!(server.client.get(&path).await.body, response);
    let deleted = server.client.delete(&path).await;
    assert_eq!((deleted.status, &deleted.body["deleted"]), (200, &json!(true)));
    assert_eq!(server.client.get(&path).await.status, 404);
    assert!(threads(&server).await.is_empty(), "its thread is gone");
    server.end().await;
}

#[tokio::test]
async fn a_stream_has_typed_events() {
    let server = Desk::new().serve().await;
    server.desk.go.add_permits(1);
    expect![[r#"
        {"type":"response.created","response":["in_progress",0],"sequence_number":0}
        {"type":"response.in_progress","response":["in_progress",0],"sequence_number":1}
        {"type":"response.output_item.added","output_index":0,"item":{"type":"mcp_call","server_label":"harness","name":"slow","arguments":"{\"amount\":5}","status":"in_progress","output":null,"error":null,"id":"mcp_resp_0"},"sequence_number":2}
        {"type":"response.mcp_call.in_progress","output_index":0,"item_id":"mcp_resp_0","sequence_number":3}
        {"arguments":"{\"amount\":5}","type":"response.mcp_call_arguments.done","output_index":0,"item_id":"mcp_resp_0","sequence_number":4}
        {"type":"response.mcp_call.completed","output_index":0,"item_id":"mcp_resp_0","sequence_number":5}
        {"type":"response.output_item.done","output_index":0,"item":{"type":"mcp_call","server_label":"harness","name":"slow","arguments":"{\"amount\":5}","status":"completed","output":"slowly done","error":null,"id":"mcp_resp_0"},"sequence_number":6}
        {"type":"response.output_item.added","output_index":1,"item":{"type":"message","role":"assistant","status":"in_progress","content":[],"id":"msg_resp_1"},"sequence_number":7}
        {"content_index":0,"part":{"type":"output_text","text":"","annotations":[],"logprobs":[]},"type":"response.content_part.added","output_index":1,"item_id":"msg_resp_1","sequence_number":8}
        {"content_index":0,"delta":"slowly","logprobs":[],"type":"response.output_text.delta","output_index":1,"item_id":"msg_resp_1","sequence_number":9}
        {"content_index":0,"delta":" done","logprobs":[],"type":"response.output_text.delta","output_index":1,"item_id":"msg_resp_1","sequence_number":10}
        {"content_index":0,"text":"slowly done","logprobs":[],"type":"response.output_text.done","output_index":1,"item_id":"msg_resp_1","sequence_number":11}
        {"content_index":0,"part":{"type":"output_text","text":"slowly done","annotations":[],"logprobs":[]},"type":"response.content_part.done","output_index":1,"item_id":"msg_resp_1","sequence_number":12}
        {"type":"response.output_item.done","output_index":1,"item":{"type":"message","role":"assistant","status":"completed","content":[{"type":"output_text","text":"slowly done","annotations":[],"logprobs":[]}],"id":"msg_resp_1"},"sequence_number":13}
        {"type":"response.completed","response":["completed",2],"sequence_number":14}
    "#]].assert_eq(&events(&server, json!({ "input": "call slow" })).await);
    expect![[r#"
        {"type":"response.created","response":["in_progress",0],"sequence_number":0}
        {"type":"response.in_progress","response":["in_progress",0],"sequence_number":1}
        {"type":"response.output_item.added","output_index":0,"item":{"type":"reasoning","summary":[],"id":"rs_resp_0"},"sequence_number":2}
        {"summary_index":0,"part":{"type":"summary_text","text":""},"type":"response.reasoning_summary_part.added","output_index":0,"item_id":"rs_resp_0","sequence_number":3}
        {"summary_index":0,"delta":"hm","type":"response.reasoning_summary_text.delta","output_index":0,"item_id":"rs_resp_0","sequence_number":4}
        {"summary_index":0,"text":"hm","type":"response.reasoning_summary_text.done","output_index":0,"item_id":"rs_resp_0","sequence_number":5}
        {"summary_index":0,"part":{"type":"summary_text","text":"hm"},"type":"response.reasoning_summary_part.done","output_index":0,"item_id":"rs_resp_0","sequence_number":6}
        {"type":"response.output_item.done","output_index":0,"item":{"type":"reasoning","summary":[{"type":"summary_text","text":"hm"}],"id":"rs_resp_0"},"sequence_number":7}
        {"type":"response.output_item.added","output_index":1,"item":{"type":"message","role":"assistant","status":"in_progress","content":[],"id":"msg_resp_1"},"sequence_number":8}
        {"content_index":0,"part":{"type":"output_text","text":"","annotations":[],"logprobs":[]},"type":"response.content_part.added","output_index":1,"item_id":"msg_resp_1","sequence_number":9}
        {"content_index":0,"delta":"thou","logprobs":[],"type":"response.output_text.delta","output_index":1,"item_id":"msg_resp_1","sequence_number":10}
        {"content_index":0,"delta":"ght","logprobs":[],"type":"response.output_text.delta","output_index":1,"item_id":"msg_resp_1","sequence_number":11}
        {"content_index":0,"text":"thought","logprobs":[],"type":"response.output_text.done","output_index":1,"item_id":"msg_resp_1","sequence_number":12}
        {"content_index":0,"part":{"type":"output_text","text":"thought","annotations":[],"logprobs":[]},"type":"response.content_part.done","output_index":1,"item_id":"msg_resp_1","sequence_number":13}
        {"type":"response.output_item.done","output_index":1,"item":{"type":"message","role":"assistant","status":"completed","content":[{"type":"output_text","text":"thought","annotations":[],"logprobs":[]}],"id":"msg_resp_1"},"sequence_number":14}
        {"type":"response.completed","response":["completed",2],"sequence_number":15}
    "#]].assert_eq(&events(&server, json!({ "input": "think hm" })).await);
    server.end().await;
}

#[tokio::test]
async fn a_response_continues_another_and_the_same_one_twice_forks_it() {
    let server = Desk::new().serve().await;
    let first = create(&server, json!({ "input": "one" })).await;
    let second = create(&server, json!({ "input": "two", "previous_response_id": first["id"] })).await;
    assert_eq!(second["previous_response_id"], first["id"]);
    assert_eq!(threads(&server).await, [4]);
    create(&server, json!({ "input": "three", "previous_response_id": first["id"] })).await;
    assert_eq!(threads(&server).await, [4, 4], "the first response is continued in a copy of its thread");
    create(&server, json!({ "input": "four", "previous_response_id": second["id"], "store": false })).await;
    assert_eq!(threads(&server).await, [4, 4], "nothing is stored");
    server.end().await;
}

#[tokio::test]
async fn a_copy_of_a_thread_has_its_user() {
    let folder = tempfile::tempdir().unwrap();
    let server = Desk::with_sessions(folder.path()).serve().await;
    server.client.post("/v1/threads", json!({ "id": "a", "user": "ada" })).await;
    let first = create(&server, json!({ "input": "one", "conversation": "a" })).await;
    server.client.ask("a", "two").await;
    let other = create(&server, json!({ "input": "three", "previous_response_id": first["id"] })).await;
    assert_eq!(other["status"], "completed", "{other}");
    let threads = server.client.get("/v1/threads").await.body;
    let threads = threads["threads"].as_array().unwrap();
    let users: Vec<_> = threads.iter().map(|thread| (&thread["messages"], &thread["user"])).collect();
    assert_eq!(users, [(&json!(4), &json!("ada")); 2]);
    server.end().await;
}

#[tokio::test]
async fn conversations_are_threads() {
    let server = Desk::new().serve().await;
    let conversation =
        server.client.send(server.client.request(Method::POST, "/v1/conversations")).await.body;
    let id = conversation["id"].as_str().unwrap();
    for input in ["one", "two"] {
        let response = create(&server, json!({ "input": input, "conversation": { "id": id } })).await;
        assert_eq!(response["conversation"], json!({ "id": id }));
    }
    assert_eq!(server.client.get(&format!("/v1/threads/{id}")).await.body["messages"], 4);
    let path = format!("/v1/conversations/{id}");
    assert_eq!(server.client.get(&path).await.body["object"], "conversation");
    assert_eq!(server.client.delete(&path).await.body["deleted"], true);
    assert_eq!(server.client.get(&path).await.status, 404);
    server.end().await;
}

#[tokio::test]
async fn calls_are_approved_in_the_next_response() {
    let server = Desk::new().serve().await;
    for (decision, expected) in [
        (
            json!({ "approve": true }),
            json!([["mcp_call", "completed", "paid 5"], ["message", "completed", "paid 5"]]),
        ),
        (json!({ "approve": false, "reason": "too much" }), json!("too much")),
    ] {
        let first = create(&server, json!({ "input": "call pay" })).await;
        assert_eq!(
            (&first["status"], &first["harness"]["stop_reason"]),
            (&json!("completed"), &json!("approval_required"))
        );
        let request = &first["output"][0];
        assert_eq!(
            (&request["type"], &request["name"], &request["arguments"]),
            (&json!("mcp_approval_request"), &json!("pay"), &json!("{\"amount\":5}"))
        );
        let mut answer = decision;
        (answer["type"], answer["approval_request_id"]) =
            (json!("mcp_approval_response"), request["id"].clone());
        let second = create(&server, json!({ "input": [answer], "previous_response_id": first["id"] })).await;
        let output = second["output"].as_array().unwrap();
        if expected.is_array() {
            let line = |item: &Value| {
                json!([
                    item["type"],
                    item["status"],
                    if item["output"].is_null() { &item["content"][0]["text"] } else { &item["output"] }
                ])
            };
            assert_eq!(output.iter().map(line).collect::<Value>(), expected);
        } else {
            assert!(second["output"].to_string().contains(expected.as_str().unwrap()), "{second}");
        }
        let again =
            json!({ "type": "mcp_approval_response", "approval_request_id": request["id"], "approve": true });
        let again =
            rejected(&server, json!({ "input": [again], "previous_response_id": second["id"] })).await;
        assert!(again.contains("approval_not_found"), "{again}");
    }
    server.end().await;
}

#[tokio::test]
async fn an_answer_matches_a_format() {
    let server = Desk::new().serve().await;
    let schema = json!({ "type": "object", "required": ["a"], "properties": { "a": { "type": "integer" } } });
    let format = json!({ "type": "json_schema", "name": "a", "schema": schema, "strict": true });
    let body = json!({ "input": "{\"a\": 1}", "text": { "format": format } });
    let response = create(&server, body).await;
    assert_eq!(response["output"][0]["content"][0]["text"], "{\"a\": 1}");
    let body = json!({ "input": "no", "text": { "format": format } });
    let response = create(&server, body).await;
    assert_eq!(
        (&response["status"], &response["harness"]["stop_reason"]),
        (&json!("failed"), &json!("invalid_output"))
    );
    assert_eq!(response["error"]["code"], "server_error");
    server.end().await;
}

#[tokio::test]
async fn what_is_not_supported_is_named() {
    let server = Desk::new().serve().await;
    let check = async |body: Value| rejected(&server, body).await + "\n";
    let mut all = String::new();
    for body in [
        json!({ "input": "x", "tools": [{ "type": "web_search" }] }),
        json!({ "input": "x", "background": true }),
        json!({ "input": "x", "conversation": "a", "previous_response_id": "b" }),
        json!({ "input": "x", "previous_response_id": "resp-none" }),
        json!({ "input": "x", "conversation": "none" }),
        json!({ "input": [{ "type": "function_call_output", "call_id": "c", "output": "x" }] }),
        json!({ "input": [] }),
        json!({}),
        json!({ "input": "x", "text": { "format": { "type": "grammar" } } }),
    ] {
        all += &check(body).await;
    }
    expect![[r#"
        400 {"message":"`tools` is not supported: the server runs the tools of the agents, and tools of a client cannot be called","type":"invalid_request_error","param":"tools","code":"unsupported_parameter"}
        400 {"message":"`background` is not supported: use POST /v1/threads/{thread}/prompt to run without a connection","type":"invalid_request_error","param":"background","code":"unsupported_parameter"}
        400 {"message":"set `previous_response_id` or `conversation`, not both","type":"invalid_request_error","param":"conversation","code":"request.invalid"}
        400 {"message":"the response `resp-none` was not found; the server stores the newest responses until it stops; use `conversation` for longer ones","type":"invalid_request_error","param":"previous_response_id","code":"previous_response_not_found"}
        404 {"message":"there is no thread `none`; create it with POST /v1/threads","type":"invalid_request_error","param":null,"code":"server.no_thread"}
        400 {"message":"the item `function_call_output` is not supported; use messages, and continue a thread with `previous_response_id` or `conversation`","type":"invalid_request_error","param":"input[0].type","code":"request.invalid"}
        400 {"message":"the last entry of `input` is not a message of the user; end with a message of the role `user` that has content","type":"invalid_request_error","param":"input","code":"request.invalid"}
        400 {"message":"missing field `input`, a text or a list of items","type":"invalid_request_error","param":"input","code":"request.invalid"}
        400 {"message":"unknown format `grammar`; use `text`, `json_object` or `json_schema`","type":"invalid_request_error","param":"text.format.type","code":"request.invalid"}
    "#]].assert_eq(&all);
    assert!(threads(&server).await.is_empty());
    server.end().await;
}
