//! Values of the descriptor's context from the command line.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use harness::core::{Json, bracket_depth};
use harness::descriptor::{Map, Value};

use crate::args::ContextArg;
use crate::error::CliError;

/// Maximum size of a context file in bytes.
const LONGEST: u64 = 1 << 20;

/// Maximum nesting of a context file.
const MOST_LEVELS: usize = 1_000;

/// Merges all values; later ones win.
pub(crate) fn overrides(args: &[ContextArg]) -> Result<Map, CliError> {
    let mut all = Map::new();
    for arg in args {
        match arg {
            ContextArg::Value { path, value } => set(&mut all, path, parsed(value)),
            ContextArg::File(path) => overlay(&mut all, file(path)?),
        }
    }
    Ok(all)
}

/// Parses a value as JSON, or takes it as text.
fn parsed(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|_| Value::from(text))
}

fn set(map: &mut Map, path: &str, value: Value) {
    match path.split_once('.') {
        None => map.insert(path, value),
        Some((first, rest)) => {
            if !matches!(map.get(first), Some(Value::Map(_))) {
                map.insert(first, Value::Map(Map::new()));
            }
            if let Some(Value::Map(inner)) = map.get_mut(first) {
                set(inner, rest, value);
            }
        }
    }
}

/// Merges two values: mappings are merged, everything else is replaced.
pub(crate) fn overlay(base: &mut Map, over: Map) {
    for (key, new) in over.iter() {
        match (base.get_mut(key), new) {
            (Some(Value::Map(base)), Value::Map(new)) => overlay(base, new.clone()),
            _ => base.insert(key, new.clone()),
        }
    }
}

fn file(path: &Path) -> Result<Map, CliError> {
    let unreadable = |fault| format!("expected PATH=VALUE or a readable file: {fault}");
    mapping(path, unreadable)
        .map_err(|problem| CliError::Context { origin: format!("`{}`", path.display()), problem })
}

/// The JSON Schema in the file of `--output-schema`.
pub(crate) fn output_schema(path: &Path) -> Result<Json, CliError> {
    let schema = mapping(path, |fault| fault.to_string());
    let schema = schema.and_then(|schema| Json::of(&Value::Map(schema)).map_err(|error| error.to_string()));
    schema.map_err(|problem| CliError::OutputSchema { file: path.to_owned(), problem })
}

/// The mapping in a YAML or JSON file.
fn mapping(path: &Path, unreadable: impl FnOnce(std::io::Error) -> String) -> Result<Map, String> {
    let mut text = String::new();
    let read = File::open(path).and_then(|file| file.take(LONGEST + 1).read_to_string(&mut text));
    read.map_err(unreadable)?;
    if text.len() as u64 > LONGEST {
        return Err(format!("larger than {LONGEST} bytes"));
    }
    // The parser's time grows with the square of the depth.
    if bracket_depth(&text) > MOST_LEVELS {
        return Err(format!("nested deeper than {MOST_LEVELS} levels"));
    }
    match serde_yaml::from_str(&text) {
        Ok(Value::Map(map)) => Ok(map),
        Ok(_) => Err("not a mapping".to_owned()),
        Err(fault) => Err(format!("neither YAML nor JSON: {fault}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(args: &[&str], expected: &str) {
        let args: Vec<ContextArg> = args
            .iter()
            .map(|arg| arg.parse().unwrap_or_else(|never: std::convert::Infallible| match never {}))
            .collect();
        let value = Value::Map(overrides(&args).unwrap());
        assert_eq!(serde_json::to_string(&value).unwrap(), expected);
    }

    #[test]
    fn values_are_json_or_text() {
        check(
            &["a.b=true", "a.c=x y", "d=1.5", "e=null", "f=[1]"],
            r#"{"a":{"b":true,"c":"x y"},"d":1.5,"e":null,"f":[1]}"#,
        );
    }

    #[test]
    fn later_values_win() {
        check(&["a.b=1", "a=2", "a.c=3"], r#"{"a":{"c":3}}"#);
    }
}
