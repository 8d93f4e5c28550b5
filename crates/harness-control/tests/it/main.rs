//! Integration tests of harness-control: one module per topic.

#![expect(
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::wildcard_enum_match_arm,
    reason = "a test fails by panicking, in its helpers too"
)]

mod control_crash;
mod control_faults;
mod control_gaps;
mod control_law;
mod control_stop;
mod control_strict;
mod controlled;
mod stop_reasons;

/// Every file beside this one is a module of the binary.
#[test]
fn no_test_file_is_forgotten() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it");
    let main = std::fs::read_to_string(folder.join("main.rs")).expect("this file");
    for entry in std::fs::read_dir(folder).expect("this folder") {
        let name = entry.expect("an entry").file_name().into_string().expect("a plain name");
        let module = name.trim_end_matches(".rs");
        assert!(module == "main" || main.contains(&format!("mod {module};")), "`{name}` is not in main.rs");
    }
}
