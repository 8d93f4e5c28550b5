//! Integration tests of harness-core: one module per topic.

#![expect(
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::wildcard_enum_match_arm,
    clippy::unreachable,
    clippy::needless_raw_string_hashes,
    reason = "a test fails by panicking, in its helpers too; scripts are all quoted alike"
)]

mod allocations;
mod append;
mod argument_bounds;
mod bare;
mod broken_laws;
mod cancel;
mod canonical;
mod checkpoints;
mod checks_of_end;
mod checks_of_results;
mod coercion;
mod compaction;
mod costs;
mod crash;
mod deviations;
mod display;
mod driver;
mod exact;
mod faults;
mod gates_of_calls;
mod guardrails;
mod handover;
mod laws;
mod layers;
mod ledger;
mod live_faults;
mod loops;
mod model;
mod pairing;
mod pending_work;
mod perform;
mod policies;
mod prepared;
mod proposed;
mod recovery;
mod redaction;
mod resume;
mod run;
mod run_case;
mod run_resume;
mod script;
mod stored;
mod timed;
mod times;
mod tool_functions;
mod tool_results;
mod turn_calls;
mod turn_limits;
mod turn_outputs;
mod turn_resume;
mod unanswered;
mod varied;
mod world;

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
