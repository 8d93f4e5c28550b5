//! Many conversations at once, over servers, workers and front ends that are killed, frozen and cut off.

use std::cell::{Cell, RefCell};
use std::time::Duration;

use harness::core::ThreadId;
use harness::runtime::ThreadService as _;

use crate::cluster::{percentile, run, timed};
use crate::front::Front;
use crate::processes::{Cluster, until};
use crate::user::{check_laws, idle, message, play_acts};
use crate::worker::{TOO_LONG, all_scripts};
use crate::world::{PROMPT, Script};

/// Conversations at once: directly with the engine, and over front ends.
const USERS: usize = 24;
const CLIENTS: usize = 4;
/// The pause of users between two looks.
const LOOK: Duration = Duration::from_millis(200);
/// How often something is killed, and how long it is away.
const EVERY: Duration = Duration::from_secs(5);
const AWAY: Duration = Duration::from_secs(2);
/// How long a frozen or cut off worker is away, and a frozen server.
const FROZEN: Duration = Duration::from_secs(6);

/// The scripts of the world that end soon.
pub(crate) fn scripts() -> Vec<Script> {
    all_scripts().into_iter().filter(|script| !TOO_LONG.contains(&script.name)).collect()
}

/// How long the nodes are killed: two minutes, or so many seconds.
#[expect(clippy::disallowed_methods, reason = "a longer run is asked for by whoever starts it")]
pub(crate) fn span() -> Duration {
    let asked = std::env::var("HARNESS_CLUSTER_SECONDS").ok();
    asked.map_or(Duration::from_mins(2), |seconds| Duration::from_secs(seconds.parse().unwrap()))
}

/// Conversations while something goes on, and how many there were.
struct Load<'c> {
    cluster: &'c Cluster,
    fronts: RefCell<Vec<Front>>,
    next: Cell<usize>,
    is_over: Cell<bool>,
}

impl<'c> Load<'c> {
    async fn new(cluster: &'c Cluster, fronts: usize) -> Self {
        let mut started = Vec::new();
        for _ in 0..fronts {
            started.push(Front::start(cluster).await);
        }
        Self { cluster, fronts: RefCell::new(started), next: Cell::new(0), is_over: Cell::new(false) }
    }

    /// Has conversations while `trouble` goes on, and checks the laws of each. How many there were.
    async fn during(&self, trouble: impl Future<Output = ()>) -> usize {
        let users = futures_util::future::join_all((0..USERS).map(|_| self.user()));
        let clients = if self.fronts.borrow().is_empty() { 0 } else { CLIENTS };
        let clients = futures_util::future::join_all((0..clients).map(|at| self.client(at)));
        let trouble = async {
            trouble.await;
            self.is_over.set(true);
        };
        tokio::select! {
            _ = async { tokio::join!(users, clients, trouble) } => {}
            () = play_acts(self.cluster) => {}
        }
        self.next.get()
    }

    fn number(&self) -> usize {
        self.next.replace(self.next.get() + 1)
    }

    /// Has one conversation after the other.
    async fn user(&self) {
        let scripts = scripts();
        while !self.is_over.get() {
            let number = self.number();
            let thread = self.begin(&scripts[number % scripts.len()], number).await;
            idle(self.cluster, &thread, LOOK).await;
            check_laws(self.cluster, &thread).await;
        }
    }

    /// Begins a conversation. A request that fails is sent again, as a client does.
    async fn begin(&self, script: &Script, number: usize) -> ThreadId {
        let (threads, thread) =
            (self.cluster.threads(), ThreadId::from(format!("{}.{number:06}", script.name)));
        let prompt =
            || async { threads.deliver(&thread, message("first", script.said[0], PROMPT)).await.is_ok() };
        until("a message to be accepted", prompt).await;
        thread
    }

    /// Has one conversation after the other over a front end, and at another when that is gone. It must see each event
    /// once, in order.
    async fn client(&self, at: usize) {
        let mut front = at;
        while !self.is_over.get() {
            let thread = format!("front-plain.{:06}", self.number());
            let reader = |front: usize| {
                let fronts = self.fronts.borrow();
                fronts[front % fronts.len()].reader()
            };
            until("a prompt to be accepted", || {
                let asked = reader(front).prompt(thread.clone(), "Order tea.");
                front += 1;
                asked
            })
            .await;
            let seen = &RefCell::new(Vec::new());
            until("the end of a stream", || {
                let read = reader(front).read(thread.clone(), seen.borrow().last().copied());
                front += 1;
                async move {
                    let (more, has_ended) = read.await;
                    seen.borrow_mut().extend(more);
                    has_ended
                }
            })
            .await;
            let seen = seen.take();
            let (whole, is_whole) = reader(front).read(thread.clone(), None).await;
            assert!(!is_whole || seen == whole, "{thread}: seen {seen:?}, there is {whole:?}");
            assert!(seen.is_sorted_by(|one, next| one < next), "{thread}: {seen:?}");
        }
    }
}

/// Something that may be killed.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Node {
    Server(usize),
    Worker(usize),
    Front(usize),
}

impl Node {
    const ALL: [Self; 7] = [
        Self::Server(0),
        Self::Server(1),
        Self::Server(2),
        Self::Worker(0),
        Self::Worker(1),
        Self::Front(0),
        Self::Front(1),
    ];

