//! The simulation of [`harness_restate::capacity`] beside the cluster that it is about: figures, which are not judged,
//! because other programs of the machine change them.

use std::time::Duration;

use harness::core::port::Clock as _;
use harness::core::{ThreadId, Time};
use harness::runtime::ThreadService as _;
use harness::system::SystemClock;
use harness_restate::capacity::{Load, Times, simulate};
use harness_restate::durable::{LogItem, ThreadStatus};

use crate::cluster::{percentile, run};
use crate::processes::{Cluster, until};
use crate::user::{log, message};
use crate::worker::LONG;
use crate::world::PROMPT;

/// Runs one after the other, runs at once, and runs at random times.
const ALONE: usize = 5;
const AT_ONCE: usize = 40;
const ARRIVING: usize = 120;
/// Time of each tool of the script.
const TOOL: Duration = Duration::from_millis(10);

/// A run of the script with many iterations, and when its message was sent.
struct Sent(ThreadId, Time);

async fn send(cluster: &Cluster, name: String) -> Sent {
    let thread = ThreadId::from(format!("long.{name}"));
    let sent = SystemClock::new().now();
    cluster.threads().deliver(&thread, message("first", "Order tea.", PROMPT)).await.unwrap();
    Sent(thread, sent)
}

/// The times of runs from their messages to their last events, sorted.
async fn times(cluster: &Cluster, runs: &[Sent]) -> Vec<Duration> {
    let mut times = Vec::new();
    for Sent(thread, sent) in runs {
        let threads = cluster.threads();
        until("the end of a run", || async {
            let ended = threads.state(thread).await.is_ok_and(|state| *state.status() == ThreadStatus::Idle);
            if !ended {
                // A look is a request, too: looks are rare.
                tokio::time::sleep(Duration::from_millis(200)).await;
            }
            ended
        })
        .await;
        let last = log(&threads, thread).await.into_iter().rev().find_map(|entry| match entry.item {
            LogItem::Event(event) => Some(event.at),
            LogItem::Record(_) => None,
        });
        times.push(last.unwrap().since(*sent).duration());
    }
    times.sort();
    times
}

pub(crate) fn the_plan_fits_the_cluster() {
    run(async {
        let cluster = Cluster::start(1, 1).await;
        let mut alone = Vec::new();
        for number in 0..ALONE {
            let sent = send(&cluster, format!("alone-{number}")).await;
            alone.extend(times(&cluster, &[sent]).await);
        }
        alone.sort();
        let at_once = (0..AT_ONCE).map(|number| send(&cluster, format!("at-once-{number}")));
        let at_once = futures_util::future::join_all(at_once).await;
        let took = times(&cluster, &at_once).await[AT_ONCE - 1];
        let (load, plan) = plan(percentile(&alone, 50), took);
        let all = plan.entries_per_second / load.entries_per_run();
        println!(
            "one iteration takes {:?}; the cluster does {all:.1} runs/s, {:.0} entries/s",
            percentile(&alone, 50) / u32::try_from(LONG + 1).unwrap(),
            plan.entries_per_second
        );
        for part in [0.5, 0.8] {
            let load = Load { runs_per_second: all * part, ..load };
            let Times { p50, p95, .. } = simulate(&load, &plan, 5_000, 1).time;
            let measured = arriving(&cluster, load.runs_per_second, part).await;
            let [middle, high] = [50, 95].map(|part| percentile(&measured, part));
            println!(
                "{part} of it: p50 {middle:.1?}, simulated {p50:.1?}; p95 {high:.1?}, simulated {p95:.1?}"
            );
        }
    });
}

/// The load and the cluster, from the time of a run alone and that of many at once.
fn plan(alone: Duration, at_once: Duration) -> (Load, harness_restate::capacity::Cluster) {
    let iterations = u32::try_from(LONG).unwrap();
    let load = Load { iterations, model: Duration::ZERO, tool: TOOL, ..Load::default() };
    let runs_per_second = f64::from(u32::try_from(AT_ONCE).unwrap()) / at_once.as_secs_f64();
    // The two programs share the cores of this machine.
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let storing = Duration::from_secs_f64(1.0 / runs_per_second) * u32::try_from(cores).unwrap();
    let latency = alone.saturating_sub(storing + TOOL * iterations) / (2 * iterations + 1);
    let cluster = harness_restate::capacity::Cluster {
        nodes: 1,
        copies: 1,
        cores,
        entries_per_second: runs_per_second * load.entries_per_run(),
        latency,
        ..Default::default()
    };
    (load, cluster)
}

/// The times of runs that begin at random times, so many in a second.
async fn arriving(cluster: &Cluster, runs_per_second: f64, part: f64) -> Vec<Duration> {
    let mut dice = fastrand::Rng::with_seed(5);
    let mut at = Duration::ZERO;
    let runs = (0..ARRIVING).map(|number| {
        at += Duration::from_secs_f64(-(1.0 - dice.f64()).ln() / runs_per_second);
        let (at, name) = (at, format!("arriving-{part}-{number}").replace('.', "-"));
        async move {
            tokio::time::sleep(at).await;
            send(cluster, name).await
        }
    });
    let runs: Vec<_> = runs.collect();
    times(cluster, &futures_util::future::join_all(runs).await).await
}
