//! Judging a contract.

use std::borrow::Cow;
use std::collections::BTreeMap;

use harness_core::Time;
use harness_core::tool::{SchemaValidator, ShallowSchemas};
use regex::Regex;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::evidence::{AnswerFact, ToolFact};
use super::predicate::compiled;
use super::{
    Coverage, CoverageStatus, Evidence, EvidenceIndex, EvidenceKind, PredicateKind, SchemaSource,
    TaskContract, TextField,
};
use crate::work::{ItemId, WorkLedger};

/// What is known of a path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "is", rename_all = "snake_case")]
#[non_exhaustive]
pub enum FileFact {
    /// A regular file.
    File {
        /// Its size in bytes.
        bytes: u64,
        /// The SHA-256 of its content in hexadecimal, where somebody read it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        digest: Option<String>,
    },
    /// Something else: a folder, a device.
    NotAFile,
    /// Nothing.
    Missing,
    /// It could not be looked at, or lies outside of the workspace.
    Unknown {
        /// Why.
        reason: String,
    },
}

/// Checks of the application's own, by name, and how they came out: what was found, or why it fails.
pub type CustomChecks = BTreeMap<String, Result<String, String>>;

/// Everything that a contract is judged on.
#[derive(Clone, Copy)]
#[non_exhaustive]
pub struct Facts<'a> {
    /// What the events prove.
    pub index: &'a EvidenceIndex,
    /// The files that its predicates ask about.
    pub files: &'a BTreeMap<String, FileFact>,
    /// Data that the host gave, by name.
    pub data: &'a BTreeMap<String, Value>,
    /// Work items and their artifacts.
    pub work: &'a WorkLedger,
    /// Checks of the application's own.
    pub custom: &'a CustomChecks,
    /// Who knows JSON Schema.
    pub schemas: &'a dyn SchemaValidator,
    /// Patterns that are compiled already, by their text.
    pub(crate) patterns: Option<&'a BTreeMap<String, Regex>>,
    /// When it is judged.
    pub now: Time,
}

impl<'a> Facts<'a> {
    /// Facts of a run that has neither files, data nor checks of its own.
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

/// How one requirement came out.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CheckResult {
    /// Whether it is met.
    pub success: bool,
    /// Why, for people and for the model.
    pub message: String,
    /// What proves it.
    pub evidence: Option<Evidence>,
}

/// How a contract came out.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Verification {
    /// Whether everything that is not optional is met.
    pub satisfied: bool,
    /// What is not, in the order of the contract.
    pub unmet: Vec<String>,
    /// Each requirement, in the order of the contract.
    pub results: Vec<(String, CheckResult)>,
    /// In a sentence.
    pub message: String,
}

/// What a predicate found.
enum Found {
    /// It holds: in which event, of which sort, what it says.
    Proof { event: String, kind: EvidenceKind, says: String, message: String },
    /// It does not.
    Not(String),
    /// There is nothing to judge it by; what was found earlier stands.
    Nothing(String),
}

impl TaskContract {
    /// Judges every requirement on the latest evidence and notes the outcome in `coverage`.
    ///
    /// A requirement that was met stays met while there is nothing newer to judge it by; files and data are
    /// judged anew each time. One that was let go is not judged.
    pub fn verify(&self, coverage: &mut Coverage, facts: &Facts<'_>) -> Verification {
        self.verify_by(coverage, facts, judge)
    }

