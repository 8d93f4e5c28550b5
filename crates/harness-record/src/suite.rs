//! The file of a regression suite.

use std::path::{Path, PathBuf};

use harness_core::Json;
use harness_core::bracket_depth;
use serde::{Deserialize, Serialize};

use super::compare::CompareOptions;
use super::replay::{InputMode, ReplayMode};
use super::sink::read_bounded;
use crate::error::{RecordAction, RecordError};

/// The version of suite files that is read.
const VERSION: u32 = 1;

/// Levels of brackets in a suite, at most.
const MOST_LEVELS: usize = 1_000;

/// Bytes of a suite file, at most.
const LONGEST: u64 = 1 << 20;

/// Cases of a suite, at most.
const MOST_CASES: usize = 10_000;

/// Where the model's answers of a replay come from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum AnswersFrom {
    /// From the record: no network.
    #[default]
    Recorded,
    /// From a live model.
    Live,
}

/// What a case is meant to show. Tools that should (not) be used are checked; the rest is for the judge.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
#[non_exhaustive]
pub struct Expectation {
    /// What the case is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub intent: Option<String>,
    /// Tools that the candidate has to call.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub should_use_tools: Vec<String>,
    /// Tools that the candidate must not call.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub should_avoid_tools: Vec<String>,
    /// What must stay as it is.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub should_preserve: Vec<String>,
    /// What should become better.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub should_improve: Vec<String>,
    /// Anything else.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub notes: Option<String>,
}

/// One case of a suite file. Paths are relative to the file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[non_exhaustive]
pub struct CaseSpec {
    /// Its name. Default: the id of the recorded run.
    #[serde(default)]
    pub name: Option<String>,
    /// The record that it is compared with.
    pub baseline: PathBuf,
    /// The candidate's descriptor. Default: the suite's.
    #[serde(default)]
    pub descriptor: Option<PathBuf>,
    /// The candidate's registry file. Default: the suite's.
    #[serde(default)]
    pub registry: Option<PathBuf>,
    /// What is taken from the record. Default: the suite's.
    #[serde(default)]
    pub mode: Option<ReplayMode>,
    /// What is said to the agents. Default: the suite's.
    #[serde(default)]
    pub input: Option<InputMode>,
    /// Where answers come from. Default: the suite's.
    #[serde(default)]
    pub answers: Option<AnswersFrom>,
    /// What the case is meant to show.
    #[serde(default)]
    pub expect: Expectation,
}

/// A regression suite: what its file says, paths made relative to where the program stands.
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
    /// 1.
    pub version: u32,
    /// Its name.
    #[serde(default)]
    pub suite: Option<String>,
    /// The descriptor of cases that name none.
    #[serde(default)]
    pub descriptor: Option<PathBuf>,
    /// The registry file of cases that name none.
    #[serde(default)]
    pub registry: Option<PathBuf>,
    /// The mode of cases that name none. Default strict.
    #[serde(default)]
    pub mode: ReplayMode,
    /// The input of cases that name none. Default recorded.
    #[serde(default)]
    pub input: InputMode,
    /// The answers of cases that name none. Default recorded.
    #[serde(default)]
    pub answers: AnswersFrom,
    /// What is compared. Default: everything but the metadata, which belongs to whoever made the record.
    #[serde(default = "all_but_metadata")]
    pub compare: CompareOptions,
    /// Data for the judge.
    #[serde(default, deserialize_with = "json_of_yaml")]
    pub metadata: Option<Json>,
    /// The cases.
    pub cases: Vec<CaseSpec>,
}

/// Exact JSON cannot be read from YAML: there is no JSON text to keep.
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
    /// When it cannot be read, is no suite, has no cases, or is of a newer version.
    pub fn read(path: impl Into<PathBuf>) -> Result<Self, RecordError> {
        let path = path.into();
        let text = read_bounded(&path, RecordAction::ReadSuite, LONGEST)?;
        let mut suite = Self::from_text(path.clone(), &text)?;
        let folder = path.parent().unwrap_or(Path::new("")).to_owned();
        let from_here = |path: &mut PathBuf| *path = folder.join(&*path);
        suite.descriptor.iter_mut().for_each(from_here);
        suite.registry.iter_mut().for_each(from_here);
        for case in &mut suite.cases {
            from_here(&mut case.baseline);
            case.descriptor.iter_mut().for_each(from_here);
            case.registry.iter_mut().for_each(from_here);
        }
        Ok(suite)
    }

    /// Takes a suite from its text; `name` stands for it in messages. Paths stay as they are written.
    ///
    /// # Errors
    /// When it is no suite, has no cases, or is of a newer version.
    pub fn from_text(name: impl Into<PathBuf>, text: &str) -> Result<Self, RecordError> {
        let path = name.into();
        let wrong = |reason: String| RecordError::Suite { path: path.clone(), reason };
        // The parser's time grows with the square of the depth.
        if bracket_depth(text) > MOST_LEVELS {
            return Err(wrong(format!("it nests deeper than {MOST_LEVELS} levels")));
        }
        let suite: Self = serde_yaml::from_str(text).map_err(|fault| wrong(fault.to_string()))?;
        if suite.version > VERSION {
            return Err(wrong(format!(
                "its version is {}, this program reads up to {VERSION}",
                suite.version
            )));
        }
        if suite.cases.is_empty() {
            return Err(wrong("it has no cases".to_owned()));
        }
        if suite.cases.len() > MOST_CASES {
            return Err(wrong(format!("it has {} cases, the limit is {MOST_CASES}", suite.cases.len())));
        }
        Ok(suite)
    }
}
