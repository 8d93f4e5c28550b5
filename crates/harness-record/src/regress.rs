//! Runs a suite: every case again, compared with its record.

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

/// One case, with the suite's defaults filled in.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Case {
    /// Its name.
    pub name: String,
    /// The candidate's descriptor, where the suite names one.
    pub descriptor: Option<PathBuf>,
    /// The candidate's registry file, where the suite names one.
    pub registry: Option<PathBuf>,
    /// What is taken from the record.
    pub mode: ReplayMode,
    /// What is said to the agents.
    pub input: InputMode,
    /// Where answers come from.
    pub answers: AnswersFrom,
    /// What the case is meant to show.
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

/// Runs the candidate of a case. The program does it with a descriptor and a registry file; a library user
/// with whatever they have.
pub trait CaseRunner: Send + Sync {
    /// Runs it and gives its record.
    ///
    /// # Errors
    /// Why there is no record, for people. The case fails, the suite goes on; so it does after a panic.
    fn run(
        &self,
        case: &Case,
        baseline: &RunRecord,
    ) -> impl Future<Output = Result<RunRecord, String>> + Send;
}

/// What a judge is shown.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct JudgeAsk<'a> {
    /// The case.
    pub case: &'a Case,
    /// What was recorded.
    pub baseline: &'a RunRecord,
    /// What the candidate did.
    pub candidate: &'a RunRecord,
    /// How they compare.
    pub comparison: &'a Comparison,
    /// The suite's data.
    pub metadata: Option<&'a Json>,
}

/// How serious a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FindingSeverity {
    /// Worth knowing.
    Info,
    /// Worth a look.
    Warn,
    /// Wrong.
    Error,
}

/// Something that was found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Finding {
    /// How serious.
    pub severity: FindingSeverity,
    /// What.
    pub reason: String,
    /// What it rests on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evidence: Option<String>,
}

impl Finding {
    /// A finding without evidence.
    pub fn new(severity: FindingSeverity, reason: impl Into<String>) -> Self {
        Self { severity, reason: reason.into(), evidence: None }
    }
}

/// What a judge says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// The candidate is as good.
    Pass,
    /// Somebody should look.
    Warn,
    /// The candidate is worse.
    Fail,
}

/// A judge's verdict and why.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct JudgeVerdict {
    /// What.
    pub verdict: Verdict,
    /// In one sentence.
    pub summary: String,
    /// In detail.
    #[serde(default)]
    pub findings: Vec<Finding>,
    /// A score of the judge's own scale.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub score: Option<f64>,
    /// The model that judged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub judge_model: Option<String>,
    /// The version of its prompt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub judge_prompt_version: Option<String>,
}

/// Judges what a comparison cannot: whether another answer is as good.
pub trait Judge: Send + Sync {
    /// Judges one case.
    ///
    /// # Errors
    /// Why there is no verdict, for people. The case fails.
    fn judge(&self, ask: JudgeAsk<'_>) -> impl Future<Output = Result<JudgeVerdict, String>> + Send;
}

/// How a case ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum CaseStatus {
    /// The candidate did what was recorded, and the judge has nothing to say.
    Pass,
    /// It did something else.
    Warn,
    /// It failed where the recorded run did not, did what it must not, or could not be run.
    Fail,
}

/// What changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Signals {
    /// The outcome.
    pub status_changed: bool,
    /// The calls.
    pub tools_changed: bool,
    /// What policies decided.
    pub policy_changed: bool,
    /// The text for the user.
    pub final_output_changed: bool,
}

/// What came of a case.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct CaseReport {
    /// Its name.
    pub name: String,
    /// How it ended.
    pub status: CaseStatus,
    /// The recorded run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub baseline_run_id: Option<String>,
    /// The candidate's run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub candidate_run_id: Option<String>,
    /// What changed.
    pub signals: Signals,
    /// Why it did not pass.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub findings: Vec<Finding>,
    /// How the two compare; absent when there is no candidate's record.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub comparison: Option<Comparison>,
    /// What the judge says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub judge: Option<JudgeVerdict>,
}

/// A suite in numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Totals {
    /// All cases.
    pub cases: usize,
    /// Those that passed.
    pub passed: usize,
    /// Those that did something else.
    pub warned: usize,
    /// Those that failed.
    pub failed: usize,
}

/// What came of a suite.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct SuiteReport {
    /// The suite's name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub suite: Option<String>,
    /// The worst of its cases.
    pub status: CaseStatus,
    /// In numbers.
    pub totals: Totals,
    /// The cases in order.
    pub cases: Vec<CaseReport>,
}

/// Runs all cases in order. A case that cannot be run fails; the suite goes on.
///
/// A case *fails* when its baseline cannot be read, its candidate cannot be run or fails where the recorded
/// run did not, a tool that should be avoided is called or one that should be used is not, or the judge
/// says so. It *warns* when the two records differ in what is compared. Without a judge `J` is
/// [`NoJudge`].
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

/// Stands for no judge in the type of [`run_suite`].
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
            Err(reason) => report.fail(format!("there is no verdict: {reason}")),
        }
    }
    report.comparison = Some(comparison);
    report
}

/// The outcome of a port, or why there is none: it said so, or it panicked.
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

/// A candidate that failed fails its case, unless the recorded run failed for the same reason.
fn check_outcome(baseline: &RunRecord, candidate: &RunRecord, report: &mut CaseReport) {
    let (was, is) = (baseline.stop_reason, candidate.stop_reason);
    if candidate.outcome == Outcome::Failed && was != is {
        let why = candidate.error_message.as_deref().unwrap_or_default();
        report.fail(format!("the candidate failed ({is}): {why}"));
    } else if was != is {
        report.status = report.status.max(CaseStatus::Warn);
        let reason = format!("the recorded run ended {was}, the candidate {is}");
        report.findings.push(Finding::new(FindingSeverity::Warn, reason));
    }
}

fn check_tools(expect: &Expectation, candidate: &RunRecord, report: &mut CaseReport) {
    let calls = extract_tool_calls(candidate);
    let uses = |tool: &String| calls.iter().any(|call| call.name == tool.as_str());
    for tool in expect.should_use_tools.iter().filter(|tool| !uses(tool)) {
        report.fail(format!("`{tool}` should be used, and is not"));
    }
    for tool in expect.should_avoid_tools.iter().filter(|tool| uses(tool)) {
        report.fail(format!("`{tool}` should be avoided, and is used"));
    }
}

impl CaseReport {
    fn fail(&mut self, reason: String) {
        self.status = CaseStatus::Fail;
        self.findings.push(Finding::new(FindingSeverity::Error, reason));
    }
}

impl SuiteReport {
    /// The report as text, one line per case and what is to be known of those that did not pass.
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

/// Differences of a case that are printed.
const MOST_DIFFERENCES: usize = 8;

fn mark(status: CaseStatus) -> &'static str {
    match status {
        CaseStatus::Pass => "pass  ",
        CaseStatus::Warn => "change",
        CaseStatus::Fail => "FAIL  ",
    }
}
