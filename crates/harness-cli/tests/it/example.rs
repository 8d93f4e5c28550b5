//! The example that ships, without a key.

use std::path::{Path, PathBuf};

use crate::support::{Running, harness};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

const EXAMPLE: &str = "fixtures/examples/customer-support/harness.yaml";

#[track_caller]
fn check(question: &str, expected: &str) {
    let output = Running::start(harness(&root(), &["run", EXAMPLE, question])).end();
    assert_eq!(output.code, Some(0), "{}", output.stderr);
    assert!(output.stdout.contains(expected), "{}", output.stdout);
    assert!(output.stderr.contains("no OPENROUTER_API_KEY is set"), "{}", output.stderr);
}

#[test]
fn an_order_is_found_and_its_parcel_tracked() {
    check("Where is my order 1042?", "NP-77342");
}

#[test]
fn a_refund_is_paid() {
    check("My socks from order 1040 have holes. I want my money back.", "RF-1040");
}

#[test]
fn a_refund_is_refused() {
    check("Please refund order 1041.", "refunded already");
}

#[test]
fn a_question_without_a_recording_names_those_that_there_are() {
    let output = Running::start(harness(&root(), &["run", EXAMPLE, "Do you sell skis?"])).end();
    assert_eq!(output.code, Some(2));
    assert!(output.stderr.contains("Where is my order 1042?"), "{}", output.stderr);
}

#[test]
fn the_example_is_sound_and_its_hash_is_stable() {
    let output = Running::start(harness(&root(), &["check", EXAMPLE])).end();
    insta::assert_snapshot!(output.stdout, @r#"
    fixtures/examples/customer-support/harness.yaml is sound: 3 agents from `router` on, 3 tools
    sha256:fb014f138c6cdb79a36e54563ef1f95a0d5e5e0546150f1c4d803669dcebb15f
    "#);
    let output = Running::start(harness(&root(), &["hash", EXAMPLE])).end();
    insta::assert_snapshot!(output.stdout, @r#"sha256:fb014f138c6cdb79a36e54563ef1f95a0d5e5e0546150f1c4d803669dcebb15f"#);
}
