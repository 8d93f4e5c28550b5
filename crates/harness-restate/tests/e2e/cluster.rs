//! One server, one worker: every script, every handler, abort, approval over a restart.

use std::time::{Duration, Instant};

use harness::adapters::{QuotaAsk, QuotaPool as _, RateQuota, SpendAmount, SpendCharge, SpendPool as _};
use harness::core::limits::BudgetPeriod;
use harness::core::message::Message;
use harness::core::port::Decision;
use harness::core::testing::event_line;
use harness::core::{CallDigest, Json, Millis, StopReason, ThreadId};
use harness::host::Storage as _;
use harness::runtime::{ApprovalDecision, Prompt, Status, ThreadAttributes, ThreadService as _};
use harness::session::testing::storage_contract;
use harness_restate::durable::{EngineStorage, ThreadStatus, fold};
use harness_restate::engine::restate::{EngineQuota, EngineSpend};

use crate::kept::events;
use crate::on_tokio::on_tokio;
use crate::processes::{Cluster, until};
use crate::user::{check_laws, decide_now, finished, message, play_acts};
use crate::worker::{TOO_LONG, all_scripts};
use crate::world::{FOLLOW_UP, PROMPT};

/// Scripts whose events are equal on tokio.
const EQUAL: [&str; 5] =
    ["plain", "one call after the other", "abort", "approval while the run waits", "turns"];

pub(crate) fn run<T>(check: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(check)
}

/// The time that something takes.
#[expect(clippy::disallowed_methods, reason = "figures are of the real time")]
pub(crate) async fn timed<T>(work: impl Future<Output = T>) -> (T, Duration) {
    let start = Instant::now();
    let value = work.await;
    (value, start.elapsed())
}

/// The value at a part of a sorted list.
pub(crate) fn percentile(sorted: &[Duration], part: usize) -> Duration {
    sorted[(sorted.len() * part / 100).min(sorted.len() - 1)]
}

pub(crate) fn scripts_keep_the_laws() {
    run(async {
        let cluster = Cluster::start(1, 1).await;
        let threads = cluster.threads();
        let scripts: Vec<_> =
            all_scripts().into_iter().filter(|script| !TOO_LONG.contains(&script.name)).collect();
        let check = async {
            for script in &scripts {
                let thread = ThreadId::from(format!("{}.1", script.name));
                threads.deliver(&thread, message("first", script.said[0], PROMPT)).await.unwrap();
            }
            for script in &scripts {
                let log = check_laws(&cluster, &format!("{}.1", script.name).into()).await;
                if EQUAL.contains(&script.name) {
                    let lines: Vec<_> = events(&log).iter().map(|event| event_line(&event.kind)).collect();
                    assert_eq!(lines, on_tokio(script).await, "{}", script.name);
                }
            }
        };
        tokio::select! {
            () = check => {}
            () = play_acts(&cluster) => {}
        }
    });
}

pub(crate) fn handlers_change_the_queue() {
    run(async {
        let cluster = Cluster::start(1, 1).await;
        let (threads, thread) = (cluster.threads(), ThreadId::from("abort.1"));
        let first = || message("first", "Order tea.", PROMPT);
        assert!(!threads.exists(&thread).await.unwrap());
        let prompt = Prompt::from("Order tea.");
        let run = threads.start(&thread, prompt).await.unwrap();
        assert_eq!(run.as_str(), "abort.1-1");
        let busy = threads.start(&thread, Prompt::from("Order more.")).await.unwrap_err();
        assert_eq!(busy.kind(), "runtime.busy");
        // Said again under the same name: once.
        for _ in 0..2 {
            assert_eq!(threads.deliver(&thread, first()).await.unwrap().as_str(), "first");
        }
        for name in ["a", "b", "c"] {
            threads.deliver(&thread, message(name, name, FOLLOW_UP)).await.unwrap();
        }
        threads.reorder(&thread, &"c".into(), 0).await.unwrap();
        threads.edit(&thread, &"b".into(), Message::user("B").into()).await.unwrap();
        assert_eq!(threads.cancel(&thread, &"a".into()).await.unwrap().message.joined_text(), "a");
        let mut attributes = ThreadAttributes::default();
        attributes.user = Some("ada".into());
        threads.create(&thread, attributes.clone()).await.unwrap();
        let queue = threads.queue(&thread).await.unwrap();
        let texts = queue.iter().map(|queued| queued.message.joined_text());
        let waiting = texts.filter(|text| text != "Order tea.");
        assert_eq!(waiting.collect::<Vec<_>>(), ["c", "B"]);
        let refused = threads.cancel(&thread, &"a".into()).await.unwrap_err();
        assert_eq!(refused.kind(), "runtime.not_waiting");
        let digest = CallDigest::from("d");
        let decision = ApprovalDecision { approval: "c-9".into(), digest, decision: Decision::Granted };
        assert_eq!(threads.decide(&thread, decision).await.unwrap_err().kind(), "runtime.not_held");
        let info = threads.info(&thread).await.unwrap();
        assert!(matches!(info.status, Status::Generating { run: at_work, .. } if at_work == run));
        assert_eq!((info.attributes, info.waiting), (attributes, 3));
    });
}

