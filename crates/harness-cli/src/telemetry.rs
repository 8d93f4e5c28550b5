//! Traces of runs, for a collector.

use std::io::Write as _;

use harness::Builder;
use harness::telemetry::SpanOptions;
use harness::telemetry::otlp::{Otlp, OtlpOptions};

use crate::args::SpanArgs;
use crate::env;
use crate::error::CliError;
use crate::log;
use crate::terminal;

/// What the program emits while a command is carried out.
pub(crate) struct Emitting(Option<Otlp>);

/// Turns on logs, and the traces of a command that has any, as far as they are asked for.
pub(crate) fn start(filter: Option<&str>, args: Option<&SpanArgs>) -> Result<Emitting, CliError> {
    let otlp = args.and_then(|args| args.otlp.as_deref()).map(exporter).transpose()?;
    log::start(filter, otlp.as_ref())?;
    Ok(Emitting(otlp))
}

fn exporter(url: &str) -> Result<Otlp, CliError> {
    let headers = env::text(env::OTLP_HEADERS).unwrap_or_default();
    Ok(Otlp::start(OtlpOptions::new(url)?.headers(&headers)?)?)
}

impl Emitting {
    /// Sends what is left, and says so once when a collector did not take all of it: the run itself went as it
    /// went.
    pub(crate) fn finish(self) {
        if let Some(Err(error)) = self.0.map(Otlp::finish) {
            let _ = writeln!(terminal::messages(), "{error}; {}", error.hint());
        }
    }
}

impl SpanArgs {
    /// A builder whose runs have spans when somebody collects them.
    pub(crate) fn apply(&self, builder: Builder) -> Builder {
        match &self.otlp {
            Some(_) => builder.spans(SpanOptions::new().content(self.otlp_content)),
            None => builder,
        }
    }
}
