//! How a required output is judged.

use std::borrow::Cow;

use regex::Regex;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};

/// The most that a compiled pattern may weigh, in bytes.
const PATTERN_SIZE: usize = 1 << 20;

/// How a required output is judged, with a word for people. Written as `{type, args, description}`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Predicate {
    /// The judgement.
    pub kind: PredicateKind,
    /// A word for people; may be empty.
    pub description: String,
}

impl JsonSchema for Predicate {
    fn schema_name() -> Cow<'static, str> {
        "Predicate".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "How a required output is judged.",
            "type": "object",
            "properties": {
                "type": {
                    "description": "The judgement.",
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
                    "description": "What the judgement needs: `path`; `pattern` and `field`; `tool_name`, \
                                    `args_match` and `min_count`; `schema` and `source`; or `check`.",
                    "type": "object",
                },
                "description": { "description": "A word for people.", "type": "string" },
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

/// Where a text is looked for.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TextField {
    /// The newest answer that has text.
    Response,
    /// Any answer of the run.
    AnyResponse,
    /// The artifact of a work item, `artifact:ID`.
    Artifact(String),
    /// Answers and results of the run together.
    Transcript,
    /// Data that the host gave under this name.
    Data(String),
}

impl TextField {
    /// As it is written.
    pub fn name(&self) -> String {
        match self {
            Self::Response => "response".to_owned(),
            Self::AnyResponse => "any_response".to_owned(),
            Self::Artifact(item) => format!("artifact:{item}"),
            Self::Transcript => "transcript".to_owned(),
            Self::Data(key) => key.clone(),
        }
    }

    fn parse(text: &str) -> Self {
        match text {
            "response" => Self::Response,
            "any_response" => Self::AnyResponse,
            "transcript" => Self::Transcript,
            _ => match text.strip_prefix("artifact:") {
                Some(item) => Self::Artifact(item.to_owned()),
                None => Self::Data(text.to_owned()),
            },
        }
    }
}

/// What a schema is held against.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SchemaSource {
    /// The newest answer, which must be JSON; `response_json`.
    Response,
    /// The artifact of a work item, `artifact:ID`.
    Artifact(String),
    /// The latest good result of a tool, `tool:NAME`.
    Tool(String),
    /// Data that the host gave under this name; `data` by default.
    Data(String),
}

impl SchemaSource {
    /// As it is written.
    pub fn name(&self) -> String {
        match self {
            Self::Response => "response_json".to_owned(),
            Self::Artifact(item) => format!("artifact:{item}"),
            Self::Tool(tool) => format!("tool:{tool}"),
            Self::Data(key) => key.clone(),
        }
    }

    fn parse(text: &str) -> Self {
        match (text, text.split_once(':')) {
            ("response_json", _) => Self::Response,
            (_, Some(("artifact", item))) => Self::Artifact(item.to_owned()),
            (_, Some(("tool", tool))) => Self::Tool(tool.to_owned()),
            _ => Self::Data(text.to_owned()),
        }
    }
}

/// The kind of a predicate: how a requirement is judged.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum PredicateKind {
    /// Passes: the requirement is for the model alone.
    #[default]
    AlwaysTrue,
    /// A regular file is there.
    FileExists {
        /// Its path, below the workspace.
        path: String,
    },
    /// A text holds a pattern, whatever its case.
    ContainsText {
        /// A regular expression, in linear time and bounded size.
        pattern: String,
        /// Where.
        field: TextField,
    },
    /// The latest result of a tool is a good one.
    ToolResultSuccess {
        /// The tool.
        tool_name: String,
        /// Only calls whose arguments hold these count.
        args_match: Option<Map<String, Value>>,
        /// How many good results there must be. Default 1.
        min_count: u32,
    },
    /// Data fits a JSON Schema.
    JsonSchemaValid {
        /// The schema.
        schema: Value,
        /// The data.
        source: SchemaSource,
    },
    /// The application judges.
    Custom {
        /// The name of its check; `None` fails.
        check: Option<String>,
    },
}

/// Why a predicate can not be judged.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PredicateFault {
    /// There is no such type.
    #[error(
        "`{name}` is no type of predicate; there are always_true, file_exists, contains_text, \
         tool_result_success, json_schema_valid and custom"
    )]
    UnknownType {
        /// What was given.
        name: String,
    },
    /// An argument is missing or of another type.
    #[error("a predicate of type `{kind}` needs `args.{argument}`, {expected}")]
    Argument {
        /// The type.
        kind: &'static str,
        /// The argument.
        argument: &'static str,
        /// What it must be.
        expected: &'static str,
    },
    /// A pattern is no regular expression, or too large a one.
    #[error("`{pattern}` is no regular expression: {reason}")]
    Pattern {
        /// The pattern.
        pattern: String,
        /// Why.
        reason: String,
    },
    /// A custom predicate names no check.
    #[error("a predicate of type `custom` needs `args.check`, the name of a check")]
    NoCheck,
}

