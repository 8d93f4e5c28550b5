//! Arbitrary input never panics, hangs or hashes unlike itself.

use std::path::Path;

use harness_descriptor::check::CheckOptions;
use harness_descriptor::{FileSource, Graph, Limits, Registry, TextSource, Value, load_text};
use proptest::prelude::*;

use crate::fuzz_support::{Numbers, change, fuzz, insert};

/// Pieces of YAML that meet in interesting ways.
#[expect(clippy::too_many_lines, reason = "one case after another")]
fn piece() -> impl Strategy<Value = String> {
    let pieces = [
        "a",
        "b: ",
        ": ",
        "- ",
        "? ",
        "[",
        "]",
        "{",
        "}",
        ", ",
        "\n",
        "\n  ",
        "\n    ",
        "\r\n",
        "\t",
        "\"",
        "'",
        "|\n",
        ">-\n",
        "|+2\n",
        "# c",
        "&a ",
        "*a",
        "<<: ",
        "!!str ",
        "!!set ",
        "!!omap ",
        "! ",
        "!x ",
        "---\n",
        "...\n",
        "%YAML 1.2\n",
        "0x1f",
        "1_0",
        ".5",
        "-.inf",
        "2020-01-02",
        "2020-13-02",
        "~",
        "null",
        "true",
        "\u{feff}",
        "\u{e000}",
        "\u{85}",
        "\u{1f600}",
        "\\u00e9",
        "\\",
        "\0",
        "\u{7f}",
        "{{context.x}}",
        "agents: ",
        "runtime: ",
        "entry_agent: a",
        "instructions: ",
        "instructions_files: ",
        "instructions_sequence: ",
        "context: ",
        "references: ",
        "where: ",
        "__proto__: ",
        "handoffs: ",
        "tools: ",
        "target: ",
    ];
    prop_oneof![4 => prop::sample::select(pieces.to_vec()).prop_map(str::to_owned), 1 => "\\PC{0,6}"]
}

fn small() -> Limits {
    let mut limits = Limits::default();
    limits.values = 10_000;
    limits.text_bytes = 1 << 20;
    limits
}

/// Loads and builds; whatever loads hashes like its own canonical text.
fn run(yaml: String) {
    let prompts = [("a", "prompt {{context.a}}")];
    let Ok(descriptor) = TextSource::new(yaml).path("/v/d.yaml").prompts(prompts).limits(small()).load()
    else {
        return;
    };
    let canonical = descriptor.canonical_text();
    serde_json::from_str::<Value>(&canonical).unwrap();
    // JSON is YAML: the canonical text read again is the same descriptor, but for `__proto__`.
    if let Ok(again) = load_text(canonical.as_str()) {
        assert_eq!(again.canonical_text(), canonical);
        assert_eq!(again.hash(), descriptor.hash());
    }
    if let Ok(graph) = Graph::build(&descriptor, &Registry::new()) {
        for agent in graph.agents() {
            drop(graph.resolve(agent.id(), &Value::Null));
        }
    }
    for warning in descriptor.warnings() {
        assert!(!warning.place.to_string().is_empty());
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(2000) })]

    #[test]
    fn pieces_of_yaml(pieces in prop::collection::vec(piece(), 0..24)) {
        run(pieces.concat());
    }

    #[test]
    fn any_bytes(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        run(String::from_utf8_lossy(&bytes).into_owned());
    }

    #[test]
    fn nested_openers(opener in prop::sample::select(vec!["[", "{a: ", "- ", "? ", "{? ", "!!seq [", "&a [", "\"", "'", "|\n "]), count in 1_usize..3000) {
        run(opener.repeat(count));
    }
}

const SPICES: [&[u8]; 24] = [
    b"&a ",
    b"*a",
    b"<<: ",
    b"!!str ",
    b"---\n",
    b"\n",
    b"\n  ",
    b": ",
    b"- ",
    b"[",
    b"]",
    b"{",
    b"}",
    b"\"",
    b"'",
    b"|\n",
    b"\t",
    b"\r\n",
    b"#",
    b"\xef\xbb\xbf",
    b"\xff",
    b"\0",
    b"{{context.",
    b"? ",
];

/// Changes a document in one way.
#[expect(clippy::indexing_slicing, reason = "numbers are below the length")]
fn change_document(numbers: &mut Numbers, text: &mut Vec<u8>, other: &[u8]) {
    const OPENERS: [&[u8]; 6] = [b"[", b"{a: ", b"- ", b"? ", b"&a ", b"- [*a, "];
    match numbers.below(9) {
        0..=6 => change(numbers, text, other, &SPICES),
        7 => {
            let opener = OPENERS[numbers.below(OPENERS.len())];
            insert(numbers, text, opener, 300);
        }
        _ => {
            let aliases = [&b"["[..], &b"*a, ".repeat(50), b"]"].concat();
            insert(numbers, text, &[&b"x: &a "[..], &aliases, b"\n"].concat(), 9);
        }
    }
}

/// Loads a document from disk and checks it in full.
fn run_file(folder: &Path, yaml: &[u8]) {
    std::fs::write(folder.join("d.yaml"), yaml).unwrap();
    let source = || FileSource::new(folder.join("d.yaml")).limits(small());
    drop(source().check(&CheckOptions::default()));
    if let Ok(descriptor) = source().load() {
        let hashes = descriptor.agent_hashes().chain(descriptor.part_hashes());
        assert!(hashes.into_iter().all(|(_, hash)| hash.to_string().starts_with("sha256:")));
    }
}

#[test]
fn changed_documents() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("a.md"), b"prompt \xff{{context.a}}").unwrap();
    fuzz(env!("CARGO_MANIFEST_DIR"), change_document, |_, text| {
        run(String::from_utf8_lossy(text).into_owned());
        run_file(folder.path(), text);
    });
}
