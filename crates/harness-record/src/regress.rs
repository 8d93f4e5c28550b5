//! Regression runs: every case of a suite, compared with its record.

use std::fmt::Write as _;
use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::pin::pin;
use std::task::Poll;

use harness_core::{Json, Outcome};
use serde::{Deserialize, Serialize};

use super::calls::extract_tool_calls;
use super::compare::{Comparison, compare_records};
use super::replay::{InputMode, ReplayMode};
use super::run_record::RunRecord;
use super::suite::{AnswersFrom, CaseSpec, Expectation, Suite};

/// Case with the defaults of its suite.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Case {
    /// Name of the case.
    pub name: String,
    /// Descriptor of the candidate.
    pub descriptor: Option<PathBuf>,
    /// Registry file of the candidate.
    pub registry: Option<PathBuf>,
    /// Source of tool results.
    pub mode: ReplayMode,
    /// Input of the run.
    pub input: InputMode,
    /// Source of model answers.
    pub answers: AnswersFrom,
    /// Expectation of the case.
    pub expect: Expectation,
}

impl Case {
    fn of(suite: &Suite, spec: &CaseSpec, baseline: Option<&RunRecord>) -> Self {
        let recorded = || baseline.map(|record| record.run_id.clone());
        let file = || spec.baseline.display().to_string();
        Self {
            name: spec.name.clone().or_else(recorded).unwrap_or_else(file),
            descriptor: spec.descriptor.clone().or_else(|| suite.descriptor.clone()),
            registry: spec.registry.clone().or_else(|| suite.registry.clone()),
            mode: spec.mode.unwrap_or(suite.mode),
            input: spec.input.unwrap_or(suite.input),
            answers: spec.answers.unwrap_or(suite.answers),
            expect: spec.expect.clone(),
        }
    }
}

/// Runner of candidates. The program uses descriptor and registry file; a library user can use anything.
pub trait CaseRunner: Send + Sync {
    /// Runs the candidate of a case and returns its record.
    ///
    /// # Errors
    /// A human-readable reason. The case fails, as after a panic, and the suite continues.
    fn run(
        &self,
        case: &Case,
        baseline: &RunRecord,
    ) -> impl Future<Output = Result<RunRecord, String>> + Send;
}

/// Input of a judge.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct JudgeAsk<'a> {
    /// Case to judge.
    pub case: &'a Case,
    /// Recorded run.
    pub baseline: &'a RunRecord,
    /// Run of the candidate.
    pub candidate: &'a RunRecord,
    /// Comparison of both.
    pub comparison: &'a Comparison,
    /// Data of the suite.
    pub metadata: Option<&'a Json>,
}

/// Severity of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FindingSeverity {
    /// Information.
    Info,
    /// A change to review.
    Warn,
    /// A failed expectation.
    Error,
}

/// Finding about a case.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Finding {
    /// Severity of the finding.
    pub severity: FindingSeverity,
    /// Human-readable text.
    pub reason: String,
    /// Evidence, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evidence: Option<String>,
}

impl Finding {
    /// Creates a finding without evidence.
    pub fn new(severity: FindingSeverity, reason: impl Into<String>) -> Self {
        Self { severity, reason: reason.into(), evidence: None }
    }
}

/// Verdict on a candidate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// As good as the recorded run.
    Pass,
    /// Needs a review.
    Warn,
    /// Worse than the recorded run.
    Fail,
}

/// Verdict of a judge, with its reasons.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct JudgeVerdict {
    /// Verdict on the candidate.
    pub verdict: Verdict,
    /// Summary in one sentence.
    pub summary: String,
    /// Findings in detail.
    #[serde(default)]
    pub findings: Vec<Finding>,
    /// Score on the judge's scale.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub score: Option<f64>,
    /// Model of the judge.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub judge_model: Option<String>,
    /// Version of its prompt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub judge_prompt_version: Option<String>,
}

/// Judge of differences that a comparison cannot assess.
pub trait Judge: Send + Sync {
    /// Judges one case.
    ///
    /// # Errors
    /// A human-readable reason. The case fails.
    fn judge(&self, ask: JudgeAsk<'_>) -> impl Future<Output = Result<JudgeVerdict, String>> + Send;
}

/// Status of a case.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum CaseStatus {
    /// The candidate is equal to the recorded run, and the judge passed it.
    Pass,
    /// The candidate differs.
    Warn,
    /// The candidate failed unlike the recorded run, violated an expectation, or could not run.
    Fail,
}

