//! Runs in the form of AG-UI.

use expect_test::{Expect, expect};
use harness::core::Json;
use harness::core::decide::GateVerdict;
use harness::prelude::gate;
use reqwest::Method;
use serde_json::{Value, json};

use crate::support::{Desk, Server, redacted, within};

const PATH: &str = "/v1/ag-ui";

fn user(id: &str, text: &str) -> Value {
    json!({ "id": id, "role": "user", "content": text })
}

fn input(messages: &Value) -> Value {
    json!({ "threadId": "t", "runId": "r", "messages": messages, "tools": [], "context": [], "state": {}, "forwardedProps": {} })
}

/// Events of a run.
async fn events(server: &Server, body: Value) -> Vec<Value> {
    let sent = server.client.request(Method::POST, PATH).json(&body).send();
    let response = within("the stream", sent).await.unwrap();
    let status = response.status().as_u16();
    let text = within("the whole stream", response.text()).await.unwrap();
    assert_eq!(status, 200, "{text}");
    let events = text.split("\n\n").filter_map(|event| event.strip_prefix("data: "));
    events.map(|event| serde_json::from_str(event).unwrap()).collect()
}

/// Events of a run, each as a line.
async fn lines(server: &Server, body: Value) -> String {
    events(server, body).await.iter().map(|event| redacted(&event.to_string()) + "\n").collect()
}

/// Messages of the thread: their roles, and the texts or types of their blocks.
async fn transcript(server: &Server) -> String {
    let listed = server.client.get("/v1/threads/t/messages").await.body;
    let messages = listed["messages"].as_array().unwrap().iter();
    let line = |message: &Value| {
        let text = |block: &Value| block["text"].as_str().or(block["type"].as_str()).map(str::to_owned);
        let blocks: Vec<String> = message["content"].as_array().unwrap().iter().filter_map(text).collect();
        format!("{} {blocks:?}\n", message["role"].as_str().unwrap())
    };
    messages.map(line).collect()
}

