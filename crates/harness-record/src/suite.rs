//! Regression suite files.

use std::path::{Path, PathBuf};

use harness_core::Json;
use harness_diagnostics::typed::from_document;
use harness_diagnostics::{Diagnostic, Severity, YamlLimits};
use serde::{Deserialize, Serialize};

use super::compare::CompareOptions;
use super::replay::{InputMode, ReplayMode};
use super::sink::read_bounded;
use crate::error::{RecordError, RecordFile};

/// Version of suite files.
const VERSION: u32 = 1;

/// Code of an error in a suite.
const INVALID: &str = "suite.not_a_suite";

/// Maximum size of a suite file in bytes.
const LONGEST: u64 = 1 << 20;

/// Maximum number of cases in a suite.
const MOST_CASES: usize = 10_000;

/// Source of model answers in a replay.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum AnswersFrom {
    /// The record, without a network.
    #[default]
    Recorded,
    /// A live model.
    Live,
}

/// Expectation of a case. Required and forbidden tools are checked; the rest is for the judge.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
#[non_exhaustive]
pub struct Expectation {
    /// Intent of the case.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub intent: Option<String>,
    /// Tools that the candidate must call.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub should_use_tools: Vec<String>,
    /// Tools that the candidate must not call.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub should_avoid_tools: Vec<String>,
    /// Qualities to preserve.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub should_preserve: Vec<String>,
    /// Qualities to improve.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub should_improve: Vec<String>,
    /// Further notes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub notes: Option<String>,
}

/// Case of a suite file. Paths are relative to the file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[non_exhaustive]
pub struct CaseSpec {
    /// Name of the case. Default the id of the recorded run.
    #[serde(default)]
    pub name: Option<String>,
    /// Record to compare with.
    pub baseline: PathBuf,
    /// Descriptor of the candidate. Default that of the suite.
    #[serde(default)]
    pub descriptor: Option<PathBuf>,
    /// Registry file of the candidate. Default that of the suite.
    #[serde(default)]
    pub registry: Option<PathBuf>,
    /// Source of tool results. Default that of the suite.
    #[serde(default)]
    pub mode: Option<ReplayMode>,
    /// Input of the run. Default that of the suite.
    #[serde(default)]
    pub input: Option<InputMode>,
    /// Source of model answers. Default that of the suite.
    #[serde(default)]
    pub answers: Option<AnswersFrom>,
    /// Expectation of the case.
    #[serde(default)]
    pub expect: Expectation,
}

/// Regression suite: the content of its file, with paths resolved.
///
/// ```yaml
/// version: 1
/// suite: support desk
/// descriptor: harness.yaml
/// cases:
///   - baseline: records/late-order.json
///   - name: no refunds for strangers
///     baseline: records/stranger.json
///     mode: hybrid
///     expect: { shouldAvoidTools: [refund] }
/// ```
///
/// JSON is YAML: a suite may be either.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[non_exhaustive]
pub struct Suite {
    /// Version of the format: 1.
    pub version: u32,
    /// Name of the suite.
    #[serde(default)]
    pub suite: Option<String>,
    /// Default descriptor.
    #[serde(default)]
    pub descriptor: Option<PathBuf>,
    /// Default registry file.
    #[serde(default)]
    pub registry: Option<PathBuf>,
    /// Default source of tool results: strict.
    #[serde(default)]
    pub mode: ReplayMode,
    /// Default input: recorded.
    #[serde(default)]
    pub input: InputMode,
    /// Default source of model answers: recorded.
    #[serde(default)]
    pub answers: AnswersFrom,
    /// Compared sections. Default all but the metadata of the caller.
    #[serde(default = "all_but_metadata")]
    pub compare: CompareOptions,
    /// Data for the judge.
    #[serde(default, deserialize_with = "json_of_yaml")]
    pub metadata: Option<Json>,
    /// Cases in order.
    pub cases: Vec<CaseSpec>,
}

/// Reads JSON through YAML values, because YAML has no JSON text to keep.
fn json_of_yaml<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<Json>, D::Error> {
    let value = Option::<serde_json::Value>::deserialize(deserializer)?;
    value.map(|value| Json::of(&value)).transpose().map_err(serde::de::Error::custom)
}

fn all_but_metadata() -> CompareOptions {
    CompareOptions::default().without(super::compare::Section::Metadata)
}

impl Suite {
    /// Reads a suite file. Blocks on the file system.
    ///
    /// # Errors
    /// A file that is unreadable, invalid, without cases, or of a newer version.
    pub fn read(path: impl Into<PathBuf>) -> Result<Self, RecordError> {
        let path = path.into();
        let text = read_bounded(&path, RecordFile::Suite, LONGEST)?;
        let mut suite = Self::from_text(path.clone(), &text)?;
        let parent = path.parent().unwrap_or(Path::new("")).to_owned();
        let from_here = |path: &mut PathBuf| *path = parent.join(&*path);
        suite.descriptor.iter_mut().for_each(from_here);
        suite.registry.iter_mut().for_each(from_here);
        for case in &mut suite.cases {
            from_here(&mut case.baseline);
            case.descriptor.iter_mut().for_each(from_here);
            case.registry.iter_mut().for_each(from_here);
        }
        Ok(suite)
    }

    /// Parses a suite, with paths as written; `name` replaces the path in messages.
    ///
    /// # Errors
    /// A text that is invalid, without cases, or of a newer version.
    pub fn from_text(name: impl Into<PathBuf>, text: &str) -> Result<Self, RecordError> {
        let suite = |error: Diagnostic| RecordError::Suite(Box::new(error));
        let limits = YamlLimits::for_text(LONGEST);
        let document = harness_diagnostics::read(text, name.into().display().to_string(), &limits, None)
            .map_err(|error| suite(error.into()))?;
        let invalid = |key: &str, message: String| {
            suite(Diagnostic::new(Severity::Error, INVALID, message).at(document.place_at(&[key])))
        };
        let version = document.root().and_then(|root| document.whole(document.get(root, "version")?));
        if let Some(version) = version.filter(|version| *version > VERSION.into()) {
            let message = format!("unsupported version {version}, expected {VERSION}");
            let place = document.place_at(&["version"]);
            return Err(suite(Diagnostic::new(Severity::Error, "suite.version", message).at(place)));
        }
        let suite: Self = from_document(&document, INVALID).map_err(RecordError::Suite)?;
        match suite.cases.len() {
            0 => Err(invalid("cases", "the suite has no cases".to_owned())),
            cases if cases > MOST_CASES => {
                Err(invalid("cases", format!("the suite has {cases} cases; the limit is {MOST_CASES}")))
            }
            _ => Ok(suite),
        }
    }
}
