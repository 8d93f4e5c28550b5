//! Where spans go.

use clap::{Args, ValueHint};

/// Options of trace export.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Traces")]
pub(crate) struct SpanArgs {
    /// Send traces to this OpenTelemetry collector, for example http://127.0.0.1:4318; headers are
    /// read from OTEL_EXPORTER_OTLP_HEADERS
    #[arg(long, value_name = "URL", value_hint = ValueHint::Url)]
    pub(crate) otlp: Option<String>,

    /// Include content in traces: prompts, answers, arguments and results
    #[arg(long, requires = "otlp")]
    pub(crate) otlp_content: bool,
}
