//! Values of arguments that are more than text.

use std::convert::Infallible;
use std::path::PathBuf;
use std::str::FromStr;

use harness::core::Millis;

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
        Ok(if text == "-" { Self::Stdin } else { Self::Text(text.to_owned()) })
    }
}

/// A `--context` argument.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ContextArg {
    /// `PATH=VALUE`; a value that is JSON is taken as such, any other as text.
    Value { path: String, value: String },
    /// A file.
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

/// A span of time with its unit: `250ms`, `90s`, `5m`, `1.5h`.
pub(crate) fn time(text: &str) -> Result<Millis, String> {
    let expected = || "expected a number and a unit, for example 500ms, 90s, 5m or 1h".to_owned();
    let at = text.find(|c: char| !c.is_ascii_digit() && c != '.').ok_or_else(expected)?;
    let (number, unit) = text.split_at(at);
    let factor = match unit {
        "ms" => 1,
        "s" => 1_000,
        "m" | "min" => 60_000,
        "h" => 3_600_000,
        _ => return Err(expected()),
    };
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let digits: u64 = format!("{whole}{fraction}").parse().map_err(|_| expected())?;
    let scale = u32::try_from(fraction.len()).ok().and_then(|places| 10_u64.checked_pow(places));
    let ms = scale.and_then(|scale| digits.checked_mul(factor)?.checked_div(scale)).ok_or_else(expected)?;
    if ms == 0 {
        Err("a limit of no time would stop before anything began".to_owned())
    } else {
        Ok(Millis(ms))
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
    fn times_have_a_number_and_a_unit() {
        check("250ms", Some(250));
        check("90s", Some(90_000));
        check("5m", Some(300_000));
        check("1.5h", Some(5_400_000));
        check("0.0005s", None);
        check("0s", None);
        check("10", None);
        check("s", None);
        check("1.2.3s", None);
        check("99999999999999999999h", None);
        check("9999999999999999999h", None);
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
