//! Forms of values that only the schema has.
#![expect(dead_code, reason = "the types exist for their schema")]

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde_json::Value as Json;

use super::SequenceItem;

/// The section `run`, whose shape is defined by a separate table.
pub(super) struct Run;

impl JsonSchema for Run {
    fn schema_name() -> Cow<'static, str> {
        "Run".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        Schema::try_from(crate::run::schema()).unwrap_or_default()
    }
}

/// Forms of instructions that exclude each other.
pub(super) fn one_form() -> Json {
    let both = |first: &str, second: &str| serde_json::json!({ "required": [first, second] });
    let files = |form: &str| {
        [both(form, "instructions_file"), both(form, "instructions_files"), both(form, "instructions")]
    };
    let mut pairs = files("instructions_sequence").to_vec();
    pairs.push(both("instructions_file", "instructions_files"));
    pairs.push(both("instructions_file", "instructions"));
    serde_json::json!({ "anyOf": pairs })
}

/// A text with at least one visible character.
#[derive(JsonSchema)]
#[schemars(inline)]
pub(super) struct NonEmpty(#[schemars(regex(pattern = r"\S"))] String);

/// JSON Schema, or the path of its file.
#[derive(JsonSchema)]
#[schemars(untagged, inline)]
pub(super) enum Output {
    Inline(serde_json::Map<String, Json>),
    File(PromptPath),
}

/// Id of a tool, a key of `tools`.
#[derive(JsonSchema)]
#[schemars(untagged, inline)]
pub(super) enum ToolId {
    Text(String),
    Number(i64),
}

/// Path of a prompt file, relative to the descriptor and inside its root directory.
#[derive(JsonSchema)]
#[schemars(inline)]
pub(super) struct PromptPath(
    #[schemars(regex(pattern = r"^(?![A-Za-z][A-Za-z0-9+.-]*://)[^/*?\[\]{}][^*?\[\]{}]*$"))]
    String,
);

/// Paths of prompt files.
#[derive(JsonSchema)]
#[schemars(inline)]
pub(super) struct PromptPaths(#[schemars(length(min = 1))] Vec<PromptPath>);

/// Items of instructions, in order.
#[derive(JsonSchema)]
#[schemars(inline)]
pub(super) struct Sequence(#[schemars(length(min = 1))] Vec<SequenceItem>);
