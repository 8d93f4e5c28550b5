//! Verification of contracts.

use std::borrow::Cow;
use std::collections::BTreeMap;

use harness_core::Time;
use harness_core::tool::{SchemaValidator, ShallowSchemas};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::evidence::{AnswerFact, ToolFact};
use super::predicate::{Patterns, compiled};
use super::{
    Coverage, CoverageStatus, Evidence, EvidenceIndex, EvidenceKind, PredicateKind, SchemaSource,
    TaskContract, TextField,
};
use crate::work::{ItemId, WorkLedger};

/// Finding about a path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "is", rename_all = "snake_case")]
#[non_exhaustive]
pub enum FileFact {
    /// A regular file.
    File {
        /// Size in bytes.
        bytes: u64,
        /// SHA-256 of the content in hexadecimal, if it was read.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        digest: Option<String>,
    },
    /// A directory or a device.
    NotAFile,
    /// No such file.
    Missing,
    /// The path could not be inspected.
    Unknown {
        /// Reason of the failure.
        reason: String,
    },
}

/// Results of the application's checks by name: finding, or reason of the failure.
pub type CustomChecks = BTreeMap<String, Result<String, String>>;

/// Facts for the verification of a contract.
#[derive(Clone, Copy)]
#[non_exhaustive]
pub struct Facts<'a> {
    /// Evidence from events.
    pub index: &'a EvidenceIndex,
    /// Files by path.
    pub files: &'a BTreeMap<String, FileFact>,
    /// Data of the application by name.
    pub data: &'a BTreeMap<String, Value>,
    /// Work items with their artifacts.
    pub work: &'a WorkLedger,
    /// Results of the application's checks.
    pub custom: &'a CustomChecks,
    /// Validator of JSON Schemas.
    pub schemas: &'a dyn SchemaValidator,
    /// Compiled patterns.
    pub(crate) patterns: Option<&'a Patterns>,
    /// Time of the verification.
    pub now: Time,
}

impl<'a> Facts<'a> {
    /// Creates facts without files, data and checks.
    pub fn new(index: &'a EvidenceIndex) -> Self {
        static NO_FILES: BTreeMap<String, FileFact> = BTreeMap::new();
        static NO_DATA: BTreeMap<String, Value> = BTreeMap::new();
        static NO_CHECKS: CustomChecks = BTreeMap::new();
        static NO_WORK: std::sync::LazyLock<WorkLedger> = std::sync::LazyLock::new(WorkLedger::default);
        Self {
            index,
            files: &NO_FILES,
            data: &NO_DATA,
            work: &NO_WORK,
            custom: &NO_CHECKS,
            schemas: &ShallowSchemas,
            patterns: None,
            now: Time(0),
        }
    }
}

impl std::fmt::Debug for Facts<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Facts").field("files", &self.files).finish_non_exhaustive()
    }
}

/// Result of one requirement.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CheckResult {
    /// Whether it is met.
    pub success: bool,
    /// Reason, for users and the model.
    pub message: String,
    /// Evidence that it is met.
    pub evidence: Option<Evidence>,
}

/// Result of a contract.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Verification {
    /// Whether all required outputs are met.
    pub satisfied: bool,
    /// Ids of unmet requirements, in order.
    pub unmet: Vec<String>,
    /// Result of each requirement, in order.
    pub results: Vec<(String, CheckResult)>,
    /// Summary in one sentence.
    pub message: String,
}

/// Evaluation of a predicate.
enum Finding {
    /// It holds.
    Proof { event: String, kind: EvidenceKind, says: String, message: String },
    /// It does not hold.
    Not(String),
    /// No evidence yet; an earlier result stays.
    Nothing(String),
}

impl TaskContract {
    /// Verifies every requirement on the latest evidence and updates `coverage`.
    ///
    /// A met requirement stays met without newer evidence; files and data are verified each time. A waived
    /// requirement is skipped.
    pub fn verify(&self, coverage: &mut Coverage, facts: &Facts<'_>) -> Verification {
        coverage.complete(self);
        let (mut results, mut unmet) = (Vec::new(), Vec::new());
        for output in &self.required_outputs {
            let result = match coverage.status(&output.id) {
                CoverageStatus::Skipped => {
                    CheckResult { success: true, message: "waived".to_owned(), evidence: None }
                }
                status @ (CoverageStatus::Met | CoverageStatus::PartiallyMet | CoverageStatus::Unmet) => {
                    judge(&output.id, &output.predicate.kind, status, coverage, facts)
                }
            };
            if !result.success && !output.optional {
                unmet.push(output.id.clone());
            }
            results.push((output.id.clone(), result));
        }
        let message = if unmet.is_empty() {
            "all requirements are met".to_owned()
        } else {
            format!("{} requirement(s) not met: {}", unmet.len(), unmet.join(", "))
        };
        Verification { satisfied: unmet.is_empty(), unmet, results, message }
    }
}

