//! Audits: control items that judge other items.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::ItemId;

/// Result of a control artifact.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct AuditReport {
    /// Whether the verdict is `pass`.
    pub passed: bool,
    /// Names of failed checks.
    pub failed_checks: Vec<String>,
    /// Summary in one sentence.
    pub summary: String,
}

/// Failed audit without a later revision.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct FailedAudit {
    /// Id of the control item.
    pub item_id: ItemId,
    /// Names of failed checks.
    pub failed_checks: Vec<String>,
}

/// Invalid control artifact. The text names the problem, with line and column.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("invalid control artifact: {0}")]
pub struct AuditFault(String);

#[derive(PartialEq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Verdict {
    Pass,
    Fail,
}

#[derive(Deserialize)]
struct Wire {
    verdict: Verdict,
    checks: Vec<Check>,
    summary: String,
}

#[derive(Deserialize)]
struct Check {
    name: Value,
    result: Verdict,
    #[serde(rename = "detail")]
    _detail: Value,
}

impl AuditReport {
    /// Format of a control artifact, for the model.
    pub const FORM: &str = r#"{"verdict": "pass"|"fail", "checks": [{"name": "...", "result": "pass"|"fail", "detail": "..."}], "summary": "..."}"#;

    /// Parses a control artifact.
    ///
    /// # Errors
    /// The first problem, with line and column.
    pub fn parse(artifact: &str) -> Result<Self, AuditFault> {
        let wire: Wire = serde_json::from_str(artifact).map_err(|error| AuditFault(error.to_string()))?;
        if wire.checks.is_empty() {
            return Err(AuditFault("`checks` is empty: add at least one check".to_owned()));
        }
        if wire.summary.trim().is_empty() {
            return Err(AuditFault("`summary` is blank".to_owned()));
        }
        let name = |name: Value| name.as_str().map_or_else(|| name.to_string(), ToOwned::to_owned);
        let failed = wire.checks.into_iter().filter(|check| check.result == Verdict::Fail);
        Ok(Self {
            passed: wire.verdict == Verdict::Pass,
            failed_checks: failed.map(|check| name(check.name)).collect(),
            summary: wire.summary,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(artifact: &str, expected: &str) {
        let parsed = match AuditReport::parse(artifact) {
            Ok(report) => format!("{} {:?} {}", report.passed, report.failed_checks, report.summary),
            Err(fault) => fault.to_string().trim_start_matches("invalid control artifact: ").to_owned(),
        };
        assert_eq!(parsed, expected);
    }

    #[test]
    fn report_lists_failed_checks() {
        check(
            r#"{"verdict":"fail","checks":[{"name":"sum","result":"fail","detail":""},{"name":"unit","result":"pass","detail":"EUR"}],"summary":"off by one"}"#,
            r#"false ["sum"] off by one"#,
        );
    }

    #[test]
    fn first_problem_is_reported_with_its_place() {
        check("{", "EOF while parsing an object at line 1 column 1");
        check("{}", "missing field `verdict` at line 1 column 2");
        check(r#"{"verdict":"ok"}"#, "unknown variant `ok`, expected `pass` or `fail` at line 1 column 15");
        check(r#"{"verdict":"pass"}"#, "missing field `checks` at line 1 column 18");
        check(r#"{"verdict":"pass","checks":[],"summary":"s"}"#, "`checks` is empty: add at least one check");
        check(
            r#"{"verdict":"pass","checks":[{"name":"b","detail":""}]}"#,
            "missing field `result` at line 1 column 52",
        );
        let checks = r#""checks":[{"name":"a","result":"pass","detail":"d"}]"#;
        check(&format!(r#"{{"verdict":"pass",{checks}}}"#), "missing field `summary` at line 1 column 71");
        check(&format!(r#"{{"verdict":"pass",{checks},"summary":" "}}"#), "`summary` is blank");
    }
}
