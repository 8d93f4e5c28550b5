//! From YAML to hashed values, and faults of the text (reference section 5).

use harness_descriptor::{WarningKind, load_text};

/// The canonical text of `v: …`, or the fault without its file name.
#[track_caller]
fn check(yaml: &str, expected: &str) {
    let found = match load_text(yaml) {
        Ok(descriptor) => descriptor.canonical_text(),
        Err(error) => error.to_string().replace("<inline descriptor>:", ""),
    };
    assert_eq!(found, expected, "{yaml}");
}

#[test]
fn keys_are_strings_in_property_order() {
    check(
        "{b: 1, 10: 2, 0x9: 3, a: 4, '01': 5, 1.50: 6, ~: 7}",
        r#"{"9":3,"10":2,"01":5,"1.5":6,"a":4,"b":1,"null":7}"#,
    );
    check("{\u{1f600}: 1, \u{e000}: 2}", "{\"\u{1f600}\":1,\"\u{e000}\":2}");
    check("a: 1\n1: x\n'1': y", "3:1: duplicate key `1`, first defined on line 2");
    check("[a, b]: 1", "1:1: a list cannot be a key");
    check("2020-01-01: 1", "1:1: a date cannot be a key");
}

#[test]
fn large_mappings_find_their_duplicates() {
    let mut yaml: String =
        (0..1000).flat_map(|at| ["k".to_owned(), at.to_string(), ": 1\n".to_owned()]).collect();
    assert!(load_text(yaml.as_str()).is_ok());
    yaml.push_str("k500: again\n");
    check(&yaml, "1001:1: duplicate key `k500`, first defined on line 501");
}

