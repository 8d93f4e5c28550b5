//! Logs: what the libraries emit, on standard error.

use harness::telemetry::otlp::Otlp;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{EnvFilter, Layer as _};

use crate::error::CliError;
use crate::terminal;

/// Turns logs on, with a level (`debug`) or a filter (`harness_adapters=trace,info`), and gives spans to the
/// exporter. Without either, nothing listens.
pub(crate) fn start(filter: Option<&str>, otlp: Option<&Otlp>) -> Result<(), CliError> {
    if filter.is_none() && otlp.is_none() {
        return Ok(());
    }
    let shown = filter.map(|filter| {
        let parsed = EnvFilter::try_new(filter)
            .map_err(|fault| CliError::LogFilter { filter: filter.to_owned(), reason: fault.to_string() })?;
        // Lines without styles: what an event says is not ours.
        let lines = tracing_subscriber::fmt::layer().with_writer(terminal::messages).with_ansi(false);
        Ok::<_, CliError>(lines.with_filter(parsed))
    });
    tracing_subscriber::registry().with(otlp.map(Otlp::layer)).with(shown.transpose()?).init();
    Ok(())
}
