//! Workers behind a balancer, of which one after the other is killed.

use std::time::Duration;

use harness::core::ThreadId;
use harness::runtime::ThreadService as _;
use harness_restate::durable::fold;

use crate::cluster::run;
use crate::load::scripts;
use crate::processes::{Cluster, until};
use crate::user::{check_laws, child_log, message, play_acts};
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

pub(crate) fn a_sub_agent_outlives_its_worker() {
    run(async {
        let cluster = Cluster::start(1, 1).await;
        let threads = cluster.threads();
        // While its model answers, or while its caller waits for it.
        for (number, moment) in ["done pay", "begun pay"].into_iter().enumerate() {
            let thread = ThreadId::from(format!("a slow sub-agent.{number}"));
            threads.deliver(&thread, message("first", "Order tea.", PROMPT)).await.unwrap();
            let child = ThreadId::from(format!("{thread}/c-task"));
            let line = format!("{moment} {child}");
            until(&line, || async { !cluster.ledger(&line).is_empty() }).await;
            let state = threads.state(&thread).await.unwrap();
            assert_eq!(state.children().collect::<Vec<_>>(), [&child]);
            assert_eq!(threads.state(&child).await.unwrap().parent(), Some(&thread));
            cluster.kill(0);
            tokio::time::sleep(AWAY).await;
            cluster.restart(0);
            let log = check_laws(&cluster, &thread).await;
            let result = fold(&log)
                .messages()
                .find_map(|message| message.as_tool_result().is_some().then(|| message.joined_text()));
            assert!(result.clone().unwrap().contains(r#""output": "Paid.""#), "{result:?}");
            let said = fold(&child_log(&cluster, &child).await).messages().count();
            assert_eq!((said, cluster.ledger(&format!("begun pay {child}")).len()), (4, 1));
            assert_eq!(threads.state(&thread).await.unwrap().children().count(), 0);
            let refused = threads.deliver(&child, message("more", "More.", PROMPT)).await.unwrap_err();
            assert_eq!(refused.kind(), "engine.child");
            // Forgotten with its caller.
            threads.forget(&thread).await.unwrap();
            until("a forgotten sub-agent", || async {
                threads.state(&child).await.is_ok_and(|state| state.created().is_none())
            })
            .await;
            assert_eq!(threads.read(&child, 0).await.unwrap().0, Vec::new());
        }
    });
}
