//! Spans to a collector, over OTLP: protobuf over HTTP, in batches, on a separate thread.
//!
//! The OpenTelemetry SDK reads its standard variables of the environment itself (`OTEL_BSP_*`,
//! `OTEL_TRACES_SAMPLER`); everything else is said here.
//!
//! ```no_run
//! use harness_telemetry::otlp::{Otlp, OtlpOptions};
//! use tracing_subscriber::layer::SubscriberExt as _;
//! use tracing_subscriber::util::SubscriberInitExt as _;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let otlp = Otlp::start(OtlpOptions::new("http://127.0.0.1:4318")?)?;
//! tracing_subscriber::registry().with(otlp.layer()).init();
//! // … runs, with a listener [`Spans`](crate::Spans) …
//! otlp.finish()?;
//! # Ok(())
//! # }
//! ```

mod error;
mod exporter;
mod options;
mod processor;

use std::fmt;
use std::sync::Arc;

use opentelemetry::trace::TracerProvider as _;
use opentelemetry_otlp::{Protocol, WithExportConfig as _, WithHttpConfig as _};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::{BatchConfigBuilder, BatchSpanProcessor, SdkTracerProvider};
use tracing::{Level, Metadata, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::filter::{FilterFn, LevelFilter};
use tracing_subscriber::registry::LookupSpan;

pub use error::OtlpError;
pub use options::OtlpOptions;

use crate::TARGET;
use exporter::{Sent, Watched};
use processor::Tidied;

/// Spans that may wait for the collector; what ends while so many wait is lost, and counted.
const QUEUE: usize = 16_384;

/// Targets whose spans are sent: those of runs, and the steps of flows.
const TARGETS: [&str; 2] = [TARGET, "harness_flow"];

/// An exporter at work.
///
/// A collector that does not answer never holds up a run: spans wait in a bounded queue, and what does not fit
/// is lost. [`finish`](Self::finish) says what was lost.
pub struct Otlp {
    provider: SdkTracerProvider,
    sent: Arc<Sent>,
    options: OtlpOptions,
}

impl fmt::Debug for Otlp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Otlp").field("options", &self.options).finish_non_exhaustive()
    }
}

impl Otlp {
    /// Starts the exporter's thread. Sends nothing yet, and does not check the collector.
    ///
    /// Must not be called in asynchronous code, where its HTTP client cannot be built: use
    /// `tokio::task::spawn_blocking` there.
    ///
    /// # Errors
    /// [`OtlpError::Start`] if the HTTP client or the exporter cannot be built, for example because
    /// of an invalid header.
    pub fn start(options: OtlpOptions) -> Result<Self, OtlpError> {
        let sent = Arc::new(Sent::default());
        let exporter = Watched::new(exporter(&options)?, Arc::clone(&sent));
        let config = BatchConfigBuilder::default().with_max_queue_size(QUEUE).build();
        let batches = BatchSpanProcessor::builder(exporter).with_batch_config(config).build();
        let resource = Resource::builder_empty().with_service_name(options.service_name.clone()).build();
        let provider = SdkTracerProvider::builder()
            .with_span_processor(Tidied::new(batches, Arc::clone(&sent)))
            .with_resource(resource)
            .build();
        Ok(Self { provider, sent, options })
    }

    /// The layer of a subscriber that gives the spans of runs, and of steps of flows, to the exporter, and
    /// nothing else.
    pub fn layer<S>(&self) -> impl Layer<S> + Send + Sync + use<S>
    where
        S: Subscriber + for<'s> LookupSpan<'s> + Send + Sync,
    {
        let layer = tracing_opentelemetry::layer()
            .with_tracer(self.provider.tracer("harness"))
            .with_location(false)
            .with_threads(false)
            .with_target(false)
            .with_level(false)
            .with_tracked_inactivity(false);
        let wanted = FilterFn::new(is_ours as fn(&Metadata<'_>) -> bool);
        layer.with_filter(wanted.with_max_level_hint(LevelFilter::DEBUG))
    }

    /// Sends what is left and ends, within [`OtlpOptions::timeout`] and a little. Spans that end later are lost.
    ///
    /// Waits without regard for other tasks: use `tokio::task::spawn_blocking` in asynchronous code.
    ///
    /// # Errors
    /// [`OtlpError::Lost`] when spans did not reach the collector, now or before.
    pub fn finish(self) -> Result<(), OtlpError> {
        self.sent.close();
        // What the collector took is counted; how the end of the thread went says nothing more.
        let _ = self.provider.shutdown_with_timeout(self.options.timeout);
        self.sent.outcome(&self.options.shown())
    }
}

fn is_ours(metadata: &Metadata<'_>) -> bool {
    let target = metadata.target();
    *metadata.level() <= Level::DEBUG && TARGETS.iter().any(|ours| target.starts_with(ours))
}

fn exporter(options: &OtlpOptions) -> Result<opentelemetry_otlp::SpanExporter, OtlpError> {
    let each = options.timeout / 2;
    let mut client = reqwest::blocking::Client::builder()
        .timeout(each)
        .redirect(reqwest::redirect::Policy::none())
        .user_agent(concat!("harness/", env!("CARGO_PKG_VERSION")));
    if options.is_loopback() {
        client = client.no_proxy();
    }
    let failed = |reason: String| OtlpError::Start { endpoint: options.shown(), reason };
    let client = client.build().map_err(|error| failed(error.without_url().to_string()))?;
    opentelemetry_otlp::SpanExporter::builder()
        .with_http()
        .with_protocol(Protocol::HttpBinary)
        .with_http_client(client)
        .with_endpoint(options.url.as_str())
        .with_timeout(each)
        .with_headers(options.exposed_headers())
        .build()
        .map_err(|error| failed(error.to_string()))
}
