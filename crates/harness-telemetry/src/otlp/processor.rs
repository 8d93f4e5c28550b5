//! Says in OpenTelemetry's terms what `tracing` has no terms for.

use std::sync::Arc;
use std::time::Duration;

use opentelemetry::{Array, Context, Value};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::trace::{BatchSpanProcessor, Span, SpanData, SpanProcessor};

use super::exporter::Sent;

/// How long a span took that was opened when it was over.
const DURATION: &str = "harness.duration_ms";

/// A list, of which a field of `tracing` holds the one entry.
const FINISH_REASONS: &str = "gen_ai.response.finish_reasons";

/// A processor that is given spans after they were put right.
#[derive(Debug)]
pub(super) struct Tidied {
    inner: BatchSpanProcessor,
    sent: Arc<Sent>,
}

impl Tidied {
    pub(super) fn new(inner: BatchSpanProcessor, sent: Arc<Sent>) -> Self {
        Self { inner, sent }
    }
}

impl SpanProcessor for Tidied {
    fn on_start(&self, span: &mut Span, cx: &Context) {
        self.inner.on_start(span, cx);
    }

    fn on_end(&self, mut span: SpanData) {
        self.sent.end();
        tidy(&mut span);
        self.inner.on_end(span);
    }

    fn force_flush(&self) -> OTelSdkResult {
        self.inner.force_flush()
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.inner.shutdown_with_timeout(timeout)
    }

    fn set_resource(&mut self, resource: &Resource) {
        self.inner.set_resource(resource);
    }
}

/// Moves back the start of a span that was reported at its end, by its duration.
fn tidy(span: &mut SpanData) {
    let took = span.attributes.iter().position(|attribute| attribute.key.as_str() == DURATION);
    if let Some(at) = took
        && let Value::I64(millis) = span.attributes.remove(at).value
    {
        let took = Duration::from_millis(u64::try_from(millis).unwrap_or_default());
        span.start_time = span.end_time.checked_sub(took).unwrap_or(span.start_time);
    }
    for attribute in &mut span.attributes {
        if attribute.key.as_str() == FINISH_REASONS
            && let Value::String(reason) = &attribute.value
        {
            attribute.value = Value::Array(Array::String(vec![reason.clone()]));
        }
    }
}