/// Changes of a candidate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Signals {
    /// Whether the outcome changed.
    pub status_changed: bool,
    /// Whether the calls changed.
    pub tools_changed: bool,
    /// Whether policy decisions changed.
    pub policy_changed: bool,
    /// Whether the answer changed.
    pub final_output_changed: bool,
}

/// Report of a case.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct CaseReport {
    /// Name of the case.
    pub name: String,
    /// Status of the case.
    pub status: CaseStatus,
    /// Id of the recorded run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub baseline_run_id: Option<String>,
    /// Id of the candidate's run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub candidate_run_id: Option<String>,
    /// Changes of the candidate.
    pub signals: Signals,
    /// Reasons of the status.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub findings: Vec<Finding>,
    /// Comparison of the records; absent without a candidate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub comparison: Option<Comparison>,
    /// Verdict of the judge.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub judge: Option<JudgeVerdict>,
}

/// Figures of a suite.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Totals {
    /// Number of cases.
    pub cases: usize,
    /// Number of passed cases.
    pub passed: usize,
    /// Number of changed cases.
    pub warned: usize,
    /// Number of failed cases.
    pub failed: usize,
}

/// Report of a suite.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct SuiteReport {
    /// Name of the suite.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub suite: Option<String>,
    /// Worst status of its cases.
    pub status: CaseStatus,
    /// Figures of the suite.
    pub totals: Totals,
    /// Reports in the order of the cases.
    pub cases: Vec<CaseReport>,
}

/// Runs all cases in order.
///
/// A case *fails* if its baseline cannot be read, its candidate cannot run or fails unlike the recorded run, a forbidden
/// tool is called or a required one is not, or the judge fails it. It *warns* if the compared sections differ. Without a
/// judge, `J` is [`NoJudge`].
pub async fn run_suite<R: CaseRunner, J: Judge>(suite: &Suite, runner: &R, judge: Option<&J>) -> SuiteReport {
    let mut cases = Vec::with_capacity(suite.cases.len());
    for spec in &suite.cases {
        cases.push(run_case(suite, spec, runner, judge).await);
    }
    let count = |status: CaseStatus| cases.iter().filter(|case| case.status == status).count();
    let totals = Totals {
        cases: cases.len(),
        passed: count(CaseStatus::Pass),
        warned: count(CaseStatus::Warn),
        failed: count(CaseStatus::Fail),
    };
    let status = cases.iter().map(|case| case.status).max().unwrap_or(CaseStatus::Pass);
    SuiteReport { suite: suite.suite.clone(), status, totals, cases }
}

/// Type of a missing judge in [`run_suite`].
#[derive(Clone, Copy, Debug)]
pub enum NoJudge {}

impl Judge for NoJudge {
    async fn judge(&self, _: JudgeAsk<'_>) -> Result<JudgeVerdict, String> {
        match *self {}
    }
}

async fn run_case<R: CaseRunner, J: Judge>(
    suite: &Suite,
    spec: &CaseSpec,
    runner: &R,
    judge: Option<&J>,
) -> CaseReport {
    let baseline = match RunRecord::read(&spec.baseline) {
        Ok(baseline) => baseline,
        Err(error) => return failed(Case::of(suite, spec, None).name, None, error.to_string()),
    };
    let case = Case::of(suite, spec, Some(&baseline));
    let candidate = match caught("the runner", runner.run(&case, &baseline)).await {
        Ok(candidate) => candidate,
        Err(reason) => return failed(case.name, Some(baseline.run_id), reason),
    };
    let comparison = compare_records(&baseline, &candidate, &suite.compare);
    let mut report = CaseReport {
        name: case.name.clone(),
        status: if comparison.equal { CaseStatus::Pass } else { CaseStatus::Warn },
        baseline_run_id: Some(baseline.run_id.clone()),
        candidate_run_id: Some(candidate.run_id.clone()),
        signals: Signals {
            status_changed: baseline.outcome != candidate.outcome,
            tools_changed: !comparison.summary.same_tool_call_shape,
            policy_changed: !comparison.summary.same_policy_decisions,
            final_output_changed: !comparison.summary.same_final_response,
        },
        findings: Vec::new(),
        comparison: None,
        judge: None,
    };
    check_outcome(&baseline, &candidate, &mut report);
    check_tools(&case.expect, &candidate, &mut report);
    if let Some(judge) = judge {
        let metadata = suite.metadata.as_ref();
        let ask = JudgeAsk {
            case: &case,
            baseline: &baseline,
            candidate: &candidate,
            comparison: &comparison,
            metadata,
        };
        match caught("the judge", judge.judge(ask)).await {
            Ok(verdict) => {
                let at_least = match verdict.verdict {
                    Verdict::Pass => CaseStatus::Pass,
                    Verdict::Warn => CaseStatus::Warn,
                    Verdict::Fail => CaseStatus::Fail,
                };
                report.status = report.status.max(at_least);
                report.judge = Some(verdict);
            }
            Err(reason) => report.fail(format!("no verdict: {reason}")),
        }
    }
    report.comparison = Some(comparison);
    report
}

