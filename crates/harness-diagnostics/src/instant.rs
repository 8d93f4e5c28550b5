//! Instants: YAML timestamps as milliseconds since 1970-01-01T00:00:00Z.

use std::fmt;

/// A point in time read from an unquoted date or timestamp.
///
/// It hashes and prints as `YYYY-MM-DDTHH:MM:SS.mmmZ`; years above 9999 as `+010000-…`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Instant {
    millis: i64,
}

/// Calendar fields as written, before the zone offset is taken off.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Fields {
    pub(crate) year: i64,
    pub(crate) month: i64,
    pub(crate) day: i64,
    pub(crate) hour: i64,
    pub(crate) minute: i64,
    pub(crate) second: i64,
    pub(crate) millis: i64,
    pub(crate) zone_minutes: i64,
}

impl Instant {
    /// Instant of calendar `fields`, or `None` if a field is outside its calendar range.
    ///
    /// The reference implementation rolls such fields over and reads the years 0-99 as 1900-1999.
    /// This crate rejects them: a typing mistake must not become a different date.
    pub(crate) fn from_fields(fields: Fields) -> Option<Self> {
        let Fields { year, month, day, hour, minute, second, millis, zone_minutes } = fields;
        let in_range = year >= 100
            && (1..=12).contains(&month)
            && (1..=days_in_month(year, month)).contains(&day)
            && hour <= 23
            && minute <= 59
            && second <= 59;
        if !in_range {
            return None;
        }
        let minutes = (days_from_civil(year, month, day) * 24 + hour) * 60 + minute - zone_minutes;
        Some(Self { millis: (minutes * 60 + second) * 1000 + millis })
    }
}

impl fmt::Display for Instant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const DAY: i64 = 86_400_000;
        let (year, month, day) = civil_from_days(self.millis.div_euclid(DAY));
        let rest = self.millis.rem_euclid(DAY);
        if (0..=9999).contains(&year) {
            write!(f, "{year:04}")?;
        } else {
            let sign = if year < 0 { '-' } else { '+' };
            write!(f, "{sign}{:06}", year.abs())?;
        }
        let (hour, minute) = (rest / 3_600_000, rest / 60_000 % 60);
        let (second, millis) = (rest / 1000 % 60, rest % 1000);
        write!(f, "-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{millis:03}Z")
    }
}

fn days_in_month(year: i64, month: i64) -> i64 {
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    match month {
        2 if leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Days from 1970-01-01 to a date of the proleptic Gregorian calendar.
///
/// Years are counted from March, so that the leap day is the last day of its year.
fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - 719_468
}

fn civil_from_days(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let day_of_era = days.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    (year, month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(year: i64, month: i64, day: i64, expected: Option<&str>) {
        let instant = Instant::from_fields(Fields { year, month, day, ..Fields::default() });
        assert_eq!(instant.map(|instant| instant.to_string()).as_deref(), expected);
    }

    #[test]
    fn dates_print_as_iso_text() {
        check(1970, 1, 1, Some("1970-01-01T00:00:00.000Z"));
        check(2024, 2, 29, Some("2024-02-29T00:00:00.000Z"));
        check(2000, 12, 31, Some("2000-12-31T00:00:00.000Z"));
        check(100, 6, 1, Some("0100-06-01T00:00:00.000Z"));
        check(1600, 3, 1, Some("1600-03-01T00:00:00.000Z"));
    }

    #[test]
    fn fields_outside_the_calendar_are_refused() {
        check(2023, 2, 29, None);
        check(1900, 2, 29, None);
        check(2023, 13, 1, None);
        check(2023, 1, 0, None);
        check(99, 1, 1, None);
    }

    #[test]
    fn every_day_of_four_centuries_survives_the_round_trip() {
        for days in -150_000..150_000 {
            let (year, month, day) = civil_from_days(days);
            assert_eq!(days_from_civil(year, month, day), days);
        }
    }
}
