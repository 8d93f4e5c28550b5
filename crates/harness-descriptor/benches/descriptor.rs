//! The cost of a descriptor: loading it with its prompts and hashing it, and rendering
//! instructions.
//!
//! `cargo bench -p harness-descriptor --bench descriptor -- [--input DIR] [--json] [--only CASE]`, or
//! `-- --make DIR`. `DIR` holds
//! `harness.yaml`, its prompts, `template.yaml` and `template-context.json`; without it such a folder
//! is made. Not a test: nothing fails because a machine is slow. `cargo xtask bench descriptor` adds the peer
//! and the bars.

#![expect(
    clippy::expect_used,
    clippy::cast_precision_loss,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a benchmark may fail loudly, prints its figures and measures real time"
)]

mod input;

use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::time::Instant;

use harness_descriptor::{FileSource, Graph, Limits, Registry, Value, load_file};

/// Milliseconds that `work` takes, the least and the middle of so many times.
fn time(times: usize, mut work: impl FnMut()) -> (f64, f64) {
    let mut samples: Vec<f64> = (0..=times)
        .map(|_| {
            let from = Instant::now();
            work();
            from.elapsed().as_secs_f64() * 1e3
        })
        .skip(1)
        .collect();
    samples.sort_by(f64::total_cmp);
    (samples[0], samples[samples.len() / 2])
}

/// Loads, materializes and hashes.
fn load(file: &Path) {
    let mut limits = Limits::default();
    limits.yaml_bytes = 64 << 20;
    let descriptor = FileSource::new(file).limits(limits).load().expect("a descriptor");
    black_box(descriptor.hash());
}

/// CPU time of this process in milliseconds.
fn cpu() -> f64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    std::time::Duration::try_from(now).expect("a time").as_secs_f64() * 1e3
}

/// CPU milliseconds of 10,000 renders: the middle of seven.
fn renders(folder: &Path) -> f64 {
    let descriptor = load_file(folder.join("template.yaml")).expect("a descriptor");
    let graph = Graph::build(&descriptor, &Registry::new()).expect("a graph");
    let context = std::fs::read_to_string(folder.join("template-context.json")).expect("a context");
    let context: Value = serde_json::from_str(&context).expect("JSON");
    let agent = graph.entry_agent().id();
    let mut samples: Vec<f64> = (0..8)
        .map(|_| {
            let from = cpu();
            for _ in 0..10_000 {
                black_box(graph.instructions(agent, &context).expect("instructions"));
            }
            cpu() - from
        })
        .skip(1)
        .collect();
    samples.sort_by(f64::total_cmp);
    samples[samples.len() / 2]
}

/// Bytes of the YAML text and of all prompt files.
fn size(folder: &Path) -> u64 {
    let length = |path: &Path| std::fs::metadata(path).map_or(0, |metadata| metadata.len());
    let prompts = std::fs::read_dir(folder.join("prompts")).expect("prompts");
    let prompts: u64 = prompts.flatten().map(|entry| length(&entry.path())).sum();
    length(&folder.join("harness.yaml")) + prompts
}

fn print(json: bool, name: &str, figures: &[(&str, f64)]) {
    if json {
        let fields: Vec<_> = figures.iter().map(|(key, value)| format!(r#""{key}":{value:.4}"#)).collect();
        println!(r#"{{"case":"{name}",{}}}"#, fields.join(","));
    } else {
        let fields: Vec<_> = figures.iter().map(|(key, value)| format!("{key} {value:.3}")).collect();
        println!("{name:<10} {}", fields.join("  "));
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let option = |name: &str| {
        arguments.iter().position(|argument| argument == name).and_then(|at| arguments.get(at + 1))
    };
    let json = arguments.iter().any(|argument| argument == "--json");
    let wanted = |name: &str| option("--only").is_none_or(|only| only == name);
    if let Some(folder) = option("--make") {
        input::write(Path::new(folder), 1).expect("an input");
        return;
    }
    let made = tempfile::tempdir().expect("a folder");
    let folder = option("--input").map_or_else(|| made.path().join("1"), PathBuf::from);
    if option("--input").is_none() {
        input::write(&folder, 1).expect("an input");
    }
    let file = folder.join("harness.yaml");
    if wanted("load") {
        let (best, middle) = time(40, || load(&file));
        print(json, "load", &[("best_ms", best), ("ms", middle)]);
    }
    if wanted("renders") {
        print(json, "renders", &[("cpu_ms", renders(&folder))]);
    }
    if wanted("linear") {
        let mut per_byte = [1, 16].map(|scale| {
            let folder = made.path().join(format!("scale-{scale}"));
            input::write(&folder, scale).expect("an input");
            (folder, f64::INFINITY)
        });
        // In turns, so that a busy machine slows both.
        for _ in 0..5 {
            for (folder, best) in &mut per_byte {
                let file = folder.join("harness.yaml");
                let (took, _) = time(1, || load(&file));
                *best = best.min(took * 1e6 / size(folder) as f64);
            }
        }
        let [(_, one), (_, sixteen)] = per_byte;
        print(json, "linear", &[("ns_per_byte_1", one), ("ns_per_byte_16", sixteen)]);
    }
}
