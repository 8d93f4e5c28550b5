//! Points in time and spans of time, in milliseconds.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A point in time: milliseconds since 1970-01-01T00:00:00Z.
///
/// Machines never read a clock; each input carries the time at which it arrived.
///
/// ```
/// use harness_core::{Millis, Time};
///
/// let start = Time::parse_iso("2026-01-01T00:00:00Z").unwrap();
/// let later = start.after(Millis(1_500));
/// assert_eq!((later.iso().as_str(), later.since(start)), ("2026-01-01T00:00:01.500Z", Millis(1_500)));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Time(pub i64);

/// A span of time in milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Millis(pub u64);

impl Time {
    /// This time plus `span`, at most the last representable time.
    #[must_use]
    pub fn after(self, span: Millis) -> Self {
        Self(self.0.saturating_add_unsigned(span.0))
    }

    /// The span from `earlier` to this time; zero when `earlier` is later.
    #[must_use]
    pub fn since(self, earlier: Self) -> Millis {
        Millis(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0))
    }

    /// The UTC form with three fraction digits, `2026-01-01T00:00:00.000Z`.
    pub fn iso(self) -> String {
        self.to_string()
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (days, ms) = (self.0.div_euclid(86_400_000), self.0.rem_euclid(86_400_000));
        let (year, month, day) = civil(days);
        let (h, m, s, ms) = (ms / 3_600_000, ms / 60_000 % 60, ms / 1_000 % 60, ms % 1_000);
        write!(f, "{year:04}-{month:02}-{day:02}T{h:02}:{m:02}:{s:02}.{ms:03}Z")
    }
}

impl Time {
    /// The time of an ISO 8601 text: `2026-01-01`, or `2026-01-01T00:00:00Z` with up to nine fraction
    /// digits (further than milliseconds they are cut off) and `Z` or an offset such as `+02:00`.
    pub fn parse_iso(text: &str) -> Option<Self> {
        let (date, rest) = text.split_at_checked(10)?;
        let mut parts = date.splitn(3, '-');
        let year = digits(parts.next()?, 4)?;
        let (month, day) = (digits(parts.next()?, 2)?, digits(parts.next()?, 2)?);
        let days = days_of(year, month, day)?;
        let ms = if rest.is_empty() { 0 } else { time_of_day(rest.strip_prefix('T')?)? };
        days.checked_mul(86_400_000)?.checked_add(ms).map(Self)
    }
}

fn digits(text: &str, count: usize) -> Option<i64> {
    let fits = text.len() == count && text.bytes().all(|byte| byte.is_ascii_digit());
    if fits { text.parse().ok() } else { None }
}

/// Milliseconds since midnight UTC.
fn time_of_day(text: &str) -> Option<i64> {
    let (clock, offset) = if let Some(clock) = text.strip_suffix('Z') {
        (clock, 0)
    } else {
        let (clock, offset) = text.split_at_checked(text.rfind(['+', '-'])?)?;
        let (hours, minutes) = offset.get(1..)?.split_once(':')?;
        let minutes = digits(hours, 2)? * 60 + digits(minutes, 2)?;
        (clock, if offset.starts_with('-') { -minutes } else { minutes })
    };
    let (clock, fraction) = clock.split_once('.').unwrap_or((clock, "0"));
    let mut parts = clock.splitn(3, ':').map(|part| digits(part, 2));
    let (hours, minutes, seconds) = (parts.next()??, parts.next()??, parts.next()??);
    let is_fraction = (1..=9).contains(&fraction.len()) && fraction.bytes().all(|byte| byte.is_ascii_digit());
    if hours > 23 || minutes > 59 || seconds > 59 || !is_fraction {
        return None;
    }
    let ms: i64 = format!("{fraction:0<3}").get(..3)?.parse().ok()?;
    Some(((hours * 60 + minutes - offset) * 60 + seconds) * 1_000 + ms)
}

