//! Report of a run: its work, the evidence for its acceptance, its stop reason and the next steps.

mod markdown;

use std::path::Path;

use harness::control::contract::{CoverageStatus, RequirementCoverage, TaskContract};
use harness::control::{CompletionReport, ControlReport, GateReport, ItemsSummary, RunStatus, StopCode};
use harness::core::outcome::TotalUsage;
use harness::core::{Millis, Outcome, StopReason};
use harness::runtime::Report;
use serde::Serialize;

use crate::error::CliError;
use crate::run::deliverables::Written;

/// Version of the JSON form.
const VERSION: u32 = 1;

/// Report of a run as JSON.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RunReport<'a> {
    kind: &'static str,
    version: u32,
    descriptor: &'a Path,
    descriptor_hash: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    session: Option<&'a Path>,
    outcome: Outcome,
    stop_reason: StopReason,
    /// Stop reason in words.
    meaning: &'static str,
    /// Report of the control, for a controlled run.
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<RunStatus>,
    /// Last decision to continue or stop.
    #[serde(skip_serializing_if = "Option::is_none")]
    decision: Option<StopCode>,
    #[serde(skip_serializing_if = "Option::is_none")]
    answer: Option<&'a str>,
    gates: &'a [GateReport],
    requirements: Vec<Requirement<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    items: Option<&'a ItemsSummary>,
    deliverables: Vec<DeliverableLine<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    completion: Option<&'a CompletionReport>,
    turns: u32,
    usage: &'a TotalUsage,
    elapsed: Millis,
    /// Next steps for a run that is not complete.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<&'a str>,
}

/// A requirement of the contract.
#[derive(Debug, Serialize)]
struct Requirement<'a> {
    id: &'a str,
    description: &'a str,
    optional: bool,
    status: CoverageStatus,
    /// Evidence, the latest last.
    proof: Vec<Proof<'a>>,
    /// Reason why it is not met, or why it was waived.
    #[serde(skip_serializing_if = "str::is_empty")]
    notes: &'a str,
}

/// Evidence of a requirement.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Proof<'a> {
    /// Number of the event, or a word if there is none.
    event: &'a str,
    value: &'a str,
}

/// A deliverable in JSON output.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct DeliverableLine<'a> {
    item: &'a str,
    title: &'a str,
    bytes: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<&'a Path>,
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<&'a str>,
}

/// Parts of a report beyond the run's own.
#[derive(Debug)]
pub(crate) struct ReportContext<'a> {
    pub(crate) descriptor: &'a Path,
    pub(crate) descriptor_hash: &'a str,
    pub(crate) session: Option<&'a Path>,
    pub(crate) contract: Option<&'a TaskContract>,
    /// Files of the deliverables in order; empty if none were written.
    pub(crate) files: &'a [Written],
    pub(crate) next: Option<&'a str>,
}

impl<'a> RunReport<'a> {
    /// Builds the report of a finished run.
    pub(crate) fn of(report: &'a Report, context: &ReportContext<'a>) -> Self {
        let end = &*report.end;
        let control = report.control();
        Self {
            kind: "harness.run_report",
            version: VERSION,
            descriptor: context.descriptor,
            descriptor_hash: context.descriptor_hash,
            session: context.session,
            outcome: end.outcome(),
            stop_reason: end.reason(),
            meaning: end.reason().meaning(),
            status: control.map(|control| control.status),
            decision: control.map(|control| control.decision.code),
            answer: end.answer.as_deref(),
            gates: control.map(|control| &*control.gates).unwrap_or_default(),
            requirements: requirements(control, context.contract),
            items: control.and_then(|control| control.items.as_ref()),
            deliverables: deliverables(control, context.files),
            completion: control.and_then(|control| control.completion.as_ref()),
            turns: end.turns,
            usage: &end.usage,
            elapsed: end.elapsed,
            next: context.next,
        }
    }

    /// Writes the report: as JSON if the file name ends with `.json`, as Markdown otherwise. An existing report is
    /// replaced.
    pub(crate) fn write(&self, path: &Path) -> Result<(), CliError> {
        let fault = |source| CliError::NotWritten { path: path.to_owned(), source };
        let is_json = path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("json"));
        let text = if is_json {
            serde_json::to_string_pretty(self).map_err(|error| fault(error.into()))? + "\n"
        } else {
            self.markdown()
        };
        std::fs::write(path, text).map_err(fault)
    }

    /// A summary of a few lines for a user who watched the run.
    pub(crate) fn lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        if !self.requirements.is_empty() {
            let met = self.requirements.iter().filter(|one| one.status.is_satisfied()).count();
            lines.push(format!("requirements: {met} of {} met", self.requirements.len()));
            let unmet = self.requirements.iter().filter(|one| !one.status.is_satisfied());
            lines.extend(unmet.map(|one| format!("{} is not met: {}", one.id, one.description)));
        }
        if let Some(items) = self.items {
            let closed = items.done + items.skipped;
            lines.push(format!("work items: {closed} of {} closed", items.total));
        }
        for one in &self.deliverables {
            let note = one.note.map(|note| format!(" ({note})")).unwrap_or_default();
            lines.push(match one.file {
                Some(file) => format!("deliverable: {}, {} bytes{note}", file.display(), one.bytes),
                None => format!("deliverable: {}, {} bytes", one.title, one.bytes),
            });
        }
        lines
    }
}

fn requirements<'a>(
    control: Option<&'a ControlReport>,
    contract: Option<&'a TaskContract>,
) -> Vec<Requirement<'a>> {
    let coverage = control.and_then(|control| control.coverage.as_ref());
    let outputs = contract.map(|contract| &*contract.required_outputs).unwrap_or_default();
    // What it proves stands before it already.
    let value = |found: &RequirementCoverage, text: &'a str| {
        let own = text.strip_prefix(&*found.requirement_id).and_then(|text| text.strip_prefix(": "));
        own.unwrap_or(text)
    };
    let proof = |found: &'a RequirementCoverage| {
        let evidence = found.evidence.iter();
        evidence.map(|one| Proof { event: &one.event_ref, value: value(found, &one.value) }).collect()
    };
    outputs
        .iter()
        .map(|output| {
            let found = coverage.and_then(|coverage| coverage.coverage.get(&output.id));
            Requirement {
                id: &output.id,
                description: &output.description,
                optional: output.optional,
                status: found.map(|found| found.status).unwrap_or_default(),
                proof: found.map(proof).unwrap_or_default(),
                notes: found.map(|found| &*found.notes).unwrap_or_default(),
            }
        })
        .collect()
}

fn deliverables<'a>(control: Option<&'a ControlReport>, files: &'a [Written]) -> Vec<DeliverableLine<'a>> {
    let deliverables = control.map(|control| &*control.deliverables).unwrap_or_default();
    let mut files = files.iter();
    let line = |one: &'a harness::control::work::Deliverable| {
        let file = files.next();
        DeliverableLine {
            item: one.item_id.as_str(),
            title: &one.title,
            bytes: one.content.len(),
            file: file.map(|file| &*file.path),
            note: file.and_then(|file| file.note.as_deref()),
        }
    };
    deliverables.iter().map(line).collect()
}
