//! Arguments for a tool, out of what was said and what earlier tools returned.

use serde_json::{Map, Value};

use super::words::{subject, words};

/// How deep an argument may be an object of arguments.
const DEEPEST: usize = 3;

/// Sources of argument values.
#[derive(Debug, Default)]
pub(super) struct Facts<'a> {
    /// The question of the user.
    pub(super) asked: &'a str,
    /// Keys and values that earlier tools returned, the newest first.
    pub(super) found: Vec<(String, Value)>,
}

/// The arguments that the schema asks for, or the name of the first that nothing in the facts gives.
pub(super) fn arguments(schema: &Value, tool: &str, facts: &Facts<'_>) -> Result<Map<String, Value>, String> {
    object(schema, tool, facts, 0)
}

fn object(schema: &Value, tool: &str, facts: &Facts<'_>, depth: usize) -> Result<Map<String, Value>, String> {
    let required: Vec<&str> = schema
        .get("required")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    let mut filled = Map::new();
    for (name, property) in schema.get("properties").and_then(Value::as_object).into_iter().flatten() {
        let is_required = required.contains(&name.as_str());
        match value(name, property, tool, facts, is_required, depth) {
            Some(value) => drop(filled.insert(name.clone(), value)),
            None if is_required => return Err(name.clone()),
            None => {}
        }
    }
    Ok(filled)
}

fn value(
    name: &str,
    schema: &Value,
    tool: &str,
    facts: &Facts<'_>,
    required: bool,
    depth: usize,
) -> Option<Value> {
    if let Some(constant) = schema.get("const") {
        return Some(constant.clone());
    }
    if let Some(choices) = schema.get("enum").and_then(Value::as_array) {
        let said = subject(facts.asked);
        let named =
            |choice: &&Value| choice.as_str().is_some_and(|choice| !subject(choice).is_disjoint(&said));
        // What nobody has named belongs to the user, where that is a choice.
        let own = choices.iter().find(|choice| *choice == "user").or(choices.first());
        let usual = || schema.get("default").or(own).cloned().filter(|_| required);
        return choices.iter().find(named).cloned().or_else(usual);
    }
    let taken = match kind(schema) {
        "integer" | "number" => number(name, schema, facts),
        "boolean" => required.then_some(Value::Bool(true)),
        "array" => required.then(|| list(schema, facts)).flatten(),
        "object" if required && depth < DEEPEST => {
            object(schema, tool, facts, depth + 1).ok().map(Value::Object)
        }
        "object" => None,
        _ => text(name, schema, tool, facts, required).map(Value::String),
    };
    taken.or_else(|| schema.get("default").cloned().filter(|_| required))
}

/// The type of a value; a list of types stands for its first that is not null.
fn kind(schema: &Value) -> &str {
    match schema.get("type") {
        Some(Value::String(kind)) => kind,
        Some(Value::Array(kinds)) => {
            kinds.iter().filter_map(Value::as_str).find(|kind| *kind != "null").unwrap_or("")
        }
        _ => "",
    }
}

/// A value of an earlier result whose key means the same: `total_cents` for `amount_cents`.
fn found<'f>(name: &str, facts: &'f Facts<'_>) -> Option<&'f Value> {
    let last = |key: &str| words(&key.replace('_', " ")).pop();
    let exact = facts.found.iter().find(|(key, _)| key == name);
    let similar =
        || facts.found.iter().find(|(key, _)| last(name).is_some_and(|word| last(key) == Some(word)));
    exact.or_else(similar).map(|(_, value)| value)
}

fn number(name: &str, schema: &Value, facts: &Facts<'_>) -> Option<Value> {
    let fits = |number: &Value| {
        let bound = |key: &str| schema.get(key).and_then(Value::as_f64);
        let Some(value) = number.as_f64() else { return false };
        bound("minimum").is_none_or(|least| value >= least)
            && bound("maximum").is_none_or(|most| value <= most)
            && (kind(schema) != "integer" || number.is_i64() || number.is_u64())
    };
    if let Some(found) = found(name, facts).filter(|found| fits(found)) {
        return Some(found.clone());
    }
    let said = facts.asked.split(|c: char| !(c.is_ascii_digit() || c == '.' || c == '-'));
    let numbers =
        said.map(|word| word.trim_matches(['.', '-'])).filter_map(|word| serde_json::from_str(word).ok());
    numbers.into_iter().find(|number: &Value| number.is_number() && fits(number))
}

