//! `docs/reference/errors.md`: error codes with cause and fix, written from the source.
//!
//! Messages and hints are those of the source. [`texts`] has the others.

mod source;
mod texts;

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::sync::LazyLock;

use expect_test::expect_file;

use crate::support::root;
use source::{Code, Codes};

const INTRODUCTION: &str = "\
# Error codes

Every error has a stable code: `kind` in JSON output, in HTTP responses and of error types in the library. The wording of
messages may change. This page is generated from the source; `…` is a value. Codes of descriptors are on a separate page,
with examples: [diagnostics](diagnostics.md). Reasons for the end of a run are [stop reasons](stop-reasons.md).
";

static CODES: LazyLock<Codes> = LazyLock::new(|| {
    let mut codes = Codes::new();
    for entry in std::fs::read_dir(root().join("crates")).unwrap() {
        let directory = entry.unwrap().path();
        if !directory.ends_with("harness-conformance") {
            source::read_crate(&directory.join("src"), &mut codes);
        }
    }
    codes.retain(|code, _| !texts::NOT_CODES.contains(&code.as_str()));
    codes
});

/// The page, and what it lacks.
fn page(codes: &Codes) -> (String, Vec<String>) {
    let mut page = INTRODUCTION.to_owned();
    let mut lacking = Vec::new();
    for (area, subject) in texts::AREAS {
        write!(page, "\n## `{area}`\n\n{subject}\n\n| code | message | fix |\n|---|---|---|\n").unwrap();
        for (code, text) in codes.iter().filter(|(code, _)| code.split('.').next() == Some(area)) {
            let (message, fix) = texts_of(code, text);
            if message.is_empty() || fix.is_empty() {
                lacking.push(format!(
                    "{code}: add message and fix to crates/harness-cli/tests/it/error_page/texts.rs"
                ));
            }
            writeln!(page, "| `{code}` | {} | {} |", cell(&message), cell(&fix)).unwrap();
        }
    }
    (page, lacking)
}

fn texts_of(code: &str, text: &Code) -> (String, String) {
    let (_, message, fix) = texts::TEXTS.iter().find(|(of, ..)| *of == code).copied().unwrap_or_default();
    let or = |own: &str, source: Option<&String>| match own {
        "" => source.cloned().unwrap_or_default(),
        own => own.to_owned(),
    };
    (or(message, text.message.as_ref()), or(fix, text.hint.as_ref()))
}

/// A text without placeholders, as a cell of a table.
fn cell(text: &str) -> String {
    let mut cell = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('{') {
        let Some((placeholder, after)) = after.split_once('}') else { break };
        cell.push_str(before);
        let is_literal = placeholder.contains(['"', ' ']);
        if is_literal {
            cell.extend(["{", placeholder, "}"]);
        } else {
            cell.push('…');
        }
        rest = after;
    }
    cell.push_str(rest);
    cell.replace('|', "\\|").replace("……", "…")
}

#[test]
fn the_page_is_current_and_complete() {
    let (page, lacking) = page(&CODES);
    assert_eq!(lacking, Vec::<String>::new());
    expect_file!["../../../../../docs/reference/errors.md"].assert_eq(&page);
}

#[test]
fn every_text_and_area_is_used() {
    let stale: Vec<&str> =
        texts::TEXTS.iter().map(|(code, ..)| *code).filter(|code| !CODES.contains_key(*code)).collect();
    assert_eq!(stale, Vec::<&str>::new(), "codes that the source no longer has");
    // `harness-descriptor` checks the page with the others.
    let elsewhere = ["context", "descriptor", "hash", "yaml"];
    let areas: BTreeSet<&str> = CODES.keys().filter_map(|code| code.split('.').next()).collect();
    let listed = texts::AREAS.iter().map(|(area, _)| *area).chain(elsewhere).collect::<BTreeSet<_>>();
    assert_eq!(areas, listed);
}

#[test]
fn placeholders_are_not_shown() {
    assert_eq!(cell("cannot listen on {address}: {source}"), "cannot listen on …: …");
    assert_eq!(cell("`{}`{}: {begin:?} | {x"), "`…`…: … \\| {x");
    assert_eq!(cell(r#"write {"key": 1}"#), r#"write {"key": 1}"#);
}
