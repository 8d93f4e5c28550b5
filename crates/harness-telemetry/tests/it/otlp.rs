//! Spans on their way to a collector on this machine.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::post;
use harness_core::Cancel;
use harness_core::port::Secret;
use harness_telemetry::otlp::{Otlp, OtlpError, OtlpOptions};
use harness_telemetry::{SpanOptions, Spans};
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::trace::v1::{Span, status::StatusCode as SpanStatus};
use parking_lot::Mutex;
use prost::Message as _;
use tokio::net::TcpListener;
use tracing_subscriber::Registry;
use tracing_subscriber::layer::SubscriberExt as _;

use crate::world::{SECRET, run, two_tools};

/// What a collector was sent.
#[derive(Clone, Default)]
struct Collected(Arc<Mutex<Seen>>);

#[derive(Default)]
struct Seen {
    spans: Vec<Span>,
    service: Option<String>,
    headers: HeaderMap,
}

async fn take(State(collected): State<Collected>, headers: HeaderMap, body: Bytes) -> StatusCode {
    let request = ExportTraceServiceRequest::decode(body).unwrap();
    let mut seen = collected.0.lock();
    seen.headers = headers;
    for resource in request.resource_spans {
        let named =
            resource.resource.unwrap().attributes.into_iter().find(|named| named.key == "service.name");
        seen.service = named.map(|named| shown(&named.value.unwrap().value.unwrap()));
        for scope in resource.scope_spans {
            seen.spans.extend(scope.spans);
        }
    }
    StatusCode::OK
}

#[expect(clippy::wildcard_enum_match_arm, reason = "spans have no other values")]
fn shown(value: &Value) -> String {
    match value {
        Value::StringValue(text) => text.clone(),
        Value::IntValue(number) => number.to_string(),
        Value::DoubleValue(number) => number.to_string(),
        Value::BoolValue(is) => is.to_string(),
        Value::ArrayValue(list) => {
            let list: Vec<_> = list.values.iter().map(|value| shown(value.value.as_ref().unwrap())).collect();
            format!("{list:?}")
        }
        other => format!("{other:?}"),
    }
}

/// The spans as a tree of text: name, kind, status, attributes in order of their names.
fn tree(spans: &[Span]) -> String {
    let mut below: HashMap<&[u8], Vec<&Span>> = HashMap::new();
    for span in spans {
        below.entry(&span.parent_span_id).or_default().push(span);
    }
    let mut text = String::new();
    write_below(&mut text, &below, &[], 0);
    text
}

fn write_below(text: &mut String, below: &HashMap<&[u8], Vec<&Span>>, parent: &[u8], depth: usize) {
    let mut spans = below.get(parent).cloned().unwrap_or_default();
    spans.sort_by_key(|span| (span.start_time_unix_nano, span.end_time_unix_nano, span.name.clone()));
    for span in spans {
        let indent = "  ".repeat(depth);
        let _ = write!(text, "{indent}{} ({})", span.name, span.kind().as_str_name());
        if let Some(status) = span.status.as_ref().filter(|status| status.code() == SpanStatus::Error) {
            let _ = write!(text, " ERROR {}", status.message);
        }
        text.push('\n');
        let mut attributes: Vec<_> = span.attributes.iter().collect();
        attributes.sort_by(|one, other| one.key.cmp(&other.key));
        for attribute in attributes {
            let value = shown(attribute.value.as_ref().unwrap().value.as_ref().unwrap());
            let _ = writeln!(text, "{indent}  | {} = {value}", attribute.key);
        }
        write_below(text, below, &span.span_id, depth + 1);
    }
}

/// Serves a collector, on a runtime of its own, until the guard is dropped.
fn collector(router: Router) -> (SocketAddr, tokio::runtime::Runtime) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
    let address = listener.local_addr().unwrap();
    runtime.spawn(async move { axum::serve(listener, router).await });
    (address, runtime)
}

/// Runs two tools with spans that go to `options`.
fn exported(options: OtlpOptions) -> Result<(), OtlpError> {
    let otlp = Otlp::start(options)?;
    let mut ports = two_tools();
    ports.hub.fold(Spans::new(SpanOptions::new()));
    tracing::subscriber::with_default(Registry::default().with(otlp.layer()), || {
        crate::world::block_on(run(&ports, &Cancel::never()));
    });
    otlp.finish()
}

