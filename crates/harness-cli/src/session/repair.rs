//! `harness session repair`.

use std::fmt::Write as _;

use harness::session::{FileSession, RepairReport};

use super::options;
use crate::args::RepairArgs;
use crate::error::CliError;
use crate::exit::Exit;
use crate::output;

/// Takes damage out of a session file.
pub(super) fn repair(args: &RepairArgs) -> Result<Exit, CliError> {
    let report = FileSession::repair(&args.session, &options())?;
    if args.json {
        return output::print_json(&report, Exit::Completed);
    }
    output::print(&text(&report), Exit::Completed)
}

fn text(report: &RepairReport) -> String {
    if report.is_sound() {
        return format!("no damage found: {} entries; session unchanged\n", report.kept);
    }
    let mut text = String::new();
    for line in &report.quarantined {
        let _ = writeln!(
            text,
            "line {} (byte {}, {} bytes): {}",
            line.line, line.offset, line.bytes, line.reason
        );
    }
    if report.missing > 0 {
        let _ = writeln!(text, "encrypted lines that are missing: {}", report.missing);
    }
    for repair in &report.repairs {
        let _ = writeln!(text, "{repair}: repaired");
    }
    let lines = report.quarantined.len();
    let _ = write!(text, "removed {lines}, relinked {}, kept {} entries", report.relinked, report.kept);
    if let Some(side) = &report.side_file {
        let _ = write!(text, "; the removed lines are in {}", side.display());
    }
    text + "\n"
}
