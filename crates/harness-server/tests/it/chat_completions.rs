//! Chat completions in the form of OpenAI.

use expect_test::{Expect, expect};
use reqwest::Method;
use serde_json::{Value, json};

use crate::support::{Desk, Server, redacted, within};

const PATH: &str = "/v1/chat/completions";

fn asked(text: &str) -> Value {
    json!({ "model": "harness", "messages": [{ "role": "user", "content": text }] })
}

/// Chunks of a stream, each as a line; the last is `[DONE]`.
async fn chunks(server: &Server, mut body: Value) -> String {
    body["stream"] = json!(true);
    let response =
        within("the stream", server.client.request(Method::POST, PATH).json(&body).send()).await.unwrap();
    assert_eq!(response.headers()["content-type"], "text/event-stream");
    let text = within("the whole stream", response.text()).await.unwrap();
    let lines = text.split("\n\n").filter_map(|event| event.strip_prefix("data: "));
    lines.map(|line| redacted(line) + "\n").collect()
}

#[tokio::test]
async fn an_answer_has_the_form_of_openai() {
    let server = Desk::new().serve().await;
    let reply = server.client.post(PATH, asked("hello")).await;
    expect![[r#"200 {"id":"chatcmpl","object":"chat.completion","created":0,"model":"harness","choices":[{"index":0,"message":{"role":"assistant","content":"hello","refusal":null},"logprobs":null,"finish_reason":"stop"}],"usage":{"prompt_tokens":68,"completion_tokens":2,"total_tokens":70,"prompt_tokens_details":{"cached_tokens":0},"completion_tokens_details":{"reasoning_tokens":0}},"harness":{"run":"run","outcome":"completed","stop_reason":"answer_finalized"}}"#]].assert_eq(&format!("{} {}", reply.status, redacted(&reply.body.to_string())));
    assert_eq!(server.client.get("/v1/threads").await.body["threads"], json!([]), "its thread is gone");
    server.end().await;
}

#[tokio::test]
async fn a_stream_ends_with_done() {
    let server = Desk::new().serve().await;
    let mut body = asked("hello");
    body["stream_options"] = json!({ "include_usage": true });
    expect![[r#"
        {"id":"chatcmpl","object":"chat.completion.chunk","created":0,"model":"harness","choices":[{"index":0,"delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null}]}
        {"id":"chatcmpl","object":"chat.completion.chunk","created":0,"model":"harness","choices":[{"index":0,"delta":{"content":"hel"},"logprobs":null,"finish_reason":null}]}
        {"id":"chatcmpl","object":"chat.completion.chunk","created":0,"model":"harness","choices":[{"index":0,"delta":{"content":"lo"},"logprobs":null,"finish_reason":null}]}
        {"id":"chatcmpl","object":"chat.completion.chunk","created":0,"model":"harness","choices":[{"index":0,"delta":{},"logprobs":null,"finish_reason":"stop"}],"harness":{"run":"run","outcome":"completed","stop_reason":"answer_finalized"}}
        {"id":"chatcmpl","object":"chat.completion.chunk","created":0,"model":"harness","choices":[],"usage":{"prompt_tokens":68,"completion_tokens":2,"total_tokens":70,"prompt_tokens_details":{"cached_tokens":0},"completion_tokens_details":{"reasoning_tokens":0}}}
        [DONE]
    "#]].assert_eq(&chunks(&server, body).await);
    server.end().await;
}

#[tokio::test]
async fn the_server_runs_the_tools_and_their_calls_are_not_shown() {
    let server = Desk::new().serve().await;
    server.desk.go.add_permits(1);
    let reply = server.client.post(PATH, asked("call slow")).await;
    assert_eq!(reply.body["choices"][0]["message"]["content"], "slowly done");
    expect![[r#"
        {"id":"chatcmpl","object":"chat.completion.chunk","created":0,"model":"harness","choices":[{"index":0,"delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null}]}
        {"id":"chatcmpl","object":"chat.completion.chunk","created":0,"model":"harness","choices":[{"index":0,"delta":{"content":"slowly"},"logprobs":null,"finish_reason":null}]}
        {"id":"chatcmpl","object":"chat.completion.chunk","created":0,"model":"harness","choices":[{"index":0,"delta":{"content":" done"},"logprobs":null,"finish_reason":null}]}
        {"id":"chatcmpl","object":"chat.completion.chunk","created":0,"model":"harness","choices":[{"index":0,"delta":{},"logprobs":null,"finish_reason":"stop"}],"harness":{"run":"run","outcome":"completed","stop_reason":"answer_finalized"}}
        [DONE]
    "#]].assert_eq(&chunks(&server, asked("call slow")).await);
    server.end().await;
}

#[tokio::test]
async fn the_messages_are_the_history() {
    let server = Desk::with(|builder| builder.instructions("Be brief.")).serve().await;
    let picture = "data:image/png;base64,aGk=";
    let body = json!({ "model": "harness", "messages": [
        { "role": "developer", "content": "Speak French." },
        { "role": "user", "content": "one" },
        { "role": "assistant", "content": null, "tool_calls": [
            { "id": "c", "type": "function", "function": { "name": "pay", "arguments": "{\"amount\":1}" } },
        ] },
        { "role": "tool", "tool_call_id": "c", "content": "paid" },
        { "role": "assistant", "content": [{ "type": "text", "text": "done" }], "annotations": [] },
        { "role": "user", "content": [
            { "type": "text", "text": "two" }, { "type": "image_url", "image_url": { "url": picture } },
        ] },
    ] });
    let reply = server.client.post(PATH, body).await;
    assert_eq!(
        (reply.status, &reply.body["choices"][0]["message"]["content"]),
        (200, &json!("two")),
        "{}",
        reply.body
    );
    server.end().await;
}

async fn check(change: impl FnOnce(&mut Value), expected: Expect) {
    let server = Desk::new().serve().await;
    let mut body = asked("hello");
    change(&mut body);
    let reply = server.client.post(PATH, body).await;
    expected.assert_eq(&format!("{} {}", reply.status, reply.body));
    server.end().await;
}

#[tokio::test]
async fn what_is_not_supported_is_named() {
    check(|body| body["tools"] = json!([{ "type": "function" }]), expect![[r#"400 {"error":{"message":"`tools` is not supported: the server runs the tools of the agents, and tools of a client cannot be called","type":"invalid_request_error","param":"tools","code":"unsupported_parameter"}}"#]]).await;
    check(|body| body["n"] = json!(2), expect![[r#"400 {"error":{"message":"`n` is not supported: one answer is given per request","type":"invalid_request_error","param":"n","code":"unsupported_parameter"}}"#]]).await;
    check(|body| body["stop"] = json!(["x"]), expect![[r#"400 {"error":{"message":"`stop` is not supported: agents do not stop at words","type":"invalid_request_error","param":"stop","code":"unsupported_parameter"}}"#]]).await;
    check(|body| body["model"] = json!("gpt-5"), expect![[r#"404 {"error":{"message":"the model `gpt-5` was not found; use `harness`, or another model of GET /v1/models","type":"invalid_request_error","param":"model","code":"model_not_found"}}"#]]).await;
    check(|body| body["messages"] = json!([{ "role": "assistant", "content": "x" }]), expect![[r#"400 {"error":{"message":"the last entry of `messages` is not a message of the user; end with a message of the role `user` that has content","type":"invalid_request_error","param":"messages","code":"request.invalid"}}"#]]).await;
    check(|body| body["messages"][0]["content"] = json!([{ "type": "video" }]), expect![[r#"400 {"error":{"message":"unknown part `video`; use parts of text, images, files and audio","type":"invalid_request_error","param":"messages[0].content[0].type","code":"request.invalid"}}"#]]).await;
    check(|body| body["teperature"] = json!(1), expect![[r#"400 {"error":{"message":"unknown field `teperature`, expected one of `model`, `messages`, `stream`, `stream_options`, `response_format`, `user`, `safety_identifier`, `metadata`","type":"invalid_request_error","param":"teperature","code":"request.invalid"}}"#]]).await;
    check(|body| body["messages"] = json!("hello"), expect![[r#"400 {"error":{"message":"invalid type: string \"hello\", expected a sequence","type":"invalid_request_error","param":"messages","code":"request.invalid"}}"#]]).await;
}

#[tokio::test]
async fn settings_of_the_model_are_ignored() {
    let server = Desk::new().serve().await;
    let mut body = asked("hello");
    for (name, value) in
        [("temperature", json!(0.5)), ("max_tokens", json!(9)), ("tools", json!([])), ("n", json!(1))]
    {
        body[name] = value;
    }
    assert_eq!(server.client.post(PATH, body).await.status, 200);
    server.end().await;
}

#[tokio::test]
async fn a_call_that_requires_approval_is_an_error() {
    let server = Desk::new().serve().await;
    let response = server.client.request(Method::POST, PATH).json(&asked("call pay")).send().await.unwrap();
    assert_eq!(
        (response.status().as_u16(), &response.headers()["x-should-retry"]),
        (403, &"false".parse().unwrap())
    );
    expect![[r#"{"error":{"message":"the call of `pay` requires approval; chat completions cannot ask for it: use POST /v1/responses or a thread","type":"permission_error","param":null,"code":"approval_required"}}"#]].assert_eq(&response.text().await.unwrap());
    expect![[r#"
        {"id":"chatcmpl","object":"chat.completion.chunk","created":0,"model":"harness","choices":[{"index":0,"delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null}]}
        {"error":{"message":"the call of `pay` requires approval; chat completions cannot ask for it: use POST /v1/responses or a thread","type":"permission_error","param":null,"code":"approval_required"}}
    "#]].assert_eq(&chunks(&server, asked("call pay")).await);
    assert!(server.desk.approvals.all().is_empty());
    server.end().await;
}

#[tokio::test]
async fn a_client_that_disconnects_ends_the_run() {
    let server = Desk::new().serve().await;
    for is_streamed in [true, false] {
        let mut body = asked("call slow");
        body["stream"] = json!(is_streamed);
        let request = server.client.request(Method::POST, PATH).json(&body).send();
        let mut request = Box::pin(async move { request.await.unwrap().text().await });
        tokio::select! {
            _ = &mut request => panic!("the tool waits"),
            () = server.desk.began.notified() => {}
        }
        drop(request);
        // The thread is deleted when its run has ended.
        while server.client.get("/v1/threads").await.body["threads"] != json!([]) {
            tokio::task::yield_now().await;
        }
    }
    server.end().await;
}

#[tokio::test]
async fn errors_of_access_have_the_form_too() {
    let server = Desk::new().serve_with(|options| options.token("0123456789abcdef").unwrap()).await;
    let reply = server.client.get("/v1/models").await;
    expect![[r#"401 {"error":{"message":"missing bearer token; send it with `Authorization: Bearer TOKEN`","type":"authentication_error","param":null,"code":"server.token"}}"#]].assert_eq(&format!("{} {}", reply.status, reply.body));
    let reply =
        server.client.send(server.client.request(Method::PUT, PATH).bearer_auth("0123456789abcdef")).await;
    expect![[r#"405 {"error":{"message":"`/v1/chat/completions` does not take PUT; GET /openapi.json lists the routes","type":"invalid_request_error","param":null,"code":"server.no_method"}}"#]].assert_eq(&format!("{} {}", reply.status, reply.body));
    server.end().await;
}

#[tokio::test]
async fn the_graph_and_its_agents_are_models() {
    let server = Desk::new().serve_with(|options| options.agents(["main"])).await;
    let models = server.client.get("/v1/models").await.body;
    expect![[r#"{"object":"list","data":[{"id":"harness","object":"model","created":0,"owned_by":"harness"},{"id":"harness:main","object":"model","created":0,"owned_by":"harness"}]}"#]].assert_eq(&models.to_string());
    assert_eq!(server.client.get("/v1/models/harness:main").await.body, models["data"][1]);
    assert_eq!(server.client.get("/v1/models/none").await.status, 404);
    let mut body = asked("hello");
    body["model"] = json!("harness:main");
    assert_eq!(server.client.post(PATH, body).await.body["model"], "harness:main");
    server.end().await;
}
