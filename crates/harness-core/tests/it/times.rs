//! Times and durations as texts.

use harness_core::{Millis, Time};

#[test]
fn times_print_as_utc() {
    assert_eq!(Time(1_767_225_600_003).iso(), "2026-01-01T00:00:00.003Z");
    assert_eq!(Time(951_782_400_000).iso(), "2000-02-29T00:00:00.000Z");
    assert_eq!(Time(-1).iso(), "1969-12-31T23:59:59.999Z");
    assert_eq!(Time(i64::MAX).iso(), "9999-12-30T22:00:00.999Z");
}

#[track_caller]
fn check_span(text: &str, expected: Option<u64>) {
    assert_eq!(text.parse().ok(), expected.map(Millis), "{text}");
}

#[test]
fn durations_have_a_number_and_a_unit() {
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
    for time in [1_767_225_600_003, 951_782_400_000, -1, 0] {
        check(&Time(time).iso(), Some(time));
    }
    check("2026-01-01", Some(1_767_225_600_000));
    check("2026-01-01T02:00:00+02:00", Some(1_767_225_600_000));
    check("2025-12-31T19:30:00.5-04:30", Some(1_767_225_600_500));
    check("2026-01-01T00:00:00.123456789Z", Some(1_767_225_600_123));
    let invalid = ["", "soon", "2026-02-30", "2026-13-01", "2026-01-01T24:00:00Z", "2026-01-01T00:00:00"];
    for text in invalid.into_iter().chain(["2026-01-01T00:00:00.Z", "+026-01-01", "2026-01-01é"]) {
        check(text, None);
    }
}
