//! What goes wrong between us and an endpoint: the code, the message that says what to do, and that
//! nothing leaks or hangs.

use std::sync::Arc;
use std::time::Duration;

use harness_adapters::AdapterError;
use harness_adapters::chat::{ChatModel, ChatTimeouts};
use harness_core::message::Message;
use harness_core::port::{Model as _, ModelFault, ModelFaultCode as Code, PreparedAgent};
use harness_core::{Json, Time};

use crate::support::{KEY, Pieces, Reply, Server, Stopped, hello, model, request, step, until_text};

/// The fault of one reply, with the server's address cut out of its message.
async fn fault_of(reply: Reply) -> ModelFault {
    let server = Server::start([reply]).await;
    let mut fault = step(&model(&server), hello()).await.unwrap_err();
    assert!(!format!("{fault:?}").contains(KEY), "{fault:?}");
    let address = server.url().trim_start_matches("http://").to_owned() + "/chat/completions";
    fault.message = fault.message.replace(&address, "HOST");
    fault
}

#[track_caller]
fn check(fault: &ModelFault, code: Code, transient: bool, message: &str) {
    assert_eq!((fault.code, fault.transient, fault.message.as_str()), (code, transient, message));
}

fn error(status: u16, message: &str) -> Reply {
    Reply::json(status, &format!(r#"{{"error":{{"code":{status},"message":"{message}"}}}}"#))
}

#[tokio::test]
async fn a_refused_key() {
    let fault = fault_of(error(401, &format!("No auth credentials found for {KEY}"))).await;
    let message =
        "HOST answered with HTTP 401: No auth credentials found for [key]; check OPENROUTER_API_KEY";
    check(&fault, Code::AuthFailed, false, message);
    assert_eq!(fault.http_status, Some(401));
    let said = r#"{"error":{"code":401,"message":"No auth credentials found for [key]"}}"#;
    assert_eq!(fault.reply.as_ref().map(Json::text), Some(said));
}

#[tokio::test]
async fn an_empty_account() {
    let fault = fault_of(error(402, "Insufficient credits")).await;
    let message =
        "HOST answered with HTTP 402: Insufficient credits; add credits to the account or use another key";
    check(&fault, Code::CreditsExhausted, false, message);
}

#[tokio::test]
async fn an_unknown_model() {
    let fault = fault_of(error(404, "No endpoints found for example/model.")).await;
    let message = "HOST answered with HTTP 404: No endpoints found for example/model; \
                   check the name of the model and that the key may use it";
    check(&fault, Code::ModelNotFound, false, message);
}

#[tokio::test]
async fn a_rate_limit_with_its_wait() {
    let body = r#"{"error":{"code":429,"message":"Slow down"}}"#;
    let fault = fault_of(Reply::full(429, "retry-after: 7\r\n", body)).await;
    check(&fault, Code::RateLimited, true, "HOST answered with HTTP 429: Slow down; try again after 7.0 s");
    assert_eq!(fault.retry_after.map(|wait| wait.0), Some(7_000));
}

#[tokio::test]
async fn a_failing_provider() {
    for status in [500, 503] {
        let fault = fault_of(Reply::full(status, "content-type: text/html\r\n", "<html>oops</html>")).await;
        let message = format!(
            "HOST answered with HTTP {status}; the error is the provider's: try again later or use another model"
        );
        check(&fault, Code::Provider, true, &message);
        assert_eq!(fault.http_status, Some(status), "an error page does not hide the status");
    }
}

#[tokio::test]
async fn an_address_that_is_no_endpoint() {
    let fault = fault_of(Reply::full(404, "", "not found")).await;
    let message =
        "HOST answered with HTTP 404; check that the base URL is that of an OpenAI-compatible endpoint";
    check(&fault, Code::Configuration, false, message);
    let fault = fault_of(Reply::full(200, "content-type: text/html\r\n", "<html>welcome</html>")).await;
    let message = "HOST sent a reply that is neither JSON nor an event stream; \
                   check that the base URL is that of an OpenAI-compatible endpoint";
    check(&fault, Code::Protocol, false, message);
}

#[tokio::test]
async fn a_redirect_is_not_followed() {
    let server = Server::start([Reply::full(302, "location: http://127.0.0.1:1/\r\n", "")]).await;
    let fault = step(&model(&server), hello()).await.unwrap_err();
    assert_eq!(fault.code, Code::Configuration);
    assert_eq!(server.seen().len(), 1);
}

#[tokio::test]
async fn a_stream_of_garbage() {
    let fault = fault_of(Reply::events().event("{oops").event("<html>").send("\u{1}\u{2}\n\n")).await;
    let message = "HOST sent an event that is not a valid chat completion: `{oops` and 1 more; \
                   check that the base URL is that of an OpenAI-compatible endpoint";
    check(&fault, Code::Protocol, false, message);
}

#[tokio::test]
async fn a_stream_that_breaks_off_keeps_its_text() {
    let fault = fault_of(Reply::events().delta(r#"{"content":"Half"}"#)).await;
    let message =
        "HOST ended the answer before it was complete; check the base URL and the network, then try again";
    check(&fault, Code::Network, true, message);
    assert_eq!(fault.partial.unwrap().joined_text(), "Half");
}

#[tokio::test]
async fn an_error_in_the_stream_keeps_the_text_and_drops_the_calls() {
    let reply = Reply::events()
        .delta(r#"{"content":"Half"}"#)
        .delta(r#"{"tool_calls":[{"index":0,"id":"c","function":{"name":"rm","arguments":"{}"}}]}"#)
        .event(
            r#"{"error":{"code":502,"message":"Provider disconnected","metadata":{"error_type":"provider_unavailable"}},
                "choices":[{"index":0,"delta":{},"finish_reason":"error"}]}"#
                .replace('\n', " ")
                .as_str(),
        );
    let fault = fault_of(reply).await;
    let message = "HOST reported an error: Provider disconnected; \
                   the error is the provider's: try again later or use another model";
    check(&fault, Code::Provider, true, message);
    assert_eq!(fault.http_status, Some(502));
    let partial = fault.partial.unwrap();
    assert_eq!((partial.joined_text().as_str(), partial.tool_calls().count()), ("Half", 0));
}

#[tokio::test]
async fn an_error_inside_a_200_is_not_lost() {
    let fault = fault_of(error(200, "Context length exceeded: 9000 tokens")).await;
    assert_eq!((fault.code, fault.transient), (Code::ContextLengthExceeded, false));
}

#[tokio::test]
async fn nothing_listens() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let model = ChatModel::compatible(format!("http://{address}/v1"), "m").build().unwrap();
    let fault = step(&model, hello()).await.unwrap_err();
    assert_eq!((fault.code, fault.transient), (Code::Network, true));
    let start = format!("{address}/v1/chat/completions could not be reached: ");
    assert!(fault.message.starts_with(&start), "{}", fault.message);
    assert!(
        fault.message.ends_with("; check the base URL and the network, then try again"),
        "{}",
        fault.message
    );
}

#[tokio::test]
async fn a_connection_closed_without_a_reply() {
    let fault = fault_of(Reply::close()).await;
    assert_eq!((fault.code, fault.transient), (Code::Network, true));
    assert!(fault.message.starts_with("HOST broke the connection: "), "{}", fault.message);
}

/// A model that gives up after `idle` without a byte, or after `total`.
fn hasty(server: &Server, idle: Duration, total: Duration) -> ChatModel {
    let mut timeouts = ChatTimeouts::default();
    (timeouts.idle, timeouts.total) = (idle, total);
    ChatModel::compatible(server.url(), "m").timeouts(timeouts).build().unwrap()
}

const SOON: Duration = Duration::from_millis(20);
const LATE: Duration = Duration::from_mins(10);

#[tokio::test(start_paused = true)]
async fn a_server_that_hangs_is_given_up() {
    let server = Server::start([Reply::hang()]).await;
    let fault = step(&hasty(&server, SOON, LATE), hello()).await.unwrap_err();
    assert_eq!((fault.code, fault.transient), (Code::Timeout, true));
    let end = "did not begin an answer within 20 ms; try again, or allow more time";
    assert!(fault.message.ends_with(end), "{}", fault.message);
}

#[tokio::test]
async fn a_stream_that_falls_silent_is_given_up_and_keeps_its_text() {
    let server = Server::start([Reply::events().delta(r#"{"content":"Half"}"#).hold()]).await;
    let (model, pieces) = (hasty(&server, Duration::from_mins(1), LATE), Pieces::default());
    let mut answer = Box::pin(model.step(hello(), &pieces));
    until_text(&mut answer, &pieces).await;
    tokio::time::pause();
    let fault = answer.await.unwrap_err();
    let end = "sent nothing more within 60.0 s; try again, or allow more time";
    assert!(fault.message.ends_with(end), "{}", fault.message);
    assert_eq!(fault.partial.unwrap().joined_text(), "Half");
    server.hung_up().await;
}

#[tokio::test]
async fn a_whole_answer_does_not_need_a_formal_end() {
    let finish = r#"{"choices":[{"index":0,"delta":{"content":"Whole"},"finish_reason":"stop"}]}"#;
    let server = Server::start([Reply::events().event(finish).hold()]).await;
    let (model, pieces) = (model(&server), Pieces::default());
    let mut answer = Box::pin(model.step(hello(), &pieces));
    until_text(&mut answer, &pieces).await;
    tokio::time::pause();
    assert_eq!(answer.await.unwrap().joined_text(), "Whole");
    server.hung_up().await;
}

#[tokio::test]
async fn an_error_in_the_stream_is_not_waited_out() {
    let server =
        Server::start([Reply::events().event(r#"{"error":{"code":400,"message":"bad"}}"#).hold()]).await;
    let fault = step(&model(&server), hello()).await.unwrap_err();
    assert_eq!((fault.code, fault.transient), (Code::InvalidRequest, false));
    server.hung_up().await;
}

#[tokio::test(start_paused = true)]
async fn a_whole_answer_has_a_bound_in_time() {
    let server = Server::start([Reply::hang()]).await;
    let fault = step(&hasty(&server, LATE, SOON), hello()).await.unwrap_err();
    let end = "did not finish the answer within 20 ms; try again, or allow more time";
    assert!(fault.message.ends_with(end), "{}", fault.message);
}

#[tokio::test(start_paused = true)]
async fn a_deadline_is_kept_with_a_clock() {
    let server = Server::start([Reply::hang()]).await;
    let builder = ChatModel::compatible(server.url(), "m").clock(Arc::new(Stopped(Time(1_000))));
    let mut request = hello();
    request.deadline = Some(Time(1_020));
    let fault = step(&builder.build().unwrap(), request).await.unwrap_err();
    let end = "did not finish the answer within 20 ms; try again, or allow more time";
    assert!(fault.message.ends_with(end), "{}", fault.message);
}

#[tokio::test]
async fn a_dropped_call_drops_the_connection() {
    let server = Server::start([Reply::events().delta(r#"{"content":"Half"}"#).hold()]).await;
    let (model, pieces) = (model(&server), Pieces::default());
    let mut answer = Box::pin(model.step(hello(), &pieces));
    until_text(&mut answer, &pieces).await;
    drop(answer);
    server.hung_up().await;
}

#[tokio::test]
async fn a_line_without_an_end_is_refused_at_the_bound() {
    let block = vec![b'x'; 1 << 20];
    let server = Server::start([Reply::events().send("data: ").repeat(block, 100)]).await;
    let fault = step(&model(&server), hello()).await.unwrap_err();
    assert_eq!((fault.code, fault.transient), (Code::Protocol, false));
    let text = "sent too much: the line of the reply is larger than the bound of 8388608 bytes; \
                raise the reply limits if this size is expected";
    assert!(fault.message.ends_with(text), "{}", fault.message);
    server.hung_up().await;
}

#[tokio::test]
async fn a_document_without_an_end_is_refused_at_the_bound() {
    let head = "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-type: application/json\r\n\r\n";
    let server = Server::start([Reply::default().send(head).repeat(vec![b' '; 1 << 20], 100)]).await;
    let fault = step(&model(&server), hello()).await.unwrap_err();
    assert_eq!(fault.code, Code::Protocol);
    server.hung_up().await;
}

#[tokio::test]
async fn an_agents_settings_may_not_touch_what_the_adapter_writes() {
    let server = Server::start([Reply::close()]).await;
    let mut request = hello();
    let settings = Json::parse(r#"{"stream":false}"#).unwrap();
    request.prepared = Arc::new(PreparedAgent::new("router", "", []).with_model(None, Some(settings)));
    let fault = step(&model(&server), request).await.unwrap_err();
    assert_eq!(fault.code, Code::Configuration);
    assert!(
        fault.message.starts_with("agent `router`: the model setting `stream` is reserved"),
        "{}",
        fault.message
    );
    assert!(server.seen().is_empty(), "nothing is sent");
}

#[test]
fn a_builder_lists_all_problems() {
    let problem = ChatModel::openrouter("m", "")
        .base_url("openrouter.ai")
        .settings(Json::parse("[]").unwrap())
        .build()
        .unwrap_err();
    assert_eq!(problem.kind(), "adapter.several");
    let AdapterError::Several(problems) = problem else { panic!("{problem}") };
    let kinds: Vec<&str> = problems.iter().map(AdapterError::kind).collect();
    assert_eq!(kinds, ["adapter.base_url", "adapter.settings", "adapter.key"]);
}

#[test]
fn a_key_that_no_header_may_carry_is_refused_without_showing_it() {
    let problem = ChatModel::openrouter("m", "sk-\nx").build().unwrap_err();
    assert_eq!(problem.to_string(), "the API key holds a character that no header may carry");
    assert!(problem.hint().is_some());
}

#[tokio::test]
async fn a_message_names_no_secret_of_the_url() {
    let server = Server::start([error(500, "x")]).await;
    let model = ChatModel::compatible(format!("{}?key={KEY}", server.url()), "m").build().unwrap();
    let fault = step(&model, request([Message::user("x")])).await.unwrap_err();
    assert!(!format!("{fault:?} {model:?}").contains(KEY));
    assert!(server.seen()[0].target.contains(KEY), "the query is sent");
}