fn list(schema: &Value, facts: &Facts<'_>) -> Option<Value> {
    let items = schema.get("items").unwrap_or(&Value::Null);
    let parts: Vec<Value> = match kind(items) {
        "integer" | "number" => {
            let words = facts.asked.split(|c: char| !(c.is_ascii_digit() || c == '.'));
            words.filter_map(|word| serde_json::from_str(word.trim_matches('.')).ok()).collect()
        }
        "string" | "" => {
            let quoted: Vec<Value> = quoted(facts.asked).map(Value::from).collect();
            if quoted.is_empty() { vec![Value::from(facts.asked)] } else { quoted }
        }
        _ => return None,
    };
    (!parts.is_empty()).then_some(Value::Array(parts))
}

/// Texts between quotation marks.
pub(super) fn quoted(text: &str) -> impl Iterator<Item = &str> {
    let parts = ['"', '`', '“'].into_iter().filter_map(move |mark| {
        let close = if mark == '“' { '”' } else { mark };
        text.split_once(mark).and_then(|(_, rest)| rest.split_once(close)).map(|(inside, _)| inside)
    });
    parts.filter(|part| !part.is_empty())
}

/// The value of a text argument, chosen by the words of its name and format.
fn text(name: &str, schema: &Value, tool: &str, facts: &Facts<'_>, required: bool) -> Option<String> {
    let format = schema.get("format").and_then(Value::as_str).unwrap_or_default();
    let about = format!("{} {format} ", name.to_lowercase().replace(['_', '-'], " "));
    let is = |words: &[&str]| words.iter().any(|word| about.split(' ').any(|part| part == *word));
    let spoken =
        || facts.asked.split_whitespace().map(|word| word.trim_matches(|c: char| ",;:!?()\"'`".contains(c)));
    let spoken = || spoken().map(|word| word.trim_end_matches('.')).filter(|word| !word.is_empty());
    if is(&["email", "mail"]) {
        return spoken().find(|word| word.contains('@')).map(str::to_owned);
    }
    if is(&["url", "uri", "link", "address"]) {
        return spoken().find(|word| word.contains("://")).map(str::to_owned);
    }
    if is(&["path", "file", "folder", "directory", "dir"]) {
        let path = |word: &&str| {
            word.contains('/') || word.rsplit_once('.').is_some_and(|(stem, _)| !stem.is_empty())
        };
        let here = || (required && is(&["folder", "directory", "dir"])).then(|| ".".to_owned());
        return quoted(facts.asked).next().or_else(|| spoken().find(path)).map(str::to_owned).or_else(here);
    }
    if is(&["id", "number", "code", "order", "reference", "key", "date", "day"]) {
        let coded = |word: &&str| word.chars().any(|c| c.is_ascii_digit());
        let found = || found(name, facts).and_then(Value::as_str).map(str::to_owned);
        let day = || spoken().find(|word| is(&["date", "day"]) && is_day(word)).map(str::to_owned);
        return spoken().find(coded).map(str::to_owned).or_else(found).or_else(day);
    }
    if !required {
        return None;
    }
    if let Some(quoted) = quoted(facts.asked).next() {
        return Some(quoted.to_owned());
    }
    if is(&[
        "word", "term", "name", "city", "place", "product", "item", "country", "language", "topic", "title",
    ]) {
        return subject_of(tool, facts.asked);
    }
    (!facts.asked.trim().is_empty()).then(|| statement(tool, facts.asked))
}

/// Whether a word names a day.
fn is_day(word: &str) -> bool {
    const DAYS: &str =
        " monday tuesday wednesday thursday friday saturday sunday today tomorrow tonight yesterday weekend ";
    DAYS.contains(&format!(" {} ", word.to_lowercase()))
}