/// The number of a day counted from 1970-01-01 (proleptic Gregorian calendar); `None` when there is no such
/// day.
fn days_of(year: i64, month: i64, day: i64) -> Option<i64> {
    let shifted = year - i64::from(month <= 2);
    let era = shifted.div_euclid(400);
    let yoe = shifted.rem_euclid(400);
    let doy = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let days = era * 146_097 + yoe * 365 + yoe / 4 - yoe / 100 + doy - 719_468;
    (civil(days) == (year, month, day)).then_some(days)
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
            .ok_or_else(|| D::Error::custom(format_args!("`{text}` is no ISO 8601 timestamp")))
    }

    /// The same for times that may be missing.
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

/// Year, month and day of a day number counted from 1970-01-01 (proleptic Gregorian calendar).
fn civil(days: i64) -> (i64, i64, i64) {
    let z = days + 719_468;
    let era = z.div_euclid(146_097);
    let doe = z.rem_euclid(146_097);
    let yoe = (doe - doe / 1_460 + doe / 36_524 - doe / 146_096) / 365;
    let doy = doe - (365 * yoe + yoe / 4 - yoe / 100);
    let mp = (5 * doy + 2) / 153;
    let day = doy - (153 * mp + 2) / 5 + 1;
    let month = if mp < 10 { mp + 3 } else { mp - 9 };
    (yoe + era * 400 + i64::from(month <= 2), month, day)
}

impl Millis {
    /// The span as the standard library's type.
    pub fn duration(self) -> std::time::Duration {
        std::time::Duration::from_millis(self.0)
    }
}

/// Why a text is no span of time.
///
/// ```
/// use harness_core::{Millis, SpanError};
///
/// assert_eq!("30s".parse(), Ok(Millis(30_000)));
/// assert_eq!("soon".parse::<Millis>(), Err(SpanError));
/// ```
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected a number and a unit, for example 500ms, 90s, 5m or 1h")]
pub struct SpanError;

impl FromStr for Millis {
    type Err = SpanError;

    /// Reads a decimal number with its unit, as people write settings: `250ms`, `90s`, `5m` (or `5min`),
    /// `1.5h`. Fractions of a millisecond are cut off.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_print_as_utc() {
        assert_eq!(Time(1_767_225_600_003).iso(), "2026-01-01T00:00:00.003Z");
        assert_eq!(Time(951_782_400_000).iso(), "2000-02-29T00:00:00.000Z");
        assert_eq!(Time(-1).iso(), "1969-12-31T23:59:59.999Z");
    }

    #[track_caller]
    fn check_span(text: &str, expected: Option<u64>) {
        assert_eq!(text.parse().ok(), expected.map(Millis), "{text}");
    }

    #[test]
    fn spans_have_a_number_and_a_unit() {
        check_span("250ms", Some(250));
        check_span("90s", Some(90_000));
        check_span("5m", Some(300_000));
        check_span("1.5h", Some(5_400_000));
        check_span("0.0005s", Some(0));
        check_span("0s", Some(0));
        check_span("10", None);
        check_span("s", None);
        check_span("1.2.3s", None);
        check_span("99999999999999999999h", None);
        check_span("9999999999999999999h", None);
    }

    #[track_caller]
    fn check(text: &str, expected: Option<i64>) {
        assert_eq!(Time::parse_iso(text), expected.map(Time), "{text}");
    }

    #[test]
    fn times_are_read_from_iso_texts() {
        for time in [1_767_225_600_003, 951_782_400_000, -1, 0, 253_402_300_799_999] {
            check(&Time(time).iso(), Some(time));
        }
        check("2026-01-01", Some(1_767_225_600_000));
        check("2026-01-01T02:00:00+02:00", Some(1_767_225_600_000));
        check("2025-12-31T19:30:00.5-04:30", Some(1_767_225_600_500));
        check("2026-01-01T00:00:00.123456789Z", Some(1_767_225_600_123));
        for wrong in [
            "",
            "soon",
            "2026-02-30",
            "2026-13-01",
            "2026-01-01T24:00:00Z",
            "2026-01-01T00:00Z",
            "2026-01-01T00:00:00",
            "2026-01-01 00:00:00Z",
            "2026-01-01T00:00:00.Z",
            "+026-01-01",
            "2026-01-01é",
        ] {
            check(wrong, None);
        }
    }
}
