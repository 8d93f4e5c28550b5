//! `docs/reference/diagnostics.md` and the codes of the source: neither has one that the other lacks.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use harness_descriptor::check::{CheckOptions, check_text};

const FOLDER: &str = env!("CARGO_MANIFEST_DIR");

fn page() -> String {
    fs::read_to_string(Path::new(FOLDER).join("../../docs/reference/diagnostics.md")).unwrap()
}

/// The parts of the page by code.
fn sections(page: &str) -> Vec<(&str, &str)> {
    let sections = page.split("\n### `").skip(1);
    sections.map(|section| section.split_once('`').unwrap()).collect()
}

/// The string literals of the source that have the form of a code.
fn codes(folder: &Path, out: &mut BTreeSet<String>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            codes(&path, out);
            continue;
        }
        let source = fs::read_to_string(&path).unwrap();
        for literal in source.split('"') {
            let Some((area, name)) = literal.split_once('.') else { continue };
            // Sections of a descriptor are called `context.…` too; codes of that area are in one file.
            let is_area = matches!(area, "descriptor" | "yaml" | "hash" | "lint")
                || area == "context" && path.ends_with("error/mod.rs");
            let is_name =
                !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_');
            if is_area && is_name && literal != "descriptor.yaml" {
                out.insert(literal.to_owned());
            }
        }
    }
}

#[test]
fn the_page_has_the_codes_of_the_source() {
    let mut source = BTreeSet::new();
    codes(&Path::new(FOLDER).join("src"), &mut source);
    codes(&Path::new(FOLDER).join("../harness-diagnostics/src/yaml"), &mut source);
    let page = page();
    let documented: BTreeSet<String> = sections(&page).iter().map(|(code, _)| (*code).to_owned()).collect();
    assert_eq!(documented.len(), sections(&page).len(), "each code once");
    assert_eq!(documented, source);
}

#[test]
fn the_examples_give_their_codes() {
    let page = page();
    let mut examples = 0;
    for (code, section) in sections(&page) {
        let Some((_, example)) = section.split_once("```yaml\n") else { continue };
        let mut yaml = example.split_once("```").unwrap().0.to_owned();
        if code != "descriptor.not_a_mapping" {
            for (key, rest) in
                [("runtime:", " { entry_agent: desk }\n"), ("agents:", " { desk: { model: small } }\n")]
            {
                if !yaml.contains(key) {
                    yaml.insert_str(0, &format!("{key}{rest}"));
                }
            }
        }
        let report = check_text(yaml, &CheckOptions::default());
        let found: Vec<&str> = report.diagnostics().iter().map(|found| found.code).collect();
        assert!(found.contains(&code), "the example of {code} gives {found:?}");
        examples += 1;
    }
    assert!(examples > 40, "{examples} examples");
}
