//! Values of arguments that are more than text.

use std::convert::Infallible;
use std::path::PathBuf;
use std::str::FromStr;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use harness::core::{Millis, SpanError};
use harness::descriptor::CompactionPreset;

/// The ways in which a view is made shorter, by name.
pub(crate) fn presets() -> impl TypedValueParser<Value = CompactionPreset> {
    let values = CompactionPreset::names().map(|(name, about)| PossibleValue::new(name).help(about));
    PossibleValuesParser::new(values).try_map(|name| name.parse::<CompactionPreset>())
}

/// The message argument.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum MessageArg {
    /// `-`: read it from standard input.
    Stdin,
    /// The text itself.
    Text(String),
}

impl FromStr for MessageArg {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        Ok(Self::of(text))
    }
}

impl MessageArg {
    /// Reads the argument.
    pub(crate) fn of(text: &str) -> Self {
        if text == "-" { Self::Stdin } else { Self::Text(text.to_owned()) }
    }
}

/// A `--context` argument.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ContextArg {
    /// `PATH=VALUE`; the value is parsed as JSON, or taken as text.
    Value { path: String, value: String },
    /// Path of a file with context values.
    File(PathBuf),
}

impl FromStr for ContextArg {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        Ok(match text.split_once('=') {
            Some((path, value)) if is_context_path(path) => {
                Self::Value { path: path.to_owned(), value: value.to_owned() }
            }
            _ => Self::File(PathBuf::from(text)),
        })
    }
}

fn is_context_path(text: &str) -> bool {
    let legal = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    text.split('.').all(|segment| !segment.is_empty() && segment.chars().all(legal))
}

/// Parses a duration with its unit: `250ms`, `90s`, `5m`, `1.5h`.
pub(crate) fn time(text: &str) -> Result<Millis, String> {
    match text.parse().map_err(|error: SpanError| error.to_string())? {
        Millis(0) => Err("expected a duration above zero".to_owned()),
        limit => Ok(limit),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: Option<u64>) {
        assert_eq!(time(text).ok(), expected.map(Millis), "{text}");
    }

    #[test]
    fn limits_of_time_are_more_than_nothing() {
        check("90s", Some(90_000));
        check("1.5h", Some(5_400_000));
        check("0.0005s", None);
        check("0s", None);
        check("10", None);
    }

    #[test]
    fn a_context_argument_is_a_value_or_a_file() {
        let value = |path: &str, value: &str| ContextArg::Value { path: path.into(), value: value.into() };
        let of = |text: &str| text.parse::<ContextArg>().unwrap_or_else(|never| match never {});
        assert_eq!(of("a.b=1=2"), value("a.b", "1=2"));
        assert_eq!(of("a="), value("a", ""));
        assert_eq!(of("context.yaml"), ContextArg::File("context.yaml".into()));
        assert_eq!(of("./a=b/c.json"), ContextArg::File("./a=b/c.json".into()));
    }
}
