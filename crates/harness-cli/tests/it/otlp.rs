//! `--otlp`: what a collector is sent, and what happens without one.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::routing::post;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::trace::v1::Span;
use parking_lot::Mutex;
use prost::Message as _;
use tokio::runtime::Runtime;

use crate::support::{Output, Running, copy, harness, listen};

const KEY: &str = "Bearer s3cret";
const QUESTION: &str = "Where is my order 1042?";

/// A collector on a loopback port, which serves until it is dropped.
struct Collector {
    url: String,
    seen: Arc<Mutex<Seen>>,
    _serving: Runtime,
}

#[derive(Default)]
struct Seen {
    spans: Vec<Span>,
    keys: Vec<String>,
}

async fn take(State(seen): State<Arc<Mutex<Seen>>>, headers: HeaderMap, body: Bytes) {
    let request = ExportTraceServiceRequest::decode(body).unwrap();
    let mut seen = seen.lock();
    seen.keys.extend(headers.get("authorization").map(|key| key.to_str().unwrap().to_owned()));
    let scopes = request.resource_spans.into_iter().flat_map(|resource| resource.scope_spans);
    seen.spans.extend(scopes.flat_map(|scope| scope.spans));
}

impl Collector {
    fn start() -> Self {
        let seen = Arc::<Mutex<Seen>>::default();
        let (url, serving) =
            listen(Router::new().route("/v1/traces", post(take)).with_state(Arc::clone(&seen)));
        Self { url, seen, _serving: serving }
    }

    /// The names of the spans as a tree, in the order in which they began.
    fn tree(&self) -> String {
        let seen = self.seen.lock();
        let mut below: HashMap<&[u8], Vec<&Span>> = HashMap::new();
        for span in &seen.spans {
            below.entry(&span.parent_span_id).or_default().push(span);
        }
        let mut text = String::new();
        let mut stack: Vec<(&Span, usize)> = Vec::new();
        let push = |stack: &mut Vec<_>, parent: &[u8], depth| {
            let mut spans = below.get(parent).cloned().unwrap_or_default();
            spans.sort_by_key(|span| std::cmp::Reverse((span.start_time_unix_nano, span.end_time_unix_nano)));
            stack.extend(spans.into_iter().map(|span| (span, depth)));
        };
        push(&mut stack, &[], 0);
        while let Some((span, depth)) = stack.pop() {
            let _ = writeln!(text, "{}{}", "  ".repeat(depth), span.name);
            push(&mut stack, &span.span_id, depth + 1);
        }
        text
    }

    /// What spans say under this name.
    fn attributes(&self, name: &str) -> Vec<String> {
        let seen = self.seen.lock();
        let all = seen.spans.iter().flat_map(|span| &span.attributes).filter(|named| named.key == name);
        let texts = all.map(|named| match named.value.as_ref().and_then(|value| value.value.as_ref()) {
            Some(Value::StringValue(text)) => text.clone(),
            other => format!("{other:?}"),
        });
        texts.collect()
    }
}

/// Asks the example, with these arguments behind the question.
fn ask(arguments: &[&str]) -> Output {
    let folder = tempfile::tempdir().unwrap();
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/examples/customer-support");
    copy(&example, folder.path());
    let mut command = harness(folder.path(), &[&["run", "harness.yaml", QUESTION], arguments].concat());
    command.env("OTEL_EXPORTER_OTLP_HEADERS", "authorization=Bearer%20s3cret");
    Running::start(command).end()
}

#[test]
fn a_collector_is_sent_the_trace_of_a_run() {
    let collector = Collector::start();
    let output = ask(&["--otlp", &collector.url]);
    assert_eq!(output.code, Some(0), "{}", output.stderr);
    assert!(!output.stderr.contains("collector"), "{}", output.stderr);
    insta::assert_snapshot!(collector.tree(), @r"
    invoke_agent router
      turn 1
        chat demo
        execute_tool handoff_to_orders
        invoke_agent orders
          chat demo
          execute_tool find_order
          execute_tool track_parcel
          chat demo
    ");
    assert_eq!(collector.seen.lock().keys, [KEY]);
    assert_eq!(collector.attributes("harness.stop_reason"), ["answer_finalized", "answer_finalized"]);
    assert_eq!(collector.attributes("gen_ai.input.messages"), [""; 0], "content only on request");
}

#[test]
fn content_is_sent_when_it_is_asked_for() {
    let collector = Collector::start();
    let output = ask(&["--otlp", &collector.url, "--otlp-content"]);
    assert_eq!(output.code, Some(0), "{}", output.stderr);
    let asked = collector.attributes("gen_ai.input.messages");
    assert!(asked.iter().any(|messages| messages.contains(QUESTION)), "{asked:?}");
}

#[test]
fn logs_and_traces_go_together() {
    let collector = Collector::start();
    let output = ask(&["--otlp", &collector.url, "--log", "debug"]);
    assert!(output.stderr.contains("DEBUG"), "{}", output.stderr);
    assert!(!output.stderr.contains("s3cret"), "{}", output.stderr);
    assert!(collector.tree().starts_with("invoke_agent "));
}

#[test]
fn a_collector_that_is_not_there_is_told_of_and_changes_nothing() {
    let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let output = ask(&["--otlp", &format!("http://{closed}")]);
    assert_eq!(output.code, Some(0), "{}", output.stderr);
    assert!(output.stdout.contains("NP-77342"), "{}", output.stdout);
    let told = output.stderr.matches("did not reach the collector").count();
    assert_eq!(told, 1, "{}", output.stderr);
    assert!(!output.stderr.contains("s3cret"), "{}", output.stderr);
}

#[test]
fn what_is_no_collector_is_refused_before_anything_runs() {
    let output = ask(&["--otlp", "ftp://me:s3cret@host"]);
    assert_eq!((output.code, &*output.stdout), (Some(2), ""));
    assert!(output.stderr.contains("its scheme is neither http nor https"), "{}", output.stderr);
    assert!(!output.stderr.contains("s3cret"), "{}", output.stderr);
}
