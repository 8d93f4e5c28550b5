//! Counts what reaches the collector.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use opentelemetry_sdk::Resource;
use opentelemetry_sdk::error::{OTelSdkError, OTelSdkResult};
use opentelemetry_sdk::trace::{SpanData, SpanExporter};
use parking_lot::Mutex;

use super::OtlpError;

/// Statistics of an exporter.
#[derive(Debug, Default)]
pub(super) struct Sent {
    ended: AtomicU64,
    taken: AtomicU64,
    /// Error of the last batch; `None` if it arrived.
    failing: Mutex<Option<String>>,
    /// Error of any batch.
    failed: Mutex<Option<String>>,
    closing: AtomicBool,
}

impl Sent {
    /// A span has ended.
    pub(super) fn end(&self) {
        self.ended.fetch_add(1, Ordering::Relaxed);
    }

    /// Stops attempts to send to a collector that was unreachable the last time.
    pub(super) fn close(&self) {
        self.closing.store(true, Ordering::Release);
    }

    fn is_given_up(&self) -> bool {
        let failing = self.failing.lock();
        self.closing.load(Ordering::Acquire) && failing.is_some()
    }

    fn note(&self, spans: u64, result: &OTelSdkResult) {
        let reason = result.as_ref().err().map(|error| match error {
            OTelSdkError::InternalFailure(text) => text.clone(),
            OTelSdkError::AlreadyShutdown | OTelSdkError::Timeout(_) => error.to_string(),
        });
        match &reason {
            None => {
                self.taken.fetch_add(spans, Ordering::Relaxed);
            }
            Some(_) => self.failed.lock().clone_from(&reason),
        }
        *self.failing.lock() = reason;
    }

    /// Final result.
    pub(super) fn outcome(&self, endpoint: &str) -> Result<(), OtlpError> {
        let (all, taken) = (self.ended.load(Ordering::Relaxed), self.taken.load(Ordering::Relaxed));
        let lost = all.saturating_sub(taken);
        if lost == 0 {
            return Ok(());
        }
        let failed = self.failed.lock().clone();
        let reason = failed.unwrap_or_else(|| "it took too long".to_owned());
        Err(OtlpError::Lost { endpoint: endpoint.to_owned(), lost, all, reason })
    }
}

/// An exporter of which is known what it sent.
#[derive(Debug)]
pub(super) struct Watched {
    inner: opentelemetry_otlp::SpanExporter,
    sent: Arc<Sent>,
}

impl Watched {
    pub(super) fn new(inner: opentelemetry_otlp::SpanExporter, sent: Arc<Sent>) -> Self {
        Self { inner, sent }
    }
}

impl SpanExporter for Watched {
    async fn export(&self, batch: Vec<SpanData>) -> OTelSdkResult {
        if self.sent.is_given_up() {
            return Err(OTelSdkError::InternalFailure("the collector was not there before".to_owned()));
        }
        let spans = u64::try_from(batch.len()).unwrap_or(u64::MAX);
        let result = self.inner.export(batch).await;
        self.sent.note(spans, &result);
        result
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.inner.shutdown_with_timeout(timeout)
    }

    fn force_flush(&self) -> OTelSdkResult {
        self.inner.force_flush()
    }

    fn set_resource(&mut self, resource: &Resource) {
        self.inner.set_resource(resource);
    }
}
