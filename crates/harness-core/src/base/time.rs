//! Points in time and durations, in milliseconds.

use std::fmt;
use std::str::FromStr;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// Point in time: milliseconds since 1970-01-01T00:00:00Z.
///
/// Machines never read a clock; each input carries its time.
///
/// ```
/// use harness_core::{Millis, SpanError, Time};
///
/// let start = Time::parse_iso("2026-01-01T00:00:00Z").unwrap();
/// let later = start.after(Millis(1_500));
/// assert_eq!((later.iso().as_str(), later.since(start)), ("2026-01-01T00:00:01.500Z", Millis(1_500)));
/// assert_eq!("30s".parse(), Ok(Millis(30_000)));
/// assert_eq!("soon".parse::<Millis>(), Err(SpanError));
/// ```
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    Hash,
    PartialOrd,
    Ord,
    Serialize,
    Deserialize,
    schemars::JsonSchema,
)]
#[serde(transparent)]
pub struct Time(pub i64);

/// Duration in milliseconds.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    Hash,
    PartialOrd,
    Ord,
    Serialize,
    Deserialize,
    schemars::JsonSchema,
)]
#[serde(transparent)]
pub struct Millis(pub u64);

impl Time {
    /// Adds a duration, saturating.
    #[must_use]
    pub fn after(self, span: Millis) -> Self {
        Self(self.0.saturating_add_unsigned(span.0))
    }

    /// Duration since `earlier`; zero when `earlier` is later.
    #[must_use]
    pub fn since(self, earlier: Self) -> Millis {
        Millis(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0))
    }

    /// Formats the time in UTC with three fraction digits: `2026-01-01T00:00:00.000Z`.
    pub fn iso(self) -> String {
        self.to_string()
    }

    /// Parses an ISO 8601 date (midnight UTC), or a timestamp with `Z` or an offset such as `+02:00`. Digits below
    /// milliseconds are dropped. `None` if the text is neither.
    pub fn parse_iso(text: &str) -> Option<Self> {
        let is_date = text.len() == "2026-01-01".len();
        let parsed = if is_date { format!("{text}T00:00:00Z").parse() } else { text.parse::<Timestamp>() };
        parsed.ok().map(|timestamp| Self(timestamp.as_millisecond()))
    }
}

impl fmt::Display for Time {
    /// Times outside of the years -9999 to 9999 are printed as the nearest one inside.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nearest = if self.0 < 0 { Timestamp::MIN } else { Timestamp::MAX };
        write!(f, "{:.3}", Timestamp::from_millisecond(self.0).unwrap_or(nearest))
    }
}

/// Times as ISO 8601 texts, for `#[serde(with = "iso")]`.
#[doc(hidden)]
pub mod iso {
    use serde::de::Error as _;
    use serde::{Deserialize as _, Deserializer, Serializer};

    use super::Time;

    pub fn serialize<S: Serializer>(time: &Time, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(time)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Time, D::Error> {
        let text = String::deserialize(deserializer)?;
        Time::parse_iso(&text)
            .ok_or_else(|| D::Error::custom(format_args!("invalid ISO 8601 timestamp `{text}`")))
    }

    /// Optional times.
    pub mod option {
        use serde::{Deserialize, Deserializer, Serialize, Serializer};

        use super::Time;

        #[derive(Serialize, Deserialize)]
        struct Text(#[serde(with = "super")] Time);

        pub fn serialize<S: Serializer>(time: &Option<Time>, serializer: S) -> Result<S::Ok, S::Error> {
            time.map(Text).serialize(serializer)
        }

        pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Time>, D::Error> {
            Ok(Option::<Text>::deserialize(deserializer)?.map(|Text(time)| time))
        }
    }
}

impl Millis {
    /// Converts to the standard library's type.
    pub fn duration(self) -> std::time::Duration {
        std::time::Duration::from_millis(self.0)
    }
}

/// Invalid text of a duration.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected a number and a unit, for example 500ms, 90s, 5m or 1h")]
pub struct SpanError;

impl FromStr for Millis {
    type Err = SpanError;

    /// Parses a decimal number with a unit: `250ms`, `90s`, `5m` (or `5min`), `1.5h`. Fractions of a millisecond are
    /// dropped.
    fn from_str(text: &str) -> Result<Self, SpanError> {
        let at = text.find(|c: char| !c.is_ascii_digit() && c != '.').ok_or(SpanError)?;
        let (number, unit) = text.split_at(at);
        let factor = match unit {
            "ms" => 1,
            "s" => 1_000,
            "m" | "min" => 60_000,
            "h" => 3_600_000,
            _ => return Err(SpanError),
        };
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        let digits: u64 = format!("{whole}{fraction}").parse().map_err(|_| SpanError)?;
        let scale = u32::try_from(fraction.len()).ok().and_then(|places| 10_u64.checked_pow(places));
        let ms = scale.and_then(|scale| digits.checked_mul(factor)?.checked_div(scale));
        ms.map(Self).ok_or(SpanError)
    }
}

impl From<std::time::Duration> for Millis {
    fn from(span: std::time::Duration) -> Self {
        Self(u64::try_from(span.as_millis()).unwrap_or(u64::MAX))
    }
}

impl fmt::Display for Millis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            ms @ 0..1_000 => write!(f, "{ms} ms"),
            ms => write!(f, "{}.{} s", ms / 1_000, ms % 1_000 / 100),
        }
    }
}