    /// The same, with another way to judge one requirement that was not let go.
    pub(super) fn verify_by(
        &self,
        coverage: &mut Coverage,
        facts: &Facts<'_>,
        mut judge: impl FnMut(&str, &PredicateKind, CoverageStatus, &mut Coverage, &Facts<'_>) -> CheckResult,
    ) -> Verification {
        coverage.complete(self);
        let (mut results, mut unmet) = (Vec::new(), Vec::new());
        for output in &self.required_outputs {
            let result = match coverage.status(&output.id) {
                CoverageStatus::Skipped => {
                    CheckResult { success: true, message: "let go".to_owned(), evidence: None }
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

/// Judges one requirement and notes the outcome.
pub(super) fn judge(
    id: &str,
    predicate: &PredicateKind,
    status: CoverageStatus,
    coverage: &mut Coverage,
    facts: &Facts<'_>,
) -> CheckResult {
    match find(predicate, facts) {
        Found::Proof { event, kind, says, message } => {
            let evidence =
                Evidence { event_ref: event, kind, value: format!("{id}: {says}"), timestamp: facts.now };
            coverage.meet(id, evidence.clone());
            CheckResult { success: true, message, evidence: Some(evidence) }
        }
        Found::Nothing(_) if status == CoverageStatus::Met => {
            CheckResult { success: true, message: "met before".to_owned(), evidence: None }
        }
        Found::Not(message) | Found::Nothing(message) => {
            coverage.miss(id);
            CheckResult { success: false, message, evidence: None }
        }
    }
}

fn find(predicate: &PredicateKind, facts: &Facts<'_>) -> Found {
    match predicate {
        PredicateKind::AlwaysTrue => Found::Proof {
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

fn find_file(path: &str, facts: &Facts<'_>) -> Found {
    match facts.files.get(path) {
        Some(FileFact::File { bytes, digest }) => {
            let digest = digest.as_ref().map(|digest| format!(", sha256 {digest}")).unwrap_or_default();
            Found::Proof {
                event: "file_check".to_owned(),
                kind: EvidenceKind::Artifact,
                says: format!("{path} ({bytes} bytes{digest})"),
                message: format!("`{path}` is there"),
            }
        }
        Some(FileFact::NotAFile) => Found::Not(format!("`{path}` is no regular file")),
        Some(FileFact::Missing) => Found::Not(format!("`{path}` is not there")),
        Some(FileFact::Unknown { reason }) => Found::Not(format!("`{path}` can not be looked at: {reason}")),
        None => Found::Not(format!("nobody looked for `{path}`: the run has no workspace")),
    }
}

/// A text to search, the event that it lies in, and whether its beginning is missing.
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

fn find_text(pattern: &str, field: &TextField, facts: &Facts<'_>) -> Found {
    let known = facts.patterns.and_then(|patterns| patterns.get(pattern));
    let regex =
        match known.map_or_else(|| compiled(pattern).map(Cow::Owned), |known| Ok(Cow::Borrowed(known))) {
            Ok(regex) => regex,
            Err(fault) => return Found::Not(format!("it can not be judged: {fault}")),
        };
    let texts = texts(field, facts);
    let name = field.name();
    let Some(newest) = texts.first() else {
        return Found::Nothing(format!("there is no text in `{name}` yet"));
    };
    let Some(found) = texts.iter().find(|searched| regex.is_match(&searched.text)) else {
        let cut = if newest.truncated { "; only the end of the text was kept" } else { "" };
        return Found::Not(format!("`{pattern}` is not in `{name}`{cut}"));
    };
    let event = if found.event.is_empty() { "text_search" } else { found.event };
    Found::Proof {
        event: event.to_owned(),
        kind: EvidenceKind::Response,
        says: format!("`{pattern}` is in `{name}`"),
        message: format!("`{pattern}` was found"),
    }
}

fn find_result(
    tool: &str,
    args_match: Option<&Map<String, Value>>,
    min_count: u32,
    facts: &Facts<'_>,
) -> Found {
    let known = facts.index.tools.get(tool);
    let mut fitting = known.into_iter().flatten().rev().filter(|fact| fits(fact, args_match)).peekable();
    let Some(latest) = fitting.peek().copied() else {
        return Found::Nothing(format!("`{tool}` gave no result yet"));
    };
    if let Some(error) = &latest.error {
        let told: String = error.chars().take(200).collect();
        return Found::Not(format!("the latest result of `{tool}` is a failure: {told}"));
    }
    let good = fitting.filter(|fact| fact.error.is_none()).take(min_count as usize).count();
    if good < min_count as usize {
        return Found::Not(format!("`{tool}` succeeded {good} time(s); {min_count} are required"));
    }
    Found::Proof {
        event: latest.event.clone(),
        kind: EvidenceKind::ToolResult,
        says: format!("`{tool}` succeeded"),
        message: format!("`{tool}` succeeded"),
    }
}

/// Whether the arguments of a call hold everything that is wanted.
fn fits(fact: &ToolFact, wanted: Option<&Map<String, Value>>) -> bool {
    let Some(wanted) = wanted else { return true };
    let Ok(arguments) = fact.arguments.to::<Map<String, Value>>() else { return false };
    wanted.iter().all(|(key, value)| arguments.get(key) == Some(value))
}

/// Data to be held against a schema.
pub(super) enum Data {
    /// The event that it lies in, empty where there is none, and the data, or why it is none.
    There(String, Result<Value, String>),
    /// There is none, and there was none before.
    NotYet,
    /// There is none, whatever was before.
    Missing,
}

/// What a source of data holds now.
pub(super) fn data_in(source: &SchemaSource, facts: &Facts<'_>) -> Data {
    let parsed = |text: &str| serde_json::from_str::<Value>(text).map_err(|error| error.to_string());
    match source {
        SchemaSource::Response => match facts.index.newest_answer() {
            Some(answer) => Data::There(answer.event.clone(), parsed(&answer.text)),
            None => Data::NotYet,
        },
        SchemaSource::Artifact(item) => match facts.work.get(&ItemId::from(item.as_str())) {
            Ok(item) if !item.artifact.is_empty() => Data::There(String::new(), parsed(&item.artifact)),
            _ => Data::Missing,
        },
        SchemaSource::Tool(tool) => {
            let mut results = facts.index.tools.get(tool).into_iter().flatten().rev();
            match results.find_map(|fact| Some((fact, fact.value.as_ref()?))) {
                Some((fact, value)) => Data::There(fact.event.clone(), parsed(value)),
                None => Data::NotYet,
            }
        }
        SchemaSource::Data(key) => match facts.data.get(key) {
            Some(value) => Data::There(String::new(), Ok(value.clone())),
            None => Data::Missing,
        },
    }
}

fn find_data(schema: &Value, source: &SchemaSource, facts: &Facts<'_>) -> Found {
    let name = source.name();
    let (event, data) = match data_in(source, facts) {
        Data::There(event, data) => (event, data),
        Data::NotYet => return Found::Nothing(format!("there is no data in `{name}` yet")),
        Data::Missing => return Found::Not(format!("there is no data in `{name}`")),
    };
    match data.and_then(|data| facts.schemas.check(schema, &data)) {
        Ok(()) => Found::Proof {
            event: if event.is_empty() { "schema_check".to_owned() } else { event },
            kind: EvidenceKind::Response,
            says: format!("`{name}` fits the schema"),
            message: format!("`{name}` fits the schema"),
        },
        Err(why) => Found::Not(format!("`{name}` does not fit the schema: {why}")),
    }
}

fn find_custom(check: Option<&str>, facts: &Facts<'_>) -> Found {
    let Some(name) = check else { return Found::Not("the custom predicate names no check".to_owned()) };
    match facts.custom.get(name) {
        Some(Ok(says)) => Found::Proof {
            event: "custom_check".to_owned(),
            kind: EvidenceKind::Response,
            says: says.clone(),
            message: format!("the check `{name}` passed"),
        },
        Some(Err(why)) => Found::Not(format!("the check `{name}` failed: {why}")),
        None => Found::Not(format!("nobody registered a check named `{name}`")),
    }
}
