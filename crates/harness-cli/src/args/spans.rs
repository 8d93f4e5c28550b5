//! Where spans go.

use clap::{Args, ValueHint};

/// What the program tells a collector of traces.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Traces")]
pub(crate) struct SpanArgs {
    /// Send a trace of every run to this OpenTelemetry collector, for example http://127.0.0.1:4318; headers
    /// that it needs are read from OTEL_EXPORTER_OTLP_HEADERS
    #[arg(long, value_name = "URL", value_hint = ValueHint::Url)]
    pub(crate) otlp: Option<String>,

    /// Let traces hold what was said and done, too: prompts, answers, arguments and results
    #[arg(long, requires = "otlp")]
    pub(crate) otlp_content: bool,
}
