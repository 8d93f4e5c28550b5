//! The description of the routes.

use std::collections::BTreeSet;

use expect_test::expect_file;
use serde_json::{Value, json};

use crate::support::{Desk, Server};

#[tokio::test]
async fn the_file_is_what_is_served() {
    let described = harness_server::openapi();
    expect_file!["../../../../docs/reference/openapi.json"].assert_eq(&described);
    let server = Desk::new().serve().await;
    let answered = server.client.get("/openapi.json").await.body;
    assert_eq!(answered, serde_json::from_str::<Value>(&described).unwrap());
    server.end().await;
}

#[tokio::test]
async fn the_schema_of_events_is_what_is_served() {
    let schema = harness_server::event_schema();
    expect_file!["../../../../docs/reference/thread-events.schema.json"].assert_eq(&schema);
    let server = Desk::new().serve().await;
    let answered = server.client.get("/thread-events.schema.json").await.body;
    assert_eq!(answered, serde_json::from_str::<Value>(&schema).unwrap());
    server.end().await;
}

/// Checks the events of a thread against the schema, and returns their names.
async fn check(server: &Server, kind: &str) -> BTreeSet<String> {
    let schema = serde_json::from_str(&harness_server::event_schema()).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let path = format!("/v1/threads/a/events?from=replay&until=run_end&kind={kind}");
    let frames = server.client.follow(&path, None).await.rest().await;
    for frame in &frames {
        let event = json!({ "event": frame.event, "data": frame.data });
        assert!(validator.is_valid(&event), "{event:#}");
        assert!(!validator.is_valid(&json!({ "event": "none", "data": frame.data })));
        assert!(!validator.is_valid(&json!({ "event": frame.event, "data": 7 })));
    }
    frames.into_iter().map(|frame| frame.event).collect()
}

#[tokio::test]
async fn streams_match_the_schema_of_events() {
    let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<BTreeSet<_>>();
    let server = Desk::new().serve().await;
    server.client.create("a").await;
    server.client.post("/v1/threads/a/steer", json!({ "text": "call slow" })).await;
    server.desk.go.add_permits(1);
    server.client.ask("a", "think hard").await;
    let full = ["delta", "end", "event", "queue", "run_ended", "run_started", "status"];
    assert_eq!(check(&server, "full").await, names(&full));
    assert_eq!(check(&server, "text").await, names(&["end", "text"]));
    assert_eq!(check(&server, "items").await, names(&["end", "item"]));
    server.end().await;
}

/// Checks a response of the server against its description.
async fn check_response(server: &Server, method: &str, path: &str, template: &str) {
    let described: Value = serde_json::from_str(&harness_server::openapi()).unwrap();
    let operation = &described["paths"][template][method];
    let mut schema = operation["responses"]["200"]["content"]["application/json"]["schema"].clone();
    schema["components"] = described["components"].clone();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let request = server.client.request(method.to_uppercase().parse().unwrap(), path);
    let request = if method == "post" { request.json(&json!({ "text": "hello" })) } else { request };
    let reply = server.client.send(request).await;
    assert_eq!(reply.status, 200, "{}", reply.body);
    assert_eq!(validator.validate(&reply.body).map_err(|error| error.to_string()), Ok(()), "{path}");
    // The schema is one of this response: it says more than that there is an object.
    assert!(!validator.is_valid(&json!({})), "{template}");
}

#[tokio::test]
async fn responses_match_their_description() {
    let server = Desk::new().serve().await;
    server.client.create("a").await;
    check_response(&server, "post", "/v1/threads/a/prompt?wait", "/v1/threads/{thread}/prompt").await;
    server.desk.go.add_permits(1);
    server.client.ask("a", "call slow").await;
    check_response(&server, "get", "/v1/threads/a/messages", "/v1/threads/{thread}/messages").await;
    check_response(&server, "get", "/v1/threads/a", "/v1/threads/{thread}").await;
    check_response(&server, "get", "/v1/threads/a/response", "/v1/threads/{thread}/response").await;
    check_response(&server, "get", "/v1/threads/a/queue", "/v1/threads/{thread}/queue").await;
    server.end().await;
}

/// Checks a response of OpenAI's API with a call against its description.
#[tokio::test]
async fn output_items_match_their_description() {
    let described: Value = serde_json::from_str(&harness_server::openapi()).unwrap();
    let server = Desk::new().serve().await;
    server.desk.go.add_permits(1);
    let reply =
        server.client.post("/v1/responses", json!({ "model": "harness", "input": "call slow" })).await;
    assert_eq!(reply.status, 200, "{}", reply.body);
    let kinds: Vec<&Value> =
        reply.body["output"].as_array().unwrap().iter().map(|item| &item["type"]).collect();
    assert_eq!(kinds, ["mcp_call", "message"]);
    let mut schema = json!({ "$ref": "#/components/schemas/ResponseView" });
    schema["components"] = described["components"].clone();
    let validator = jsonschema::validator_for(&schema).unwrap();
    assert_eq!(validator.validate(&reply.body).map_err(|error| error.to_string()), Ok(()));
    let mut other = reply.body.clone();
    other["output"][0]["type"] = json!("function_call");
    assert!(!validator.is_valid(&other));
    server.end().await;
}

