//! Costs are exact.

use harness_core::message::{Cost, CostSource, Usage};

#[track_caller]
fn check(text: &str, nano: Option<u64>) {
    assert_eq!(text.parse::<Cost>().ok().map(|c| c.0), nano, "{text}");
}

#[test]
fn costs_are_read_exactly() {
    check("0.001", Some(1_000_000));
    check("1e-9", Some(1));
    check("1.5e-10", Some(1));
    check("4.25", Some(4_250_000_000));
    check("2E3", Some(2_000_000_000_000));
    check("0", Some(0));
    check("-0.0", Some(0));
    check("-1", None);
    check("1e400", None);
    check("0e400", Some(0));
    check("NaN", None);
}

#[track_caller]
fn check_source(stored: &str, expected: Option<CostSource>) {
    let usage: Usage = serde_json::from_str(stored).expect("usage");
    assert_eq!(usage.cost_source(), expected.as_ref());
    assert_eq!(serde_json::to_string(&usage).expect("JSON"), stored);
}

#[test]
fn cost_source_survives_a_round_trip() {
    check_source(r#"{"cost":{"total":0.5,"source":"reported"}}"#, Some(CostSource::Reported));
    let table = CostSource::Table("2026-03-21".to_owned());
    check_source(r#"{"cost":{"total":0.5,"source":{"table":"2026-03-21"}}}"#, Some(table));
    check_source(r#"{"cost":{"total":0.5}}"#, None);
    check_source("{}", None);
}

#[test]
fn costs_print_as_decimal_numbers() {
    assert_eq!(Cost(4_250_000_000).to_string(), "4.25");
    assert_eq!(Cost(1).to_string(), "0.000000001");
    assert_eq!(Cost(0).to_string(), "0");
}
