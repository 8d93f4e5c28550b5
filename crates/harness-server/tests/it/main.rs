//! Tests of the server, over HTTP on the loopback interface.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a panic is how a test fails, in its helpers too"
)]

mod access;
mod ag_ui;
mod approvals;
mod bounds;
mod budgets;
mod chat_completions;
mod connections;
mod crowd;
mod description;
mod examples;
mod faults;
mod page;
mod queue;
mod responses;
mod restart;
mod streams;
mod support;
mod threads;
mod trace;
mod typescript;

/// A file of tests that nobody names here would never run.
#[test]
fn every_file_is_a_module() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it");
    let main = std::fs::read_to_string(folder.join("main.rs")).unwrap();
    for entry in std::fs::read_dir(folder).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let module = name.trim_end_matches(".rs");
        assert!(module == "main" || main.contains(&format!("mod {module};")), "{name}");
    }
}
