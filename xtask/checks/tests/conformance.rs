//! `cargo xtask conformance`: what other programs read of it.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers too")]

use std::process::Command;

#[track_caller]
fn check(arguments: &[&str], is_success: bool, expected: &str) {
    #[expect(clippy::disallowed_methods, reason = "a test of the chores starts one")]
    let ran = Command::new(env!("CARGO_BIN_EXE_checks")).arg("conformance").args(arguments).output().unwrap();
    assert_eq!(ran.status.success(), is_success);
    let printed = String::from_utf8_lossy(if is_success { &ran.stdout } else { &ran.stderr });
    assert_eq!(printed.trim_end().lines().next_back(), Some(expected));
}

#[test]
fn the_last_line_counts() {
    let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/conformance/turn");
    check(&[directory, "--only", "tool-one"], true, "1 passed, 0 failed, 0 skipped");
}

#[test]
fn a_selection_without_vectors_is_a_fault() {
    check(&["--kind", "mood"], false, "error: no vector is selected");
}