/// Awaits a port and converts a panic into an error.
async fn caught<T>(who: &str, future: impl Future<Output = Result<T, String>>) -> Result<T, String> {
    let mut future = pin!(future);
    poll_fn(|cx| match catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(cx))) {
        Ok(polled) => polled,
        Err(_) => Poll::Ready(Err(format!("{who} panicked"))),
    })
    .await
}

fn failed(name: String, baseline: Option<String>, reason: String) -> CaseReport {
    CaseReport {
        name,
        status: CaseStatus::Fail,
        baseline_run_id: baseline,
        candidate_run_id: None,
        signals: Signals::default(),
        findings: vec![Finding::new(FindingSeverity::Error, reason)],
        comparison: None,
        judge: None,
    }
}

/// Fails the case of a failed candidate, unless the recorded run has the same stop reason.
fn check_outcome(baseline: &RunRecord, candidate: &RunRecord, report: &mut CaseReport) {
    let (was, is) = (baseline.stop_reason, candidate.stop_reason);
    if candidate.outcome == Outcome::Failed && was != is {
        let why = candidate.error_message.as_deref().unwrap_or_default();
        report.fail(format!("the candidate failed ({is}): {why}"));
    } else if was != is {
        report.status = report.status.max(CaseStatus::Warn);
        let reason = format!("stop reason: {was} → {is}");
        report.findings.push(Finding::new(FindingSeverity::Warn, reason));
    }
}

fn check_tools(expect: &Expectation, candidate: &RunRecord, report: &mut CaseReport) {
    let calls = extract_tool_calls(candidate);
    let uses = |tool: &String| calls.iter().any(|call| call.name == tool.as_str());
    for tool in expect.should_use_tools.iter().filter(|tool| !uses(tool)) {
        report.fail(format!("required tool `{tool}` was not called"));
    }
    for tool in expect.should_avoid_tools.iter().filter(|tool| uses(tool)) {
        report.fail(format!("forbidden tool `{tool}` was called"));
    }
}

impl CaseReport {
    fn fail(&mut self, reason: String) {
        self.status = CaseStatus::Fail;
        self.findings.push(Finding::new(FindingSeverity::Error, reason));
    }
}

impl SuiteReport {
    /// Renders the report as text: one line per case, with details of those that did not pass.
    pub fn text(&self) -> String {
        let mut out = String::new();
        for case in &self.cases {
            let _ = writeln!(out, "{} {}", mark(case.status), case.name);
            let judged = case.judge.iter().flat_map(|judge| &judge.findings);
            for finding in case.findings.iter().chain(judged) {
                let _ = writeln!(out, "       {}", finding.reason);
            }
            if let Some(judge) = &case.judge {
                let _ = writeln!(out, "       judge: {}", judge.summary);
            }
            let differences = case.comparison.iter().flat_map(|comparison| &comparison.differences);
            for difference in differences.take(MOST_DIFFERENCES) {
                let _ = writeln!(out, "       {}", difference.line());
            }
            let more = case.comparison.as_ref().map_or(0, |comparison| comparison.differences.len());
            if more > MOST_DIFFERENCES {
                let _ = writeln!(out, "       and {} more", more - MOST_DIFFERENCES);
            }
        }
        let Totals { cases, passed, warned, failed } = self.totals;
        let name = self.suite.as_deref().map(|name| format!("{name}: ")).unwrap_or_default();
        let _ = writeln!(
            out,
            "{name}{cases} case{}, {passed} passed, {warned} changed, {failed} failed",
            if cases == 1 { "" } else { "s" }
        );
        out
    }
}

/// Maximum number of printed differences per case.
const MOST_DIFFERENCES: usize = 8;

fn mark(status: CaseStatus) -> &'static str {
    match status {
        CaseStatus::Pass => "pass  ",
        CaseStatus::Warn => "change",
        CaseStatus::Fail => "FAIL  ",
    }
}
