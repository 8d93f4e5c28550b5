//! The descriptors under `fixtures/descriptors`: what each becomes, or what is wrong with it.
//!
//! A case is a folder with `descriptor.yaml`, and perhaps `contexts/*.json` with values that are
//! laid over its defaults. Its snapshot has the name of the folder.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use harness_descriptor::check::{CheckOptions, Report, Style, check_file};
use harness_descriptor::{ContextInput, Graph, Standing, Value, load_text};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/descriptors").canonicalize().unwrap()
}

/// The names in a folder, sorted; none if there is no such folder.
fn names(folder: &Path) -> BTreeSet<String> {
    let entries = fs::read_dir(folder).into_iter().flatten();
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

fn check(case: &str) -> Report {
    check_file(root().join(case).join("descriptor.yaml"), &CheckOptions::default())
}

/// All that can be seen of a case.
fn describe(case: &str) -> String {
    let report = check(case);
    let (faults, warnings) = (report.faults().count(), report.warnings().count());
    let mut out = format!("{faults} faults, {warnings} warnings\n");
    let rendered = report.render(Style::Plain).to_string();
    if !rendered.is_empty() {
        let folder = root().join(case).to_str().unwrap().to_owned();
        let rendered = rendered.replace(&format!("{folder}/"), "").replace(&folder, ".");
        write!(out, "\n{rendered}").unwrap();
    }
    let Some(graph) = report.graph() else { return out };
    describe_graph(&mut out, graph);
    let contexts = root().join(case).join("contexts");
    describe_context(&mut out, graph, "defaults", &Value::Map(harness_descriptor::Map::new()));
    for name in names(&contexts) {
        let overrides = serde_json::from_str(&fs::read_to_string(contexts.join(&name)).unwrap()).unwrap();
        describe_context(&mut out, graph, &name, &overrides);
    }
    out
}

/// What does not depend on a context.
fn describe_graph(out: &mut String, graph: &Graph) {
    let metadata = graph.metadata();
    writeln!(out, "\nhash {}", metadata.descriptor_hash).unwrap();
    writeln!(out, "name {:?}, version {:?}", metadata.name, metadata.version).unwrap();
    writeln!(out, "entry {} of {} agents", graph.entry_agent().id(), graph.agents().len()).unwrap();
    if let Some(run) = graph.run() {
        writeln!(out, "\nrun {run:#?}").unwrap();
    }
    for agent in graph.agents() {
        write!(out, "\n{} {:?}", agent.id(), agent.name()).unwrap();
        if let Some(model) = agent.model() {
            write!(out, " model {model}").unwrap();
        }
        if let Some(settings) = agent.model_settings() {
            write!(out, " settings {settings}").unwrap();
        }
        out.push('\n');
        for tool in agent.tools() {
            writeln!(out, "  tool {} = {}", tool.id, tool.target).unwrap();
        }
        for handoff in agent.handoffs() {
            write!(out, "  {} -> {}", handoff.tool_name(), handoff.to()).unwrap();
            if let Some(gate) = handoff.gate() {
                write!(out, " if {gate}").unwrap();
            }
            out.push('\n');
        }
    }
}

/// What each agent gets in one context.
fn describe_context(out: &mut String, graph: &Graph, name: &str, overrides: &Value) {
    let input = ContextInput::new("2026-01-01T00:00:00.000Z").message("My brakes squeak.");
    let input = input.overrides(overrides.as_map().unwrap().clone());
    let context = graph.create_context(&input).unwrap();
    writeln!(out, "\n==== {name}: {context}").unwrap();
    for agent in graph.agents() {
        let preview = graph.preview(agent.id(), &context).unwrap();
        writeln!(out, "\n-- {}", agent.id()).unwrap();
        for (index, part) in preview.parts.iter().enumerate() {
            if !matches!(part.standing, Standing::Open) {
                writeln!(out, "part {index}: {}", part.standing.name()).unwrap();
            }
        }
        for handoff in &preview.handoffs {
            writeln!(out, "{}: {}", handoff.handoff.tool_name(), handoff.standing.name()).unwrap();
        }
        match &preview.resolved {
            Ok(resolved) => {
                writeln!(out, "{}", resolved.instructions.as_deref().unwrap_or("(none)")).unwrap();
            }
            Err(error) => writeln!(out, "{}: {}", error.kind(), error.fault()).unwrap(),
        }
    }
}

#[test]
fn every_case_is_as_its_snapshot_says() {
    let cases = names(&root());
    assert!(cases.len() >= 25, "{} cases", cases.len());
    let invalid = cases.iter().filter(|case| !check(case).is_sound()).count();
    assert!(invalid >= 10, "{invalid} cases with faults");
    for case in &cases {
        insta::assert_snapshot!(case.as_str(), describe(case));
    }
    let snapshots = names(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/snapshots"));
    let expected = cases.iter().map(|case| format!("it__fixtures__{case}.snap")).collect();
    assert_eq!(snapshots, expected, "snapshots and cases");
}

#[test]
fn seven_faults_are_found_in_one_pass() {
    let report = check("seven-faults");
    let codes: BTreeSet<&str> = report.faults().map(|fault| fault.code).collect();
    assert_eq!(codes.len(), 7, "{codes:?}");
    let carets = report.faults().filter(|fault| fault.render(Style::Plain).to_string().contains('^')).count();
    assert_eq!(carets, 7);
}

#[test]
fn every_sound_case_reads_back_from_its_own_yaml() {
    for case in names(&root()) {
        if let Some(descriptor) = check(&case).descriptor() {
            let yaml = descriptor.to_value().to_yaml();
            assert_eq!(load_text(yaml).unwrap().hash(), descriptor.hash(), "{case}");
        }
    }
}
