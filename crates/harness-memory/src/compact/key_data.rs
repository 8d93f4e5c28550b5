//! Values as the sources write them into placeholders.

use std::collections::BTreeMap;

use harness_core::Json;
use serde_json::Value;

/// Named values that outlive what they were taken from, sorted by name.
pub type KeyFields = BTreeMap<String, Json>;

/// `a=1, b=two`, sorted by name.
pub(super) fn pairs(fields: &KeyFields) -> String {
    fields.iter().map(|(name, value)| format!("{name}={}", shown(value))).collect::<Vec<_>>().join(", ")
}

/// A value in source 003's notation, which is that of its language: text bare, `True`, `None`, lists and
/// objects with single quotes.
fn shown(value: &Json) -> String {
    match value.to::<Value>() {
        Ok(Value::String(text)) => text,
        Ok(nested) => literal(&nested),
        Err(_) => value.text().to_owned(),
    }
}

fn literal(value: &Value) -> String {
    match value {
        Value::Null => "None".to_owned(),
        Value::Bool(true) => "True".to_owned(),
        Value::Bool(false) => "False".to_owned(),
        Value::Number(number) => number.to_string(),
        Value::String(text) if text.contains('\'') && !text.contains('"') => format!("\"{text}\""),
        Value::String(text) => format!("'{}'", text.replace('\\', "\\\\").replace('\'', "\\'")),
        Value::Array(values) => {
            format!("[{}]", values.iter().map(literal).collect::<Vec<_>>().join(", "))
        }
        Value::Object(entries) => {
            let entries = entries
                .iter()
                .map(|(key, value)| format!("{}: {}", literal(&Value::String(key.clone())), literal(value)));
            format!("{{{}}}", entries.collect::<Vec<_>>().join(", "))
        }
    }
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
    fn values_are_written_as_the_source_writes_them() {
        check(json!("o-9"), "o-9");
        check(json!(12), "12");
        check(json!(true), "True");
        check(json!(null), "None");
        check(json!(["a", "it's", {"b": 1.5}]), r#"['a', "it's", {'b': 1.5}]"#);
    }

    #[test]
    fn fields_are_sorted_by_name() {
        let fields = [("z", Json::parse("1").unwrap()), ("a", Json::string("x"))];
        let fields = fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        assert_eq!(pairs(&fields), "a=x, z=1");
    }
}
