//! Canonical JSON and its hash.

use harness_core::Json;
use harness_core::canonical::{hash, sha256_hex, text};

#[track_caller]
fn check(input: &str, expected: &str) {
    let value: Json = serde_json::from_str(input).expect("valid JSON");
    assert_eq!(text(&value), expected);
}

#[test]
fn keys_are_sorted_and_white_space_is_removed() {
    check(r#" { "b" : 1, "10" : 2, "9" : 3, "a" : 4, "01" : 5 } "#, r#"{"9":3,"10":2,"01":5,"a":4,"b":1}"#);
    check("{\"\u{e000}\":1,\"\u{10000}\":2}", "{\"\u{10000}\":2,\"\u{e000}\":1}");
    check(r#"{"b":{"z":[],"y":{}},"a":[{"d":1,"c":2},3]}"#, r#"{"a":[{"c":2,"d":1},3],"b":{"y":{},"z":[]}}"#);
    check(r#"{"4294967295":1,"4294967294":2}"#, r#"{"4294967294":2,"4294967295":1}"#);
}

#[test]
fn last_value_of_a_repeated_key_counts() {
    check(r#"{"a":1,"b":2,"\u0061":3}"#, r#"{"a":3,"b":2}"#);
    check(r#"{"__proto__":{"x":1},"a":1}"#, r#"{"a":1}"#);
}

#[test]
fn numbers_are_those_of_ecmascript() {
    check(
        "[1.0,-0,1e21,123456789012345680000,1e-7,0.000001]",
        "[1,0,1e+21,123456789012345680000,1e-7,0.000001]",
    );
    check("[1e400,-1e400,9007199254740993,5e-324]", "[null,null,9007199254740992,5e-324]");
    check("[true,false,null]", "[true,false,null]");
}

#[test]
fn strings_have_the_fewest_escapes() {
    check(r#""\u0041\/\u00e9\uD83D\uDE00 é""#, "\"A/é\u{1f600} é\"");
    check(r#""\u0008\u000C\u000a\u000D\u0009\u001F\"\\\u007f""#, "\"\\b\\f\\n\\r\\t\\u001f\\\"\\\\\u{7f}\"");
    check(r#""\uD800x\uDFFF""#, r#""\ud800x\udfff""#);
    check(r#""a\\""#, r#""a\\""#);
}

#[test]
fn fault_23_deep_values_cost_their_length() {
    // Quadratic work would take minutes: 300,000 levels, each copied once for every level above it.
    const DEPTH: usize = 300_000;
    let lists = format!("{}{}", "[".repeat(DEPTH), "]".repeat(DEPTH));
    check(&lists, &lists);
    let objects = format!("{}1{}", r#"{"a":"#.repeat(DEPTH), "}".repeat(DEPTH));
    check(&objects, &objects);
    let mixed = format!("{}1{}", r#"[{"b":0,"a":"#.repeat(DEPTH), "}]".repeat(DEPTH));
    check(&mixed, &format!("{}1{}", r#"[{"a":"#.repeat(DEPTH), r#","b":0}]"#.repeat(DEPTH)));
}

#[test]
fn hash_covers_the_canonical_text() {
    let value = Json::parse(r#"{"b":1,"a":"x"}"#).expect("JSON");
    assert_eq!(hash(&value), sha256_hex(r#"{"a":"x","b":1}"#));
    assert_eq!(sha256_hex(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
}
