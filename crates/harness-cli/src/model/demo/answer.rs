//! Answers of the demo model.

use std::fmt::Write as _;

use harness::core::Json;
use harness::core::display::shortened;
use harness::core::tool::{ToolDef, ToolKind};
use serde_json::Value;

use super::decide::{Next, schema};
use super::files;
use super::situation::{Done, Situation};
use super::words::{sentences, subject};

/// Characters of one result in an answer.
const RESULT: usize = 600;

/// Lines of a summary.
const SUMMARY: usize = 12;

/// Characters of one line of it.
const LINE: usize = 200;

/// Tools that are listed.
const LISTED: usize = 8;

/// The answer to the question, out of results and of what is known.
pub(super) fn answer(situation: &Situation<'_>, next: &Next) -> String {
    if let Next::Missing { tool, argument } = next {
        return format!("To use {} I need to know: {}.", spoken(tool), spoken(argument));
    }
    if let Next::Exact { tool } = next {
        return exact(situation, tool);
    }
    if let Some(text) = files::report(situation) {
        return text;
    }
    let results: Vec<&Done> = situation.results().collect();
    if !results.is_empty() {
        return results.into_iter().map(told).collect::<Vec<_>>().join("\n");
    }
    if is_summary(situation) {
        return summary(&situation.question);
    }
    known(situation).unwrap_or_else(|| about(situation))
}

/// One result as a line.
fn told(done: &Done) -> String {
    if done.result.is_error {
        return failure(done);
    }
    let name = spoken(done.call.name.as_str());
    let text = done.text();
    let text = text.trim();
    let text = Json::parse(text).map_or_else(|_| text.to_owned(), |value| readable(&value));
    let gap = if text.contains('\n') { "\n" } else { " " };
    format!("{name}:{gap}{}", shortened(&text, RESULT))
}

/// One failed call as a line.
pub(super) fn failure(done: &Done) -> String {
    format!("{} failed: {}", spoken(done.call.name.as_str()), shortened(done.text().trim(), RESULT))
}

/// JSON as people write it, in the order of its text.
fn readable(value: &Json) -> String {
    if let Ok(entries) = value.entries() {
        let said = entries.iter().filter(|(_, value)| !value.is_null() && value.text() != "false");
        return said
            .map(|(key, value)| format!("{} {}", spoken(key), readable(value)))
            .collect::<Vec<_>>()
            .join(", ");
    }
    if let Ok(items) = value.to::<Vec<Json>>() {
        return items.iter().map(readable).collect::<Vec<_>>().join("; ");
    }
    match value.text() {
        "true" => "yes".to_owned(),
        text => value.to::<String>().unwrap_or_else(|_| text.to_owned()),
    }
}

/// The known sentence that has most words of the question, if it has two.
fn known(situation: &Situation<'_>) -> Option<String> {
    let asked = subject(&situation.question);
    // A sentence that says nothing new is no answer.
    let fits = |sentence: &str| match subject(sentence) {
        said if said.is_subset(&asked) => 0,
        said => said.intersection(&asked).count(),
    };
    let texts = situation.known.iter().flat_map(|text| sentences(text));
    let statements = texts.filter(|sentence| !sentence.ends_with('?'));
    let best = statements
        .map(|sentence| (fits(sentence), sentence))
        .reduce(|one, other| if other.0 > one.0 { other } else { one });
    best.filter(|(words, _)| *words >= 2)
        .map(|(_, sentence)| shortened(sentence.trim_start_matches(['-', '*', ' ']), RESULT))
}

/// Whether the request is to make a text shorter.
fn is_summary(situation: &Situation<'_>) -> bool {
    let wanted = |text: &str| text.to_lowercase().contains("summar");
    situation.tools.is_empty() && situation.known.last().is_some_and(|text| wanted(text))
}

/// The first lines of a text.
fn summary(text: &str) -> String {
    let lines = text.lines().map(str::trim).filter(|line| line.chars().any(char::is_alphanumeric));
    lines.take(SUMMARY).map(|line| shortened(line, LINE)).collect::<Vec<_>>().join("\n")
}

/// Describes the demo model and the available tools.
fn about(situation: &Situation<'_>) -> String {
    let mut text =
        "I am the demo model. I follow rules and am not a language model, so I only know what tools return."
            .to_owned();
    let mut able: Vec<String> = Vec::new();
    for def in situation.tools.iter().take(LISTED) {
        able.push(match &def.kind {
            ToolKind::Handoff(agent) => format!("- {agent}, another agent"),
            ToolKind::Function | _ => format!("- {}: {}", def.name, first(&def.description)),
        });
    }
    if able.is_empty() {
        return text + " No tool is available here.";
    }
    text.push_str(" Mention one of these:\n");
    text.push_str(&able.join("\n"));
    if let Some(def) = situation.tools.iter().find(|def| !matches!(def.kind, ToolKind::Handoff(_))) {
        let _ = write!(text, "\nor send exactly: {}", order(def));
    }
    text
}

/// Reason why a tool is called only when the user writes its call.
fn exact(situation: &Situation<'_>, tool: &str) -> String {
    let order = situation.tools.iter().find(|def| def.name.as_str() == tool).map(order).unwrap_or_default();
    format!(
        "`{tool}` changes files or runs programs. I am a rule-based demo model and do not make up such a call. To \
         make it, send exactly: {order}"
    )
}

/// The message that makes the demo model call a tool, with sample arguments.
fn order(def: &ToolDef) -> String {
    format!("call {} {}", def.name, example(&schema(def)))
}

/// Sample values for the required properties of a schema, for the user to edit.
fn example(schema: &Value) -> Value {
    let required =
        schema.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
    let property = |name: &str| schema.get("properties").and_then(|all| all.get(name));
    let sample = |name: &str| match property(name).and_then(|own| own.get("type")).and_then(Value::as_str) {
        Some("integer" | "number") => Value::from(1),
        Some("boolean") => Value::from(true),
        Some("array") => Value::Array(Vec::new()),
        Some("object") => Value::Object(serde_json::Map::new()),
        _ => Value::from("…"),
    };
    required.map(|name| (name.to_owned(), sample(name))).collect::<serde_json::Map<_, _>>().into()
}

fn first(description: &str) -> String {
    shortened(sentences(description).next().unwrap_or_default(), LINE)
}

fn spoken(name: &str) -> String {
    name.replace(['_', '-', '.'], " ")
}
