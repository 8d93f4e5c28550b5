//! Logs: what the libraries emit, on standard error.

use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{EnvFilter, Layer, Registry};

use crate::error::CliError;
use crate::terminal;

/// Turns logs on, with a level (`debug`) or a filter (`harness_adapters=trace,info`), and gives spans to the
/// exporter. Without either, nothing listens.
pub(crate) fn start<L>(filter: Option<&str>, spans: Option<L>) -> Result<(), CliError>
where
    L: Layer<Registry> + Send + Sync,
{
    if filter.is_none() && spans.is_none() {
        return Ok(());
    }
    let shown = filter.map(|filter| {
        let parsed = EnvFilter::try_new(filter)
            .map_err(|fault| CliError::LogFilter { filter: filter.to_owned(), reason: fault.to_string() })?;
        // Lines without styles: what an event says is not ours.
        let lines = tracing_subscriber::fmt::layer().with_writer(terminal::messages).with_ansi(false);
        Ok::<_, CliError>(lines.with_filter(parsed))
    });
    tracing_subscriber::registry().with(spans).with(shown.transpose()?).init();
    Ok(())
}
