//! Values as placeholders show them.

use std::collections::BTreeMap;

use harness_core::Json;
use serde_json::Value;

/// Named values that outlive what they were taken from, sorted by name.
pub type KeyFields = BTreeMap<String, Json>;

/// `a=1, b=two`, sorted by name.
pub(in crate::compact) fn pairs(fields: &KeyFields) -> String {
    fields.iter().map(|(name, value)| format!("{name}={}", shown(value))).collect::<Vec<_>>().join(", ")
}

/// A value in Python's notation: text bare, `True`, `None`, lists and objects with single quotes.
fn shown(value: &Json) -> String {
    value.to::<String>().unwrap_or_else(|_| literal(value))
}

/// Keys keep their order.
fn literal(value: &Json) -> String {
    if let Ok(entries) = value.entries() {
        let entries = entries.iter().map(|(key, value)| format!("{}: {}", quoted(key), literal(value)));
        return format!("{{{}}}", entries.collect::<Vec<_>>().join(", "));
    }
    if let Ok(values) = value.to::<Vec<Json>>() {
        return format!("[{}]", values.iter().map(literal).collect::<Vec<_>>().join(", "));
    }
    match value.to::<Value>() {
        Ok(Value::Null) => "None".to_owned(),
        Ok(Value::Bool(true)) => "True".to_owned(),
        Ok(Value::Bool(false)) => "False".to_owned(),
        Ok(Value::String(text)) => quoted(&text),
        Ok(other) => other.to_string(),
        Err(_) => value.text().to_owned(),
    }
}

fn quoted(text: &str) -> String {
    if text.contains('\'') && !text.contains('"') {
        return format!("\"{text}\"");
    }
    format!("'{}'", text.replace('\\', "\\\\").replace('\'', "\\'"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(value: Value, expected: &str) {
        assert_eq!(shown(&Json::of(&value).unwrap()), expected);
    }

    #[test]
    fn values_are_written_in_the_notation_of_python() {
        check(json!("o-9"), "o-9");
        check(json!(12), "12");
        check(json!(true), "True");
        check(json!(null), "None");
        check(json!(["a", "it's", {"b": 1.5}]), r#"['a', "it's", {'b': 1.5}]"#);
        assert_eq!(
            shown(&Json::parse(r#"{"b":{"z":1,"y":2},"a":[]}"#).unwrap()),
            "{'b': {'z': 1, 'y': 2}, 'a': []}"
        );
    }

    #[test]
    fn fields_are_sorted_by_name() {
        let fields = [("z", Json::parse("1").unwrap()), ("a", Json::string("x"))];
        let fields = fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        assert_eq!(pairs(&fields), "a=x, z=1");
    }
}