/// Verifies one requirement and updates the coverage.
fn judge(
    id: &str,
    predicate: &PredicateKind,
    status: CoverageStatus,
    coverage: &mut Coverage,
    facts: &Facts<'_>,
) -> CheckResult {
    match find(predicate, facts) {
        Finding::Proof { event, kind, says, message } => {
            let evidence =
                Evidence { event_ref: event, kind, value: format!("{id}: {says}"), timestamp: facts.now };
            coverage.meet(id, evidence.clone());
            CheckResult { success: true, message, evidence: Some(evidence) }
        }
        Finding::Nothing(_) if status == CoverageStatus::Met => {
            CheckResult { success: true, message: "met earlier".to_owned(), evidence: None }
        }
        Finding::Not(message) | Finding::Nothing(message) => {
            coverage.miss(id);
            CheckResult { success: false, message, evidence: None }
        }
    }
}

fn find(predicate: &PredicateKind, facts: &Facts<'_>) -> Finding {
    match predicate {
        PredicateKind::AlwaysTrue => Finding::Proof {
            event: "model_judgment".to_owned(),
            kind: EvidenceKind::Response,
            says: "left to the model's judgement".to_owned(),
            message: "left to the model's judgement".to_owned(),
        },
        PredicateKind::FileExists { path } => find_file(path, facts),
        PredicateKind::ContainsText { pattern, field } => find_text(pattern, field, facts),
        PredicateKind::ToolResultSuccess { tool_name, args_match, min_count } => {
            find_result(tool_name, args_match.as_ref(), *min_count, facts)
        }
        PredicateKind::JsonSchemaValid { schema, source } => find_data(schema, source, facts),
        PredicateKind::Custom { check } => find_custom(check.as_deref(), facts),
    }
}

fn find_file(path: &str, facts: &Facts<'_>) -> Finding {
    match facts.files.get(path) {
        Some(FileFact::File { bytes, digest }) => {
            let digest = digest.as_ref().map(|digest| format!(", sha256 {digest}")).unwrap_or_default();
            Finding::Proof {
                event: "file_check".to_owned(),
                kind: EvidenceKind::Artifact,
                says: format!("{path} ({bytes} bytes{digest})"),
                message: format!("`{path}` exists"),
            }
        }
        Some(FileFact::NotAFile) => Finding::Not(format!("`{path}` is not a regular file")),
        Some(FileFact::Missing) => Finding::Not(format!("file `{path}` not found")),
        Some(FileFact::Unknown { reason }) => Finding::Not(format!("cannot inspect `{path}`: {reason}")),
        None => Finding::Not(format!("cannot inspect `{path}`: the run has no workspace")),
    }
}

/// Text to search, its event, and whether its beginning was cut.
struct Searched<'a> {
    event: &'a str,
    text: Cow<'a, str>,
    truncated: bool,
}

impl<'a> From<&'a AnswerFact> for Searched<'a> {
    fn from(fact: &'a AnswerFact) -> Self {
        Self { event: &fact.event, text: fact.text.as_str().into(), truncated: fact.truncated }
    }
}

fn texts<'a>(field: &'a TextField, facts: &Facts<'a>) -> Vec<Searched<'a>> {
    let plain = |text: Cow<'a, str>| Searched { event: "", text, truncated: false };
    match field {
        TextField::Response => facts.index.newest_answer().map(Searched::from).into_iter().collect(),
        TextField::AnyResponse => facts.index.answers.iter().rev().map(Searched::from).collect(),
        TextField::Transcript => {
            let results = facts.index.tools.values().flatten().rev().filter_map(|fact| {
                let text = fact.value.as_deref().or(fact.error.as_deref())?;
                Some(Searched { event: &fact.event, text: text.into(), truncated: false })
            });
            facts.index.answers.iter().rev().map(Searched::from).chain(results).collect()
        }
        TextField::Artifact(item) => {
            let item = facts.work.get(&ItemId::from(item.as_str())).ok();
            item.filter(|item| !item.artifact.is_empty())
                .map(|item| plain(item.artifact.as_str().into()))
                .into_iter()
                .collect()
        }
        TextField::Data(key) => match facts.data.get(key) {
            Some(Value::String(text)) => vec![plain(text.as_str().into())],
            Some(other) => vec![plain(other.to_string().into())],
            None => Vec::new(),
        },
    }
}

fn find_text(pattern: &str, field: &TextField, facts: &Facts<'_>) -> Finding {
    let known = facts.patterns.and_then(|patterns| patterns.get(pattern));
    let regex =
        match known.map_or_else(|| compiled(pattern).map(Cow::Owned), |known| Ok(Cow::Borrowed(known))) {
            Ok(regex) => regex,
            Err(error) => return Finding::Not(error.to_string()),
        };
    let texts = texts(field, facts);
    let name = String::from(field.clone());
    let Some(newest) = texts.first() else {
        return Finding::Nothing(format!("no text in `{name}` yet"));
    };
    let Some(found) = texts.iter().find(|searched| regex.is_match(&searched.text)) else {
        let cut = if newest.truncated { "; only the end of the text was kept" } else { "" };
        return Finding::Not(format!("`{pattern}` not found in `{name}`{cut}"));
    };
    let event = if found.event.is_empty() { "text_search" } else { found.event };
    Finding::Proof {
        event: event.to_owned(),
        kind: EvidenceKind::Response,
        says: format!("`{pattern}` is in `{name}`"),
        message: format!("`{pattern}` found"),
    }
}

