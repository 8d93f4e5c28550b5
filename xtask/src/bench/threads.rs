//! The cost of threads against its bars: a turn, how late events come, an abort, and what idle ones keep.

use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::bars::{parse_line, row, table};
use crate::fault::Result;
use crate::process;

/// Highest permitted bytes of an idle thread beyond its transcript.
const IDLE: f64 = 2_048.0;

#[derive(Debug, Deserialize)]
struct Work {
    turn_us: f64,
    stalled_us: f64,
    slow_us: f64,
    threads: u32,
    delay_us: f64,
    bare_us: f64,
    abort_ms: f64,
}

#[derive(Debug, Deserialize)]
struct Idle {
    threads: u32,
    figures: Vec<Kept>,
}

#[derive(Debug, Deserialize)]
struct Kept {
    what: String,
    bytes: f64,
}

/// Measures everything and prints a table.
pub(super) fn run() -> Result<()> {
    let (work, idle) = (measure("threads")?, measure("idle")?);
    println!("\n{}", figures(&work, &idle));
    Ok(())
}

fn measure<T: DeserializeOwned>(bench: &str) -> Result<T> {
    println!("measuring {bench}");
    let mut cargo = process::cargo([
        "bench",
        "--quiet",
        "--package",
        "harness-runtime",
        "--bench",
        bench,
        "--",
        "--json",
    ]);
    parse_line(&process::capture(&mut cargo)?)
}

fn figures(work: &Work, idle: &Idle) -> String {
    let Work { turn_us, stalled_us, slow_us, threads, delay_us, bare_us, abort_ms } = work;
    let alone = format!("alone: {turn_us:.1} us");
    let mut rows = vec![
        row(&format!("turn of a thread: {turn_us:.1} us"), "25 us", turn_us / 25.0, 1.0),
        row(
            &format!("beside a reader that never reads: {stalled_us:.1} us"),
            &alone,
            stalled_us / turn_us,
            1.1,
        ),
        row(&format!("beside ten readers that read slowly: {slow_us:.1} us"), &alone, slow_us / turn_us, 1.1),
        row(
            &format!("p99 delay of an event, {threads} threads: {delay_us:.0} us"),
            &format!("bare channels: {bare_us:.0} us"),
            delay_us / bare_us,
            3.0,
        ),
        row(&format!("abort to its event: {abort_ms:.3} ms"), "5 ms", abort_ms / 5.0, 1.0),
    ];
    rows.extend(idle.figures.iter().map(|Kept { what, bytes }| {
        row(
            &format!("each of {} idle threads {what}: {bytes:.0} bytes", idle.threads),
            &format!("{IDLE:.0} bytes"),
            bytes / IDLE,
            1.0,
        )
    }));
    table(&rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_stand_beside_their_bars() {
        let work = concat!(
            r#"{"case":"threads","turn_us":10.00,"stalled_us":10.50,"slow_us":12.00,"#,
            r#""threads":1000,"delay_us":14.00,"bare_us":1.00,"abort_ms":0.0300}"#,
        );
        let idle = concat!(
            r#"{"case":"idle","threads":10000,"figures":[{"what":"never prompted","bytes":512},"#,
            r#"{"what":"after a turn","bytes":4096}]}"#,
        );
        let told = figures(&parse_line(work).unwrap(), &parse_line(idle).unwrap());
        insta::assert_snapshot!(told, @r"
        | ours | against | ratio | bar | |
        |---|---|---|---|---|
        | turn of a thread: 10.0 us | 25 us | 0.40 | 1.00 | met |
        | beside a reader that never reads: 10.5 us | alone: 10.0 us | 1.05 | 1.10 | met |
        | beside ten readers that read slowly: 12.0 us | alone: 10.0 us | 1.20 | 1.10 | not met |
        | p99 delay of an event, 1000 threads: 14 us | bare channels: 1 us | 14.00 | 3.00 | not met |
        | abort to its event: 0.030 ms | 5 ms | 0.01 | 1.00 | met |
        | each of 10000 idle threads never prompted: 512 bytes | 2048 bytes | 0.25 | 1.00 | met |
        | each of 10000 idle threads after a turn: 4096 bytes | 2048 bytes | 2.00 | 1.00 | not met |
        ");
    }
}
