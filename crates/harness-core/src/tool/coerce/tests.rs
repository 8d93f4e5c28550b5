use super::*;

/// `schema` of the one argument `a`, which is `value`; what it becomes, `-` when it stays.
#[track_caller]
fn check(schema: &str, value: &str, expected: &str) {
    let whole = Json::parse(&format!(r#"{{"properties":{{"a":{schema}}}}}"#)).expect("a schema");
    let arguments = Json::parse(&format!(r#"{{"a":{value},"other":"1"}}"#)).expect("arguments");
    let made = coerced(&whole, &arguments);
    let told = made.map_or("-".to_owned(), |made| {
        let text =
            made.text().strip_prefix(r#"{"a":"#).and_then(|rest| rest.strip_suffix(r#","other":"1"}"#));
        text.expect("the one argument").to_owned()
    });
    assert_eq!(told, expected, "{value} as {schema}");
}

#[track_caller]
fn check_all(name: &str, cases: &[(&str, &str)]) {
    for (value, expected) in cases {
        check(&format!(r#"{{"type":"{name}"}}"#), value, expected);
    }
}

#[test]
fn numbers_are_taken_from_strings_digit_by_digit() {
    let cases = [
        (r#""3""#, "3"),
        (r#""-1.50""#, "-1.50"),
        (r#""9007199254740993""#, "9007199254740993"),
        (r#""1e3""#, "1e3"),
        ("true", "1"),
        ("false", "0"),
    ];
    check_all("number", &cases);
    let stays = [r#""""#, r#""3 cm""#, r#"" 3""#, r#""007""#, r#""0x1F""#, r#""NaN""#, "null", "2", "[]"];
    check_all("number", &stays.map(|value| (value, "-")));
}

#[test]
fn integers_are_whole() {
    let cases = [
        (r#""3""#, "3"),
        (r#""3.0""#, "3"),
        (r#""12.50e1""#, "125"),
        (r#""-0""#, "0"),
        (r#""300e-2""#, "3"),
        (r#""123456789012345678901234567890""#, "123456789012345678901234567890"),
        ("true", "1"),
    ];
    check_all("integer", &cases);
    let stays = [r#""3.5""#, r#""1e-1""#, r#""1e9999999""#, "3.5", "3", "3.0", "null"];
    check_all("integer", &stays.map(|value| (value, "-")));
}

#[test]
fn booleans_are_two_words_and_two_numbers() {
    let cases = [(r#""true""#, "true"), (r#""false""#, "false"), ("1", "true"), ("0", "false")];
    check_all("boolean", &cases);
    check_all("boolean", &[r#""yes""#, r#""True""#, r#""1""#, "2", "null"].map(|value| (value, "-")));
}

#[test]
fn strings_are_written_as_they_stand() {
    check_all("string", &[("1.10", r#""1.10""#), ("9007199254740993", r#""9007199254740993""#)]);
    check_all("string", &[("true", r#""true""#), ("null", "-"), ("{}", "-"), ("[1]", "-")]);
}

#[test]
fn null_is_what_says_nothing_and_becomes_nothing() {
    check_all("null", &[(r#""""#, "null"), ("0", "null"), ("false", "null")]);
    check_all("null", &[r#""no""#, "1", "{}"].map(|value| (value, "-")));
    check_all("object", &[r#""{}""#, "null"].map(|value| (value, "-")));
}

#[test]
fn of_several_types_the_first_that_is_possible_counts() {
    check(r#"{"type":["integer","string"]}"#, r#""3""#, "-");
    check(r#"{"type":["boolean","integer"]}"#, r#""3""#, "3");
    check(r#"{"type":["integer","null"]}"#, "null", "-");
    check(r#"{"type":["integer","null"]}"#, r#""""#, "null");
}

#[test]
fn of_several_variants_the_first_that_fits_counts() {
    let union = r#"{"anyOf":[{"type":"integer","maximum":9},{"type":"boolean"}]}"#;
    check(union, r#""7""#, "7");
    check(union, r#""12""#, "-");
    check(union, r#""true""#, "true");
    check(union, "true", "-");
    let objects = r#"{"oneOf":[
        {"properties":{"kind":{"const":"a"},"n":{"type":"string"}},"required":["kind"]},
        {"properties":{"kind":{"enum":["b"]},"n":{"type":"integer"}},"required":["kind"]}]}"#;
    check(objects, r#"{"kind":"b","n":"4"}"#, r#"{"kind":"b","n":4}"#);
}

#[test]
fn a_value_that_fits_a_later_variant_is_left_alone() {
    check(r#"{"anyOf":[{"type":"string"},{"type":"integer"}]}"#, "3", "-");
}

#[test]
fn objects_and_lists_are_gone_through() {
    check(r#"{"items":{"type":"integer"}}"#, r#"["1",2,"x"]"#, r#"[1,2,"x"]"#);
    check(
        r#"{"prefixItems":[{"type":"boolean"}],"items":{"type":"integer"}}"#,
        r#"["true","2"]"#,
        "[true,2]",
    );
    check(r#"{"items":[{"type":"integer"}]}"#, r#"["1","2"]"#, r#"[1,"2"]"#);
    check(r#"{"additionalProperties":{"type":"number"}}"#, r#"{"x":"1","x":"2"}"#, r#"{"x":1,"x":2}"#);
    check(r#"{"allOf":[{"properties":{"x":{"type":"integer"}}}]}"#, r#"{"x":"1"}"#, r#"{"x":1}"#);
    check(r#"{"type":"object","additionalProperties":false}"#, r#"{"x":"1"}"#, "-");
}

#[test]
fn references_inside_of_the_schema_are_followed() {
    let schema = r##"{"$defs":{"n":{"type":"integer"}},"properties":{"a":{"$ref":"#/$defs/n"}}}"##;
    let of = |text: &str| Json::parse(text).expect("JSON");
    assert_eq!(coerced(&of(schema), &of(r#"{"a":"1"}"#)), Some(of(r#"{"a":1}"#)));
}

#[test]
fn what_is_too_large_or_goes_round_is_left_alone() {
    let of = |text: &str| Json::parse(text).expect("JSON");
    let round = r##"{"$ref":"#","properties":{"a":{"type":"integer"}}}"##;
    assert_eq!(coerced(&of(round), &of(r#"{"a":"1"}"#)), None);
    let many = format!(r#"{{"a":[{}"1"]}}"#, r#""1","#.repeat(20_000));
    let list = r#"{"properties":{"a":{"items":{"type":"integer"}}}}"#;
    assert_eq!(coerced(&of(list), &of(&many)), None);
    assert_eq!(coerced(&of("true"), &of(r#"{"a":"1"}"#)), None);
}