/// Checks whether the description accepts a message of a user.
#[track_caller]
fn check_prompt(body: &Value, accepted: bool) {
    let described: Value = serde_json::from_str(&harness_server::openapi()).unwrap();
    let mut schema = json!({ "$ref": "#/components/schemas/StartRun" });
    schema["components"] = described["components"].clone();
    assert_eq!(jsonschema::validator_for(&schema).unwrap().is_valid(body), accepted, "{body}");
}

#[test]
fn messages_of_users_are_described_with_their_blocks() {
    check_prompt(&json!({ "text": "hi" }), true);
    check_prompt(&json!({ "content": [{ "type": "text", "text": "hi" }] }), true);
    check_prompt(&json!({ "content": [{ "type": "text" }] }), false);
    check_prompt(&json!({ "content": [{ "type": "image", "mimeType": "image/png", "data": "aGk=" }] }), true);
    check_prompt(&json!({ "content": [{ "type": "thinking", "thinking": "hm" }] }), false);
    check_prompt(&json!({ "content": [{ "text": "hi" }] }), false);
}

#[tokio::test]
async fn every_operation_that_is_described_is_there_and_has_a_name() {
    let described: Value = serde_json::from_str(&harness_server::openapi()).unwrap();
    let server = Desk::new().serve().await;
    server.client.create("a").await;
    let mut names = BTreeSet::new();
    for (path, operations) in described["paths"].as_object().unwrap() {
        for (method, operation) in operations.as_object().unwrap() {
            let name = operation["operationId"].as_str().unwrap();
            assert!(names.insert(name.to_owned()), "{name} is there twice");
            assert!(operation["summary"].is_string(), "{name} says what it does");
            // Threads that are not there: the route answers for them, and for none that is not a route.
            let path = path.replace("{thread}", "none").replace("{entry}", "e").replace("{approval}", "c");
            let path = path
                .replace("{model}", "none")
                .replace("{response}", "none")
                .replace("{conversation}", "none");
            let method: reqwest::Method = method.to_uppercase().parse().unwrap();
            let request = server.client.request(method.clone(), &path);
            let reply =
                server.client.send(request.header("Content-Type", "application/json").body("{}")).await;
            assert!(!["server.no_route", "server.no_method"].contains(&reply.kind()), "{method} {path}");
        }
    }
    assert_eq!(names.len(), 36);
    server.end().await;
}

/// Checks each event of a stream of another protocol against the description of its route, and returns what tells events
/// apart: the value at `kind`.
async fn check_events(server: &Server, path: &str, body: Value, kind: &str) -> BTreeSet<String> {
    let described: Value = serde_json::from_str(&harness_server::openapi()).unwrap();
    let content = &described["paths"][path]["post"]["responses"]["200"]["content"];
    let mut schema = content["text/event-stream"]["schema"].clone();
    schema["components"] = described["components"].clone();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let request = server.client.request("POST".parse().unwrap(), path).json(&body);
    let text = request.send().await.unwrap().text().await.unwrap();
    assert!(text.contains("data: "), "{path}: {text}");
    let lines = text.lines().filter_map(|line| line.strip_prefix("data: "));
    let events =
        lines.filter(|line| *line != "[DONE]").map(|line| serde_json::from_str::<Value>(line).unwrap());
    let mut kinds = BTreeSet::new();
    for mut event in events {
        assert_eq!(validator.validate(&event).map_err(|error| error.to_string()), Ok(()), "{event}");
        kinds.insert(event.pointer(kind).map_or_else(String::new, ToString::to_string));
        *event.pointer_mut(kind).unwrap() = json!(7);
        assert!(!validator.is_valid(&event), "{event}");
    }
    kinds
}

#[tokio::test]
async fn events_of_other_protocols_match_their_description() {
    let server = Desk::new().serve().await;
    server.desk.go.add_permits(3);
    let chat = json!({ "model": "harness", "stream": true, "messages": [{ "role": "user", "content": "call slow" }] });
    let kinds = check_events(&server, "/v1/chat/completions", chat, "/object").await;
    assert_eq!(kinds.len(), 1, "{kinds:?}");
    let response = json!({ "model": "harness", "stream": true, "input": "call slow" });
    let kinds = check_events(&server, "/v1/responses", response, "/type").await;
    assert!(kinds.len() > 8, "{kinds:?}");
    let run = json!({ "threadId": "a", "runId": "r1", "messages": [{ "id": "m1", "role": "user", "content": "call slow" }] });
    let kinds = check_events(&server, "/v1/ag-ui", run, "/type").await;
    assert!(kinds.len() > 8, "{kinds:?}");
    server.end().await;
}
