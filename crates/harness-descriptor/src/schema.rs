//! The JSON Schema of descriptors, for editors.

use schemars::Schema;
use serde_json::Value;

use crate::source::AgentHarnessDescriptor;

/// First line of a descriptor that enables editor support, for a schema file next to it.
///
/// `harness schema` prints the schema; `docs/reference/descriptor.schema.json` is a copy.
pub const HEADER: &str = "# yaml-language-server: $schema=descriptor.schema.json";

/// JSON Schema of descriptors as written.
///
/// Misspelled keys are rejected, as when a graph is built. Keys that start with `x-` are free
/// everywhere, and so is the content of the mapping `extensions`. The schema cannot check
/// references (agents, tools, parts, context paths); [`check`](crate::check) does.
pub fn schema() -> Schema {
    schemars::schema_for!(AgentHarnessDescriptor)
}

/// [`schema`] as indented JSON with a final line end.
pub fn text() -> String {
    sorted(schema().to_value())
}

/// JSON Schema of contract files, as indented JSON with a final line end.
pub fn contract_text() -> String {
    let mut schema = crate::run::contract_schema();
    if let Some(schema) = schema.as_object_mut() {
        schema.insert("$schema".to_owned(), "https://json-schema.org/draft/2020-12/schema".into());
        schema.insert("title".to_owned(), "Contract".into());
    }
    sorted(schema)
}

