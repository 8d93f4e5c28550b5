//! What runs cost on one server and one worker, beside bare entries of the engine in the same minute. Figures, which are
//! not judged: other programs of the machine change them.

use std::time::Duration;

use harness::core::ThreadId;
use harness::runtime::ThreadService as _;
use harness_restate::capacity::Load;

use crate::cluster::{percentile, run, timed};
use crate::load::span;
use crate::processes::Cluster;
use crate::user::{finished, idle, message};
use crate::worker::LONG;
use crate::world::PROMPT;

/// Runs one after the other, and at once: fewer where only two minutes are asked for.
const ALONE: usize = 20;
const AT_ONCE: [usize; 2] = [50, 200];
/// Entries of a bare invocation.
const ENTRIES: u32 = 100;
/// Time of each tool of the script.
const TOOL: Duration = Duration::from_millis(10);

/// The times of so many bare invocations, one after the other, for each entry.
async fn bare_alone(cluster: &Cluster) -> Vec<Duration> {
    let mut times = Vec::new();
    for _ in 0..ALONE {
        times.push(timed(cluster.bare(ENTRIES)).await.1 / ENTRIES);
    }
    times.sort();
    times
}

pub(crate) fn iterations_have_little_overhead() {
    run(async {
        let cluster = Cluster::start(1, 1).await;
        cluster.add_bare().await;
        let base = bare_alone(&cluster).await;
        let iterations = u32::try_from(LONG + 1).unwrap();
        let (mut times, cpu) = (Vec::new(), cluster.cpu(0));
        for number in 0..ALONE {
            let thread = ThreadId::from(format!("long.{number:06}"));
            let ((log, _), time) = timed(async {
                cluster.threads().deliver(&thread, message("first", "Order tea.", PROMPT)).await.unwrap();
                finished(&cluster, &thread).await
            })
            .await;
            times.push(time.saturating_sub(TOOL * (iterations - 1)) / iterations);
            if number == 0 {
                let bytes = serde_json::to_vec(&log).unwrap().len();
                println!("log of {iterations} iterations: {} entries, {bytes} bytes", log.len());
            }
        }
        let cpu = cluster.cpu(0).saturating_sub(cpu) / (u32::try_from(ALONE).unwrap() * iterations);
        times.sort();
        let ([base, slow_base], [middle, high]) =
            ([50, 95].map(|part| percentile(&base, part)), [50, 95].map(|part| percentile(&times, part)));
        println!("a bare entry: p50 {base:.2?}, p95 {slow_base:.2?}");
        println!(
            "an iteration without its tool: p50 {middle:.1?}, p95 {high:.1?}, {:.1} bare entries; the worker's CPU {cpu:.2?}",
            middle.as_secs_f64() / base.as_secs_f64()
        );
    });
}

pub(crate) fn many_runs_store_as_many_entries() {
    run(async {
        let cluster = Cluster::start(1, 1).await;
        cluster.add_bare().await;
        let at_once = AT_ONCE[usize::from(span() > Duration::from_mins(2))];
        let count = f64::from(u32::try_from(at_once).unwrap());
        let bare = futures_util::future::join_all((0..at_once).map(|_| cluster.bare(ENTRIES)));
        let (_, took) = timed(bare).await;
        let bare = count * f64::from(ENTRIES) / took.as_secs_f64();
        let runs = (0..at_once).map(|number| {
            let thread = ThreadId::from(format!("long.at-once-{number:06}"));
            let cluster = &cluster;
            async move {
                cluster.threads().deliver(&thread, message("first", "Order tea.", PROMPT)).await.unwrap();
                idle(cluster, &thread, Duration::from_millis(500)).await;
            }
        });
        let (_, took) = timed(futures_util::future::join_all(runs)).await;
        let load = Load { iterations: u32::try_from(LONG).unwrap(), ..Load::default() };
        let (runs, ours) = (count / took.as_secs_f64(), count * load.entries_per_run() / took.as_secs_f64());
        println!(
            "{at_once} runs at once: {runs:.1} runs/s, {ours:.0} entries/s; as many bare invocations {bare:.0} entries/s ({:.2})",
            ours / bare
        );
    });
}