#[test]
#[expect(clippy::too_many_lines, reason = "one case after another")]
fn a_collector_is_sent_the_tree_of_a_run() {
    let collected = Collected::default();
    let router = Router::new().route("/v1/traces", post(take)).with_state(collected.clone());
    let (address, _serving) = collector(router);
    let options = OtlpOptions::new(&format!("http://{address}")).unwrap();
    let options = options.service_name("shop").header("x-key", Secret::new("s3cret"));
    exported(options).unwrap();

    let seen = collected.0.lock();
    assert_eq!(seen.service.as_deref(), Some("shop"));
    assert_eq!(seen.headers.get("x-key").unwrap(), "s3cret");
    let trace = &seen.spans[0].trace_id;
    assert!(seen.spans.iter().all(|span| span.trace_id == *trace), "all of one run are one trace");
    let shown = tree(&seen.spans);
    assert!(!shown.contains(SECRET) && !shown.contains("s3cret"));
    insta::assert_snapshot!(shown, @r#"
    invoke_agent main (SPAN_KIND_INTERNAL)
      | gen_ai.agent.name = main
      | gen_ai.conversation.id = t1
      | gen_ai.operation.name = invoke_agent
      | gen_ai.usage.input_tokens = 230
      | gen_ai.usage.output_tokens = 12
      | harness.cost = 0.5
      | harness.iterations = 2
      | harness.model_calls = 2
      | harness.outcome = completed
      | harness.run.id = r1
      | harness.stop_reason = answer_finalized
      | harness.tool_calls = 2
      | harness.turns = 1
      turn 1 (SPAN_KIND_INTERNAL)
        | gen_ai.agent.name = main
        | gen_ai.usage.input_tokens = 230
        | gen_ai.usage.output_tokens = 12
        | harness.cost = 0.5
        | harness.iterations = 2
        | harness.model_calls = 2
        | harness.outcome = completed
        | harness.resumed = false
        | harness.stop_reason = answer_finalized
        | harness.tool_calls = 2
        | harness.turn = 1
        chat vendor/model (SPAN_KIND_CLIENT)
          | gen_ai.agent.name = main
          | gen_ai.operation.name = chat
          | gen_ai.provider.name = openrouter
          | gen_ai.request.model = vendor/model
          | gen_ai.response.finish_reasons = ["toolUse"]
          | gen_ai.response.id = gen-1
          | gen_ai.response.model = vendor/model-1
          | gen_ai.usage.cache_read.input_tokens = 100
          | gen_ai.usage.input_tokens = 110
          | gen_ai.usage.output_tokens = 5
          | harness.cost = 0.25
          | harness.iteration = 1
          | harness.output_type = tool_request
        execute_tool read (SPAN_KIND_INTERNAL)
          | gen_ai.operation.name = execute_tool
          | gen_ai.tool.call.id = c1
          | gen_ai.tool.name = read
          | harness.iteration = 1
          | harness.tool.status = success
        execute_tool write (SPAN_KIND_INTERNAL) ERROR 
          | error.type = read_only
          | gen_ai.operation.name = execute_tool
          | gen_ai.tool.call.id = c2
          | gen_ai.tool.name = write
          | harness.iteration = 1
          | harness.tool.status = failed
        chat vendor/model (SPAN_KIND_CLIENT)
          | gen_ai.agent.name = main
          | gen_ai.operation.name = chat
          | gen_ai.provider.name = openrouter
          | gen_ai.request.model = vendor/model
          | gen_ai.response.finish_reasons = ["stop"]
          | gen_ai.response.id = gen-1
          | gen_ai.response.model = vendor/model-1
          | gen_ai.usage.cache_read.input_tokens = 100
          | gen_ai.usage.input_tokens = 120
          | gen_ai.usage.output_tokens = 7
          | harness.cost = 0.25
          | harness.iteration = 2
          | harness.output_type = final_answer
    "#);
}

/// What is said of spans that do not arrive, in a time that no dead collector may hold anybody up for.
fn lost(options: OtlpOptions) -> OtlpError {
    let (sender, done) = std::sync::mpsc::channel();
    std::thread::spawn(move || sender.send(exported(options)));
    done.recv_timeout(Duration::from_secs(30)).unwrap().unwrap_err()
}

#[track_caller]
fn check_lost(options: OtlpOptions, reason: &str) {
    let shown = lost(options).to_string();
    let (said, why) = shown.split_once(" spans did not reach the collector at 127.0.0.1:").unwrap();
    assert_eq!(said, "6 of 6");
    let (_, why) = why.split_once("/v1/traces: ").unwrap();
    assert_eq!(why, reason);
}

#[test]
fn a_collector_that_is_not_there_is_told_of_once_and_holds_nobody_up() {
    let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let options = OtlpOptions::new(&format!("http://{closed}")).unwrap().timeout(Duration::from_millis(200));
    check_lost(options, "HTTP export failed: network error");
}

#[test]
fn a_collector_that_never_answers_is_given_up_on() {
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let options = OtlpOptions::new(&format!("http://{}", silent.local_addr().unwrap())).unwrap();
    assert_eq!(lost(options.timeout(Duration::from_millis(200))).kind(), "otlp.lost");
}

#[test]
fn a_collector_that_refuses_is_quoted_by_its_status_only() {
    let refusing = post(|| async { (StatusCode::UNAUTHORIZED, "your key s3cret is wrong") });
    let (address, _serving) = collector(Router::new().route("/v1/traces", refusing));
    let options = OtlpOptions::new(&format!("http://{address}")).unwrap();
    check_lost(options.header("x-key", Secret::new("s3cret")), "HTTP export failed with status code: 401");
}
