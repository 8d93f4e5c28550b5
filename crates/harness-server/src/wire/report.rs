//! Report of a run.

use harness::core::Json;
use harness::runtime::Report;
use schemars::JsonSchema;
use serde::Serialize;

/// Report of a run.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ReportView {
    /// Id of the run.
    run: harness::core::RunId,
    /// Outcome: `completed`, `needs_clarification`, `awaiting_approval`, `deferred` or `failed`.
    outcome: &'static str,
    /// Stop reason, as a stable code.
    stop_reason: &'static str,
    /// Answer, or the question that ended the run.
    text: String,
    /// Human-readable problem.
    #[serde(skip_serializing_if = "Option::is_none")]
    problem: Option<String>,
    /// Reason of an abort.
    #[serde(skip_serializing_if = "Option::is_none")]
    aborted: Option<String>,
    /// Position of its first message in the transcript.
    from: usize,
    /// Number of messages in the transcript at its end.
    messages: usize,
    /// Number of queued messages.
    waiting: usize,
    /// End of the run with evidence, usage and continuation, as in `harness run --json`.
    #[schemars(schema_with = "harness::core::End::json_form_schema")]
    end: Json,
}

impl From<&Report> for ReportView {
    fn from(report: &Report) -> Self {
        Self {
            run: report.run.clone(),
            outcome: report.end.outcome().as_str(),
            stop_reason: report.end.reason().as_str(),
            text: report.answer().to_owned(),
            problem: report.problem(),
            aborted: report.aborted.as_deref().map(str::to_owned),
            from: report.from,
            messages: report.transcript.len(),
            waiting: report.waiting,
            end: report.end.to_json().unwrap_or_else(|_| Json::null()),
        }
    }
}
