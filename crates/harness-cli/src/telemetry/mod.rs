//! Logs, and traces of runs for a collector.

use harness::Builder;
use harness::telemetry::SpanOptions;

use crate::args::SpanArgs;
#[cfg(not(feature = "otel"))]
use crate::error::CliError;

#[cfg(feature = "otel")]
mod collector;
#[cfg(feature = "otel")]
pub(crate) use collector::start;

/// Turns on logs as far as they are asked for.
#[cfg(not(feature = "otel"))]
pub(crate) fn start(filter: Option<&str>, args: Option<&SpanArgs>) -> Result<impl FnOnce(), CliError> {
    if args.is_some_and(|args| args.otlp.is_some()) {
        return Err(crate::left_out::left_out("`--otlp`", "otel"));
    }
    crate::log::start(filter, None::<tracing_subscriber::layer::Identity>)?;
    Ok(|| ())
}

impl SpanArgs {
    /// Enables spans of runs if `--otlp` names a collector.
    pub(crate) fn apply(&self, builder: Builder) -> Builder {
        match &self.otlp {
            Some(_) => builder.spans(SpanOptions::new().content(self.otlp_content)),
            None => builder,
        }
    }
}