#[test]
fn merges() {
    check("a: &a {p: 1, q: 1}\nb: {<<: *a, q: 2}", r#"{"a":{"p":1,"q":1},"b":{"p":1,"q":2}}"#);
    check("b: {q: 7, <<: [{q: 1, r: 1}, {r: 2, s: 2}]}", r#"{"b":{"q":7,"r":1,"s":2}}"#);
    check("b: {<<: {p: 1}, <<: {p: 2}}", r#"{"b":{"p":1}}"#);
    check("b: {'<<': {p: 1}}", r#"{"b":{"<<":{"p":1}}}"#);
    check("b: {<<: text}", "1:9: `<<` requires a mapping or a list of mappings");
    check("? <<\n: {p: 1}", r#"{"<<":{"p":1}}"#);
}

#[test]
fn anchors() {
    check("a: &x [1]\nb: *x\nc: &x 2\nd: *x", r#"{"a":[1],"b":[1],"c":2,"d":2}"#);
    check("&k 1: *k", r#"{"1":1}"#);
    check("a: &x [&x 1]", "1:8: invalid YAML: anchor `&x` is inside the value of another `&x`");
    check("a: &x {b: [*x]}", "1:12: the value contains itself through an alias");
}

#[test]
fn tags() {
    check("{a: !!str 1, b: !!int '7', c: ! 1, d: !!set {x}}", r#"{"a":"1","b":7,"c":"1","d":{"x":null}}"#);
    check("{a: !!omap [x: 1], b: !!pairs [x: 1, x: 2]}", r#"{"a":[{"x":1}],"b":[["x",1],["x",2]]}"#);
    check("a: !!str\nb: !!seq\nc: !", r#"{"a":"","b":[],"c":null}"#);
    check("a: !!int x", "1:10: the value does not match its tag `!!int`");
    check("a: !mine x", "1:10: unknown tag `!mine`");
    check("a: !!binary aGk=", "1:13: binary data is not supported");
    check("a: !!omap [x: 1, x: 2]", "1:11: the value does not match its tag `!!omap`");
}

#[test]
fn strings_of_several_lines() {
    check("a: \"x \n  y\"", r#"{"a":"x  y"}"#);
    check("a: 'x\n\n  y'", r#"{"a":"x\ny"}"#);
    check("a: |+\n  x\n\n", r#"{"a":"x\n\n"}"#);
    check("a: |+\n  x", r#"{"a":"x\n"}"#);
    check("a: >-\n  x\n  y\n\n  z\n", r#"{"a":"x y\nz"}"#);
}

#[test]
fn quoted_lines_may_begin_anywhere() {
    check("a: \"x\ny\"\nb: 'it''s\n\tz'", r#"{"a":"x y","b":"it's z"}"#);
    check(
        "a: {k: 'v\n#', l: [it's, \"p\\\"\nq\"]} # 'c'\nb: &x !!str \"1\n2\"\nc: *x",
        r#"{"a":{"k":"v #","l":["it's","p\" q"]},"b":"1 2","c":"1 2"}"#,
    );
    check("a: \"x\n---\ny\"", "2:1: invalid YAML: a quoted value is not closed, or cannot be read");
    check("a: \"x\n\\q\"", "1:4: invalid YAML: unknown escape in a quoted value");
    check("a: \"x\ny", "2:1: invalid YAML: a quoted value is not closed, or cannot be read");
    check("a: 1\n\"x\n y\": 1", "3:4: invalid YAML: invalid trailing content after double-quoted scalar");
}

#[test]
fn layouts_that_are_read_in_two_ways_are_refused() {
    check("a: !!str\n  00", "2:3: invalid YAML: a tag must be on the line of its value");
    check("a: !!str\n  x", r#"{"a":"x"}"#);
    check("---x: 1", "1:1: invalid YAML: the first word begins with `---`, put it in quotes");
    check(
        "- - -\n- a",
        "2:1: invalid YAML: an empty entry at the end of an inner list is ambiguous here, write `null`",
    );
}

#[test]
fn faults_of_the_text() {
    check("a: 1\n---\nb: 2", "2:1: only one YAML document is allowed; a second one starts here");
    check("a: [x", "1:4: invalid YAML: unclosed bracket '['");
    check("a: *x", "1:4: invalid YAML: unknown alias `*x`");
    check("a: x\0", "1:5: invalid YAML: control character U+0000");
    check("a: \u{7f}", "1:4: invalid YAML: unexpected character: `\\u{7f}'");
    check("d: 2023-02-30", "1:4: invalid date `2023-02-30`");
    check(": x", "1:1: invalid YAML: a key is missing before `:`");
    check(
        "a: {b\n  c: 1}",
        "1:5: invalid YAML: a key of several lines needs `?` before it, or a comma is missing",
    );
}

#[test]
fn byte_order_marks_and_bad_bytes() {
    check("\u{feff}a: \u{feff}b", "{\"a\":\"\u{feff}b\"}");
    check("a: \u{e000}\u{feff}\"", "{\"a\":\"\u{e000}\u{feff}\\\"\"}");
}

#[test]
fn values_that_hash_with_less_than_they_say_are_warned_of() {
    let yaml = "n: .nan\ni: 9007199254740993\nok: 9007199254740992\nd: 2020-01-01\n__proto__: 1\n";
    let descriptor = load_text(yaml).unwrap();
    let warnings: Vec<String> = descriptor
        .warnings()
        .into_iter()
        .map(|warning| format!("{} {}: {}", warning.place.line, warning.kind.code(), warning.kind))
        .collect();
    assert_eq!(
        warnings,
        [
            "1 hash.lossy: this number is hashed as `null`",
            "2 hash.lossy: this integer is rounded to the nearest double before it is hashed",
            "4 hash.lossy: this date is hashed like the same text in quotes",
            "5 hash.lossy: the key `__proto__` and its value are left out of the hash",
        ]
    );
    assert!(matches!(descriptor.warnings()[0].kind, WarningKind::HashLossy(_)));
    let keys =
        load_text("9007199254740993: a\n? &k 0x20000000000003\n: b\n'9007199254740995': c\n1: d").unwrap();
    let lines: Vec<u32> = keys.warnings().iter().map(|warning| warning.place.line).collect();
    assert_eq!(lines, [1, 2]);
    assert_eq!(
        descriptor.canonical_text(),
        r#"{"d":"2020-01-01T00:00:00.000Z","i":9007199254740992,"n":null,"ok":9007199254740992}"#
    );
}

#[test]
fn values_know_their_ends() {
    let yaml =
        "a:\n  b: [x,\n    y] # c\n  c: |\n    text\n\n# comment\nd: &k {}\ne:\n  - *k\n  -\n\nf: 'é'\n";
    let descriptor = load_text(yaml).unwrap();
    let end = |pointer| {
        let place = descriptor.place(pointer).unwrap();
        format!("{}:{}-{}:{}", place.line, place.column, place.end_line, place.end_column)
    };
    assert_eq!(end("/a"), "2:3-5:9");
    assert_eq!(end("/a/b"), "2:6-3:7");
    assert_eq!(end("/a/c"), "5:5-5:9");
    assert_eq!(end("/d"), "8:7-8:9");
    assert_eq!(end("/e"), "10:3-10:7");
    assert_eq!(end("/f"), "13:4-13:7");
    assert_eq!(descriptor.source_line(10), Some("  - *k"));
    assert_eq!(descriptor.source_line(99), None);
}

#[test]
fn values_know_their_places() {
    let descriptor = load_text("a:\n  b: [x,\n    y]\n").unwrap();
    let place = |pointer| descriptor.place(pointer).map(|place| format!("{}:{}", place.line, place.column));
    assert_eq!(place("").as_deref(), Some("1:1"));
    assert_eq!(place("/a/b/1").as_deref(), Some("3:5"));
    assert_eq!(place("/a/c"), None);
    assert_eq!(place("a"), None);
}
