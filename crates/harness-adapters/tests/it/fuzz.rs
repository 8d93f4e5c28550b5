//! Changed streams never panic or hang, and how their bytes arrive never matters: framing and assembly.

use std::path::Path;
use std::time::{Duration, Instant};

use harness_adapters::AdapterError;
use harness_adapters::chat::{Assembler, Completion, ReplyLimits, Verdict};
use harness_core::port::DeltaPart;

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

const SPICES: [&[u8]; 18] = [
    b"data: ",
    b"\n\n",
    b"\r",
    b"\r\n",
    b":",
    b": comment\n",
    b"[DONE]",
    b"{",
    b"}",
    b"[",
    b"\"",
    b"\\u",
    b"null",
    b",\"error\":{\"code\":502}",
    b"\xef\xbb\xbf",
    b"\xff",
    b"\0",
    b"18446744073709551616",
];

/// Changes a stream in one way.
fn change(numbers: &mut Numbers, bytes: &mut Vec<u8>, other: &[u8]) {
    match numbers.below(7) {
        0 if !bytes.is_empty() => {
            let at = numbers.below(bytes.len());
            bytes[at] ^= 1 << numbers.below(8);
        }
        1 => drop(bytes.drain(numbers.range(bytes.len()))),
        2 => {
            let piece = bytes[numbers.range(bytes.len())].to_vec();
            let at = numbers.below(bytes.len() + 1);
            bytes.splice(at..at, piece.repeat(1 + numbers.below(4)));
        }
        3 => {
            let piece = other[numbers.range(other.len())].to_vec();
            let range = numbers.range(bytes.len());
            bytes.splice(range, piece);
        }
        4 => bytes.truncate(numbers.below(bytes.len() + 1)),
        5 => {
            let spice = SPICES[numbers.below(SPICES.len())];
            let at = numbers.below(bytes.len() + 1);
            bytes.splice(at..at, spice.repeat(1 + numbers.below(40)));
        }
        _ => {
            // Lines move as a whole, so that many results are still streams.
            let mut lines: Vec<&[u8]> = bytes.split_inclusive(|byte| *byte == b'\n').collect();
            let (from, to) = (numbers.below(lines.len()), numbers.below(lines.len()));
            if !lines.is_empty() {
                let line = lines.remove(from);
                lines.insert(to, line);
            }
            *bytes = lines.concat();
        }
    }
}

/// The committed streams in a fixed order.
fn corpus() -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus");
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut paths: Vec<_> = entries.collect();
    paths.sort();
    paths.into_iter().map(|path| std::fs::read(path).unwrap()).collect()
}

/// Small enough that a changed stream passes each of them now and then.
fn limits() -> ReplyLimits {
    let mut limits = ReplyLimits::default();
    (limits.body, limits.line, limits.event) = (6_000, 2_000, 2_500);
    (limits.tool_calls, limits.reasoning_items) = (3, 3);
    limits
}

/// What a stream gives: the answer with its pieces, or the bound that it passed.
fn read<'a>(
    limits: ReplyLimits,
    reads: impl Iterator<Item = &'a [u8]>,
) -> (Completion, Vec<DeltaPart>, Option<AdapterError>) {
    let mut assembler = Assembler::new(limits);
    let mut parts = Vec::new();
    let mut reads = reads;
    let fault = reads.find_map(|bytes| assembler.feed(bytes, &mut |part| parts.push(part)).err());
    (assembler.finish(), parts, fault)
}

/// Reads a stream whole and in pieces, and holds the answer to what is true of every answer.
fn check(numbers: &mut Numbers, bytes: &[u8]) {
    let unbounded = ReplyLimits::default();
    let (answer, parts, fault) = read(unbounded.clone(), [bytes].into_iter());
    if let Some(fault) = fault {
        // A repeated piece makes an id longer than any may be; every other bound is far above these streams.
        assert!(matches!(fault, AdapterError::TooLarge { what: "id of a tool call", .. }), "{fault:?}");
        return;
    }
    let size = 1 + numbers.below(64);
    let (cut, cut_parts, _) = read(unbounded, bytes.chunks(size));
    assert_eq!(format!("{answer:?} {parts:?}"), format!("{cut:?} {cut_parts:?}"), "in pieces of {size}");

    let shown: usize =
        parts.iter().map(|part| if let DeltaPart::Text(text) = part { text.len() } else { 0 }).sum();
    let kept =
        answer.content.as_ref().map_or(0, String::len) + answer.refusal.as_ref().map_or(0, String::len);
    assert_eq!(shown, kept, "what was shown is what is kept");
    if answer.verdict() == Verdict::ToolRequest {
        assert!(answer.tool_calls.iter().all(|call| call.input().is_some()), "{answer:?}");
    }

    let (bounded, ..) = read(limits(), bytes.chunks(size));
    assert!(bounded.content.is_none_or(|text| text.len() <= 3 * 6_000), "a damaged byte becomes three");
    assert!(
        bounded.tool_calls.len() <= 4 && bounded.reasoning_details.len() <= 4,
        "one past the bound is seen"
    );
}

#[expect(clippy::disallowed_methods, reason = "`cargo xtask fuzz` says how much to try, and from where")]
fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| text.parse().unwrap())
}

/// Far above what any of these streams takes, on any machine.
const SLOW: Duration = Duration::from_secs(10);

#[test]
#[expect(clippy::disallowed_methods, reason = "a stream that takes very long is a fault")]
fn changed_streams() {
    let (seed, cases) = (setting("HARNESS_FUZZ_SEED", 1), setting("HARNESS_FUZZ_CASES", 400));
    let corpus = corpus();
    for case in 0..cases {
        let mut numbers = Numbers(seed.wrapping_mul(0x1_0000_0001).wrapping_add(case));
        let mut bytes = corpus[numbers.below(corpus.len())].clone();
        for _ in 0..=numbers.below(5) {
            let other = &corpus[numbers.below(corpus.len())];
            change(&mut numbers, &mut bytes, other);
        }
        let from = Instant::now();
        let checked = std::panic::AssertUnwindSafe(|| check(&mut numbers, &bytes));
        let done = std::panic::catch_unwind(checked);
        let took = from.elapsed();
        assert!(
            done.is_ok() && took < SLOW,
            "seed {seed}, case {case}, {took:?}: {:?}",
            String::from_utf8_lossy(&bytes)
        );
    }
}
