//! Settings in this protocol's words, whichever of the two vocabularies they were written in.

use harness_core::Json;
use harness_core::port::ThinkingLevel;
use serde::Deserialize;

use super::builder::MAX_TOKENS;
use crate::http::settings::Settings;
use crate::http::setup::Thought;

/// Settings that are ready to be sent.
#[derive(Debug)]
pub(super) struct Translated {
    /// Fields of the body, unchanged.
    pub(super) fields: Settings,
    pub(super) max_tokens: Json,
    /// Which tool is to be called, where that was said.
    pub(super) tool_choice: Option<Json>,
}

#[derive(Debug, Default, Deserialize)]
struct Reasoning {
    #[serde(default)]
    max_tokens: Option<Json>,
    #[serde(default)]
    effort: Option<String>,
}

#[derive(Debug, Deserialize)]
struct Thinking {
    #[serde(default)]
    budget_tokens: u64,
}

#[derive(Debug, Deserialize)]
struct ResponseFormat {
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    json_schema: Option<JsonSchema>,
}

#[derive(Debug, Deserialize)]
struct JsonSchema {
    schema: Json,
}

#[derive(Debug, Deserialize)]
struct FunctionChoice {
    function: FunctionName,
}

#[derive(Debug, Deserialize)]
struct FunctionName {
    name: String,
}

/// Tokens that a level of thinking may take; the protocol wants 1,024 at least.
const BUDGETS: [(ThinkingLevel, u64); 5] = [
    (ThinkingLevel::Minimal, LEAST_BUDGET),
    (ThinkingLevel::Low, 2_048),
    (ThinkingLevel::Medium, 8_192),
    (ThinkingLevel::High, 16_384),
    (ThinkingLevel::XHigh, 32_768),
];

const LEAST_BUDGET: u64 = 1_024;

/// Writes a level of thinking as a budget, in place of what the settings say of it. A model's own word for a
/// level is a budget if it is a number. Where the settings bound the answer, the budget leaves 1,024 tokens of
/// that to the answer itself, and thinking is off when there is not so much.
pub(super) fn think(settings: &mut Settings, thought: &Thought<'_>) {
    settings.take("reasoning_effort");
    settings.take("reasoning");
    if let Some(config) = settings.take("output_config").and_then(|config| config.entries().ok()) {
        let entries: Vec<_> = config.into_iter().filter(|(key, _)| key != "effort").collect();
        if !entries.is_empty() {
            settings.set("output_config".to_owned(), Json::object(entries));
        }
    }
    let bound =
        ["max_completion_tokens", "max_tokens"].into_iter().find_map(|key| settings.get(key)?.to().ok());
    let room = bound.map_or(u64::MAX, |bound: u64| bound.saturating_sub(LEAST_BUDGET));
    let thinking = match budget(thought).map(|budget| budget.min(room)) {
        Some(budget) if budget >= LEAST_BUDGET => Json::object([
            ("type", Json::string("enabled")),
            ("budget_tokens", Json::of(&budget).unwrap_or_default()),
        ]),
        Some(_) | None => Json::object([("type", Json::string("disabled"))]),
    };
    settings.set("thinking".to_owned(), thinking);
}

fn budget(thought: &Thought<'_>) -> Option<u64> {
    let level = thought.levels.clamp(thought.level);
    let own = thought.levels.word(level).and_then(|word| word.parse().ok());
    own.or_else(|| BUDGETS.into_iter().find(|(known, _)| *known == level).map(|(_, budget)| budget))
}

/// Translates `settings`; `to_wire` gives the name under which a tool is sent.
pub(super) fn translated(mut settings: Settings, to_wire: impl Fn(&str) -> String) -> Translated {
    let completion = settings.take("max_completion_tokens");
    let max_tokens = settings.take("max_tokens").or(completion);
    if let Some(stop) = settings.take("stop") {
        let list = if stop.text().starts_with('[') { stop } else { list_of(&stop) };
        settings.set_missing("stop_sequences", list);
    }
    if let Some(user) = settings.take("user") {
        settings.set_missing("metadata", Json::object([("user_id", user)]));
    }
    let effort = reasoning(&mut settings);
    let schema = format(&mut settings);
    output_config(&mut settings, schema, effort);
    let budget = settings.get("thinking").and_then(|thinking| thinking.to::<Thinking>().ok());
    let budget = budget.map_or(0, |thinking| thinking.budget_tokens);
    let default = || Json::of(&MAX_TOKENS.saturating_add(budget)).unwrap_or_default();
    let tool_choice = tool_choice(&mut settings, to_wire);
    Translated { max_tokens: max_tokens.unwrap_or_else(default), tool_choice, fields: settings }
}

