//! The cost of a streamed answer against its bars.
//!
//! Reading and assembling are measured alone; what the adapter adds to a connection stands beside a bare
//! client that reads the same replies of the same loopback server.

use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::bars::{parse_line, row, table};
use crate::fault::Result;
use crate::process;

/// Bytes, as a figure.
const KIB: f64 = 1024.0;

#[derive(Debug, Deserialize)]
struct Assembly {
    bytes: f64,
    mb_per_s: f64,
}

#[derive(Debug, Deserialize)]
struct Heap {
    bytes: f64,
    answer_bytes: f64,
    peak_bytes: f64,
}

#[derive(Debug, Deserialize)]
#[expect(clippy::struct_field_names, reason = "the names that the benchmark prints, with their unit")]
struct First {
    ours_us: f64,
    raw_us: f64,
    over_us: f64,
}

#[derive(Debug, Deserialize)]
#[expect(clippy::struct_field_names, reason = "the names that the benchmark prints, with their unit")]
struct Delta {
    ours_ns: f64,
    raw_ns: f64,
    over_ns: f64,
}

#[derive(Debug, Deserialize)]
#[expect(clippy::struct_field_names, reason = "the names that the benchmark prints")]
struct Streams {
    streams: f64,
    whole: f64,
    payload_bytes: f64,
    over_bytes: f64,
}

/// Measures everything and prints a table.
pub(super) fn run() -> Result<()> {
    let figures = Figures {
        assembly: measure("assembly", &[])?,
        heap: measure("live", &["--only", "heap"])?,
        first: measure("live", &["--only", "first"])?,
        delta: measure("live", &["--only", "delta"])?,
        streams: measure("live", &["--only", "streams"])?,
    };
    println!("\n{}", figures.table());
    Ok(())
}

fn measure<T: DeserializeOwned>(bench: &str, arguments: &[&str]) -> Result<T> {
    println!("measuring {bench} {}", arguments.join(" "));
    let mut cargo =
        process::cargo(["bench", "--quiet", "--package", "harness-adapters", "--bench", bench, "--"]);
    parse_line(&process::capture(cargo.args(arguments))?)
}

#[derive(Debug)]
struct Figures {
    assembly: Assembly,
    heap: Heap,
    first: First,
    delta: Delta,
    streams: Streams,
}

impl Figures {
    fn table(&self) -> String {
        let Self { assembly, heap, first, delta, streams } = self;
        let lost = streams.streams - streams.whole;
        table(&[
            row(
                &format!(
                    "{:.0} MB of small deltas read and assembled: {:.0} MB/s",
                    assembly.bytes / 1e6,
                    assembly.mb_per_s
                ),
                "200 MB/s",
                200.0 / assembly.mb_per_s,
                1.0,
            ),
            row(
                &format!(
                    "peak heap while {:.0} MB are read: {:.1} MiB",
                    heap.bytes / 1e6,
                    heap.peak_bytes / KIB / KIB
                ),
                &format!("the answer's text: {:.1} MiB", heap.answer_bytes / KIB / KIB),
                heap.peak_bytes / heap.answer_bytes,
                3.0,
            ),
            row(
                &format!(
                    "first token after {:.0} us, a bare client {:.0} us: {:.0} us over",
                    first.ours_us, first.raw_us, first.over_us
                ),
                "1,000 us over",
                first.over_us / 1_000.0,
                1.0,
            ),
            row(
                &format!(
                    "{:.0} ns for each delta, a bare client {:.0} ns: {:.0} ns over",
                    delta.ours_ns, delta.raw_ns, delta.over_ns
                ),
                "2,000 ns over",
                delta.over_ns / 2_000.0,
                1.0,
            ),
            row(&format!("{:.0} streams at once: {lost:.0} not whole", streams.streams), "none", lost, 0.0),
            row(
                &format!(
                    "memory of each, above its {:.0} bytes of text: {:.1} KiB",
                    streams.payload_bytes,
                    streams.over_bytes / KIB
                ),
                "64 KiB",
                streams.over_bytes / (64.0 * KIB),
                1.0,
            ),
        ])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_stand_beside_their_bars() {
        let figures = Figures {
            assembly: parse_line(r#"{"case":"assembly","bytes":64000000,"mb_per_s":160.0}"#).unwrap(),
            heap: parse_line(r#"{"bytes":64000000,"answer_bytes":1048576,"peak_bytes":2097152}"#).unwrap(),
            first: parse_line(r#"{"ours_us":41.0,"raw_us":38.0,"over_us":3.0}"#).unwrap(),
            delta: parse_line(r#"{"ours_ns":1300,"raw_ns":100,"over_ns":1200}"#).unwrap(),
            streams: parse_line(r#"{"streams":1000,"whole":999,"payload_bytes":900,"over_bytes":32768}"#)
                .unwrap(),
        };
        insta::assert_snapshot!(figures.table(), @r"
        | ours | against | ratio | bar | |
        |---|---|---|---|---|
        | 64 MB of small deltas read and assembled: 160 MB/s | 200 MB/s | 1.25 | 1.00 | not met |
        | peak heap while 64 MB are read: 2.0 MiB | the answer's text: 1.0 MiB | 2.00 | 3.00 | met |
        | first token after 41 us, a bare client 38 us: 3 us over | 1,000 us over | 0.00 | 1.00 | met |
        | 1300 ns for each delta, a bare client 100 ns: 1200 ns over | 2,000 ns over | 0.60 | 1.00 | met |
        | 1000 streams at once: 1 not whole | none | 1.00 | 0.00 | not met |
        | memory of each, above its 900 bytes of text: 32.0 KiB | 64 KiB | 0.50 | 1.00 | met |
        ");
    }
}
