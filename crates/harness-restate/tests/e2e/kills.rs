//! Workers behind a balancer, and servers, of which one after the other is killed.

use std::time::Duration;

use harness::core::ThreadId;
use harness::runtime::ThreadService as _;

use crate::cluster::{percentile, run, timed};
use crate::processes::{Cluster, until};
use crate::user::{check_laws, finished, message, play_acts};
use crate::worker::all_scripts;
use crate::world::{PROMPT, Script};

/// Conversations of each script with workers that are killed, and kills while they are at work.
const EACH: usize = 6;
const KILLS: usize = 20;
/// How long a killed worker is away, and the pause until the next kill.
const AWAY: Duration = Duration::from_millis(200);
/// How long servers and workers are killed, how often, and how long a killed one is away.
const SERVERS_FOR: Duration = Duration::from_mins(2);
const SERVERS_EVERY: Duration = Duration::from_secs(5);
const SERVERS_AWAY: Duration = Duration::from_secs(2);
/// Scripts that take too long.
const LEFT_OUT: [&str; 2] = ["nobody decides", "a silent model"];

fn scripts() -> Vec<Script> {
    all_scripts().into_iter().filter(|script| !LEFT_OUT.contains(&script.name)).collect()
}

/// The next number below a bound.
fn pick(seed: &mut u64, bound: u64) -> usize {
    *seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    usize::try_from((*seed >> 33) % bound).unwrap()
}

/// Begins a conversation with each script. A request that fails is sent again, as a client does.
async fn converse(cluster: &Cluster, number: usize) -> Vec<ThreadId> {
    let threads = cluster.threads();
    let mut all = Vec::new();
    for script in scripts() {
        let thread = ThreadId::from(format!("{}.{number}", script.name));
        let prompt =
            || async { threads.deliver(&thread, message("first", script.said[0], PROMPT)).await.is_ok() };
        until("a message to be accepted", prompt).await;
        all.push(thread);
    }
    all
}

async fn check_all(cluster: &Cluster, threads: &[ThreadId]) {
    for thread in threads {
        check_laws(cluster, thread).await;
    }
}

/// Conversations with each script, from their first message to their end. How many there were.
async fn wave(cluster: &Cluster, number: usize) -> usize {
    let all = converse(cluster, number).await;
    check_all(cluster, &all).await;
    all.len()
}

pub(crate) fn killed_workers_lose_nothing() {
    run(async {
        let cluster = Cluster::start(1, 2).await;
        let conversations = async {
            let mut all = Vec::new();
            for number in 0..EACH {
                all.extend(converse(&cluster, number).await);
            }
            check_all(&cluster, &all).await;
            println!("{} conversations, {KILLS} kills", all.len());
        };
        let kills = async {
            let mut seed = 7;
            for _ in 0..KILLS {
                let at = pick(&mut seed, 2);
                cluster.kill(at);
                tokio::time::sleep(AWAY).await;
                cluster.restart(at);
                tokio::time::sleep(AWAY).await;
            }
        };
        tokio::select! {
            _ = async { tokio::join!(conversations, kills) } => {}
            () = play_acts(&cluster) => {}
        }
    });
}

pub(crate) fn a_killed_worker_is_replaced_soon() {
    run(async {
        let cluster = Cluster::start(1, 2).await;
        let threads = cluster.threads();
        let mut times = Vec::new();
        for number in 0..20 {
            let thread = ThreadId::from(format!("each class of tools.{number}"));
            threads.deliver(&thread, message("first", "Order tea.", PROMPT)).await.unwrap();
            tokio::time::sleep(Duration::from_millis(50)).await;
            cluster.kill(number % 2);
            let (_, time) = timed(finished(&cluster, &thread)).await;
            cluster.restart(number % 2);
            times.push(time);
            check_laws(&cluster, &thread).await;
            tokio::time::sleep(AWAY).await;
        }
        times.sort();
        let [middle, most] = [50, 95].map(|part| percentile(&times, part));
        println!("kill of a worker to the end of a run of 0.2 s: p50 {middle:?}, p95 {most:?}");
        assert!(most < Duration::from_secs(6), "{times:?}");
    });
}

pub(crate) fn killed_servers_lose_nothing() {
    run(async {
        let cluster = Cluster::start(3, 2).await;
        let kills = async {
            let (mut seed, mut kills) = (11, 0);
            for _ in 0..SERVERS_FOR.as_secs() / SERVERS_EVERY.as_secs() {
                let at = pick(&mut seed, 5);
                kills += 1;
                if at < 3 {
                    cluster.kill_server(at);
                } else {
                    cluster.kill(at - 3);
                }
                tokio::time::sleep(SERVERS_AWAY).await;
                if at < 3 {
                    cluster.restart_server(at);
                } else {
                    cluster.restart(at - 3);
                }
                tokio::time::sleep(SERVERS_EVERY.saturating_sub(SERVERS_AWAY)).await;
            }
            kills
        };
        let check = async {
            let (mut number, mut count) = (0, 0);
            let mut times = Vec::new();
            let mut kills = std::pin::pin!(kills);
            let killed = loop {
                let mut wave = std::pin::pin!(timed(wave(&cluster, number)));
                let (ended, killed) = tokio::select! {
                    ended = &mut wave => (ended, None),
                    killed = &mut kills => (wave.await, Some(killed)),
                };
                count += ended.0;
                times.push(ended.1);
                number += 1;
                if let Some(killed) = killed {
                    break killed;
                }
            };
            times.sort();
            let most = percentile(&times, 95);
            println!("{count} conversations in {number} waves, {killed} kills; a wave took up to {most:?}");
        };
        tokio::select! {
            () = check => {}
            () = play_acts(&cluster) => {}
        }
    });
}
