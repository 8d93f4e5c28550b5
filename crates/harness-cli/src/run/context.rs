//! Values of the descriptor's context from the command line.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use harness::core::Json;
use harness::descriptor::{Map, Value};
use harness::diagnostics::{self, YamlLimits};

use crate::args::ContextArg;
use crate::error::CliError;

/// Maximum size of a context file in bytes.
const LONGEST: u64 = 1 << 20;

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
    let wrong = |problem: String| CliError::Context { origin: format!("`{}`", path.display()), problem };
    mapping(path, |problem| wrong(format!("expected PATH=VALUE or a readable file: {problem}")))?
        .ok_or_else(|| wrong("not a mapping".to_owned()))
}

/// The JSON Schema in the file of `--output-schema`.
pub(crate) fn output_schema(path: &Path) -> Result<Json, CliError> {
    let wrong = |problem: String| CliError::OutputSchema { file: path.to_owned(), problem };
    let schema = mapping(path, wrong)?.ok_or_else(|| wrong("not a mapping".to_owned()))?;
    Json::of(&Value::Map(schema)).map_err(|error| wrong(error.to_string()))
}

/// The mapping in a YAML or JSON file; `None` if the file contains another value.
fn mapping(path: &Path, unreadable: impl Fn(String) -> CliError) -> Result<Option<Map>, CliError> {
    let mut text = String::new();
    let read = File::open(path).and_then(|file| file.take(LONGEST + 1).read_to_string(&mut text));
    read.map_err(|error| unreadable(error.to_string()))?;
    if text.len() as u64 > LONGEST {
        return Err(unreadable(format!("larger than {LONGEST} bytes")));
    }
    let limits = YamlLimits::for_text(LONGEST);
    let document = diagnostics::read(text, path.display().to_string(), &limits, None)
        .map_err(|error| CliError::Invalid(Box::new(error.into())))?;
    let value = document.root().map(|root| Value::json_of(&document, root));
    Ok(if let Some(Value::Map(map)) = value { Some(map) } else { None })
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
