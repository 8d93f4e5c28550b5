//! The cost of a session file, and of a session in SQLite, against their bars.
//!
//! Rounds alternate between our benchmark and pi's session manager, which appends and loads the same
//! messages.

use serde::Deserialize;

use super::bars::{least, parse_line, row, table};
use super::peers::Place;
use crate::fault::{Fault, Result};
use crate::npm;
use crate::process;

const ROUNDS: usize = 3;
const MESSAGES: &str = "100000";
const PEER: &str = "pi 0.73.1";

/// What our benchmark of times printed, in seconds.
#[derive(Debug, Clone, PartialEq, Deserialize)]
struct Times {
    #[serde(rename = "append_s")]
    append: f64,
    #[serde(rename = "load_s")]
    load: f64,
    #[serde(rename = "first_tenth_s")]
    first_tenth: f64,
    #[serde(rename = "last_tenth_s")]
    last_tenth: f64,
}

/// What our benchmark of memory printed.
#[derive(Debug, Clone, PartialEq, Deserialize)]
struct Heap {
    bytes: f64,
    peak_bytes: f64,
}

/// What the peer printed, in seconds.
#[derive(Debug, Clone, PartialEq)]
struct PiTimes {
    append: f64,
    load: f64,
}

/// Measures everything and prints a table.
pub(super) fn run(place: &Place) -> Result<()> {
    let folder = place.copy("pi")?;
    let packages =
        ["--ignore-scripts", "@mariozechner/pi-agent-core@0.73.1", "@mariozechner/pi-coding-agent@0.73.1"];
    npm::install(&folder, &packages)?;
    let heap = parse_line(&ours("heap", &[])?)?;
    let (mut times, mut sqlite, mut pi) = (Vec::new(), Vec::new(), Vec::new());
    for round in 1..=ROUNDS {
        println!("measuring sessions, round {round} of {ROUNDS}");
        times.push(parse_line(&ours("session", &[])?)?);
        sqlite.push(parse_line(&ours("session", &["--sqlite"])?)?);
        let mut node = process::command("node");
        node.current_dir(&folder).env("N", MESSAGES).arg("bench.mjs");
        pi.push(pi_times(&process::capture(&mut node)?)?);
    }
    println!("\n{}", figures(&times, &sqlite, &heap, &pi));
    Ok(())
}

fn ours(bench: &str, arguments: &[&str]) -> Result<String> {
    let mut cargo =
        process::cargo(["bench", "--quiet", "--package", "harness-session", "--bench", bench, "--"]);
    process::capture(cargo.args(["--messages", MESSAGES]).args(arguments))
}

/// Reads `session … append_each=…s load=…s …`.
fn pi_times(output: &str) -> Result<PiTimes> {
    let line = output.lines().find(|line| line.starts_with("session "));
    let line = line.ok_or_else(|| Fault::new("the peer measured no session"))?;
    let seconds = |key: &str| -> Result<f64> {
        let word = line.split_whitespace().find_map(|word| word.strip_prefix(key)?.strip_prefix('='));
        let number = word.and_then(|word| word.strip_suffix('s')?.parse().ok());
        number.ok_or_else(|| Fault::new(format!("no `{key}` in the peer's output: {line}")))
    };
    Ok(PiTimes { append: seconds("append_each")?, load: seconds("load")? })
}

fn figures(times: &[Times], sqlite: &[Times], heap: &Heap, pi: &[PiTimes]) -> String {
    let (append, load) = (least(times, |case| case.append), least(times, |case| case.load));
    let (sqlite_append, sqlite_load) = (least(sqlite, |case| case.append), least(sqlite, |case| case.load));
    let (pi_append, pi_load) = (least(pi, |case| case.append), least(pi, |case| case.load));
    let (first, last) = (least(times, |case| case.first_tenth), least(times, |case| case.last_tenth));
    let mebibytes = |bytes: f64| bytes / f64::from(1 << 20);
    table(&[
        row(
            &format!("100,000 appends: {append:.2} s"),
            &format!("{PEER}: {pi_append:.2} s"),
            append / pi_append,
            1.0 / 3.0,
        ),
        row(&format!("load: {load:.2} s"), &format!("{PEER}: {pi_load:.2} s"), load / pi_load, 1.0 / 4.0),
        row(
            &format!("100,000 appends to SQLite: {sqlite_append:.2} s"),
            &format!("{PEER}: {pi_append:.2} s"),
            sqlite_append / pi_append,
            1.0,
        ),
        row(
            &format!("load from SQLite: {sqlite_load:.2} s"),
            &format!("{PEER}: {pi_load:.2} s"),
            sqlite_load / pi_load,
            1.0,
        ),
        row(
            &format!("peak heap of a load: {:.1} MiB", mebibytes(heap.peak_bytes)),
            &format!("the file: {:.1} MiB", mebibytes(heap.bytes)),
            heap.peak_bytes / heap.bytes,
            2.5,
        ),
        row(
            &format!("the last 10,000 appends: {last:.3} s"),
            &format!("the first: {first:.3} s"),
            last / first,
            1.25,
        ),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_stand_beside_their_bars() {
        let line =
            r#"{"case":"session","append_s":0.5,"load_s":0.5,"first_tenth_s":0.04,"last_tenth_s":0.06}"#;
        let sqlite =
            r#"{"case":"sqlite","append_s":2.0,"load_s":2.5,"first_tenth_s":0.2,"last_tenth_s":0.2}"#;
        let heap = parse_line(r#"{"case":"heap","bytes":2097152,"peak_bytes":4194304}"#).unwrap();
        let slow =
            pi_times("loop turns=1\nsession rep=0 append_each=4.000s load=2.500s messages=3\n").unwrap();
        let fast = pi_times("session rep=0 append_each=2.500s load=2.000s messages=3\n").unwrap();
        let (times, sqlite) = ([parse_line(line).unwrap()], [parse_line(sqlite).unwrap()]);
        insta::assert_snapshot!(figures(&times, &sqlite, &heap, &[slow, fast]), @r"
        | ours | against | ratio | bar | |
        |---|---|---|---|---|
        | 100,000 appends: 0.50 s | pi 0.73.1: 2.50 s | 0.20 | 0.33 | met |
        | load: 0.50 s | pi 0.73.1: 2.00 s | 0.25 | 0.25 | met |
        | 100,000 appends to SQLite: 2.00 s | pi 0.73.1: 2.50 s | 0.80 | 1.00 | met |
        | load from SQLite: 2.50 s | pi 0.73.1: 2.00 s | 1.25 | 1.00 | not met |
        | peak heap of a load: 4.0 MiB | the file: 2.0 MiB | 2.00 | 2.50 | met |
        | the last 10,000 appends: 0.060 s | the first: 0.040 s | 1.50 | 1.25 | not met |
        ");
    }

    #[test]
    fn output_without_the_figures_is_refused() {
        assert_eq!(pi_times("loop").unwrap_err().to_string(), "the peer measured no session");
        let missing = pi_times("session load=2s").unwrap_err().to_string();
        assert_eq!(missing, "no `append_each` in the peer's output: session load=2s");
    }
}