pub(crate) fn an_abort_ends_a_model_call() {
    run(async {
        let cluster = Cluster::start(1, 1).await;
        let mut times = Vec::new();
        for number in 0..20 {
            let thread = ThreadId::from(format!("abort of a model that heeds.{number}"));
            let threads = cluster.threads();
            threads.deliver(&thread, message("first", "Order tea.", PROMPT)).await.unwrap();
            // The second call of the model never ends.
            until("the model", || async { !cluster.ledger(&format!("act 1 0 {thread}")).is_empty() }).await;
            let ((_, end), time) = timed(async {
                threads.abort(&thread, "caller".into(), false).await.unwrap();
                finished(&cluster, &thread).await
            })
            .await;
            assert_eq!(end.reason(), StopReason::Cancelled);
            times.push(time);
        }
        times.sort();
        println!(
            "abort to the end of a run: p50 {:?}, p95 {:?}",
            percentile(&times, 50),
            percentile(&times, 95)
        );
        assert!(percentile(&times, 95) < Duration::from_secs(1), "{times:?}");
    });
}

pub(crate) fn an_approval_outlives_its_worker() {
    run(async {
        let cluster = Cluster::start(1, 1).await;
        let (threads, thread) = (cluster.threads(), ThreadId::from("approval of a parked run.1"));
        let is_parked = || async {
            let state = threads.state(&thread).await;
            state.is_ok_and(|state| matches!(state.status(), ThreadStatus::Parked(_)))
        };
        threads.deliver(&thread, message("first", "Order tea.", PROMPT)).await.unwrap();
        until("a parked run", is_parked).await;
        cluster.kill(0);
        cluster.restart(0);
        until("the worker", || async { threads.approvals(&thread).await.is_ok_and(|held| held.len() == 1) })
            .await;
        decide_now(&threads, &thread, "c-sign", Decision::Granted).await.unwrap();
        check_laws(&cluster, &thread).await;
        // A run that waits is rebuilt, too.
        let thread = ThreadId::from("approval while the run waits.1");
        threads.deliver(&thread, message("first", "Order tea.", PROMPT)).await.unwrap();
        until("a call", || async { threads.approvals(&thread).await.is_ok_and(|held| held.len() == 1) })
            .await;
        cluster.kill(0);
        cluster.restart(0);
        until("the worker", || async { threads.approvals(&thread).await.is_ok_and(|held| held.len() == 1) })
            .await;
        decide_now(&threads, &thread, "c-sign", Decision::Granted).await.unwrap();
        check_laws(&cluster, &thread).await;
    });
}

pub(crate) fn a_forgotten_conversation_leaves_nothing() {
    run(async {
        let cluster = Cluster::start(1, 1).await;
        let threads = cluster.threads();
        let is_forgotten = async |thread: &ThreadId| {
            threads.forget(thread).await.unwrap();
            assert!(!threads.exists(thread).await.unwrap());
            let state = threads.state(thread).await.unwrap();
            assert_eq!((state.status(), state.last()), (&ThreadStatus::Idle, None));
            assert_eq!(threads.read(thread, 0).await.unwrap(), (Vec::new(), state.first()));
            state.first()
        };
        let thread = ThreadId::from("plain.1");
        threads.deliver(&thread, message("first", "Order tea.", PROMPT)).await.unwrap();
        let (log, _) = finished(&cluster, &thread).await;
        let first = is_forgotten(&thread).await;
        assert_eq!(first, log.len() as u64);
        threads.deliver(&thread, message("first", "Again.", PROMPT)).await.unwrap();
        until("the next conversation", || async {
            threads.state(&thread).await.is_ok_and(|state| state.last().is_some())
        })
        .await;
        let (log, _) = threads.read(&thread, 0).await.unwrap();
        let said: Vec<_> = fold(&log).messages().map(|message| message.joined_text()).collect();
        assert_eq!((log[0].seq, said), (first, vec!["Again.".to_owned(), "Hello.".to_owned()]));
        // A run at work is stopped first. The second call of this model never ends.
        let thread = ThreadId::from("abort.1");
        threads.deliver(&thread, message("first", "Order tea.", PROMPT)).await.unwrap();
        until("the model", || async { !cluster.ledger(&format!("act 1 0 {thread}")).is_empty() }).await;
        is_forgotten(&thread).await;
    });
}

