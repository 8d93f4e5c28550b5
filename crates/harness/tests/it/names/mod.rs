//! How many names of harness a program needs for a task: the shortest program of each is counted, and run.

mod adapter;
mod approval;
mod layer;
mod persistence;
mod tool;

use std::collections::BTreeSet;
use std::path::Path;

use harness::core::testing::ScriptedModel;
use harness::prelude::*;

use crate::support::call;

/// Names of Rust and schemars, and of the programs themselves.
const NOT_OURS: &[&str] = &[
    "Arc",
    "Box",
    "Deserialize",
    "Err",
    "Error",
    "JsonSchema",
    "Ok",
    "Path",
    "Result",
    "Some",
    "String",
    "clone",
    "last",
    "map",
    "name",
    "new",
    "open",
    "run",
    "use",
];

/// Names that the sources of the workspace make public.
fn public_names() -> BTreeSet<String> {
    fn visit(folder: &Path, names: &mut BTreeSet<String>) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                visit(&path, names);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                read(&std::fs::read_to_string(path).unwrap(), names);
            }
        }
    }
    fn read(text: &str, names: &mut BTreeSet<String>) {
        for line in text.lines() {
            let line = line.trim_start();
            let item = line.strip_prefix("pub ").or_else(|| line.strip_prefix("fn ")).unwrap_or_default();
            let kinds = ["async ", "const ", "fn ", "struct ", "enum ", "trait ", "mod ", "type "];
            let name = kinds.iter().fold(item, |rest, kind| rest.strip_prefix(kind).unwrap_or(rest));
            let is_variant = line.starts_with(|c: char| c.is_uppercase());
            names.extend(words(if is_variant { line } else { name }).next().map(str::to_owned));
        }
    }
    let mut names = BTreeSet::new();
    for krate in std::fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("..")).unwrap() {
        let src = krate.unwrap().path().join("src");
        if src.is_dir() {
            visit(&src, &mut names);
        }
    }
    names
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !(c.is_alphanumeric() || c == '_')).filter(|word| !word.is_empty())
}

/// The names of harness in a program: what it imports (a module with `*` counts as one), the types and variants that it
/// writes, the methods that it calls or implements, the fields that it reads.
fn names_in(program: &str, public: &BTreeSet<String>) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for line in program.lines().filter(|line| !line.trim_start().starts_with("//")) {
        let code = line.split('"').step_by(2).collect::<Vec<_>>().join(" ");
        let is_import = code.starts_with("use ");
        for name in words(&code).filter(|name| public.contains(*name) && !NOT_OURS.contains(name)) {
            let follows = |before: &str, after: &str| code.contains(&format!("{before}{name}{after}"));
            let is_module = follows("", "::") && !follows("", "::*");
            let is_type = name.starts_with(char::is_uppercase);
            let is_used = is_type || follows(".", "") || follows("", "(") || follows("fn ", "");
            if is_import && code.contains("harness") && !is_module || !is_import && is_used {
                names.insert(name.to_owned());
            }
        }
    }
    names
}

#[track_caller]
fn check(program: &str, beyond: &str, most: usize, expected: &[&str]) {
    let public = public_names();
    let known = names_in(beyond, &public);
    let names: Vec<String> =
        names_in(program, &public).into_iter().filter(|name| !known.contains(name)).collect();
    assert_eq!(names, expected);
    assert!(names.len() <= most, "{} names, at most {most}: {names:?}", names.len());
}

const TOOL: &str = include_str!("tool.rs");

#[test]
fn prompt_with_a_tool_needs_nine_names() {
    let names =
        ["Harness", "HarnessError", "Model", "answer", "build", "prelude", "prompt", "tool", "tool_fn"];
    check(TOOL, "", 9, &names);
}

#[test]
fn approval_needs_eight_names_more() {
    let names = ["Decision", "Granted", "arguments", "decide", "needs_approval", "resume"];
    check(include_str!("approval.rs"), TOOL, 8, &names);
}

#[test]
fn persistence_needs_five_names_more() {
    check(include_str!("persistence.rs"), TOOL, 5, &["FileSession", "OpenOptions", "session"]);
}

#[test]
fn memory_layer_needs_eight_names_more() {
    let names = [
        "LayerSetup",
        "MemoryStorage",
        "Pipeline",
        "Scratchpad",
        "SystemClock",
        "memory",
        "with",
        "with_storage",
    ];
    check(include_str!("layer.rs"), TOOL, 8, &names);
}

#[test]
fn adapter_needs_twelve_names() {
    let names = [
        "AssistantMessage",
        "DeltaPart",
        "Deltas",
        "Model",
        "ModelFault",
        "ModelRequest",
        "Text",
        "joined_text",
        "part",
        "step",
        "text",
        "view",
    ];
    check(include_str!("adapter.rs"), "", 12, &names);
}

#[tokio::test]
async fn programs_run() {
    let weather = [call("c1", "weather", r#"{"name":"Oslo"}"#), AssistantMessage::text("Cold.")];
    assert_eq!(tool::run(ScriptedModel::new(weather)).await.unwrap(), "Cold.");
    let book = [call("c1", "book", r#"{"name":"Oslo"}"#), AssistantMessage::text("Booked.")];
    let booked = approval::run(ScriptedModel::new(book)).await.unwrap();
    assert!(
        booked.starts_with("book ") && booked.contains("Oslo") && booked.ends_with(": Booked."),
        "{booked}"
    );
    let folder = tempfile::tempdir().unwrap();
    assert_eq!(persistence::run(adapter::Echo, &folder.path().join("a.jsonl")).await.unwrap(), "Hello.");
    assert_eq!(layer::run(ScriptedModel::new([AssistantMessage::text("Hi.")])).await.unwrap(), "Hi.");
}
