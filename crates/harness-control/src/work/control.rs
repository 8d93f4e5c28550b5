//! Control artifacts: an item that judges other items.

use serde::{Deserialize, Serialize};

use super::ItemId;

/// Why a text is no audit report. The message says what to do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AuditFault {
    /// No JSON.
    #[error("a control artifact must be a JSON object: {reason}")]
    NotJson {
        /// What the parser says, with line and column.
        reason: String,
    },
    /// JSON, and no object.
    #[error("a control artifact must be a JSON object")]
    NotAnObject,
    /// A field is missing.
    #[error("{place} has no `{field}`")]
    Missing {
        /// Where: `the control artifact`, or a check with its number from 0.
        place: String,
        /// The field.
        field: &'static str,
    },
    /// A word that is neither `pass` nor `fail`.
    #[error("`{field}` must be \"pass\" or \"fail\", not {value}")]
    NotAVerdict {
        /// The field.
        field: String,
        /// What stands there, as JSON, cut.
        value: String,
    },
    /// A value of another type.
    #[error("{field} must be {expected}")]
    Type {
        /// The field.
        field: String,
        /// What it must be.
        expected: &'static str,
    },
    /// No check.
    #[error("`checks` must hold at least one check")]
    NoChecks,
    /// A blank summary.
    #[error("`summary` must not be blank")]
    BlankSummary,
}

/// What a control artifact says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct AuditReport {
    /// Whether everything is as it should be.
    pub passed: bool,
    /// The names of the checks that failed.
    pub failed_checks: Vec<String>,
    /// In a sentence.
    pub summary: String,
}

/// An audit that failed and that nothing has answered yet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct FailedAudit {
    /// The control item.
    pub item_id: ItemId,
    /// The checks that failed.
    pub failed_checks: Vec<String>,
}

const WHOLE: &str = "the control artifact";

impl AuditReport {
    /// The form that a control artifact has, for a message to a model.
    pub const FORM: &str = r#"{"verdict": "pass"|"fail", "checks": [{"name": "...", "result": "pass"|"fail", "detail": "..."}], "summary": "..."}"#;

    /// Reads a control artifact; the first error found is reported.
    ///
    /// # Errors
    /// What is wrong with it, and where.
    pub fn parse(artifact: &str) -> Result<Self, AuditFault> {
        let value: serde_json::Value = serde_json::from_str(artifact)
            .map_err(|error| AuditFault::NotJson { reason: error.to_string() })?;
        let report = value.as_object().ok_or(AuditFault::NotAnObject)?;
        let missing = |field| move || AuditFault::Missing { place: WHOLE.to_owned(), field };
        let passed = verdict("verdict", report.get("verdict").ok_or_else(missing("verdict"))?)?;
        let checks = report.get("checks").ok_or_else(missing("checks"))?;
        let checks = checks
            .as_array()
            .ok_or_else(|| AuditFault::Type { field: "`checks`".to_owned(), expected: "a list" })?;
        if checks.is_empty() {
            return Err(AuditFault::NoChecks);
        }
        let mut failed_checks = Vec::new();
        for (at, check) in checks.iter().enumerate() {
            if let Some(failed) = failed_check(at, check)? {
                failed_checks.push(failed);
            }
        }
        let summary = report.get("summary").ok_or_else(missing("summary"))?;
        match summary.as_str() {
            Some(text) if !text.trim().is_empty() => {
                Ok(Self { passed, failed_checks, summary: text.to_owned() })
            }
            Some(_) => Err(AuditFault::BlankSummary),
            None => Err(AuditFault::Type { field: "`summary`".to_owned(), expected: "a text" }),
        }
    }
}

/// The name of a check, when it failed.
fn failed_check(at: usize, check: &serde_json::Value) -> Result<Option<String>, AuditFault> {
    let place = format!("`checks[{at}]`");
    let fields =
        check.as_object().ok_or_else(|| AuditFault::Type { field: place.clone(), expected: "an object" })?;
    let field = |field| fields.get(field).ok_or_else(|| AuditFault::Missing { place: place.clone(), field });
    let (name, result, _) = (field("name")?, field("result")?, field("detail")?);
    let name = name.as_str().map_or_else(|| name.to_string(), ToOwned::to_owned);
    let passed = verdict(&format!("checks[{at}].result"), result)?;
    Ok((!passed).then_some(name))
}

fn verdict(field: &str, value: &serde_json::Value) -> Result<bool, AuditFault> {
    match value.as_str() {
        Some("pass") => Ok(true),
        Some("fail") => Ok(false),
        _ => {
            let value: String = value.to_string().chars().take(80).collect();
            Err(AuditFault::NotAVerdict { field: field.to_owned(), value })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(artifact: &str, expected: &str) {
        let told = match AuditReport::parse(artifact) {
            Ok(report) => format!("{} {:?} {}", report.passed, report.failed_checks, report.summary),
            Err(fault) => fault.to_string(),
        };
        assert_eq!(told, expected);
    }

    #[test]
    fn a_report_says_which_checks_failed() {
        check(
            r#"{"verdict":"fail","checks":[{"name":"sum","result":"fail","detail":""},{"name":"unit","result":"pass","detail":"EUR"}],"summary":"off by one"}"#,
            r#"false ["sum"] off by one"#,
        );
    }

    #[test]
    fn the_first_fault_is_told_with_its_place() {
        check("[1]", "a control artifact must be a JSON object");
        check(
            "{",
            "a control artifact must be a JSON object: EOF while parsing an object at line 1 column 1",
        );
        check("{}", "the control artifact has no `verdict`");
        check(r#"{"verdict":"ok"}"#, "`verdict` must be \"pass\" or \"fail\", not \"ok\"");
        check(r#"{"verdict":"pass"}"#, "the control artifact has no `checks`");
        check(r#"{"verdict":"pass","checks":{}}"#, "`checks` must be a list");
        check(r#"{"verdict":"pass","checks":[]}"#, "`checks` must hold at least one check");
        check(r#"{"verdict":"pass","checks":[1]}"#, "`checks[0]` must be an object");
        check(r#"{"verdict":"pass","checks":[{"name":"b"}]}"#, "`checks[0]` has no `result`");
        check(
            r#"{"verdict":"pass","checks":[{"name":"b","result":1,"detail":""}]}"#,
            "`checks[0].result` must be \"pass\" or \"fail\", not 1",
        );
        let checks = r#""checks":[{"name":"a","result":"pass","detail":"d"}]"#;
        check(&format!(r#"{{"verdict":"pass",{checks}}}"#), "the control artifact has no `summary`");
        check(&format!(r#"{{"verdict":"pass",{checks},"summary":" "}}"#), "`summary` must not be blank");
    }
}