/// The word that a question is about: a name if there is one, else the first that is not the tool's own.
fn subject_of(tool: &str, asked: &str) -> Option<String> {
    let own = subject(&tool.replace('_', " "));
    let plain = asked.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    let content = |word: &&str| words(word).first().is_some_and(|base| !own.contains(base));
    let is_name = |word: &&str| word.chars().next().is_some_and(char::is_uppercase);
    let named = plain.clone().skip(1).filter(is_name).find(content);
    named.or_else(|| plain.clone().find(content)).map(str::to_owned)
}

/// The sentences that do not mention the tool: `Ada likes cod.` of `Ada likes cod. Remember it.` If all sentences
/// mention it, the whole question.
fn statement(tool: &str, asked: &str) -> String {
    let own = subject(&tool.replace('_', " "));
    let rest: Vec<&str> =
        super::words::sentences(asked).filter(|part| subject(part).is_disjoint(&own)).collect();
    if rest.is_empty() { asked.trim().to_owned() } else { rest.join(" ") }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(property: (&str, Value), asked: &str, expected: Result<Value, &str>) {
        let (name, schema) = property;
        let schema = json!({"properties": {name: schema}, "required": [name]});
        let found = vec![("total_cents".to_owned(), json!(4470)), ("order".to_owned(), json!("1040"))];
        let filled = arguments(&schema, "search_products", &Facts { asked, found });
        let filled = filled.map(|mut filled| filled.remove(name).unwrap());
        assert_eq!(filled, expected.map_err(str::to_owned));
    }

    #[test]
    fn numbers_and_ids_come_from_the_question_or_an_earlier_result() {
        let text = || json!({"type": "string"});
        check(("order_id", text()), "Where is order 1042?", Ok(json!("1042")));
        check(("order", text()), "Refund it.", Ok(json!("1040")));
        check(("amount_cents", json!({"type": "integer", "minimum": 1})), "Refund 1040.", Ok(json!(4470)));
        check(("count", json!({"type": "integer"})), "Give me 3 of them.", Ok(json!(3)));
        check(("count", json!({"type": "integer", "maximum": 2})), "Give me 3 of them.", Err("count"));
        check(("parcel_id", text()), "Where is my parcel?", Err("parcel_id"));
    }

    #[test]
    fn texts_are_found_by_what_they_are_for() {
        let text = || json!({"type": "string"});
        check(("email", text()), "Write to ada@example.com.", Ok(json!("ada@example.com")));
        check(("url", text()), "Fetch https://example.com/a now", Ok(json!("https://example.com/a")));
        check(("path", text()), "What is in notes/flour.md?", Ok(json!("notes/flour.md")));
        check(("word", text()), "What does the tent cost?", Ok(json!("tent")));
        check(("city", text()), "How cold is Oslo?", Ok(json!("Oslo")));
        check(("day", text()), "What are the opening hours on Sunday?", Ok(json!("Sunday")));
        check(("date", text()), "Is it open tomorrow?", Ok(json!("tomorrow")));
        check(("query", text()), "Search \"warm socks\"", Ok(json!("warm socks")));
        check(("text", text()), "Ada likes cod. Search it.", Ok(json!("Ada likes cod.")));
    }

    #[test]
    fn schemas_with_one_choice_need_nothing_said() {
        check(("kind", json!({"const": "x"})), "", Ok(json!("x")));
        check(("unit", json!({"enum": ["celsius", "kelvin"]})), "in kelvin please", Ok(json!("kelvin")));
        check(
            ("unit", json!({"enum": ["celsius", "kelvin"], "default": "celsius"})),
            "",
            Ok(json!("celsius")),
        );
        check(("unit", json!({"enum": ["celsius", "kelvin"]})), "how cold?", Ok(json!("celsius")));
        check(("ids", json!({"type": "array", "items": {"type": "integer"}})), "1 and 2", Ok(json!([1, 2])));
    }
}