#[tokio::test]
async fn a_run_is_a_stream_of_events() {
    let server = Desk::new().serve().await;
    expect![[r#"
        {"type":"RUN_STARTED","threadId":"t","runId":"r"}
        {"type":"STEP_STARTED","stepName":"main"}
        {"type":"TEXT_MESSAGE_START","messageId":"msg_1","role":"assistant"}
        {"type":"TEXT_MESSAGE_CONTENT","messageId":"msg_1","delta":"hel"}
        {"type":"TEXT_MESSAGE_CONTENT","messageId":"msg_1","delta":"lo"}
        {"type":"TEXT_MESSAGE_END","messageId":"msg_1"}
        {"type":"STEP_FINISHED","stepName":"main"}
        {"type":"RUN_FINISHED","threadId":"t","runId":"r","outcome":{"type":"success"},"result":{"run":"run","outcome":"completed","stop_reason":"answer_finalized"},"usage":[{"inputTokens":68,"outputTokens":2,"totalTokens":70,"reasoningTokens":0,"cachedInputTokens":0}]}
    "#]].assert_eq(&lines(&server, input(&json!([user("u1", "hello")]))).await);
    server.end().await;
}

#[tokio::test]
async fn reasoning_has_events_of_its_own() {
    let server = Desk::new().serve().await;
    expect![[r#"
        {"type":"RUN_STARTED","threadId":"t","runId":"r"}
        {"type":"STEP_STARTED","stepName":"main"}
        {"type":"REASONING_START","messageId":"msg_1"}
        {"type":"REASONING_MESSAGE_START","messageId":"msg_1","role":"reasoning"}
        {"type":"REASONING_MESSAGE_CONTENT","messageId":"msg_1","delta":"hard"}
        {"type":"REASONING_MESSAGE_END","messageId":"msg_1"}
        {"type":"REASONING_END","messageId":"msg_1"}
        {"type":"TEXT_MESSAGE_START","messageId":"msg_2","role":"assistant"}
        {"type":"TEXT_MESSAGE_CONTENT","messageId":"msg_2","delta":"thou"}
        {"type":"TEXT_MESSAGE_CONTENT","messageId":"msg_2","delta":"ght"}
        {"type":"TEXT_MESSAGE_END","messageId":"msg_2"}
        {"type":"STEP_FINISHED","stepName":"main"}
        {"type":"RUN_FINISHED","threadId":"t","runId":"r","outcome":{"type":"success"},"result":{"run":"run","outcome":"completed","stop_reason":"answer_finalized"},"usage":[{"inputTokens":69,"outputTokens":2,"totalTokens":71,"reasoningTokens":0,"cachedInputTokens":0}]}
    "#]].assert_eq(&lines(&server, input(&json!([user("u1", "think hard")]))).await);
    server.end().await;
}

#[tokio::test]
async fn tools_of_the_server_are_shown_with_their_results() {
    let server = Desk::new().serve().await;
    server.desk.go.add_permits(1);
    expect![[r#"
        {"type":"RUN_STARTED","threadId":"t","runId":"r"}
        {"type":"STEP_STARTED","stepName":"main"}
        {"type":"TOOL_CALL_START","toolCallId":"call-1","toolCallName":"slow","parentMessageId":"msg_1"}
        {"type":"TOOL_CALL_ARGS","toolCallId":"call-1","delta":"{\"amount\":5}"}
        {"type":"TOOL_CALL_END","toolCallId":"call-1"}
        {"type":"TOOL_CALL_RESULT","messageId":"msg_2","toolCallId":"call-1","content":"slowly done","role":"tool"}
        {"type":"STEP_FINISHED","stepName":"main"}
        {"type":"STEP_STARTED","stepName":"main"}
        {"type":"TEXT_MESSAGE_START","messageId":"msg_3","role":"assistant"}
        {"type":"TEXT_MESSAGE_CONTENT","messageId":"msg_3","delta":"slowly"}
        {"type":"TEXT_MESSAGE_CONTENT","messageId":"msg_3","delta":" done"}
        {"type":"TEXT_MESSAGE_END","messageId":"msg_3"}
        {"type":"STEP_FINISHED","stepName":"main"}
        {"type":"RUN_FINISHED","threadId":"t","runId":"r","outcome":{"type":"success"},"result":{"run":"run","outcome":"completed","stop_reason":"answer_finalized"},"usage":[{"inputTokens":153,"outputTokens":7,"totalTokens":160,"reasoningTokens":0,"cachedInputTokens":0}]}
    "#]].assert_eq(&lines(&server, input(&json!([user("u1", "call slow")]))).await);
    server.end().await;
}

#[tokio::test]
async fn known_messages_are_not_repeated() {
    let server = Desk::new().serve().await;
    events(&server, input(&json!([user("u1", "one")]))).await;
    let answer = json!({ "id": "a1", "role": "assistant", "content": "one" });
    let mut body = input(&json!([user("u1", "one"), answer, user("u2", "two"), user("u3", "three")]));
    events(&server, body.clone()).await;
    // Without the answer, the ids alone are known.
    body["messages"] =
        json!([user("u1", "one"), user("u2", "two"), user("u3", "three"), user("u4", "three")]);
    events(&server, body.clone()).await;
    expect![[r#"
        user ["one"]
        assistant ["one"]
        user ["two"]
        user ["three"]
        assistant ["three"]
        user ["three"]
        assistant ["three"]
    "#]]
    .assert_eq(&transcript(&server).await);
    let reply = server.client.post(PATH, body).await;
    expect![[r#"422 {"error":{"kind":"request.invalid","message":"`messages` has no new message of the user","hint":"add one with an `id` that the thread does not have","path":"messages"}}"#]].assert_eq(&format!("{} {}", reply.status, reply.body));
    server.end().await;
}

#[tokio::test]
async fn the_first_messages_are_the_history() {
    let server = Desk::new().serve().await;
    let body = input(&json!([
        { "id": "s", "role": "system", "content": "Be brief." },
        user("u1", "one"),
        { "id": "r", "role": "reasoning", "content": "hm" },
        { "id": "a1", "role": "assistant", "toolCalls": [
            { "id": "c", "type": "function", "function": { "name": "pay", "arguments": "{\"amount\":1}" } },
        ] },
        { "id": "t1", "role": "tool", "toolCallId": "c", "content": "paid" },
        { "id": "x", "role": "activity", "activityType": "plan", "content": {} },
        { "id": "a2", "role": "assistant", "content": "done" },
        { "id": "u2", "role": "user", "content": [
            { "type": "text", "text": "two" },
            { "type": "image", "source": { "type": "data", "value": "aGk=", "mimeType": "image/png" } },
            { "type": "binary", "mimeType": "application/pdf", "url": "https://example.com/a.pdf" },
        ] },
    ]));
    events(&server, body).await;
    expect![[r#"
        system ["Be brief."]
        user ["one"]
        assistant ["toolCall"]
        toolResult ["paid"]
        assistant ["done"]
        user ["two", "image", "file"]
        assistant ["two"]
    "#]]
    .assert_eq(&transcript(&server).await);
    server.end().await;
}

#[tokio::test]
async fn a_context_is_added_when_it_changes() {
    let server = Desk::new().serve().await;
    for (id, page) in [("u1", "start"), ("u2", "start"), ("u3", "cart")] {
        let mut body = input(&json!([user(id, id)]));
        body["context"] = json!([{ "description": "page", "value": page }]);
        events(&server, body).await;
    }
    expect![[r#"
        system ["Context of the application:\npage: start"]
        user ["u1"]
        assistant ["u1"]
        user ["u2"]
        assistant ["u2"]
        system ["Context of the application:\npage: cart"]
        user ["u3"]
        assistant ["u3"]
    "#]]
    .assert_eq(&transcript(&server).await);
    server.end().await;
}

/// Ends a run with a pending call: the body that resumes it, without its decision.
async fn pending(server: &Server) -> Value {
    let events = events(server, input(&json!([user("u1", "call pay")]))).await;
    let interrupt = &events.last().unwrap()["outcome"]["interrupts"][0];
    let mut body = input(&json!([user("u1", "call pay")]));
    body["resume"] = json!([{ "interruptId": interrupt["id"], "status": "resolved" }]);
    body
}

#[tokio::test]
async fn a_call_that_requires_approval_ends_the_run() {
    let server = Desk::new().serve().await;
    expect![[r#"
        {"type":"RUN_STARTED","threadId":"t","runId":"r"}
        {"type":"STEP_STARTED","stepName":"main"}
        {"type":"TOOL_CALL_START","toolCallId":"call-1","toolCallName":"pay","parentMessageId":"msg_1"}
        {"type":"TOOL_CALL_ARGS","toolCallId":"call-1","delta":"{\"amount\":5}"}
        {"type":"TOOL_CALL_END","toolCallId":"call-1"}
        {"type":"STEP_FINISHED","stepName":"main"}
        {"type":"CUSTOM","name":"harness.approval_requested","value":{"thread":"t","id":"apr","digest":"621463c9d740774b1acfe629dbf0b7d2a5e5c93d5ff0340fa9380b588b00b9fb","callId":"call-1","agent":"main","tool":"pay","arguments":{"amount":5},"state":"parked"}}
        {"type":"RUN_FINISHED","threadId":"t","runId":"r","outcome":{"type":"interrupt","interrupts":[{"id":"apr","reason":"tool_call","message":"`pay` requires approval","toolCallId":"call-1","responseSchema":{"type":"object","properties":{"approved":{"type":"boolean"},"editedArgs":{"type":"object","description":"Arguments that replace those of the call"},"reason":{"type":"string","description":"Reason of a denial, for the model"},"digest":{"type":"string","description":"Digest of the call that was shown"}},"required":["approved"]},"metadata":{"harness":{"digest":"621463c9d740774b1acfe629dbf0b7d2a5e5c93d5ff0340fa9380b588b00b9fb"}}}]},"result":{"run":"run","outcome":"awaiting_approval","stop_reason":"approval_required","problem":"An approval is pending."},"usage":[{"inputTokens":68,"outputTokens":4,"totalTokens":72,"reasoningTokens":0,"cachedInputTokens":0}]}
    "#]].assert_eq(&lines(&server, input(&json!([user("u1", "call pay")]))).await);
    let reply = server.client.post(PATH, input(&json!([user("u2", "well?")]))).await;
    expect![[r#"{"error":{"kind":"request.invalid","message":"no decision on the pending calls of `pay` (apr-621463c9d740774b)","hint":"decide on every pending call; the status `cancelled` denies one","path":"resume"}}"#]].assert_eq(&redacted(&reply.body.to_string()));
    server.end().await;
}

async fn check_decision(status: &str, payload: Value, expected: Expect) {
    let server = Desk::new().serve().await;
    let mut body = pending(&server).await;
    body["resume"][0]["status"] = json!(status);
    body["resume"][0]["payload"] = payload;
    expected.assert_eq(&lines(&server, body.clone()).await);
    assert_eq!(server.client.post(PATH, body).await.kind(), "runtime.not_held", "it is decided once");
    server.end().await;
}

#[tokio::test]
async fn a_decision_resumes_the_run() {
    check_decision("resolved", json!({ "approved": true }), expect![[r#"
        {"type":"RUN_STARTED","threadId":"t","runId":"r"}
        {"type":"TOOL_CALL_RESULT","messageId":"msg_1","toolCallId":"call-1","content":"paid 5","role":"tool"}
        {"type":"STEP_STARTED","stepName":"main"}
        {"type":"TEXT_MESSAGE_START","messageId":"msg_2","role":"assistant"}
        {"type":"TEXT_MESSAGE_CONTENT","messageId":"msg_2","delta":"pai"}
        {"type":"TEXT_MESSAGE_CONTENT","messageId":"msg_2","delta":"d 5"}
        {"type":"TEXT_MESSAGE_END","messageId":"msg_2"}
        {"type":"STEP_FINISHED","stepName":"main"}
        {"type":"RUN_FINISHED","threadId":"t","runId":"r","outcome":{"type":"success"},"result":{"run":"run","outcome":"completed","stop_reason":"answer_finalized"},"usage":[{"inputTokens":82,"outputTokens":2,"totalTokens":84,"reasoningTokens":0,"cachedInputTokens":0}]}
    "#]]).await;
    check_decision("resolved", json!({ "approved": true, "editedArgs": { "amount": 3 } }), expect![[r#"
        {"type":"RUN_STARTED","threadId":"t","runId":"r"}
        {"type":"TOOL_CALL_RESULT","messageId":"msg_1","toolCallId":"call-1","content":"paid 3","role":"tool"}
        {"type":"STEP_STARTED","stepName":"main"}
        {"type":"TEXT_MESSAGE_START","messageId":"msg_2","role":"assistant"}
        {"type":"TEXT_MESSAGE_CONTENT","messageId":"msg_2","delta":"pai"}
        {"type":"TEXT_MESSAGE_CONTENT","messageId":"msg_2","delta":"d 3"}
        {"type":"TEXT_MESSAGE_END","messageId":"msg_2"}
        {"type":"STEP_FINISHED","stepName":"main"}
        {"type":"RUN_FINISHED","threadId":"t","runId":"r","outcome":{"type":"success"},"result":{"run":"run","outcome":"completed","stop_reason":"answer_finalized"},"usage":[{"inputTokens":82,"outputTokens":2,"totalTokens":84,"reasoningTokens":0,"cachedInputTokens":0}]}
    "#]])
        .await;
    check_decision("resolved", json!({ "approved": false, "reason": "too much" }), expect![[r#"
        {"type":"RUN_STARTED","threadId":"t","runId":"r"}
        {"type":"TOOL_CALL_RESULT","messageId":"msg_1","toolCallId":"call-1","content":"Denied: too much","role":"tool","metadata":{"harness":{"isError":true}}}
        {"type":"STEP_STARTED","stepName":"main"}
        {"type":"TEXT_MESSAGE_START","messageId":"msg_2","role":"assistant"}
        {"type":"TEXT_MESSAGE_CONTENT","messageId":"msg_2","delta":"Denied: "}
        {"type":"TEXT_MESSAGE_CONTENT","messageId":"msg_2","delta":"too much"}
        {"type":"TEXT_MESSAGE_END","messageId":"msg_2"}
        {"type":"STEP_FINISHED","stepName":"main"}
        {"type":"RUN_FINISHED","threadId":"t","runId":"r","outcome":{"type":"success"},"result":{"run":"run","outcome":"completed","stop_reason":"answer_finalized"},"usage":[{"inputTokens":84,"outputTokens":4,"totalTokens":88,"reasoningTokens":0,"cachedInputTokens":0}]}
    "#]]).await;
    check_decision("cancelled", json!(null), expect![[r#"
        {"type":"RUN_STARTED","threadId":"t","runId":"r"}
        {"type":"TOOL_CALL_RESULT","messageId":"msg_1","toolCallId":"call-1","content":"Denied: the user did not decide","role":"tool","metadata":{"harness":{"isError":true}}}
        {"type":"STEP_STARTED","stepName":"main"}
        {"type":"TEXT_MESSAGE_START","messageId":"msg_2","role":"assistant"}
        {"type":"TEXT_MESSAGE_CONTENT","messageId":"msg_2","delta":"Denied: the user"}
        {"type":"TEXT_MESSAGE_CONTENT","messageId":"msg_2","delta":" did not decide"}
        {"type":"TEXT_MESSAGE_END","messageId":"msg_2"}
        {"type":"STEP_FINISHED","stepName":"main"}
        {"type":"RUN_FINISHED","threadId":"t","runId":"r","outcome":{"type":"success"},"result":{"run":"run","outcome":"completed","stop_reason":"answer_finalized"},"usage":[{"inputTokens":88,"outputTokens":8,"totalTokens":96,"reasoningTokens":0,"cachedInputTokens":0}]}
    "#]]).await;
}

#[tokio::test]
async fn a_decision_on_another_call_is_rejected() {
    let server = Desk::new().serve().await;
    let mut body = pending(&server).await;
    body["resume"][0]["payload"] = json!({ "approved": true, "digest": "0a1b" });
    assert_eq!(server.client.post(PATH, body.clone()).await.kind(), "runtime.other_call");
    body["resume"][0]["payload"] = json!(null);
    let reply = server.client.post(PATH, body).await;
    expect![[r#"422 {"error":{"kind":"request.invalid","message":"missing field `payload`, an object with `approved`","path":"resume[0].payload"}}"#]].assert_eq(&format!("{} {}", reply.status, reply.body));
    server.end().await;
}

async fn check(change: impl FnOnce(&mut Value), expected: Expect) {
    let server = Desk::new().serve().await;
    let mut body = input(&json!([user("u1", "hello")]));
    change(&mut body);
    let reply = server.client.post(PATH, body).await;
    expected.assert_eq(&format!("{} {}", reply.status, reply.body));
    assert_eq!(server.client.get("/v1/threads").await.body["threads"], json!([]), "no thread is left");
    server.end().await;
}

#[tokio::test]
async fn what_is_not_supported_is_named() {
    check(|body| body["tools"] = json!([{ "name": "alert", "description": "" }]), expect![[r#"422 {"error":{"kind":"request.invalid","message":"`tools` is not supported: the server runs the tools of the agents, and tools of a client cannot be called","hint":"give the tools to the agents, and send an empty list","path":"tools"}}"#]]).await;
    check(|body| body["state"] = json!({ "count": 1 }), expect![[r#"422 {"error":{"kind":"request.invalid","message":"`state` is not supported: the server has no state to share","hint":"send data for tools as `forwardedProps`, and information for the agents as `context`","path":"state"}}"#]]).await;
    check(|body| body["forwardedProps"] = json!(1), expect![[r#"422 {"error":{"kind":"request.invalid","message":"expected an object","path":"forwardedProps"}}"#]]).await;
    check(|body| body["threadId"] = json!("../x"), expect![[r#"422 {"error":{"kind":"request.invalid","message":"`../x` is not a valid thread id","hint":"use up to 128 letters, digits, `-`, `_` and `.`; the first must not be `.`","path":"threadId"}}"#]]).await;
    check(|body| body["messages"] = json!([]), expect![[r#"422 {"error":{"kind":"request.invalid","message":"the last entry of `messages` is not a message of the user","hint":"end with a message of the role `user` that has content","path":"messages"}}"#]]).await;
    check(|body| body["messages"][0]["role"] = json!("robot"), expect![[r#"422 {"error":{"kind":"request.invalid","message":"unknown role `robot`","hint":"use `system`, `developer`, `user`, `assistant` or `tool`","path":"messages[0].role"}}"#]]).await;
    check(|body| body["messages"][0]["content"] = json!([{ "type": "video" }]), expect![[r#"422 {"error":{"kind":"request.invalid","message":"unknown part `video`","hint":"use parts of text, images, audio and documents","path":"messages[0].content[0].type"}}"#]]).await;
    check(|body| body["messages"][0] = json!({ "role": "user" }), expect![[r#"422 {"error":{"kind":"request.invalid","message":"missing field `id` at line 1 column 55","path":"messages[0]"}}"#]]).await;
    check(|body| body["resume"] = json!([{ "interruptId": "x", "status": "cancelled" }]), expect![[r#"404 {"error":{"kind":"runtime.not_held","message":"approval `x` of thread `t` is not pending","hint":"list the pending approvals again, and decide about the call that is shown now","path":"resume[0].interruptId"}}"#]])
        .await;
}

#[tokio::test]
async fn a_run_starts_with_the_agent_of_the_query() {
    let server = Desk::new().serve_with(|options| options.agents(["main"])).await;
    let body = input(&json!([user("u1", "hello")]));
    assert_eq!(server.client.post("/v1/ag-ui?agent=none", body.clone()).await.kind(), "request.query");
    let response = server.client.request(Method::POST, "/v1/ag-ui?agent=main").json(&body).send();
    assert_eq!(within("the stream", response).await.unwrap().status(), 200);
    server.end().await;
}

#[tokio::test]
async fn a_run_that_fails_ends_with_an_error() {
    let server = Desk::with(|builder| builder.max_iterations(1)).serve().await;
    server.desk.go.add_permits(1);
    expect![[r#"
        {"type":"RUN_STARTED","threadId":"t","runId":"r"}
        {"type":"STEP_STARTED","stepName":"main"}
        {"type":"TOOL_CALL_START","toolCallId":"call-1","toolCallName":"slow","parentMessageId":"msg_1"}
        {"type":"TOOL_CALL_ARGS","toolCallId":"call-1","delta":"{\"amount\":5}"}
        {"type":"TOOL_CALL_END","toolCallId":"call-1"}
        {"type":"TOOL_CALL_RESULT","messageId":"msg_2","toolCallId":"call-1","content":"slowly done","role":"tool"}
        {"type":"STEP_FINISHED","stepName":"main"}
        {"type":"RUN_ERROR","message":"The limit of model calls was reached.","code":"max_iterations_reached","usage":[{"inputTokens":69,"outputTokens":4,"totalTokens":73,"reasoningTokens":0,"cachedInputTokens":0}]}
    "#]].assert_eq(&lines(&server, input(&json!([user("u1", "call slow")]))).await);
    server.end().await;
}

#[tokio::test]
async fn changed_arguments_of_a_call_are_shown() {
    let cheaper = gate::func("cheaper", |_, _| GateVerdict::Rewrite(Json::from(json!({ "amount": 1 }))));
    let server = Desk::with(|builder| builder.gate(cheaper)).serve().await;
    server.desk.go.add_permits(1);
    let events = events(&server, input(&json!([user("u1", "call slow")]))).await;
    let changed = events.iter().find(|event| event["type"] == "CUSTOM").map(ToString::to_string);
    expect![[r#"{"type":"CUSTOM","name":"harness.call_changed","value":{"toolCallId":"call-1","tool":"slow","arguments":{"amount":1}}}"#]].assert_eq(&changed.unwrap_or_default());
    server.end().await;
}

#[tokio::test]
async fn an_aborted_run_is_cancelled() {
    let server = Desk::new().serve().await;
    let run = events(&server, input(&json!([user("u1", "call slow")])));
    let abort = async {
        server.desk.began.notified().await;
        server.client.post("/v1/threads/t/abort", json!({})).await;
    };
    let (events, ()) = tokio::join!(run, abort);
    expect![[r#"{"type":"RUN_FINISHED","threadId":"t","runId":"r","outcome":{"type":"cancelled"},"result":{"run":"run","outcome":"failed","stop_reason":"cancelled","problem":"Cancelled: client"},"usage":[{"inputTokens":69,"outputTokens":4,"totalTokens":73,"reasoningTokens":0,"cachedInputTokens":0}]}"#]].assert_eq(&redacted(&events.last().unwrap().to_string()));
    server.end().await;
}

#[tokio::test]
async fn a_run_continues_after_a_restart_of_the_server() {
    let folder = tempfile::tempdir().unwrap();
    let server = Desk::with_sessions(folder.path()).serve().await;
    let mut body = pending(&server).await;
    server.end().await;

    let server = Desk::with_sessions(folder.path()).serve().await;
    body["resume"][0]["payload"] = json!({ "approved": true });
    let answer = json!({ "id": "a1", "role": "assistant", "content": "paid 5" });
    events(&server, body).await;
    events(&server, input(&json!([user("u1", "call pay"), answer, user("u2", "thanks")]))).await;
    expect![[r#"
        user ["call pay"]
        assistant ["toolCall"]
        toolResult ["paid 5"]
        assistant ["paid 5"]
        user ["thanks"]
        assistant ["thanks"]
    "#]]
    .assert_eq(&transcript(&server).await);
    server.end().await;
}

#[tokio::test]
async fn a_thread_runs_once_at_a_time_and_a_client_that_disconnects_ends_the_run() {
    let server = Desk::new().serve().await;
    let request =
        server.client.request(Method::POST, PATH).json(&input(&json!([user("u1", "call slow")]))).send();
    let mut request = Box::pin(async move { request.await.unwrap().text().await });
    tokio::select! {
        _ = &mut request => panic!("the tool waits"),
        () = server.desk.began.notified() => {}
    }
    let reply = server.client.post(PATH, input(&json!([user("u2", "hello")]))).await;
    assert_eq!((reply.status, reply.kind()), (409, "runtime.busy"));
    drop(request);
    while server.client.get("/v1/threads/t/status").await.body["state"] != "idle" {
        tokio::task::yield_now().await;
    }
    server.end().await;
}

#[tokio::test]
async fn access_is_that_of_the_other_routes() {
    let server = Desk::new().serve_with(|options| options.token("0123456789abcdef").unwrap()).await;
    assert_eq!(server.client.post(PATH, input(&json!([]))).await.status, 401);
    server.end().await;
}
