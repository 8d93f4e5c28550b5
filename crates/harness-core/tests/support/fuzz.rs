//! Changed texts for the fuzz tests of several crates. `HARNESS_FUZZ_SEED` and `HARNESS_FUZZ_CASES` say which, and how
//! many.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::time::{Duration, Instant};

/// Far above what any of these texts takes, on any machine.
const SLOW: Duration = Duration::from_secs(10);

/// Numbers that look random: SplitMix64.
pub(crate) struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub(crate) fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.next() % bound.max(1) as u64).unwrap()
    }

    fn range(&mut self, length: usize) -> std::ops::Range<usize> {
        let start = self.below(length + 1);
        start..start + self.below((length - start).min(200) + 1)
    }
}

/// Changes a text in one way.
#[expect(clippy::indexing_slicing, reason = "every range is made from the length")]
pub(crate) fn change(numbers: &mut Numbers, text: &mut Vec<u8>, other: &[u8], spices: &[&[u8]]) {
    match numbers.below(7) {
        0 if !text.is_empty() => {
            let at = numbers.below(text.len());
            text[at] ^= 1 << numbers.below(8);
        }
        1 => drop(text.drain(numbers.range(text.len()))),
        2 => {
            let piece = text[numbers.range(text.len())].to_vec();
            insert(numbers, text, &piece, 4);
        }
        3 => {
            let piece = other[numbers.range(other.len())].to_vec();
            let range = numbers.range(text.len());
            text.splice(range, piece);
        }
        4 => text.truncate(numbers.below(text.len() + 1)),
        5 => {
            let spice = spices[numbers.below(spices.len())];
            insert(numbers, text, spice, 40);
        }
        _ => {
            // Lines move as a whole, so that many results still have the form of the text.
            let mut lines: Vec<&[u8]> = text.split_inclusive(|byte| *byte == b'\n').collect();
            let (from, to) = (numbers.below(lines.len()), numbers.below(lines.len()));
            if !lines.is_empty() {
                let line = lines.remove(from);
                lines.insert(to, line);
            }
            *text = lines.concat();
        }
    }
}

/// Inserts a piece somewhere, up to `most` times in a row.
pub(crate) fn insert(numbers: &mut Numbers, text: &mut Vec<u8>, piece: &[u8], most: usize) {
    let at = numbers.below(text.len() + 1);
    text.splice(at..at, piece.repeat(1 + numbers.below(most)));
}

/// Passes changed texts of the folder `fuzz/corpus` of a crate to `check`, which may neither panic nor take long.
#[expect(clippy::disallowed_methods, reason = "a text that takes very long is a fault")]
#[expect(clippy::indexing_slicing, reason = "numbers are below the length")]
pub(crate) fn fuzz(
    crate_folder: &str,
    change: impl Fn(&mut Numbers, &mut Vec<u8>, &[u8]),
    check: impl Fn(&mut Numbers, &[u8]),
) {
    let (seed, cases) = (setting("HARNESS_FUZZ_SEED", 1), setting("HARNESS_FUZZ_CASES", 400));
    let corpus = corpus(crate_folder);
    for case in 0..cases {
        let mut numbers = Numbers(seed.wrapping_mul(0x1_0000_0001).wrapping_add(case));
        let mut text = corpus[numbers.below(corpus.len())].clone();
        for _ in 0..=numbers.below(5) {
            let other = &corpus[numbers.below(corpus.len())];
            change(&mut numbers, &mut text, other);
        }
        let from = Instant::now();
        let done = catch_unwind(AssertUnwindSafe(|| check(&mut numbers, &text)));
        let took = from.elapsed();
        assert!(
            done.is_ok() && took < SLOW,
            "seed {seed}, case {case}, {took:?}: {:?}",
            String::from_utf8_lossy(&text)
        );
    }
}

/// The committed texts in a fixed order.
fn corpus(crate_folder: &str) -> Vec<Vec<u8>> {
    let entries = std::fs::read_dir(Path::new(crate_folder).join("fuzz/corpus")).unwrap();
    let mut paths: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths.into_iter().map(|path| std::fs::read(path).unwrap()).collect()
}

#[expect(clippy::disallowed_methods, reason = "`cargo xtask fuzz` says how much to try, and from where")]
fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| text.parse().unwrap())
}