impl PredicateKind {
    /// The wire name of its type.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::AlwaysTrue => "always_true",
            Self::FileExists { .. } => "file_exists",
            Self::ContainsText { .. } => "contains_text",
            Self::ToolResultSuccess { .. } => "tool_result_success",
            Self::JsonSchemaValid { .. } => "json_schema_valid",
            Self::Custom { .. } => "custom",
        }
    }

    /// Whether it can be judged at all.
    ///
    /// # Errors
    /// A pattern that is no regular expression, a custom predicate without a check.
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

    fn parse(name: &str, args: &Map<String, Value>) -> Result<Self, PredicateFault> {
        let text = |kind, argument| {
            args.get(argument)
                .and_then(Value::as_str)
                .map(ToOwned::to_owned)
                .ok_or(PredicateFault::Argument { kind, argument, expected: "a text" })
        };
        let optional = |argument, default: &str| {
            args.get(argument).and_then(Value::as_str).unwrap_or(default).to_owned()
        };
        Ok(match name {
            "always_true" => Self::AlwaysTrue,
            "file_exists" => Self::FileExists { path: text("file_exists", "path")? },
            "contains_text" => Self::ContainsText {
                pattern: text("contains_text", "pattern")?,
                field: TextField::parse(&optional("field", "response")),
            },
            "tool_result_success" => Self::ToolResultSuccess {
                tool_name: text("tool_result_success", "tool_name")?,
                args_match: args.get("args_match").and_then(Value::as_object).cloned(),
                min_count: args
                    .get("min_count")
                    .and_then(Value::as_u64)
                    .and_then(|count| u32::try_from(count).ok())
                    .unwrap_or(1)
                    .max(1),
            },
            "json_schema_valid" => Self::JsonSchemaValid {
                schema: args.get("schema").cloned().ok_or(PredicateFault::Argument {
                    kind: "json_schema_valid",
                    argument: "schema",
                    expected: "a JSON Schema",
                })?,
                source: SchemaSource::parse(&optional("source", "data")),
            },
            "custom" => {
                Self::Custom { check: args.get("check").and_then(Value::as_str).map(ToOwned::to_owned) }
            }
            name => return Err(PredicateFault::UnknownType { name: name.to_owned() }),
        })
    }

    fn args(&self) -> Map<String, Value> {
        let mut args = Map::new();
        let mut put = |key: &str, value: Value| args.insert(key.to_owned(), value);
        match self {
            Self::AlwaysTrue | Self::Custom { check: None } => {}
            Self::FileExists { path } => drop(put("path", path.as_str().into())),
            Self::ContainsText { pattern, field } => {
                put("pattern", pattern.as_str().into());
                put("field", field.name().into());
            }
            Self::ToolResultSuccess { tool_name, args_match, min_count } => {
                put("tool_name", tool_name.as_str().into());
                if let Some(wanted) = args_match {
                    put("args_match", wanted.clone().into());
                }
                if *min_count > 1 {
                    put("min_count", (*min_count).into());
                }
            }
            Self::JsonSchemaValid { schema, source } => {
                put("schema", schema.clone());
                put("source", source.name().into());
            }
            Self::Custom { check: Some(check) } => drop(put("check", check.as_str().into())),
        }
        args
    }
}

/// With the keys in one order, whichever the build keeps them in.
fn sorted(mut args: Map<String, Value>) -> Map<String, Value> {
    args.sort_keys();
    args.values_mut().for_each(Value::sort_all_objects);
    args
}

/// The pattern, ready to search with.
pub(super) fn compiled(pattern: &str) -> Result<Regex, PredicateFault> {
    regex::RegexBuilder::new(pattern)
        .case_insensitive(true)
        .size_limit(PATTERN_SIZE)
        .dfa_size_limit(PATTERN_SIZE)
        .build()
        .map_err(|error| PredicateFault::Pattern { pattern: pattern.to_owned(), reason: reason(&error) })
}

/// Why a pattern is none, in one line: the library draws the pattern over several.
fn reason(error: &regex::Error) -> String {
    let told = error.to_string();
    let last = told.lines().last().unwrap_or_default();
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
        let (kind, args) = (self.kind.as_str().to_owned(), sorted(self.kind.args()));
        Wire { kind, args, description: self.description.clone() }.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Predicate {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let wire = Wire::deserialize(deserializer)?;
        let kind = PredicateKind::parse(&wire.kind, &sorted(wire.args)).map_err(serde::de::Error::custom)?;
        Ok(Self { kind, description: wire.description })
    }
}
