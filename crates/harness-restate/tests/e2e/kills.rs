//! Workers behind a balancer, of which one after the other is killed.

use std::time::Duration;

use harness::core::ThreadId;
use harness::runtime::ThreadService as _;

use crate::cluster::run;
use crate::load::scripts;
use crate::processes::{Cluster, until};
use crate::user::{check_laws, message, play_acts};
use crate::world::PROMPT;

/// Conversations of each script with workers that are killed, and kills while they are at work.
const EACH: usize = 6;
const KILLS: usize = 20;
/// How long a killed worker is away, and the pause until the next kill.
const AWAY: Duration = Duration::from_millis(200);
/// Begins a conversation with each script. A request that fails is sent again, as a client does.
async fn converse(cluster: &Cluster, number: usize) -> Vec<ThreadId> {
    let threads = cluster.threads();
    let mut all = Vec::new();
    for script in scripts() {
        let thread = ThreadId::from(format!("{}.{number:06}", script.name));
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
            let mut dice = fastrand::Rng::with_seed(7);
            for _ in 0..KILLS {
                let at = dice.usize(..2);
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