/// Keys are sorted, whichever order the build keeps them in.
fn sorted(mut schema: Value) -> String {
    schema.sort_all_objects();
    format!("{schema:#}\n")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::{Path, PathBuf};
    use std::{fs, io};

    use expect_test::expect_file;
    use jsonschema::Validator;

    use crate::check::{CheckOptions, Report, check_file, check_text};
    use crate::limits::Limits;
    use crate::value::Value;

    fn root() -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
    }

    fn validator() -> Validator {
        jsonschema::validator_for(&super::schema().to_value()).unwrap()
    }

    /// A descriptor as written, prompts and parts not in place; `None` if it is no YAML.
    fn written(yaml: Vec<u8>) -> Option<serde_json::Value> {
        let document = harness_diagnostics::read(yaml, "test", &Limits::default().yaml(), None).ok()?;
        serde_json::to_value(Value::json_of(&document, document.root()?)).ok()
    }

    /// What makes a descriptor one that the schema need not accept.
    fn is_excused(report: &Report) -> bool {
        let stricter = [
            "descriptor.no_model",
            "lint.type_name",
            "lint.value_type",
            "lint.setting_type",
            "lint.descriptor_version",
        ];
        !report.is_sound() || report.warnings().any(|warning| stricter.contains(&warning.code))
    }

    fn descriptors(folder: &str) -> io::Result<Vec<PathBuf>> {
        let mut found = Vec::new();
        for entry in fs::read_dir(root().join(folder))? {
            let path = entry?.path().join("descriptor.yaml");
            found.extend(path.exists().then_some(path));
        }
        Ok(found)
    }

    #[test]
    fn what_has_no_warning_is_accepted_and_what_is_misspelled_is_not() {
        let validator = validator();
        let (mut accepted, mut refused) = (0, 0);
        for folder in ["fixtures/descriptors", "fixtures/examples", "fixtures/conformance/descriptor"] {
            for path in descriptors(folder).unwrap() {
                let Some(value) = written(fs::read(&path).unwrap()) else { continue };
                let report = check_file(&path, &CheckOptions::default());
                let faults: Vec<String> = validator
                    .iter_errors(&value)
                    .map(|fault| format!("{}: {fault}", fault.instance_path()))
                    .collect();
                if !is_excused(&report) {
                    assert_eq!(faults, Vec::<String>::new(), "{}", path.display());
                    accepted += 1;
                }
                let misspelled = |found: &crate::check::Diagnostic| found.code == "descriptor.unknown_key";
                if report.diagnostics().iter().any(misspelled) {
                    assert_ne!(faults, Vec::<String>::new(), "{}", path.display());
                    refused += 1;
                }
            }
        }
        assert!(accepted > 50 && refused > 2, "{accepted} accepted, {refused} refused");
    }

    #[track_caller]
    fn check(agent: &str, expected: bool) {
        let yaml = format!("runtime: {{ entry_agent: a }}\nagents: {{ a: {{ model: m, {agent} }} }}\n");
        let value = written(yaml.clone().into_bytes()).unwrap();
        assert_eq!(validator().is_valid(&value), expected, "{agent}");
        let report = check_text(yaml, &CheckOptions::default());
        let named: BTreeSet<&str> = report.diagnostics().iter().map(|found| found.code).collect();
        assert!(expected || !named.is_empty(), "the check finds nothing in {agent}");
    }

    #[track_caller]
    fn check_run(run: &str, expected: bool) {
        let yaml = format!("runtime: {{ entry_agent: a }}\nagents: {{ a: {{ model: m }} }}\nrun: {run}\n");
        let value = written(yaml.clone().into_bytes()).unwrap();
        assert_eq!(validator().is_valid(&value), expected, "{run}");
        assert_eq!(check_text(yaml, &CheckOptions::default()).is_sound(), expected, "{run}");
    }

    #[test]
    fn the_schema_and_the_check_of_run_agree() {
        for right in [
            "{}",
            "{ mode: interactive, x-why: 1 }",
            "{ limits: { cost: '2.50', elapsed: unlimited, tool_calls: 0 } }",
            "{ signal: false, work_items: true, stall: { threshold: 2 } }",
            "{ contract: { goal: a, required_outputs: [{ id: a, description: b, predicate: { type: always_true } }] } }",
            "{ guidance: { instructions: [{ id: a, text: b, when: { called: { look: 1 } } }] } }",
        ] {
            check_run(right, true);
        }
        for wrong in [
            "~",
            "[]",
            "{ mode: strict }",
            "{ modes: interactive }",
            "{ limits: { turns: 1.5 } }",
            "{ limits: { elapsed: 5 } }",
            "{ limits: { elapsed: 5 minutes } }",
            "{ stall: { threshold: 1 } }",
            "{ signal: 'yes' }",
            "{ compaction: { preset: shorter } }",
            "{ contract: { goal: '' } }",
            "{ contract: { goal: a, required_outputs: [{ id: a, description: b, predicate: { type: file_exists } }] } }",
            "{ contract: { goal: a, required_outputs: [{ id: a, description: b, predicate: { type: other } }] } }",
            "{ guidance: { texts: { other: a } } }",
            "{ guidance: { off: [everything] } }",
        ] {
            check_run(wrong, false);
        }
    }

    #[test]
    fn agents_of_the_wrong_shape() {
        check("tools: [], instructions: hello, x-note: 1", true);
        check("instructions: [{ text: a, x-why: b }]", true);
        check("modelSettings: { temperature: 1, own: [1] }, name: ~", true);
        for wrong in [
            "instruction: hello",
            "hand_offs: []",
            "handoffs: ~",
            "handoffs: [{ agent: a, when: { context: x } }]",
            "handoffs: ['']",
            "tools: x",
            "name: 7",
            "modelSettings: { temperature: hot }",
            "instructions: 7",
            "instructions: [{ txt: a }]",
            "instructions: a, instructions_file: a.md",
            "instructions_file: /a.md",
            "instructions_file: 'https://example.com/a.md'",
            "instructions_files: []",
            "instructions_sequence: [{ ref: a, text: b }]",
            "instructions_sequence: [{ where: { context: a } }]",
        ] {
            check(wrong, false);
        }
    }

    #[test]
    fn the_committed_copies_are_fresh() {
        expect_file!["../../../docs/reference/descriptor.schema.json"].assert_eq(&super::text());
        expect_file!["../../../docs/reference/contract.schema.json"].assert_eq(&super::contract_text());
    }
}
