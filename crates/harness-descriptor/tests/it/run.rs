//! The section `run`, and contracts in files of their own.

use std::fs;
use std::path::{Path, PathBuf};

use harness_core::Millis;
use harness_core::outcome::StopMode;
use harness_core::run::RunSpec;
use harness_descriptor::check::{Style, check_contract};
use harness_descriptor::{Graph, Registry, RunSection, TextSource, is_contract, load_contract, load_file};

const AGENTS: &str = "runtime: { entry_agent: a }\nagents: { a: { model: m } }\n";

fn fixture(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/descriptors").join(path)
}

fn section(run: &str) -> RunSection {
    let descriptor = TextSource::new(format!("{AGENTS}run: {run}\n")).load().unwrap();
    Graph::build(&descriptor, &Registry::new()).unwrap().run().unwrap().clone()
}

/// Which parts of control are on, in a mode.
#[track_caller]
fn check_control(run: &str, mode: StopMode, expected: Option<&str>) {
    let control = section(run).control(mode).map(|control| {
        let parts = [
            ("signal", control.signal.is_some()),
            ("contract", control.contract.is_some()),
            ("work", control.work.is_some()),
            ("stall", control.stall.is_some()),
        ];
        parts.iter().filter(|(_, on)| *on).map(|(name, _)| *name).collect::<Vec<_>>().join(" ")
    });
    assert_eq!(control.as_deref(), expected, "{run}");
}

#[test]
fn control_is_on_as_soon_as_something_asks_for_it() {
    use StopMode::{Interactive, StrictAutomation};
    check_control("{}", Interactive, None);
    check_control("{ limits: { turns: 3 }, compaction: { preset: ladder } }", Interactive, None);
    check_control("{ mode: interactive }", Interactive, Some("signal"));
    check_control("{ mode: strict_automation }", StrictAutomation, Some("signal stall"));
    check_control("{ stall: false }", StrictAutomation, Some("signal"));
    check_control("{ work_items: true, signal: false }", Interactive, Some("work"));
    check_control("{ work_items: false }", Interactive, Some("signal"));
    check_control("{ contract: { goal: a } }", Interactive, Some("signal contract"));
    check_control("{ stall: true, guidance: { tokens: 0 } }", Interactive, Some("signal stall"));
}

#[test]
fn what_is_not_said_stays_as_it_was() {
    let mut spec = RunSpec::default();
    section("{ mode: strict_automation, limits: { turns: 7, cost: 0.5 } }").apply(&mut spec);
    let usual = RunSpec::default();
    assert_eq!((spec.mode, spec.limits.turns), (StopMode::StrictAutomation, 7));
    assert_eq!(spec.limits.amount.cost.to_string(), "0.5");
    assert_eq!(spec.limits.amount.tokens, usual.limits.amount.tokens);
    assert_eq!(spec.limits.elapsed, usual.limits.elapsed);
    section("{ limits: { elapsed: 90s } }").apply(&mut spec);
    assert_eq!((spec.limits.turns, spec.limits.elapsed), (7, Some(Millis(90_000))));
    section("{ limits: { elapsed: unlimited } }").apply(&mut spec);
    assert_eq!(spec.limits.elapsed, None);
}

#[test]
fn a_contract_in_a_file_is_hashed_as_if_it_stood_in_the_descriptor() {
    let in_file = TextSource::new(format!("{AGENTS}run: {{ contract: c.yaml }}\n"));
    let hash = |goal: &str| {
        let texts = [("c.yaml", format!("goal: {goal}\n"))];
        in_file.clone().prompts(texts).load().unwrap().hash()
    };
    let inline = TextSource::new(format!("{AGENTS}run: {{ contract: {{ goal: one }} }}\n")).load().unwrap();
    assert_eq!(hash("one"), inline.hash());
    assert_ne!(hash("one"), hash("two"));
}

#[track_caller]
fn check_refused(contract: &str, expected: &str) {
    let source = TextSource::new(format!("{AGENTS}run: {{ contract: {contract} }}\n"));
    let error = source.load().unwrap_err();
    assert_eq!((error.kind(), error.place().unwrap().line), (expected, 3), "{contract}: {error}");
}

#[test]
fn contract_files_keep_the_rules_of_prompt_files() {
    check_refused("../c.yaml", "descriptor.outside_root");
    check_refused("/c.yaml", "descriptor.path_rule");
    check_refused("'https://example.com/c.yaml'", "descriptor.path_rule");
    check_refused("c.yaml", "descriptor.contract_missing");
}

#[test]
fn contract_files_on_disk_do_not_lead_out_of_the_root() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("root");
    fs::create_dir(&root).unwrap();
    fs::write(folder.path().join("secret.yaml"), "goal: a\n").unwrap();
    fs::write(root.join("descriptor.yaml"), format!("{AGENTS}run: {{ contract: c.yaml }}\n")).unwrap();
    let kind = || load_file(root.join("descriptor.yaml")).unwrap_err().kind();
    assert_eq!(kind(), "descriptor.io");
    std::os::unix::fs::symlink("../secret.yaml", root.join("c.yaml")).unwrap();
    assert_eq!(kind(), "descriptor.outside_root");
}

#[test]
fn a_contract_is_loaded_and_checked_on_its_own() {
    let good = fixture("run-contract-file/contracts/report.yaml");
    assert!(is_contract(&good));
    assert_eq!(load_contract(&good).unwrap().goal, "A report");
    let report = check_contract(&good);
    assert!(report.is_clean() && report.contract().is_some());

    let bad = fixture("invalid-run-contract-file/contract.yaml");
    assert!(is_contract(&bad));
    let report = check_contract(&bad);
    assert_eq!((report.faults().count(), report.contract()), (4, None));
    let first = report.faults().next().unwrap().render(Style::Plain).to_string();
    assert!(first.contains("contract.yaml:6:56"), "{first}");
    assert_eq!(load_contract(&bad).unwrap_err().kind(), "descriptor.contract");

    assert!(!is_contract(fixture("run/descriptor.yaml")));
    assert!(!is_contract(fixture("nowhere.yaml")));
}

#[test]
fn what_is_no_contract_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("c.yaml");
    for (text, expected) in [
        ("", "contract must be a mapping, not nothing"),
        ("- a\n", "contract must be a mapping, not a list"),
        ("goal: [\n", "yaml.syntax"),
    ] {
        fs::write(&path, text).unwrap();
        let error = load_contract(&path).unwrap_err();
        assert!(error.to_string().ends_with(expected) || error.kind() == expected, "{text}: {error}");
        assert_eq!(check_contract(&path).faults().count(), 1, "{text}");
    }
    assert_eq!(load_contract(folder.path().join("none.yaml")).unwrap_err().kind(), "descriptor.io");
}
