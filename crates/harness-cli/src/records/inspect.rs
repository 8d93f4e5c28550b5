//! `harness inspect`.

use harness::record::{RunRecord, governance_events, render_html, render_text};

use crate::args::InspectArgs;
use crate::error::CliError;
use crate::exit::Exit;
use crate::output;

/// Shows a record.
pub(crate) fn inspect(args: &InspectArgs) -> Result<Exit, CliError> {
    let record = RunRecord::read(&args.record)?;
    if let Some(path) = &args.html {
        let written = std::fs::write(path, render_html(&record));
        written.map_err(|source| CliError::Io { action: "write the page", source })?;
        return output::print(&format!("{}\n", path.display()), Exit::Completed);
    }
    if args.events {
        return output::print_lines(&governance_events(&record, false), Exit::Completed);
    }
    if args.json {
        return output::print_json(&record, Exit::Completed);
    }
    output::print(&render_text(&record), Exit::Completed)
}
