//! Threads and their runs.

use harness_server::ServerOptions;
use reqwest::Method;
use reqwest::header::LOCATION;
use serde_json::json;
use tokio::net::TcpListener;

use crate::support::{Client, Desk};

#[tokio::test]
async fn routes_are_mounted_in_another_program() {
    const TOKEN: &str = "0123456789abcdef";
    let options = ServerOptions::new().token(TOKEN).unwrap();
    let routes = harness_server::router(Desk::new().runtime, options);
    let program =
        axum::Router::new().route("/", axum::routing::get(|| async { "my program" })).nest("/agents", routes);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let client = Client::new(&format!("http://{}/agents", listener.local_addr().unwrap()));
    tokio::spawn(async { axum::serve(listener, program).await });
    assert_eq!(client.get("/v1/health").await.status, 200);
    assert_eq!(client.get("/v1/threads").await.status, 401);
    let create = client.request(Method::POST, "/v1/threads").bearer_auth(TOKEN).json(&json!({ "id": "a" }));
    let created = create.send().await.unwrap();
    assert_eq!(
        (created.status().as_u16(), &created.headers()[LOCATION]),
        (201, &"/agents/v1/threads/a".parse().unwrap())
    );
    let stream = client.request(Method::GET, "/v1/threads/a/events").bearer_auth(TOKEN);
    assert_eq!(stream.send().await.unwrap().status(), 200);
}

#[tokio::test]
async fn a_thread_lives_from_its_creation_to_its_deletion() {
    let server = Desk::new().serve().await;
    let client = &server.client;
    client.create("a").await;
    let named = client.send(client.request(Method::POST, "/v1/threads")).await;
    assert_eq!(named.status, 201);
    let name = named.body["id"].as_str().unwrap();
    assert!(name.starts_with("thread-"), "{name}");

    assert_eq!(client.ask("a", "hello").await, "hello");
    let shown = client.get("/v1/threads/a").await;
    assert_eq!(shown.body["messages"], 2);
    assert_eq!(shown.body["status"], json!({ "state": "idle" }));
    assert_eq!(client.get("/v1/threads/a/status").await.body, json!({ "state": "idle" }));

    let listed = client.get("/v1/threads?limit=1").await.body;
    assert_eq!((&listed["threads"][0]["id"], &listed["next"]), (&json!("a"), &json!("a")));
    let listed = client.get("/v1/threads?limit=1&after=a").await.body;
    assert_eq!(listed, json!({ "threads": [{ "id": name, "status": { "state": "idle" } }] }));

    assert_eq!(client.delete("/v1/threads/a").await.status, 204);
    let gone = client.get("/v1/threads/a").await;
    assert_eq!((gone.status, gone.kind()), (404, "server.no_thread"));
    server.end().await;
}

#[tokio::test]
async fn threads_are_found_by_user_state_and_metadata() {
    let server = Desk::new().serve().await;
    let client = &server.client;
    for (id, user, ticket) in [("a", "ada", 7), ("b", "bob", 7), ("c", "ada", 8)] {
        let body = json!({ "id": id, "user": user, "metadata": { "ticket": ticket, "open": true } });
        assert_eq!(client.post("/v1/threads", body).await.status, 201);
    }
    client.post("/v1/threads/c/follow-up", json!({ "text": "later" })).await;
    for (query, expected) in [
        ("user=ada", "a c"),
        ("user=ada&limit=1&after=a", "c"),
        ("metadata=%7B%22ticket%22:7%7D", "a b"),
        ("metadata=%7B%22ticket%22:7%7D&user=bob", "b"),
        ("metadata=%7B%7D&state=idle", "a b"),
        ("state=queued", "c"),
        ("user=eve", ""),
    ] {
        let listed = client.get(&format!("/v1/threads?{query}")).await.body;
        let ids: Vec<&str> =
            listed["threads"].as_array().unwrap().iter().map(|line| line["id"].as_str().unwrap()).collect();
        assert_eq!(ids.join(" "), expected, "{query}");
    }
    for (query, kind) in [
        ("metadata=7", "request.invalid"),
        ("metadata=%7B", "request.invalid"),
        ("state=none", "request.query"),
    ] {
        assert_eq!(client.get(&format!("/v1/threads?{query}")).await.kind(), kind, "{query}");
    }
    server.end().await;
}

