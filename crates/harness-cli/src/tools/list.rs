//! The list of a registry's tools.

use std::fmt::Write as _;

use harness::core::Json;
use harness::core::tool::ToolDef;
use serde::Serialize;
use serde_json::Value;

use super::Offered;
use crate::error::CliError;
use crate::exit::Exit;
use crate::output;
use crate::render::{NOTE, one_line};

/// Prints the tools.
pub(super) fn list(tools: &[Offered], json: bool) -> Result<Exit, CliError> {
    let tools = tools.iter().map(|tool| (tool.target.as_str(), &tool.def));
    if json {
        let tools: Vec<Listed<'_>> = tools.map(|(target, def)| Listed::of(target, def)).collect();
        return output::print_json(&tools, Exit::Completed);
    }
    let shown: Vec<String> = tools.map(|(target, def)| shown(target, def)).collect();
    let text = if shown.is_empty() { "the file binds no tool\n".to_owned() } else { shown.join("\n") };
    output::print(&text, Exit::Completed)
}

/// A tool for programs.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Listed<'d> {
    name: &'d str,
    target: &'d str,
    description: &'d str,
    class: &'d str,
    requires_approval: bool,
    sequential: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    input_schema: Option<&'d Json>,
}

impl<'d> Listed<'d> {
    fn of(target: &'d str, def: &'d ToolDef) -> Self {
        Self {
            name: def.name.as_str(),
            target,
            description: &def.description,
            class: def.class.as_str(),
            requires_approval: def.requires_approval,
            sequential: def.sequential,
            input_schema: def.input_schema.as_ref(),
        }
    }
}

/// Human-readable text about a tool: name, target, flags, description and arguments.
fn shown(target: &str, def: &ToolDef) -> String {
    let mut flags = vec![def.class.as_str()];
    flags.extend(def.requires_approval.then_some("needs approval"));
    flags.extend(def.sequential.then_some("runs alone"));
    // Writing to a string cannot fail.
    let mut text = format!("{} {NOTE}({target}) · {}{NOTE:#}\n", def.name, flags.join(" · "));
    if !def.description.is_empty() {
        let _ = writeln!(text, "  {}", one_line(&def.description));
    }
    for argument in def.input_schema.as_ref().map(arguments).unwrap_or_default() {
        let _ = writeln!(text, "    {argument}");
    }
    text
}

/// The arguments of a schema by name, one a line: `path  string, required  Where it is`.
fn arguments(schema: &Json) -> Vec<String> {
    let mut schema: Value = schema.to().unwrap_or_default();
    schema.sort_all_objects();
    let required = schema.get("required").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let properties = schema.get("properties").and_then(Value::as_object).into_iter().flatten();
    let argument = |(name, property): (&String, &Value)| {
        let kind = kind_of(property);
        let needed = if required.iter().any(|word| word == name) { ", required" } else { "" };
        let told = property.get("description").and_then(Value::as_str).unwrap_or_default();
        one_line(format!("{name}  {kind}{needed}  {told}").trim_end())
    };
    properties.map(argument).collect()
}

/// The type of a value, or the words that it may be.
fn kind_of(property: &Value) -> String {
    let word = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    if let Some(words) = property.get("enum").and_then(Value::as_array) {
        return words.iter().map(word).collect::<Vec<_>>().join("|");
    }
    match property.get("type") {
        Some(Value::Array(types)) => types.iter().map(word).collect::<Vec<_>>().join("|"),
        Some(one) => word(one),
        None => "any".to_owned(),
    }
}
