//! Output of the findings.

use std::fmt::Write as _;

use serde::Serialize;

use super::finding::{Finding, Status};
use crate::error::CliError;
use crate::exit::Exit;
use crate::output;
use crate::render::{BAD, BOLD, DIM, GOOD, NOTE, counted, harmless};

/// Findings as JSON.
#[derive(Serialize)]
struct JsonReport<'a> {
    /// Whether there is no failure.
    sound: bool,
    findings: &'a [Finding],
}

/// Prints the findings and exits with `exit`.
pub(super) fn report(findings: &[Finding], json: bool, exit: Exit) -> Result<Exit, CliError> {
    if json {
        return output::print_json(&JsonReport { sound: exit == Exit::Completed, findings }, exit);
    }
    output::print(&text(findings), exit)
}

fn text(findings: &[Finding]) -> String {
    let mut text = String::new();
    let mut area = None;
    for finding in findings {
        if area.replace(finding.area) != Some(finding.area) {
            let _ = writeln!(text, "{BOLD}{}{BOLD:#}", finding.area.title());
        }
        let (style, word) = match finding.status {
            Status::Ok => (GOOD, "ok"),
            Status::Absent => (DIM, "absent"),
            Status::Warning => (NOTE, "warning"),
            Status::Fault => (BAD, "fault"),
        };
        let _ = writeln!(text, "  {style}{word:<8}{style:#}{}", harmless(&finding.message));
        if let Some(fix) = &finding.fix {
            let _ = writeln!(text, "          {NOTE}fix{NOTE:#}: {}", harmless(fix));
        }
    }
    let count = |status| findings.iter().filter(|finding| finding.status == status).count();
    let (faults, warnings) = (count(Status::Fault), count(Status::Warning));
    let _ = writeln!(text, "{}, {}", counted(faults, "problem"), counted(warnings, "warning"));
    text
}
