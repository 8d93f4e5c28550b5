//! Bounds: hostile input fails quickly and says which bound it passed.

use harness_descriptor::{Fault, Limits, TextSource};

#[track_caller]
fn check(yaml: &str, limits: Limits, expected: &str) {
    let error = TextSource::new(yaml).limits(limits).load().unwrap_err();
    assert!(matches!(error.fault(), Fault::TooLarge { .. }), "{error}");
    assert_eq!(error.fault().to_string(), expected);
}

fn limits(change: impl FnOnce(&mut Limits)) -> Limits {
    let mut limits = Limits::default();
    change(&mut limits);
    limits
}

/// Lines, one for each number.
fn lines(numbers: std::ops::Range<usize>, line: impl Fn(usize) -> String) -> String {
    numbers.map(line).collect::<Vec<_>>().join("\n")
}

#[test]
fn alias_bombs() {
    let yaml = lines(0..10, |level| match level.checked_sub(1) {
        None => "l0: &l0 [x, x, x, x, x, x, x, x, x, x]".to_owned(),
        Some(below) => format!("l{level}: &l{level} [{}]", vec![format!("*l{below}"); 10].join(", ")),
    });
    check(
        &yaml,
        Limits::default(),
        "count of values, aliases followed, of 11111111 exceeds the limit of 2000000",
    );
}

#[test]
fn text_bombs() {
    let yaml = format!("t: &t {}\nl: [*t, *t, *t, *t, *t]\n", "x".repeat(100));
    check(
        &yaml,
        limits(|l| l.text_bytes = 400),
        "text in bytes, aliases followed, of 500 exceeds the limit of 400",
    );
}

#[test]
fn merge_bombs() {
    let keys = lines(0..100, |at| format!("k{at}: 1,"));
    let yaml = format!("m: &m {{{keys}}}\nl: [{}]\n", "{<<: *m}, ".repeat(100));
    check(&yaml, limits(|l| l.values = 5000), "count of values of 5050 exceeds the limit of 5000");
}

#[test]
fn nesting() {
    let yaml = |depth: usize| format!("a: {}1{}\n", "[".repeat(depth), "]".repeat(depth));
    assert!(TextSource::new(yaml(99)).load().is_ok());
    assert!(TextSource::new(yaml(100)).load().is_err());
    assert!(TextSource::new(yaml(100_000)).load().is_err());
    let aliased = lines(0..200, |level| match level.checked_sub(1) {
        None => "a0: &a0 []".to_owned(),
        Some(below) => format!("a{level}: &a{level} [*a{below}]"),
    });
    check(
        &aliased,
        Limits::default(),
        "nesting in levels, aliases followed, of 101 exceeds the limit of 100",
    );
}

#[test]
fn sizes() {
    check("abc: def", limits(|l| l.yaml_bytes = 5), "YAML text in bytes of 9 exceeds the limit of 5");
    check("a: [1, 2, 3]", limits(|l| l.values = 3), "count of values of 4 exceeds the limit of 3");
    let yaml = "agents: { a: { instructions_files: [p, p, p] } }";
    let error = TextSource::new(yaml).prompts([("p", "12345")]).limits(limits(|l| l.text_bytes = 64)).load();
    assert!(error.is_ok());
    let error = TextSource::new(yaml)
        .prompts([("p", "1234567890".repeat(3))])
        .limits(limits(|l| l.text_bytes = 64))
        .load();
    assert_eq!(error.unwrap_err().kind(), "descriptor.too_large");
}

#[test]
fn a_prompt_file_over_its_limit() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("p.md"), "x".repeat(11)).unwrap();
    let yaml = "agents: { a: { instructions_file: p.md } }";
    std::fs::write(folder.path().join("d.yaml"), yaml).unwrap();
    let source = |bytes| {
        let source = harness_descriptor::FileSource::new(folder.path().join("d.yaml"));
        source.limits(limits(|l| l.prompt_bytes = bytes)).load()
    };
    assert!(source(11).is_ok());
    let error = source(10).unwrap_err();
    assert_eq!(error.fault().to_string(), "prompt file in bytes of 11 exceeds the limit of 10");
    assert_eq!(error.place().map(|place| place.column), Some(35));
}
