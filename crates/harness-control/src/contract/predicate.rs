//! Predicates of required outputs.

use std::borrow::Cow;
use std::collections::BTreeMap;

use regex::Regex;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::Error as _;
use serde::ser::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value, json};

use super::TaskContract;

/// Maximum size of a compiled pattern in bytes.
const PATTERN_SIZE: usize = 1 << 20;

/// Predicate of a required output, with a description. Written as `{type, args, description}`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Predicate {
    /// Kind and arguments.
    pub kind: PredicateKind,
    /// Human-readable description; may be empty.
    pub description: String,
}

impl JsonSchema for Predicate {
    fn schema_name() -> Cow<'static, str> {
        "Predicate".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "Predicate of a required output.",
            "type": "object",
            "properties": {
                "type": {
                    "description": "Kind of the predicate.",
                    "enum": [
                        "always_true",
                        "file_exists",
                        "contains_text",
                        "tool_result_success",
                        "json_schema_valid",
                        "custom",
                    ],
                },
                "args": {
                    "description": "Arguments by kind: `path`; `pattern` and `field`; `tool_name`, \
                                    `args_match` and `min_count`; `schema` and `source`; or `check`.",
                    "type": "object",
                },
                "description": { "description": "Human-readable description.", "type": "string" },
            },
            "required": ["type"],
            "additionalProperties": false,
        })
    }
}

impl From<PredicateKind> for Predicate {
    fn from(kind: PredicateKind) -> Self {
        Self { kind, description: String::new() }
    }
}

/// Text that a predicate searches.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
#[non_exhaustive]
pub enum TextField {
    /// The newest answer with text.
    #[default]
    Response,
    /// Any answer of the run.
    AnyResponse,
    /// The artifact of a work item, `artifact:ID`.
    Artifact(String),
    /// All answers and tool results of the run.
    Transcript,
    /// Data of the application with this name.
    Data(String),
}

impl From<TextField> for String {
    fn from(field: TextField) -> Self {
        match field {
            TextField::Response => "response".to_owned(),
            TextField::AnyResponse => "any_response".to_owned(),
            TextField::Artifact(item) => format!("artifact:{item}"),
            TextField::Transcript => "transcript".to_owned(),
            TextField::Data(key) => key,
        }
    }
}

impl From<String> for TextField {
    fn from(text: String) -> Self {
        match (&*text, text.strip_prefix("artifact:")) {
            ("response", _) => Self::Response,
            ("any_response", _) => Self::AnyResponse,
            ("transcript", _) => Self::Transcript,
            (_, Some(item)) => Self::Artifact(item.to_owned()),
            (_, None) => Self::Data(text),
        }
    }
}

/// Data that a predicate validates against a schema.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
#[non_exhaustive]
pub enum SchemaSource {
    /// The newest answer, which must be JSON; `response_json`.
    Response,
    /// The artifact of a work item, `artifact:ID`.
    Artifact(String),
    /// The latest successful result of a tool, `tool:NAME`.
    Tool(String),
    /// Data of the application with this name. Default `data`.
    Data(String),
}

impl Default for SchemaSource {
    fn default() -> Self {
        Self::Data("data".to_owned())
    }
}

impl From<SchemaSource> for String {
    fn from(source: SchemaSource) -> Self {
        match source {
            SchemaSource::Response => "response_json".to_owned(),
            SchemaSource::Artifact(item) => format!("artifact:{item}"),
            SchemaSource::Tool(tool) => format!("tool:{tool}"),
            SchemaSource::Data(key) => key,
        }
    }
}

impl From<String> for SchemaSource {
    fn from(text: String) -> Self {
        match (&*text, text.split_once(':')) {
            ("response_json", _) => Self::Response,
            (_, Some(("artifact", item))) => Self::Artifact(item.to_owned()),
            (_, Some(("tool", tool))) => Self::Tool(tool.to_owned()),
            _ => Self::Data(text),
        }
    }
}