/// Key pair 1 of RFC 8032, section 7.1, and the public key of pair 2, as the engine writes them.
const PRIVATE_KEY: &str = "-----BEGIN PRIVATE KEY-----\n\
    MC4CAQAwBQYDK2VwBCIEIJ1hsZ3v/VpguoRK9JLsLMREScVpezJpGXA7rAMcrn9g\n-----END PRIVATE KEY-----\n";
const PUBLIC_KEY: &str = "publickeyv1_FVen3X669xLzsi6N2V91DoiyzHzg1uAgqiT8jZ9nS96Z";
const OTHER_KEY: &str = "publickeyv1_586Z7H2vpX9qNhN2T4e9Utugie3ogjbxzGaMtM3E6HR5";

pub(crate) fn workers_take_only_what_their_engine_signed() {
    run(async {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("key.pem");
        std::fs::write(&file, PRIVATE_KEY).unwrap();
        let settings = format!("request-identity-private-key-pem-file = \"{}\"\n", file.display());
        let cluster = Cluster::of_servers(1, &settings);
        let url = cluster.add_signed_worker(PUBLIC_KEY).await;
        cluster.register(&url).await;
        let thread = ThreadId::from("plain.000001");
        cluster.threads().deliver(&thread, message("first", "Order tea.", PROMPT)).await.unwrap();
        check_laws(&cluster, &thread).await;
        // Nobody else can ask for what the worker has.
        let client = reqwest::Client::builder().no_proxy().http2_prior_knowledge().build().unwrap();
        let asked = client.get(format!("{url}/discover")).send().await.unwrap();
        assert_eq!(asked.status(), reqwest::StatusCode::UNAUTHORIZED);
        // The worker of another engine.
        let other = cluster.add_signed_worker(OTHER_KEY).await;
        let refused = cluster.engine.register(&other).await.unwrap_err().to_string();
        assert!(refused.contains("401"), "{refused}");
    });
}

pub(crate) fn workers_share_a_quota() {
    run(async {
        let cluster = Cluster::start(1, 2).await;
        let pools = [(); 2].map(|()| EngineQuota::new(cluster.engine.clone(), "house/fast"));
        // A minute's worth is there at once, and two more come in each second.
        let (quota, ask) = (RateQuota::requests(120), QuotaAsk { requests: 10, tokens: 0 });
        let asks = (0..200).map(|number| pools[number % 2].take(quota, ask));
        let (grants, took) = timed(futures_util::future::join_all(asks)).await;
        let grants: Vec<_> = grants.into_iter().map(Result::unwrap).collect();
        let granted = grants.iter().map(|grant| u64::from(grant.requests)).sum::<u64>();
        assert!((120..=121 + took.as_secs() * 2 + 2).contains(&granted), "{granted} in {took:?}");
        assert!(grants.iter().any(|grant| grant.wait > Millis(0)), "{grants:?}");
    });
}

pub(crate) fn workers_share_budgets() {
    run(async {
        let cluster = Cluster::start(1, 2).await;
        let pools = [(); 2].map(|()| EngineSpend::new(cluster.engine.clone()));
        let charge = |id, tokens| {
            let amount = SpendAmount { tokens, cost: "0.5".parse().unwrap() };
            SpendCharge { id, amount, period: BudgetPeriod::Month }
        };
        // One that is delivered twice counts once.
        let charges =
            (0..100).map(|number| pools[number % 2].charge("users/ada / b", charge(number as u64 / 2, 3)));
        for spent in futures_util::future::join_all(charges).await {
            spent.unwrap();
        }
        let look = SpendCharge { period: BudgetPeriod::Month, ..SpendCharge::default() };
        let spent = pools[0].charge("users/ada / b", look).await.unwrap();
        assert_eq!((spent.amount.tokens, spent.amount.cost.to_string().as_str()), (150, "25"));
        let other = pools[1].charge("users/bob", look).await.unwrap();
        assert_eq!((other.amount, other.until), (SpendAmount::default(), spent.until));
    });
}

pub(crate) fn values_outlive_workers() {
    run(async {
        let cluster = Cluster::start(1, 1).await;
        let storage = EngineStorage::new(cluster.engine.clone());
        storage_contract(|| storage.clone()).await;
        storage.set("orders/17/state", &Json::string("paid")).await.unwrap();
        cluster.kill(0);
        // It is asked for while no worker runs.
        let (late, ()) = tokio::join!(storage.get("orders/17/state"), async { cluster.restart(0) });
        assert_eq!(late, Ok(Some(Json::string("paid"))));
        assert_eq!(storage.list("orders/").await.unwrap(), ["orders/17/state"]);
    });
}
