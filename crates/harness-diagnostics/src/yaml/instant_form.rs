//! The written forms of instants.

use crate::instant::{Fields, Instant};

/// Classification of a text that may be an instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum InstantForm {
    Instant(Instant),
    /// The form of an instant with a field outside the calendar.
    OutOfRange,
    Other,
}

/// Reads `YYYY-MM-DD` or the long form with a time and an optional zone.
pub(super) fn read(text: &str) -> InstantForm {
    let Some(fields) = date_only(text).or_else(|| date_and_time(text)) else { return InstantForm::Other };
    Instant::from_fields(fields).map_or(InstantForm::OutOfRange, InstantForm::Instant)
}

fn date_only(text: &str) -> Option<Fields> {
    let mut scan = Scan { rest: text.as_bytes() };
    let fields = Fields {
        year: scan.digits(4, 4)?,
        month: scan.after(b'-')?.digits(2, 2)?,
        day: scan.after(b'-')?.digits(2, 2)?,
        ..Fields::default()
    };
    scan.rest.is_empty().then_some(fields)
}

fn date_and_time(text: &str) -> Option<Fields> {
    let mut scan = Scan { rest: text.as_bytes() };
    let year = scan.digits(4, 4)?;
    let month = scan.after(b'-')?.digits(1, 2)?;
    let day = scan.after(b'-')?.digits(1, 2)?;
    if scan.after(b'T').is_none() && scan.after(b't').is_none() && scan.blanks() == 0 {
        return None;
    }
    let hour = scan.digits(1, 2)?;
    let minute = scan.after(b':')?.digits(2, 2)?;
    let second = scan.after(b':')?.digits(2, 2)?;
    let millis = if scan.after(b'.').is_some() { scan.fraction() } else { 0 };
    scan.blanks();
    let zone_minutes = scan.zone()?;
    let fields = Fields { year, month, day, hour, minute, second, millis, zone_minutes };
    scan.rest.is_empty().then_some(fields)
}

struct Scan<'a> {
    rest: &'a [u8],
}

impl Scan<'_> {
    fn after(&mut self, byte: u8) -> Option<&mut Self> {
        self.rest = self.rest.strip_prefix(&[byte])?;
        Some(self)
    }

    /// At least `least` and at most `most` decimal digits.
    fn digits(&mut self, least: usize, most: usize) -> Option<i64> {
        let count = self.rest.iter().take(most).take_while(|byte| byte.is_ascii_digit()).count();
        if count < least {
            return None;
        }
        let (digits, rest) = self.rest.split_at_checked(count)?;
        self.rest = rest;
        Some(digits.iter().fold(0, |value, digit| value * 10 + i64::from(digit - b'0')))
    }

    fn blanks(&mut self) -> usize {
        let trimmed = self.rest.trim_ascii_start();
        // Line ends cannot stand in a plain scalar, so ASCII blanks are spaces and tabs here.
        let count = self.rest.len() - trimmed.len();
        self.rest = trimmed;
        count
    }

    /// Any number of digits, cut to milliseconds.
    fn fraction(&mut self) -> i64 {
        let mut millis = 0;
        let mut weight = 100;
        while let [digit @ b'0'..=b'9', rest @ ..] = self.rest {
            millis += i64::from(digit - b'0') * weight;
            weight /= 10;
            self.rest = rest;
        }
        millis
    }

    /// The zone offset in minutes: nothing, `Z`, or a sign, hours and optional `:MM`.
    fn zone(&mut self) -> Option<i64> {
        let sign = match self.rest {
            [] => return Some(0),
            [b'Z'] => {
                self.rest = &[];
                return Some(0);
            }
            [b'+', ..] => 1,
            [b'-', ..] => -1,
            _ => return None,
        };
        self.rest = self.rest.get(1..)?;
        let hours = self.digits(1, 2)?;
        let minutes = if self.after(b':').is_some() { self.digits(2, 2)? } else { 0 };
        Some(sign * (hours * 60 + minutes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &str) {
        let found = match read(text) {
            InstantForm::Instant(instant) => instant.to_string(),
            InstantForm::OutOfRange => "out of range".to_owned(),
            InstantForm::Other => "text".to_owned(),
        };
        assert_eq!(found, expected, "{text}");
    }

    #[test]
    fn forms_of_instants() {
        check("2024-03-09", "2024-03-09T00:00:00.000Z");
        check("2024-3-9 1:02:03", "2024-03-09T01:02:03.000Z");
        check("2024-03-09t10:11:12.5-01:30", "2024-03-09T11:41:12.500Z");
        check("2024-03-09 \t10:11:12.1239 +2", "2024-03-09T08:11:12.123Z");
        check("2024-03-09T10:11:12.Z", "2024-03-09T10:11:12.000Z");
        check("9999-12-31T23:59:59-01", "+010000-01-01T00:59:59.000Z");
    }

    #[test]
    fn near_misses_stay_text() {
        for text in ["2024-3-9", "2024-03-09T10:11", "2024-03-09T10:11:12z", "2024-03-09T10:11:12+0530"] {
            check(text, "text");
        }
        check("24-03-09", "text");
        check("2024-03-091", "text");
    }

    #[test]
    fn fields_outside_the_calendar() {
        check("2023-02-30", "out of range");
        check("2023-01-01T24:00:00", "out of range");
        check("0050-01-01", "out of range");
    }
}