/// Kind of a predicate, with its arguments.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", content = "args", rename_all = "snake_case")]
#[non_exhaustive]
pub enum PredicateKind {
    /// Always passes: the requirement is information for the model.
    #[default]
    AlwaysTrue,
    /// A regular file exists.
    FileExists {
        /// Path in the workspace.
        path: String,
    },
    /// A text matches a pattern, ignoring case.
    ContainsText {
        /// Regular expression, with linear time and bounded size.
        pattern: String,
        /// Text to search.
        #[serde(default)]
        field: TextField,
    },
    /// The latest result of a tool is a success.
    ToolResultSuccess {
        /// Name of the tool.
        tool_name: String,
        /// Arguments that a call must have to count.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        args_match: Option<Map<String, Value>>,
        /// Minimum number of successes. Default 1.
        #[serde(default = "one", skip_serializing_if = "is_one")]
        min_count: u32,
    },
    /// Data is valid against a JSON Schema.
    JsonSchemaValid {
        /// JSON Schema.
        schema: Value,
        /// Data to validate.
        #[serde(default)]
        source: SchemaSource,
    },
    /// A check of the application passes.
    Custom {
        /// Name of the check; `None` fails.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        check: Option<String>,
    },
}

fn one() -> u32 {
    1
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_one(count: &u32) -> bool {
    *count == 1
}

/// Error in a predicate.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PredicateFault {
    /// A pattern is invalid or too large.
    #[error("invalid regular expression `{pattern}`: {reason}")]
    Pattern {
        /// Pattern in question.
        pattern: String,
        /// Reason in one line.
        reason: String,
    },
    /// A custom predicate has no check.
    #[error("missing `args.check` of the `custom` predicate: name a check of the application")]
    NoCheck,
}

impl PredicateKind {
    /// Checks whether the predicate can be evaluated.
    ///
    /// # Errors
    /// An invalid pattern, or a custom predicate without a check.
    pub fn check(&self) -> Result<(), PredicateFault> {
        match self {
            Self::ContainsText { pattern, .. } => compiled(pattern).map(drop),
            Self::Custom { check: None } => Err(PredicateFault::NoCheck),
            Self::AlwaysTrue
            | Self::FileExists { .. }
            | Self::ToolResultSuccess { .. }
            | Self::JsonSchemaValid { .. }
            | Self::Custom { check: Some(_) } => Ok(()),
        }
    }
}

/// Compiled patterns of a contract, by their text.
pub(crate) type Patterns = BTreeMap<String, Regex>;

impl TaskContract {
    /// Compiles the valid patterns of the contract.
    pub(crate) fn patterns(&self) -> Patterns {
        let patterns = self.required_outputs.iter().filter_map(|output| match &output.predicate.kind {
            PredicateKind::ContainsText { pattern, .. } => Some((pattern.clone(), compiled(pattern).ok()?)),
            PredicateKind::AlwaysTrue
            | PredicateKind::FileExists { .. }
            | PredicateKind::ToolResultSuccess { .. }
            | PredicateKind::JsonSchemaValid { .. }
            | PredicateKind::Custom { .. } => None,
        });
        patterns.collect()
    }
}

/// Compiles a pattern.
pub(super) fn compiled(pattern: &str) -> Result<Regex, PredicateFault> {
    regex::RegexBuilder::new(pattern)
        .case_insensitive(true)
        .size_limit(PATTERN_SIZE)
        .dfa_size_limit(PATTERN_SIZE)
        .build()
        .map_err(|error| PredicateFault::Pattern { pattern: pattern.to_owned(), reason: reason(&error) })
}

/// The last line of a pattern error; the lines before it draw the pattern.
fn reason(error: &regex::Error) -> String {
    let text = error.to_string();
    let last = text.lines().last().unwrap_or_default();
    last.strip_prefix("error: ").unwrap_or(last).to_owned()
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Wire {
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    args: Map<String, Value>,
    #[serde(default)]
    description: String,
}

impl Serialize for Predicate {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Deserialize)]
        struct TaggedKind {
            r#type: String,
            #[serde(default)]
            args: Map<String, Value>,
        }
        let mut value = serde_json::to_value(&self.kind).map_err(S::Error::custom)?;
        // One order of keys, whichever order the build's maps keep.
        value.sort_all_objects();
        let TaggedKind { r#type: kind, args } = serde_json::from_value(value).map_err(S::Error::custom)?;
        Wire { kind, args, description: self.description.clone() }.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Predicate {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Wire { kind, args, description } = Wire::deserialize(deserializer)?;
        let tagged = match &*kind {
            "always_true" => json!({ "type": kind }),
            _ => json!({ "type": kind, "args": args }),
        };
        let kind = serde_json::from_value(tagged)
            .map_err(|error| D::Error::custom(format_args!("predicate `{kind}`: {error}")))?;
        Ok(Self { kind, description })
    }
}