fn find_result(
    tool: &str,
    args_match: Option<&Map<String, Value>>,
    min_count: u32,
    facts: &Facts<'_>,
) -> Finding {
    let known = facts.index.tools.get(tool);
    let mut fitting = known.into_iter().flatten().rev().filter(|fact| fits(fact, args_match)).peekable();
    let Some(latest) = fitting.peek().copied() else {
        return Finding::Nothing(format!("no result of `{tool}` yet"));
    };
    if let Some(error) = &latest.error {
        let error: String = error.chars().take(200).collect();
        return Finding::Not(format!("the latest result of `{tool}` is an error: {error}"));
    }
    let good = fitting.filter(|fact| fact.error.is_none()).take(min_count as usize).count();
    if good < min_count as usize {
        return Finding::Not(format!("`{tool}` succeeded {good} time(s); {min_count} are required"));
    }
    Finding::Proof {
        event: latest.event.clone(),
        kind: EvidenceKind::ToolResult,
        says: format!("`{tool}` succeeded"),
        message: format!("`{tool}` succeeded"),
    }
}

/// Whether the arguments of a call contain all wanted entries.
fn fits(fact: &ToolFact, wanted: Option<&Map<String, Value>>) -> bool {
    let Some(wanted) = wanted else { return true };
    let Ok(arguments) = fact.arguments.to::<Map<String, Value>>() else { return false };
    wanted.iter().all(|(key, value)| arguments.get(key) == Some(value))
}

/// Data to validate against a schema.
pub(super) enum Data {
    /// Event of the data, empty without one, and the data or the parse error.
    Found(String, Result<Value, String>),
    /// No data so far.
    NotYet,
    /// No data, even if there was some earlier.
    Missing,
}

/// Reads the current data of a source.
pub(super) fn data_in(source: &SchemaSource, facts: &Facts<'_>) -> Data {
    let parsed = |text: &str| serde_json::from_str::<Value>(text).map_err(|error| error.to_string());
    match source {
        SchemaSource::Response => match facts.index.newest_answer() {
            Some(answer) => Data::Found(answer.event.clone(), parsed(&answer.text)),
            None => Data::NotYet,
        },
        SchemaSource::Artifact(item) => match facts.work.get(&ItemId::from(item.as_str())) {
            Ok(item) if !item.artifact.is_empty() => Data::Found(String::new(), parsed(&item.artifact)),
            _ => Data::Missing,
        },
        SchemaSource::Tool(tool) => {
            let mut results = facts.index.tools.get(tool).into_iter().flatten().rev();
            match results.find_map(|fact| Some((fact, fact.value.as_ref()?))) {
                Some((fact, value)) => Data::Found(fact.event.clone(), parsed(value)),
                None => Data::NotYet,
            }
        }
        SchemaSource::Data(key) => match facts.data.get(key) {
            Some(value) => Data::Found(String::new(), Ok(value.clone())),
            None => Data::Missing,
        },
    }
}

fn find_data(schema: &Value, source: &SchemaSource, facts: &Facts<'_>) -> Finding {
    let name = String::from(source.clone());
    let (event, data) = match data_in(source, facts) {
        Data::Found(event, data) => (event, data),
        Data::NotYet => return Finding::Nothing(format!("no data in `{name}` yet")),
        Data::Missing => return Finding::Not(format!("no data in `{name}`")),
    };
    match data.and_then(|data| facts.schemas.check(schema, &data)) {
        Ok(()) => Finding::Proof {
            event: if event.is_empty() { "schema_check".to_owned() } else { event },
            kind: EvidenceKind::Response,
            says: format!("`{name}` is valid"),
            message: format!("`{name}` is valid"),
        },
        Err(why) => Finding::Not(format!("`{name}` violates the schema: {why}")),
    }
}

fn find_custom(check: Option<&str>, facts: &Facts<'_>) -> Finding {
    let Some(name) = check else { return Finding::Not("the custom predicate has no check".to_owned()) };
    match facts.custom.get(name) {
        Some(Ok(says)) => Finding::Proof {
            event: "custom_check".to_owned(),
            kind: EvidenceKind::Response,
            says: says.clone(),
            message: format!("check `{name}` passed"),
        },
        Some(Err(why)) => Finding::Not(format!("check `{name}` failed: {why}")),
        None => Finding::Not(format!("unknown check `{name}`")),
    }
}
