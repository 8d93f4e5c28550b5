//! The most memory that loading and hashing a descriptor takes.
//!
//! `cargo bench -p harness-descriptor --bench heap -- --input DIR`. A program of its own, because it counts
//! every allocation.

#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a benchmark may fail loudly and prints its figures"
)]

mod input;

use std::path::{Path, PathBuf};

use harness_descriptor::load_file;
use peak_alloc::PeakAlloc;

#[global_allocator]
static ALLOCATOR: PeakAlloc = PeakAlloc;

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let given = arguments.iter().position(|argument| argument == "--input");
    let given = given.and_then(|at| arguments.get(at + 1)).map(PathBuf::from);
    let made = tempfile::tempdir().expect("a folder");
    let folder = given.clone().unwrap_or_else(|| made.path().to_owned());
    if given.is_none() {
        input::write(&folder, 1).expect("an input");
    }
    let file = folder.join("harness.yaml");
    let length = |path: &Path| std::fs::metadata(path).map_or(0, |metadata| metadata.len());
    let prompts = std::fs::read_dir(folder.join("prompts")).expect("prompts");
    let input: u64 = length(&file) + prompts.flatten().map(|entry| length(&entry.path())).sum::<u64>();
    let before = ALLOCATOR.current_usage();
    ALLOCATOR.reset_peak_usage();
    let descriptor = load_file(file).expect("a descriptor");
    let hash = descriptor.hash();
    let peak = ALLOCATOR.peak_usage() - before;
    let kept = ALLOCATOR.current_usage() - before;
    println!(
        r#"{{"case":"heap","hash":"{hash}","peak_bytes":{peak},"kept_bytes":{kept},"input_bytes":{input}}}"#
    );
}
