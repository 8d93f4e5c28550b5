//! Arguments checked against a JSON Schema.

use harness_core::Json;
use harness_core::tool::{Tool, ToolDef};
use harness_tools::{ArgumentSchema, CommandTool};

use crate::support::{block_on, cx, script, told};

const ORDER: &str = r#"{
    "type": "object",
    "properties": {
        "number": { "type": "integer", "minimum": 1 },
        "kind": { "enum": ["fast", "slow"] },
        "code": { "type": ["string", "null"], "pattern": "^[A-Z]+$", "maxLength": 4 },
        "items": { "type": "array", "maxItems": 2, "items": {
            "type": "object", "properties": { "price": { "type": "number", "exclusiveMinimum": 0 } }
        } }
    },
    "required": ["number"],
    "additionalProperties": false
}"#;

#[track_caller]
fn check(arguments: &str, expected: &str) {
    let schema = ArgumentSchema::compile("order", &Json::parse(ORDER).unwrap()).unwrap();
    let told = match schema.check(&Json::parse(arguments).unwrap()) {
        Ok(()) => "fits".to_owned(),
        Err(fault) => fault.to_string(),
    };
    assert_eq!(told, expected);
}

#[test]
fn the_wrong_field_is_named_with_what_was_expected() {
    check(r#"{"number":7,"code":null}"#, "fits");
    check(r#"{"number":"7"}"#, r#"argument `number` is wrong: expected integer, found "7""#);
    check(r#"{"number":0}"#, "argument `number` is wrong: expected at least 1, found 0");
    check("{}", "argument `number` is wrong: it is required and missing");
    check(r#"{"number":1,"nmber":2}"#, "argument `nmber` is wrong: it is not an argument of this tool");
    check(
        r#"{"number":1,"kind":"quick"}"#,
        r#"argument `kind` is wrong: expected one of ["fast","slow"], found "quick""#,
    );
    check(
        r#"{"number":1,"items":[{"price":1},{"price":0}]}"#,
        "argument `items[1].price` is wrong: expected more than 0, found 0",
    );
    check(
        r#"{"number":1,"items":[{},{},{}]}"#,
        "argument `items` is wrong: expected at most 2 items, found 3",
    );
}

#[test]
fn all_problems_are_told_in_a_fixed_order() {
    check(
        r#"{"x":1,"y":2,"kind":1,"code":"abcde"}"#,
        "the arguments are wrong: not known here are `x` and `y`; `code`: expected a match of `^[A-Z]+$`, \
         found \"abcde\"; `code`: expected at most 4 characters, found 5; `kind`: expected one of \
         [\"fast\",\"slow\"], found 1; `number`: it is required and missing",
    );
}

#[test]
fn messages_are_bounded_whatever_the_arguments_are() {
    let schema = Json::parse(r#"{"additionalProperties":{"type":"integer"}}"#).unwrap();
    let schema = ArgumentSchema::compile("t", &schema).unwrap();
    let fields: Vec<String> =
        (0..1_000).map(|n| format!("\"{n:04}{0}\":\"{0}\"", "x".repeat(5_000))).collect();
    let arguments = Json::parse(&format!("{{{}}}", fields.join(","))).unwrap();
    let told = schema.check(&arguments).unwrap_err().to_string();
    assert!(told.len() < 3_000, "{}", told.len());
    assert!(told.ends_with("; and 992 more"), "{told}");
}

#[test]
fn a_wrong_schema_is_an_error_when_the_tool_is_made() {
    let made = |schema: &str| {
        let def = ToolDef::new("order", "").with_schema(Json::parse(schema).unwrap());
        CommandTool::new(def, script("cat", &[])).unwrap_err()
    };
    insta::assert_snapshot!(made(r#"{"properties":{"n":{"type":"numbr"}}}"#), @r#"
    invalid argument schema of tool `order` at `/properties/n/type`: expected one of several forms, and none fits; found "numbr"
    "#);
    insta::assert_snapshot!(made(r##"{"$ref":"#/$defs/none"}"##), @r"
    invalid argument schema of tool `order`: Pointer '/$defs/none' does not exist
    ");
    insta::assert_snapshot!(made(r#"{"$ref":"https://example.com/schema.json"}"#), @r"
    invalid argument schema of tool `order`: it refers to `https://example.com/schema.json`, which is outside of it, and nothing is fetched
    ");
    insta::assert_snapshot!(made(r#"{"properties":{"n":{"pattern":"("}}}"#), @r#"
    invalid argument schema of tool `order` at `/properties/n/pattern`: expected the format `regex`, found "("
    "#);
    assert_eq!(made(r#"{"type":1}"#).kind(), "tools.schema_wrong");
}

/// What a schema of unknown origin makes of `data`: a refusal when it is compiled, or a verdict.
#[track_caller]
fn check_foreign(schema: &str, data: &str, expected: &str) {
    let found = match ArgumentSchema::compile("foreign", &Json::parse(schema).unwrap()) {
        Err(refused) => {
            refused.to_string().replace("invalid argument schema of tool `foreign`", "wrong schema")
        }
        Ok(schema) => match schema.check(&Json::parse(data).unwrap()) {
            Ok(()) => "fits".to_owned(),
            Err(fault) => fault.to_string(),
        },
    };
    assert_eq!(found, expected, "{schema:.200}");
}

#[test]
fn decimals_and_large_integers_are_compared_exactly() {
    check_foreign(r#"{"multipleOf":0.01}"#, "19.99", "fits");
    check_foreign(r#"{"multipleOf":0.1}"#, "0.3", "fits");
    check_foreign(r#"{"type":"integer"}"#, "1.0", "fits");
    check_foreign(
        r#"{"maximum":9007199254740992}"#,
        "9007199254740993",
        "the arguments are wrong: expected at most 9007199254740992, found 9007199254740993",
    );
}

#[test]
fn patterns_may_look_around_and_stay_bounded() {
    check_foreign(r#"{"pattern":"^(?!\\.)[a-z.]+$"}"#, r#""a.b""#, "fits");
    check_foreign(r#"{"patternProperties":{"^(?!x-)":{"type":"integer"}}}"#, r#"{"x-a":"b"}"#, "fits");
    check_foreign(
        r#"{"pattern":"((a{1000}){1000}){1000}"}"#,
        "1",
        "wrong schema at `/pattern`: expected the format `regex`, found \"((a{1000}){1000}){1000}\"",
    );
    let schema = ArgumentSchema::compile("t", &Json::parse(r#"{"pattern":"^(?=(a+)+$)(a|aa)+$"}"#).unwrap());
    let text = Json::parse(&format!("\"{}!\"", "a".repeat(5_000))).unwrap();
    let refused = schema.unwrap().check(&text).unwrap_err().to_string();
    assert!(refused.starts_with("the arguments are wrong: expected a match of `^(?=(a+)+$)(a|aa)+$`"));
    assert!(refused.len() < 300, "{refused}");
}

#[test]
fn references_stay_inside_the_schema() {
    check_foreign(
        r#"{"$ref":"file:///etc/hosts"}"#,
        "1",
        "wrong schema: it refers to `file:///etc/hosts`, which is outside of it, and nothing is fetched",
    );
    check_foreign(
        r#"{"$id":"file:///etc/","$ref":"hosts"}"#,
        "1",
        "wrong schema: it refers to `file:///etc/hosts`, which is outside of it, and nothing is fetched",
    );
    check_foreign(
        r#"{"$id":"http://127.0.0.1:9/a","properties":{"b":{"$ref":"b"}}}"#,
        "1",
        "wrong schema: it refers to `http://127.0.0.1:9/b`, which is outside of it, and nothing is fetched",
    );
    check_foreign(
        r#"{"$schema":"http://127.0.0.1:9/meta","type":"string"}"#,
        "1",
        "wrong schema: Unknown meta-schema: 'http://127.0.0.1:9/meta'. Custom meta-schemas must be \
         registered in the registry before use",
    );
    check_foreign(
        r##"{"$id":"https://example.com/a","$ref":"https://example.com/a#/$defs/b","$defs":{"b":{"type":"string"}}}"##,
        "1",
        "the arguments are wrong: expected string, found 1",
    );
}

#[test]
fn cycles_of_references_end() {
    check_foreign(r##"{"$ref":"#"}"##, "1", "fits");
    check_foreign(
        r##"{"$ref":"#/$defs/a","$defs":{"a":{"$ref":"#/$defs/b"},"b":{"$ref":"#/$defs/a"}}}"##,
        "1",
        "fits",
    );
    check_foreign(
        r##"{"properties":{"next":{"$ref":"#"}},"required":["id"]}"##,
        r#"{"id":1,"next":{"id":2,"next":{}}}"#,
        "argument `next.next.id` is wrong: it is required and missing",
    );
}

#[test]
fn schemas_of_odd_shapes_are_refused_or_answered() {
    check_foreign("[1]", "1", "wrong schema: expected boolean or object, found [1]");
    check_foreign("1", "1", "wrong schema: expected boolean or object, found 1");
    check_foreign("false", "1", "the arguments are wrong: nothing is allowed here");
    check_foreign(
        r#"{"$id":":"}"#,
        "1",
        "wrong schema: Invalid URI reference ':': unexpected character at index 0",
    );
    check_foreign(
        r#"{"properties":{"ключ😀":{"maxLength":1}}}"#,
        r#"{"ключ😀":"😀😀"}"#,
        "argument `ключ😀` is wrong: expected at most 1 characters, found 2",
    );
    check_foreign(&format!("{}true{}", r#"{"not":"#.repeat(100), "}".repeat(100)), "1", "fits");
}

#[test]
fn a_program_is_not_started_with_arguments_that_do_not_fit() {
    let def = ToolDef::new("order", "").with_schema(Json::parse(ORDER).unwrap());
    let tool = CommandTool::new(def, script("echo ran", &[])).unwrap();
    assert_eq!(told(&block_on(tool.call(cx(r#"{"number":1}"#)))), "success exit 0\nran");
    assert_eq!(
        told(&block_on(tool.call(cx("{}")))),
        "failed invalid_arguments\nargument `number` is wrong: it is required and missing"
    );
    assert!(tool.check(&Json::empty_object()).is_err());
}