#[tokio::test]
async fn a_name_is_taken_once() {
    let server = Desk::new().serve().await;
    server.client.create("a").await;
    let again = server.client.post("/v1/threads", json!({ "id": "a" })).await;
    assert_eq!((again.status, again.kind()), (409, "server.thread_exists"));
    for name in ["", ".hidden", "a/b", "ä", &"x".repeat(129)] {
        let refused = server.client.post("/v1/threads", json!({ "id": name })).await;
        assert_eq!((refused.status, refused.body["error"]["path"].as_str()), (422, Some("id")), "{name}");
    }
    server.end().await;
}

#[tokio::test]
async fn a_prompt_names_its_run_and_a_busy_thread_refuses_another() {
    let server = Desk::new().serve().await;
    let client = &server.client;
    client.create("a").await;
    let started = client.post("/v1/threads/a/prompt", json!({ "text": "hang" })).await;
    assert_eq!(started.status, 202);
    let status = client.get("/v1/threads/a/status").await.body;
    assert_eq!((&status["state"], &status["run"]), (&json!("generating"), &started.body["run"]));

    let busy = client.post("/v1/threads/a/prompt", json!({ "text": "hi" })).await;
    assert_eq!((busy.status, busy.kind()), (409, "runtime.busy"));
    assert!(busy.body["error"]["hint"].is_string());

    let aborted = client.post("/v1/threads/a/abort?wait", json!({ "reason": "enough" })).await;
    assert_eq!((aborted.status, aborted.body), (202, json!({ "stopped": true })));
    let report = client.get("/v1/threads/a/response").await.body;
    assert_eq!(report["run"], started.body["run"]);
    assert_eq!(
        (&report["outcome"], &report["stopReason"], &report["aborted"]),
        (&json!("failed"), &json!("cancelled"), &json!("enough"))
    );
    let nothing = client.send(client.request(Method::POST, "/v1/threads/a/abort")).await;
    assert_eq!(nothing.body, json!({ "stopped": false }));
    assert_eq!(client.ask("a", "still there").await, "still there");
    server.end().await;
}

#[tokio::test]
async fn the_transcript_is_read_in_pages() {
    let server = Desk::new().serve().await;
    let client = &server.client;
    client.create("a").await;
    for text in ["one", "two"] {
        client.ask("a", text).await;
    }
    let text = |page: &serde_json::Value| -> Vec<String> {
        let messages = page["messages"].as_array().unwrap();
        messages.iter().map(|message| message["content"][0]["text"].as_str().unwrap().to_owned()).collect()
    };
    let page = client.get("/v1/threads/a/messages?from=1&limit=2").await.body;
    assert_eq!(
        (text(&page), &page["from"], &page["total"]),
        (vec!["one".into(), "two".into()], &json!(1), &json!(4))
    );
    let last = client.get("/v1/threads/a/messages?limit=1").await.body;
    assert_eq!((text(&last), &last["from"]), (vec!["two".into()], &json!(3)));
    let beyond = client.get("/v1/threads/a/messages?from=99").await.body;
    assert_eq!(beyond, json!({ "messages": [], "from": 4, "total": 4 }));
    server.end().await;
}

#[tokio::test]
async fn a_thread_that_never_ran_has_no_response_and_nothing_to_continue() {
    let server = Desk::new().serve().await;
    let client = &server.client;
    client.create("a").await;
    assert_eq!(client.get("/v1/threads/a/response").await.status, 204);
    let refused = client.send(client.request(Method::POST, "/v1/threads/a/continue")).await;
    assert_eq!((refused.status, refused.kind()), (409, "runtime.empty_transcript"));
    let refused = client.send(client.request(Method::POST, "/v1/threads/a/compact")).await;
    assert_eq!((refused.status, refused.kind()), (409, "runtime.compaction"));
    server.end().await;
}

