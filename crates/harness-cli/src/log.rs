//! Logs: what the libraries emit, on standard error.

use tracing_subscriber::EnvFilter;

use crate::error::CliError;

/// Turns logs on, with a level (`debug`) or a filter (`harness_adapters=trace,info`).
pub(crate) fn start(filter: &str) -> Result<(), CliError> {
    let parsed = EnvFilter::try_new(filter)
        .map_err(|fault| CliError::LogFilter { filter: filter.to_owned(), reason: fault.to_string() })?;
    tracing_subscriber::fmt()
        .with_env_filter(parsed)
        .with_writer(std::io::stderr)
        .with_ansi(anstream::AutoStream::choice(&std::io::stderr()) != anstream::ColorChoice::Never)
        .init();
    Ok(())
}
