//! What a reader has to hold in the head stays bounded
//! ([0044](../../../../docs/design/0044-sizes-are-lines-of-code.md)).

use std::fs;
use std::path::Path;

/// Lines of code of a file: without comments, empty lines, and unit tests, which are last.
fn lines_of_code(text: &str) -> usize {
    let code = text.split_once("\n#[cfg(test)]\nmod tests {").map_or(text, |(code, _)| code);
    code.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with("//")).count()
}

fn lines_below(folder: &Path) -> usize {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let lines = entries.map(|path| {
        if path.is_dir() && !path.ends_with("tests") {
            lines_below(&path)
        } else if path.extension().is_some_and(|kind| kind == "rs") && !path.ends_with("tests.rs") {
            lines_of_code(&fs::read_to_string(&path).unwrap())
        } else {
            0
        }
    });
    lines.sum()
}

/// These crates together have at most so many lines of code, and not so few that the limit has become idle.
#[track_caller]
fn check(crates: &[&str], limit: usize) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let lines: usize = crates.iter().map(|name| lines_below(&folder.join(name).join("src"))).sum();
    assert!(
        lines <= limit,
        "{crates:?} have {lines} lines of code, {limit} are permitted: take something away"
    );
    assert!(lines * 10 > limit * 9, "{crates:?} have {lines} lines of code: lower their limit of {limit}");
}

#[test]
fn the_loop_fits_in_one_head() {
    check(&["harness-core"], 16_000);
}

#[test]
fn the_engine_stays_bounded() {
    let engine = ["control", "host", "record", "runtime", "flow"].map(|name| format!("harness-{name}"));
    let engine: Vec<&str> =
        ["harness-core", "harness"].into_iter().chain(engine.iter().map(String::as_str)).collect();
    check(&engine, 42_000);
}

#[test]
fn what_is_around_the_engine_stays_bounded() {
    let around = ["memory", "session", "adapters", "tools", "descriptor", "cli", "relay"];
    let around = around.map(|name| format!("harness-{name}"));
    check(&around.iter().map(String::as_str).collect::<Vec<_>>(), 74_000);
}

#[test]
fn comments_empty_lines_and_unit_tests_do_not_count() {
    let text = "//! Page.\n\n/// Doc.\nfn one() {\n    // Why.\n    two()\n}\n\n#[cfg(test)]\nmod tests {\n    fn three() {}\n}\n";
    assert_eq!(lines_of_code(text), 3);
}