    fn kind(self) -> &'static str {
        match self {
            Self::Server(_) => "server",
            Self::Worker(_) => "worker",
            Self::Front(_) => "front end",
        }
    }
}

impl Load<'_> {
    fn kill(&self, node: Node) {
        match node {
            Node::Server(at) => self.cluster.kill_server(at),
            Node::Worker(at) => self.cluster.kill(at),
            Node::Front(at) => self.fronts.borrow_mut()[at].kill(),
        }
    }

    async fn restart(&self, node: Node) {
        match node {
            Node::Server(at) => self.cluster.restart_server(at),
            Node::Worker(at) => self.cluster.restart(at),
            Node::Front(at) => {
                let again = Front::start(self.cluster).await;
                self.fronts.borrow_mut()[at] = again;
            }
        }
    }

    /// The time from the death of a node until what was at work ends: four runs, or a look over another front end.
    async fn recovery(&self, node: Node) -> Duration {
        let scripts = scripts();
        let script = scripts.iter().find(|script| script.name == "each class of tools").unwrap();
        let probes = futures_util::future::join_all((0..4).map(|_| self.begin(script, self.number()))).await;
        self.kill(node);
        if let Node::Front(at) = node {
            let other = self.fronts.borrow()[1 - at].reader();
            return timed(until("another front end", || other.clone().answers())).await.1;
        }
        let ends = probes.iter().map(|thread| idle(self.cluster, thread, Duration::from_millis(20)));
        timed(futures_util::future::join_all(ends)).await.1
    }
}

pub(crate) fn a_killed_node_is_replaced_soon() {
    run(async {
        let cluster = Cluster::start(3, 2).await;
        let load = Load::new(&cluster, 2).await;
        let mut times = Vec::new();
        let rounds = usize::try_from(span().as_secs() / 120).unwrap().max(1);
        for node in Node::ALL.into_iter().cycle().take(rounds * Node::ALL.len()) {
            times.push((node.kind(), load.recovery(node).await));
            load.restart(node).await;
            tokio::time::sleep(AWAY).await;
        }
        for (kind, bar) in [("server", 40), ("worker", 10), ("front end", 5)] {
            let mut times: Vec<_> =
                times.iter().filter(|(of, _)| *of == kind).map(|(_, time)| *time).collect();
            times.sort();
            let [middle, high] = [50, 95].map(|part| percentile(&times, part));
            println!("{kind} killed: p50 {middle:.1?}, p95 {high:.1?}");
            assert!(high < Duration::from_secs(bar), "{times:?}");
        }
    });
}

pub(crate) fn killed_nodes_lose_nothing() {
    run(async {
        let cluster = Cluster::start(3, 2).await;
        let load = Load::new(&cluster, 2).await;
        let kills = span().as_secs() / EVERY.as_secs();
        let trouble = async {
            let mut dice = fastrand::Rng::with_seed(11);
            for _ in 0..kills {
                let node = Node::ALL[dice.usize(..Node::ALL.len())];
                load.kill(node);
                tokio::time::sleep(AWAY).await;
                load.restart(node).await;
                tokio::time::sleep(EVERY.saturating_sub(AWAY)).await;
            }
        };
        let count = load.during(trouble).await;
        println!("{count} conversations in {:?}, {kills} kills", span());
    });
}

pub(crate) fn frozen_and_cut_off_nodes_lose_nothing() {
    run(async {
        let cluster = Cluster::start(3, 2).await;
        let load = Load::new(&cluster, 0).await;
        let trouble = async {
            for at in 0..2 {
                cluster.freeze(at, true);
                tokio::time::sleep(FROZEN).await;
                cluster.freeze(at, false);
                tokio::time::sleep(AWAY).await;
                cluster.cut_off(at, true);
                tokio::time::sleep(FROZEN).await;
                cluster.cut_off(at, false);
                tokio::time::sleep(AWAY).await;
            }
            cluster.freeze_server(1, true);
            tokio::time::sleep(FROZEN).await;
            cluster.freeze_server(1, false);
            tokio::time::sleep(AWAY).await;
        };
        let count = load.during(trouble).await;
        println!("{count} conversations; both workers were frozen and cut off, and one server was frozen");
    });
}

pub(crate) fn an_upgrade_and_the_way_back_lose_nothing() {
    run(async {
        let cluster = Cluster::start(1, 1).await;
        let load = Load::new(&cluster, 0).await;
        let upgrade = async {
            tokio::time::sleep(AWAY).await;
            let old = cluster.latest().await;
            let new = cluster.add_workers(1).await;
            cluster.register(&new).await;
            // The old build ends what it began.
            until("the old build to be drained", || cluster.is_drained(&old)).await;
            cluster.kill(0);
            tokio::time::sleep(AWAY).await;
            let new = cluster.latest().await;
            assert_ne!(new, old);
            cluster.restart(0);
            until("the old build", || async { cluster.engine.register_again(&old).await.is_ok() }).await;
            assert_eq!(cluster.latest().await, old);
            until("the new build to be drained", || cluster.is_drained(&new)).await;
            cluster.kill(1);
            tokio::time::sleep(AWAY).await;
        };
        let count = load.during(upgrade).await;
        println!("{count} conversations during an upgrade and the way back");
    });
}