#[tokio::test]
async fn pictures_are_prompts_and_a_models_blocks_are_not() {
    let server = Desk::new().serve().await;
    let client = &server.client;
    client.create("a").await;
    let content = json!([
        { "type": "text", "text": "look" },
        { "type": "image", "data": "aGk=", "mimeType": "image/png" },
    ]);
    let reply = client.post("/v1/threads/a/prompt?wait=true", json!({ "content": content })).await;
    assert_eq!((reply.status, &reply.body["text"]), (200, &json!("look")));
    let page = client.get("/v1/threads/a/messages?from=0&limit=1").await.body;
    assert_eq!(page["messages"][0]["content"], content);

    let content = json!([{ "type": "text", "text": "x" }, { "type": "thinking", "thinking": "y" }]);
    let refused = client.post("/v1/threads/a/prompt", json!({ "content": content })).await;
    assert_eq!(
        (refused.status, refused.body["error"]["path"].as_str()),
        (422, Some("content[1].type")),
        "{}",
        refused.body
    );
    server.end().await;
}

#[tokio::test]
async fn answer_matches_the_schema_of_its_prompt_or_the_run_ends_invalid_output() {
    let server = Desk::new().serve().await;
    let client = &server.client;
    client.create("a").await;
    let schema = json!({ "type": "object", "required": ["n"] });
    let prompt = |text: &str, schema: &serde_json::Value| json!({ "text": text, "outputSchema": schema });
    let valid = client.post("/v1/threads/a/prompt?wait", prompt("{\"n\":1}", &schema)).await;
    assert_eq!(valid.body["stopReason"], "answer_finalized", "{}", valid.body);
    let invalid = client.post("/v1/threads/a/prompt?wait", prompt("hello", &schema)).await;
    assert_eq!(invalid.body["stopReason"], "invalid_output", "{}", invalid.body);
    let wrong = client.post("/v1/threads/a/prompt", prompt("hello", &json!(7))).await;
    assert_eq!((wrong.status, wrong.kind()), (422, "runtime.output_schema"));
    server.end().await;
}

/// Users of the events of the last run.
async fn users(server: &crate::support::Server) -> Vec<String> {
    let mut frames = server.client.follow("/v1/threads/a/events?from=turn&until=run_end", None).await;
    let frames = frames.rest().await;
    let origins =
        frames.iter().filter(|frame| frame.event == "event").map(|frame| &frame.data["event"]["origin"]);
    let mut users: Vec<String> = origins.map(|origin| origin["user"].to_string()).collect();
    users.dedup();
    users
}

#[tokio::test]
async fn runs_have_the_user_of_their_thread_or_of_their_prompt() {
    let server = Desk::new().serve().await;
    let created = server.client.post("/v1/threads", json!({ "id": "a", "user": "ada" })).await;
    assert_eq!((created.status, &created.body["user"]), (201, &json!("ada")));
    server.client.ask("a", "hello").await;
    assert_eq!(users(&server).await, ["\"ada\""]);
    server.client.post("/v1/threads/a/prompt?wait", json!({ "text": "hello", "user": "bo" })).await;
    assert_eq!(users(&server).await, ["\"bo\""]);
    server.client.ask("a", "hello").await;
    assert_eq!(users(&server).await, ["\"ada\""], "the user of a prompt is that of one run");
    for user in ["", " ", &"x".repeat(257)] {
        let reply = server.client.post("/v1/threads", json!({ "user": user })).await;
        assert_eq!((reply.status, &reply.body["error"]["path"]), (422, &json!("user")));
    }
    for name in ["context", "metadata"] {
        for value in [json!(7), json!([]), json!({ "k": "x".repeat(16_384) })] {
            let reply = server.client.post("/v1/threads", json!({ name: value })).await;
            assert_eq!((reply.status, &reply.body["error"]["path"]), (422, &json!(name)), "{}", reply.body);
        }
    }
    server.end().await;
}
