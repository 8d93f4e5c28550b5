//! Arbitrary input never panics, hangs or hashes unlike itself.

use std::path::Path;
use std::time::{Duration, Instant};

use harness_descriptor::check::CheckOptions;
use harness_descriptor::{FileSource, Graph, Limits, Registry, TextSource, Value, load_text};
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

/// Numbers that look random: SplitMix64.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.next() % bound.max(1) as u64).unwrap()
    }

    fn range(&mut self, length: usize) -> std::ops::Range<usize> {
        let start = self.below(length + 1);
        start..start + self.below((length - start).min(200) + 1)
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
#[expect(clippy::indexing_slicing, reason = "every range is made from the length")]
fn change(numbers: &mut Numbers, text: &mut Vec<u8>, other: &[u8]) {
    match numbers.below(9) {
        0 if !text.is_empty() => {
            let at = numbers.below(text.len());
            text[at] ^= 1 << numbers.below(8);
        }
        1 => drop(text.drain(numbers.range(text.len()))),
        2 => {
            let piece = text[numbers.range(text.len())].to_vec();
            let at = numbers.below(text.len() + 1);
            text.splice(at..at, piece.repeat(1 + numbers.below(4)));
        }
        3 => {
            let piece = other[numbers.range(other.len())].to_vec();
            let range = numbers.range(text.len());
            text.splice(range, piece);
        }
        4 => text.truncate(numbers.below(text.len() + 1)),
        5 => {
            let spice = SPICES[numbers.below(SPICES.len())];
            let at = numbers.below(text.len() + 1);
            text.splice(at..at, spice.repeat(1 + numbers.below(3)));
        }
        6 => {
            let opener = [&b"["[..], b"{a: ", b"- ", b"? ", b"&a ", b"- [*a, "][numbers.below(6)];
            let at = numbers.below(text.len() + 1);
            text.splice(at..at, opener.repeat(numbers.below(300)));
        }
        7 => {
            // Lines move as a whole, so that many results are still documents.
            let mut lines: Vec<&[u8]> = text.split_inclusive(|byte| *byte == b'\n').collect();
            let (from, to) = (numbers.below(lines.len()), numbers.below(lines.len()));
            if !lines.is_empty() {
                let line = lines.remove(from);
                lines.insert(to, line);
            }
            *text = lines.concat();
        }
        _ => {
            let aliases = [&b"["[..], &b"*a, ".repeat(50), b"]"].concat();
            let bomb = (0..=numbers.below(8)).flat_map(|_| [&b"x: &a "[..], &aliases, b"\n"].concat());
            let bomb: Vec<u8> = bomb.collect();
            let at = numbers.below(text.len() + 1);
            text.splice(at..at, bomb);
        }
    }
}

/// The committed documents in a fixed order.
fn corpus() -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus");
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut paths: Vec<_> = entries.collect();
    paths.sort();
    paths.into_iter().map(|path| std::fs::read(path).unwrap()).collect()
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

#[expect(clippy::disallowed_methods, reason = "`cargo xtask fuzz` says how much to try, and from where")]
fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| text.parse().unwrap())
}

/// Far above what any of these documents takes, on any machine.
const SLOW: Duration = Duration::from_secs(10);

#[test]
#[expect(clippy::disallowed_methods, reason = "a document that takes very long is a fault")]
fn changed_documents() {
    let (seed, cases) = (setting("HARNESS_FUZZ_SEED", 1), setting("HARNESS_FUZZ_CASES", 400));
    let corpus = corpus();
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("a.md"), b"prompt \xff{{context.a}}").unwrap();
    for case in 0..cases {
        let mut numbers = Numbers(seed.wrapping_mul(0x1_0000_0001).wrapping_add(case));
        let mut text = corpus[numbers.below(corpus.len())].clone();
        for _ in 0..=numbers.below(5) {
            let other = &corpus[numbers.below(corpus.len())];
            change(&mut numbers, &mut text, other);
        }
        let from = Instant::now();
        let done = std::panic::catch_unwind(|| {
            run(String::from_utf8_lossy(&text).into_owned());
            run_file(folder.path(), &text);
        });
        let took = from.elapsed();
        assert!(
            done.is_ok() && took < SLOW,
            "seed {seed}, case {case}, {took:?}: {:?}",
            String::from_utf8_lossy(&text)
        );
    }
}