fn list_of(value: &Json) -> Json {
    Json::of(&[value]).unwrap_or_default()
}

/// Turns a budget into the protocol's own setting, and gives back the effort that was asked for.
fn reasoning(settings: &mut Settings) -> Option<String> {
    let alone = settings.take("reasoning_effort").and_then(|effort| effort.to::<String>().ok());
    let reasoning = settings.take("reasoning").and_then(|value| value.to::<Reasoning>().ok());
    let Reasoning { max_tokens, effort } = reasoning.unwrap_or_default();
    if let Some(budget) = max_tokens.filter(|budget| !budget.is_null()) {
        let thinking = Json::object([("type", Json::string("enabled")), ("budget_tokens", budget)]);
        settings.set_missing("thinking", thinking);
    }
    effort.or(alone)
}

/// The schema of a `response_format`. A format that the protocol does not have stays, so that the endpoint
/// refuses it rather than we forget it.
fn format(settings: &mut Settings) -> Option<Json> {
    let given = settings.take("response_format")?;
    let format = given.to::<ResponseFormat>().ok();
    match format.as_ref().map(|format| (format.kind.as_str(), &format.json_schema)) {
        Some(("text", _)) => None,
        Some(("json_schema", Some(schema))) => Some(schema.schema.clone()),
        _ => {
            settings.set("response_format".to_owned(), given);
            None
        }
    }
}

fn output_config(settings: &mut Settings, schema: Option<Json>, effort: Option<String>) {
    let effort = effort.filter(|effort| effort != "none");
    let effort = effort.map(|effort| if effort == "minimal" { "low".to_owned() } else { effort });
    if schema.is_none() && effort.is_none() {
        return;
    }
    let given = settings.take("output_config").and_then(|config| config.entries().ok());
    let mut entries = given.unwrap_or_default();
    let format =
        schema.map(|schema| Json::object([("type", Json::string("json_schema")), ("schema", schema)]));
    for (key, value) in [("format", format), ("effort", effort.map(|effort| Json::string(&effort)))] {
        if let (Some(value), false) = (value, entries.iter().any(|(known, _)| known == key)) {
            entries.push((key.to_owned(), value));
        }
    }
    settings.set("output_config".to_owned(), Json::object(entries));
}

/// The choice in the protocol's own form, with the word on parallel calls in it.
fn tool_choice(settings: &mut Settings, to_wire: impl Fn(&str) -> String) -> Option<Json> {
    let of_kind = |kind: &str| vec![("type".to_owned(), Json::string(kind))];
    let choice = settings.take("tool_choice").map(|given| {
        let word = given.to::<String>().ok();
        let function = given.to::<FunctionChoice>().ok();
        match (word.as_deref(), function) {
            (Some("required"), _) => of_kind("any"),
            (Some(word), _) => of_kind(word),
            (None, Some(choice)) => {
                let mut entries = of_kind("tool");
                entries.push(("name".to_owned(), Json::string(&to_wire(&choice.function.name))));
                entries
            }
            (None, None) => given.entries().unwrap_or_default(),
        }
    });
    let parallel = settings.take("parallel_tool_calls").and_then(|parallel| parallel.to::<bool>().ok());
    let mut entries = match (choice, parallel) {
        (None, None | Some(true)) => return None,
        (None, Some(false)) => of_kind("auto"),
        (Some(entries), _) => entries,
    };
    if parallel == Some(false) && !entries.iter().any(|(_, value)| value.text() == "\"none\"") {
        entries.push(("disable_parallel_tool_use".to_owned(), Json::of(&true).unwrap_or_default()));
    }
    Some(Json::object(entries))
}
