//! Traces for a collector that speaks OTLP.

use std::io::Write as _;

use harness::telemetry::otlp::{Otlp, OtlpError, OtlpOptions};

use crate::args::SpanArgs;
use crate::env;
use crate::error::CliError;
use crate::log;
use crate::terminal;

impl From<OtlpError> for CliError {
    fn from(error: OtlpError) -> Self {
        Self::part(error.kind(), &error, Some(error.hint()))
    }
}

/// Turns on logs, and the traces of a command that has any, as far as they are asked for. What it returns sends the
/// traces that are left, and reports once when the collector did not take all of them: the run itself is not affected.
pub(crate) fn start(
    filter: Option<&str>,
    args: Option<&SpanArgs>,
) -> Result<impl FnOnce() + use<>, CliError> {
    let otlp = args.and_then(|args| args.otlp.as_deref()).map(exporter).transpose()?;
    log::start(filter, otlp.as_ref().map(Otlp::layer))?;
    Ok(|| {
        if let Some(Err(error)) = otlp.map(Otlp::finish) {
            let _ = writeln!(terminal::messages(), "{error}; {}", error.hint());
        }
    })
}

fn exporter(url: &str) -> Result<Otlp, CliError> {
    let headers = env::text(env::OTLP_HEADERS).unwrap_or_default();
    Ok(Otlp::start(OtlpOptions::new(url)?.headers(&headers)?)?)
}
