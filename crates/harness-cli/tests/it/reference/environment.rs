//! `docs/reference/environment.md` lists exactly the variables that the program reads.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use harness::host::process::PASSED;
use syn::visit::{self, Visit};

/// Text of a file of the repository.
fn read(file: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(file)).unwrap()
}

/// Names in the first column of the tables of one section of the page.
fn listed(heading: &str) -> BTreeSet<String> {
    let page = read("docs/reference/environment.md");
    let (_, section) = page.split_once(&format!("\n## {heading}\n")).unwrap();
    let rows = section.lines().take_while(|line| !line.starts_with("## "));
    let cells = rows.filter_map(|row| row.strip_prefix("| `")?.split('|').next());
    cells.flat_map(|cell| cell.split('`')).filter(|name| is_variable(name)).map(str::to_owned).collect()
}

fn is_variable(text: &str) -> bool {
    text.len() > 1 && text.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_')
}

/// Text literals of a file.
#[derive(Default)]
struct Literals(BTreeSet<String>);

impl Visit<'_> for Literals {
    fn visit_item_const(&mut self, item: &syn::ItemConst) {
        // Endings of names, which are no names themselves.
        if item.ident != "SECRET_NAMES" {
            visit::visit_item_const(self, item);
        }
    }

    fn visit_lit_str(&mut self, literal: &syn::LitStr) {
        self.0.extend(Some(literal.value()).filter(|text| is_variable(text)));
    }
}

/// The only module that reads variables; a lint forbids it to the others.
#[test]
fn every_variable_of_the_program_is_listed() {
    let mut read_by_program = Literals::default();
    read_by_program.visit_file(&syn::parse_file(&read("crates/harness-cli/src/env.rs")).unwrap());
    assert!(read_by_program.0.contains("ANTHROPIC_API_KEY"), "{:?}", read_by_program.0);
    assert_eq!(listed("Read by harness"), read_by_program.0);
}

#[test]
fn every_variable_of_a_tool_is_listed() {
    let mut of_tools: BTreeSet<String> = PASSED.map(str::to_owned).into();
    of_tools.extend(["HARNESS_CALL_ID", "HARNESS_IDEMPOTENCY_KEY"].map(str::to_owned));
    assert_eq!(listed("Passed to tools"), of_tools);
}
