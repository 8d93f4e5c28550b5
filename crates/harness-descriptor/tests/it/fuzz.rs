//! Arbitrary input never panics, hangs or hashes unlike itself.

use harness_descriptor::{Graph, Limits, Registry, TextSource, Value, load_text};
use proptest::prelude::*;

/// Pieces of YAML that meet in interesting ways.
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
            drop(graph.offer(agent.id(), &Value::Null));
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
