//! `harness inspect`.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use harness::record::{
    CompareOptions, Difference, RunRecord, Section, compare_records, governance_events,
    render_comparison_html, render_html, render_runs_html, render_text,
};

use crate::args::InspectArgs;
use crate::error::CliError;
use crate::exit::Exit;
use crate::output;
use crate::render::harmless;
use crate::terminal;

/// Maximum number of records at once.
const MOST: usize = 1_000;

/// Shows records.
pub(crate) fn inspect(args: &InspectArgs) -> Result<Exit, CliError> {
    let Found { paths, records, is_list } = found(&args.records)?;
    if let Some(path) = &args.html {
        let page = match records.as_slice() {
            [record] if !is_list => render_html(record),
            [left, right] if !is_list => render_comparison_html(left, right),
            records => render_runs_html(records, None),
        };
        let written = std::fs::write(path, page);
        written.map_err(|source| CliError::Io { action: "write the page", source })?;
        return output::print(&format!("{}\n", path.display()), Exit::Completed);
    }
    if args.events {
        let events: Vec<_> = records.iter().flat_map(|record| governance_events(record, false)).collect();
        return output::print_lines(&events, Exit::Completed);
    }
    if args.json {
        return match records.as_slice() {
            [record] => output::print_json(record, Exit::Completed),
            records => output::print_lines(records, Exit::Completed),
        };
    }
    let text = match records.as_slice() {
        [record] if !is_list => render_text(record),
        [left, right] if !is_list => compared(left, right),
        records => listed(&paths, records),
    };
    output::print_long(&text, Exit::Completed)
}

/// Records with their paths.
#[derive(Default)]
struct Found {
    paths: Vec<PathBuf>,
    records: Vec<RunRecord>,
    /// Whether they are many runs, rather than one, or two to compare.
    is_list: bool,
}

/// Reads the records of files and directories. A file in a directory that is not a record is reported and skipped.
fn found(paths: &[PathBuf]) -> Result<Found, CliError> {
    let mut found = Found { is_list: paths.len() > 2, ..Found::default() };
    for path in paths {
        if !path.is_dir() {
            found.records.push(RunRecord::read(path)?);
            found.paths.push(path.clone());
            continue;
        }
        found.is_list = true;
        let before = found.records.len();
        for file in files_of(path)? {
            match RunRecord::read(&file) {
                Ok(record) => {
                    found.records.push(record);
                    found.paths.push(file);
                }
                Err(error) => drop(writeln!(terminal::messages(), "skipped: {error}")),
            }
        }
        if found.records.len() == before {
            return Err(CliError::NoRecords { folder: path.clone() });
        }
    }
    if found.records.len() > MOST {
        return Err(CliError::TooManyRecords { found: found.records.len(), most: MOST });
    }
    Ok(found)
}

/// The JSON files of a directory by name.
fn files_of(folder: &Path) -> Result<Vec<PathBuf>, CliError> {
    let failed = |source| CliError::Io { action: "read the directory", source };
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        if path.extension().is_some_and(|extension| extension == "json") && path.is_file() {
            found.push(path);
        }
        if found.len() > MOST {
            return Err(CliError::TooManyRecords { found: found.len(), most: MOST });
        }
    }
    found.sort();
    Ok(found)
}

/// Differences of two runs as text.
fn compared(left: &RunRecord, right: &RunRecord) -> String {
    let options = CompareOptions::default().without(Section::Metadata);
    let compared = compare_records(left, right, &options);
    let mut lines = vec![format!("{} → {}", left.run_id, right.run_id)];
    if left.stop_reason != right.stop_reason {
        lines.push(format!("ended {} → {}", left.stop_reason, right.stop_reason));
    }
    lines.extend(compared.differences.iter().map(Difference::line));
    if compared.equal {
        lines.push("no difference".to_owned());
    }
    lines.iter().fold(String::new(), |text, line| text + &harmless(line) + "\n")
}

/// One line per run.
fn listed(paths: &[PathBuf], records: &[RunRecord]) -> String {
    let line = |(path, record): (&PathBuf, &RunRecord)| {
        let question = record.question.lines().next().unwrap_or_default();
        let (path, at) = (path.display(), &record.started_at);
        format!("{path}: {} · {at} · {} ms · {question}", record.outcome.as_str(), record.elapsed_ms)
    };
    paths.iter().zip(records).map(line).fold(String::new(), |text, line| text + &harmless(&line) + "\n")
}
