//! How many machines a load needs: a simulation of the queues of a cluster.
//!
//! A run stores entries in the journal of the node that has its thread, and between them waits for steps: models and
//! tools. Runs begin independently of each other. Three things can be short: the journals, the places for steps, and
//! nodes that are lost. [`simulate`] plays a load on a cluster and reports how long runs take; [`nodes`] finds the smallest
//! cluster. Everything is reproducible from its seed.
//!
//! The explanation of the figures is in `docs/explanation/scale.md`. `cargo xtask e2e cluster` compares the simulation with
//! a real cluster.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::time::Duration;

/// The share of a journal that a plan uses, so that bursts and the loss of a node find room.
pub const PLANNED_USE: f64 = 0.5;

/// Runs of one simulation, at most.
pub const MAX_RUNS: usize = 1_000_000;

/// Nodes of a plan, at most.
pub const MAX_NODES: usize = 1_000;

/// Cores of a node, at most.
pub const MAX_CORES: usize = 1_024;

/// Work of a cluster.
///
/// ```
/// use harness_restate::capacity::Load;
///
/// let load = Load { runs_per_second: 60.0, ..Load::default() };
/// assert_eq!(load.entries_per_run(), 254.0);
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Load {
    /// Runs that begin in one second, on average. Default: 1.
    pub runs_per_second: f64,
    /// Iterations of a run: a model call and then a tool call. Default: 10.
    pub iterations: u32,
    /// Mean time of a model call, exponentially distributed. Default: 4 s.
    pub model: Duration,
    /// Mean time of a tool call, exponentially distributed. Default: 500 ms.
    pub tool: Duration,
    /// Entries that one iteration stores: entries of journals, and records and events of the log. Default: 24.
    pub entries_per_iteration: f64,
    /// Entries that a run stores beside its iterations. Default: 14.
    pub entries_beside: f64,
}

impl Default for Load {
    fn default() -> Self {
        Self {
            runs_per_second: 1.0,
            iterations: 10,
            model: Duration::from_secs(4),
            tool: Duration::from_millis(500),
            entries_per_iteration: 24.0,
            entries_beside: 14.0,
        }
    }
}

impl Load {
    /// Entries that a run stores.
    pub fn entries_per_run(&self) -> f64 {
        f64::from(self.iterations) * self.entries_per_iteration + self.entries_beside
    }
}

/// Nodes that do the work.
///
/// ```
/// use harness_restate::capacity::{Cluster, Load, simulate};
///
/// let load = Load { runs_per_second: 5.0, ..Load::default() };
/// let outcome = simulate(&load, &Cluster::default(), 2_000, 1);
/// assert!(outcome.journal_use < 0.5 && outcome.time.p95.as_secs() < 120);
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cluster {
    /// Nodes that have journals. Threads are spread over them evenly. Default: 3.
    pub nodes: usize,
    /// Entries that one node stores in one second. Default: 3,400, measured on two cores.
    pub entries_per_second: f64,
    /// Cores of a node: so many runs store at once, each with its share of that speed. Default: 2.
    pub cores: usize,
    /// Time until a run that stored its part of an iteration continues, beside the storing itself: acknowledgements, and calls
    /// from node to node. Default: 5 ms.
    pub latency: Duration,
    /// Nodes that store each entry. Default: 2.
    pub copies: usize,
    /// Steps that all workers perform at once. Default: 1,024, four workers of 256.
    pub steps: usize,
    /// Mean time between two losses of a node. Default: none are lost.
    pub loss_every: Option<Duration>,
    /// Time from a loss until the work of that node continues. Default: 3 s.
    pub recovery: Duration,
}

impl Default for Cluster {
    fn default() -> Self {
        Self {
            nodes: 3,
            entries_per_second: 3_400.0,
            cores: 2,
            latency: Duration::from_millis(5),
            copies: 2,
            steps: 1_024,
            loss_every: None,
            recovery: Duration::from_secs(3),
        }
    }
}

impl Cluster {
    /// Entries that all nodes together store in one second, each of them once.
    pub fn entries_per_second(&self) -> f64 {
        let nodes = self.nodes.clamp(1, MAX_NODES);
        self.entries_per_second * as_f64(nodes) / as_f64(self.copies.clamp(1, nodes))
    }
}

/// Middle, high and highest of many times.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Times {
    /// Half of them are not longer.
    pub p50: Duration,
    /// 95 of 100 are not longer.
    pub p95: Duration,
    /// The longest of them.
    pub max: Duration,
}

/// Result of a simulation.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Outcome {
    /// Runs that started after the first tenth, which only fills the cluster, and ended.
    pub runs: usize,
    /// Time of a run from its message to its end.
    pub time: Times,
    /// The part of it in which the run waited for a journal, a place or a lost node.
    pub waiting: Times,
    /// Share of the time in which the journals store. 1 or more: the load grows faster than it is done.
    pub journal_use: f64,
    /// Steps at once, at most.
    pub steps: usize,
}

/// Plays runs of a load on a cluster.
///
/// At most [`MAX_RUNS`]. A load without runs, or a cluster that stores nothing, has an empty outcome.
///
/// # Example
/// ```
/// use harness_restate::capacity::{Cluster, Load, simulate};
///
/// let load = Load { runs_per_second: 20.0, ..Load::default() };
/// let outcome = simulate(&load, &Cluster::default(), 5_000, 1);
/// println!("95 of 100 runs end within {:?}", outcome.time.p95);
/// ```
pub fn simulate(load: &Load, cluster: &Cluster, runs: usize, seed: u64) -> Outcome {
    let cores = cluster.nodes.clamp(1, MAX_NODES) * cluster.cores.clamp(1, MAX_CORES);
    let stores = cluster.entries_per_second() / as_f64(cores);
    if !(load.runs_per_second > 0.0 && load.runs_per_second.is_finite() && stores > 0.0) {
        return Outcome::default();
    }
    let mut simulation = Simulation::new(load, cluster, stores, runs.min(MAX_RUNS), seed);
    simulation.play();
    simulation.outcome()
}

/// The smallest number of nodes whose journals are used at most to [`PLANNED_USE`] and whose runs wait at most that long in
/// 95 of 100 cases; none if [`MAX_NODES`] do not suffice.
///
/// # Example
/// ```
/// use std::time::Duration;
/// use harness_restate::capacity::{Cluster, Load, nodes};
///
/// let load = Load { runs_per_second: 60.0, ..Load::default() };
/// let single = Cluster { copies: 1, steps: 16_384, ..Cluster::default() };
/// assert_eq!(nodes(&load, &single, Duration::from_secs(1)), Some(9));
/// ```
pub fn nodes(load: &Load, cluster: &Cluster, waiting: Duration) -> Option<usize> {
    let needed = load.runs_per_second * load.entries_per_run() / PLANNED_USE;
    (cluster.copies.max(1)..=MAX_NODES)
        .map(|nodes| Cluster { nodes, ..*cluster })
        .filter(|cluster| cluster.entries_per_second() >= needed)
        .find(|cluster| simulate(load, cluster, 5_000, 1).waiting.p95 <= waiting)
        .map(|cluster| cluster.nodes)
}

/// Event of the simulation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Begin,
    /// A run has stored what it had to.
    Stored(usize),
    /// A step of a run has ended, in its so many-th attempt.
    Performed(usize, u32),
    Lost,
}

#[derive(Clone, Copy, Debug)]
struct Run {
    began: f64,
    ended: Option<f64>,
    /// Time that its steps took.
    worked: f64,
    journal: usize,
    /// Steps that have started.
    steps: u32,
    attempt: u32,
    /// Where and since when its step is at work.
    at: Option<(usize, f64)>,
}

struct Simulation<'a> {
    load: &'a Load,
    cluster: &'a Cluster,
    /// Entries of one core in one second.
    stores: f64,
    wanted: usize,
    now: f64,
    /// Bits of times that are not negative have the order of the times.
    events: BinaryHeap<Reverse<(u64, u64, Event)>>,
    order: u64,
    runs: Vec<Run>,
    open: usize,
    /// When each core of each node has stored all that it was given.
    journals: Vec<Vec<f64>>,
    stored: f64,
    at_work: usize,
    most: usize,
    waiting: VecDeque<usize>,
    dice: fastrand::Rng,
}

impl<'a> Simulation<'a> {
    fn new(load: &'a Load, cluster: &'a Cluster, stores: f64, wanted: usize, seed: u64) -> Self {
        Self {
            load,
            cluster,
            stores,
            wanted,
            now: 0.0,
            events: BinaryHeap::new(),
            order: 0,
            runs: Vec::new(),
            open: 0,
            journals: vec![vec![0.0; cluster.cores.clamp(1, MAX_CORES)]; cluster.nodes.clamp(1, MAX_NODES)],
            stored: 0.0,
            at_work: 0,
            most: 0,
            waiting: VecDeque::new(),
            dice: fastrand::Rng::with_seed(seed),
        }
    }

    fn play(&mut self) {
        self.begin_later();
        self.lose_later();
        // Nodes that are lost faster than a step takes would let no run end.
        let most = self.wanted.saturating_mul(1_000).saturating_mul(self.load.iterations.max(1) as usize);
        for _ in 0..most {
            let Some(Reverse((bits, _, event))) = self.events.pop() else { break };
            self.now = f64::from_bits(bits);
            match event {
                Event::Begin => self.begin(),
                Event::Stored(run) => self.stored(run),
                Event::Performed(run, attempt) => self.performed(run, attempt),
                Event::Lost => self.lose(),
            }
            if self.open == 0 && self.runs.len() >= self.wanted {
                break;
            }
        }
    }

    fn after(&mut self, seconds: f64, event: Event) {
        self.order += 1;
        self.events.push(Reverse(((self.now + seconds.max(0.0)).to_bits(), self.order, event)));
    }

    fn begin_later(&mut self) {
        if self.runs.len() < self.wanted {
            let pause = exponential(&mut self.dice, 1.0 / self.load.runs_per_second);
            self.after(pause, Event::Begin);
        }
    }

    fn begin(&mut self) {
        let journal = self.dice.usize(..self.journals.len());
        let began = self.now;
        let run = Run { began, ended: None, worked: 0.0, journal, steps: 0, attempt: 0, at: None };
        self.runs.push(run);
        self.open += 1;
        self.store(self.runs.len() - 1, self.load.entries_beside);
        self.begin_later();
    }

    /// Stores entries after all that their journal was given before.
    fn store(&mut self, run: usize, entries: f64) {
        let Some(Run { journal, .. }) = self.runs.get(run) else { return };
        let cores = self.journals.get_mut(*journal);
        let Some(free) = cores.and_then(|cores| cores.iter_mut().min_by(|a, b| a.total_cmp(b))) else {
            return;
        };
        let took = entries.max(0.0) / self.stores;
        *free = free.max(self.now) + took;
        self.stored += took;
        let pause = *free - self.now + self.cluster.latency.as_secs_f64();
        self.after(pause, Event::Stored(run));
    }

    fn stored(&mut self, index: usize) {
        let Some(run) = self.runs.get_mut(index) else { return };
        if run.steps == self.load.iterations.saturating_mul(2) {
            run.ended = Some(self.now);
            self.open -= 1;
        } else if self.at_work < self.cluster.steps.max(1) {
            self.perform(index);
        } else {
            self.waiting.push_back(index);
        }
    }

    /// Begins the next step of a run.
    fn perform(&mut self, index: usize) {
        self.at_work += 1;
        self.most = self.most.max(self.at_work);
        if let Some(run) = self.runs.get_mut(index) {
            run.steps += 1;
        }
        self.attempt(index, 0.0);
    }

    /// Begins the step of a run after a pause, at any node.
    fn attempt(&mut self, index: usize, pause: f64) {
        let worker = self.dice.usize(..self.journals.len());
        let Some(run) = self.runs.get_mut(index) else { return };
        let mean = if run.steps % 2 == 1 { self.load.model } else { self.load.tool };
        let took = exponential(&mut self.dice, mean.as_secs_f64());
        run.attempt += 1;
        run.at = Some((worker, self.now + pause));
        let event = Event::Performed(index, run.attempt);
        self.after(pause + took, event);
    }

    fn performed(&mut self, index: usize, attempt: u32) {
        let Some(run) = self.runs.get_mut(index).filter(|run| run.attempt == attempt) else { return };
        if let Some((_, since)) = run.at.take() {
            run.worked += self.now - since;
        }
        self.at_work -= 1;
        // Each iteration is stored in two parts: behind the model, and behind the tool.
        self.store(index, self.load.entries_per_iteration / 2.0);
        if let Some(next) = self.waiting.pop_front() {
            self.perform(next);
        }
    }

    fn lose_later(&mut self) {
        if let Some(every) = self.cluster.loss_every.filter(|every| !every.is_zero()) {
            let pause = exponential(&mut self.dice, every.as_secs_f64());
            self.after(pause, Event::Lost);
        }
    }

    /// A node is lost: its journal stops until others have taken it over, and its steps begin anew.
    fn lose(&mut self) {
        let lost = self.dice.usize(..self.journals.len());
        let recovery = self.cluster.recovery.as_secs_f64();
        for free in self.journals.get_mut(lost).into_iter().flatten() {
            *free = free.max(self.now + recovery);
        }
        let at_work = self.runs.iter().enumerate();
        let again: Vec<_> =
            at_work.filter(|(_, run)| run.at.is_some_and(|(at, _)| at == lost)).map(|(run, _)| run).collect();
        for run in again {
            self.attempt(run, recovery);
        }
        self.lose_later();
    }

    fn outcome(&self) -> Outcome {
        let counted = self.runs.iter().skip(self.wanted / 10);
        let ended: Vec<_> = counted.filter_map(|run| Some((run, run.ended? - run.began))).collect();
        let took = ended.iter().map(|(_, took)| *took).collect();
        let cores = self.journals.iter().map(Vec::len).sum();
        let waited = ended.iter().map(|(run, took)| took - run.worked - self.unloaded()).collect();
        Outcome {
            runs: ended.len(),
            time: times(took),
            waiting: times(waited),
            journal_use: self.stored / (self.now * as_f64(cores)).max(f64::MIN_POSITIVE),
            steps: self.most,
        }
    }

    /// Time that the entries of a run take without any other run.
    fn unloaded(&self) -> f64 {
        let parts = f64::from(self.load.iterations) * 2.0 + 1.0;
        self.load.entries_per_run() / self.stores + parts * self.cluster.latency.as_secs_f64()
    }
}

fn times(mut seconds: Vec<f64>) -> Times {
    seconds.sort_by(f64::total_cmp);
    let last = seconds.len().saturating_sub(1);
    let at = |index: usize| {
        let seconds = seconds.get(index.min(last)).copied().unwrap_or(0.0);
        Duration::try_from_secs_f64(seconds.max(0.0)).unwrap_or(Duration::MAX)
    };
    Times { p50: at(seconds.len() / 2), p95: at(seconds.len() * 95 / 100), max: at(last) }
}

/// A time with an exponential distribution.
fn exponential(dice: &mut fastrand::Rng, mean: f64) -> f64 {
    -mean * (1.0 - dice.f64()).ln()
}

#[expect(clippy::cast_precision_loss, reason = "counts are small")]
fn as_f64(count: usize) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs without steps, which store one entry: a queue with one place and a fixed time.
    const STORE: Load = Load {
        runs_per_second: 80.0,
        iterations: 0,
        model: Duration::ZERO,
        tool: Duration::ZERO,
        entries_per_iteration: 0.0,
        entries_beside: 1.0,
    };
    const ONE: Cluster = Cluster {
        nodes: 1,
        entries_per_second: 100.0,
        cores: 1,
        latency: Duration::ZERO,
        copies: 1,
        steps: 1_000,
        loss_every: None,
        recovery: Duration::from_secs(3),
    };

    /// The share of runs that wait at most so many seconds for a place with a fixed time (Erlang, 1909).
    fn erlang(used: f64, place: f64, waits: f64) -> f64 {
        let mut factorial = 1.0;
        let mut sum = 0.0;
        for k in (0..).take_while(|k| f64::from(*k) <= waits / place) {
            factorial *= f64::from(k.max(1));
            let x = used * (f64::from(k) - waits / place);
            sum += x.powi(k) / factorial * (-x).exp();
        }
        (1.0 - used) * sum
    }

    #[test]
    fn a_journal_is_a_queue_as_theory_has_it() {
        let outcome = simulate(&STORE, &ONE, 200_000, 1);
        let share = erlang(0.8, 0.01, outcome.waiting.p95.as_secs_f64());
        assert!((share - 0.95).abs() < 0.005, "{share} {outcome:?}");
        let share = erlang(0.8, 0.01, outcome.waiting.p50.as_secs_f64());
        assert!((share - 0.5).abs() < 0.02, "{share} {outcome:?}");
        assert!((outcome.journal_use - 0.8).abs() < 0.01, "{outcome:?}");
    }

    #[test]
    fn without_other_runs_nothing_waits() {
        let load = Load { runs_per_second: 0.001, ..Load::default() };
        let outcome = simulate(&load, &Cluster::default(), 1_000, 1);
        assert_eq!((outcome.runs, outcome.waiting.max.as_millis() < 50), (900, true), "{outcome:?}");
    }

    #[test]
    fn steps_wait_for_places() {
        // 90 of 100 seconds of work in each second.
        let load = Load { runs_per_second: 2.0, ..Load::default() };
        let wide = Cluster { entries_per_second: 1e9, steps: 100, ..Cluster::default() };
        let narrow = Cluster { steps: 80, ..wide };
        let [wide, narrow] = [wide, narrow].map(|cluster| simulate(&load, &cluster, 5_000, 1));
        assert!(wide.waiting.p50 < Duration::from_secs(3) && wide.steps == 100, "{wide:?}");
        assert!(narrow.waiting.p50 > Duration::from_mins(1) && narrow.steps == 80, "{narrow:?}");
    }

    #[test]
    fn a_lost_node_delays_its_runs_and_all_of_them_end() {
        let load = Load { runs_per_second: 10.0, ..Load::default() };
        let lossy = Cluster { loss_every: Some(Duration::from_mins(1)), ..Cluster::default() };
        let [calm, lossy] = [Cluster::default(), lossy].map(|cluster| simulate(&load, &cluster, 5_000, 1));
        assert_eq!((calm.runs, lossy.runs), (4_500, 4_500));
        assert!(calm.waiting.p95 < Duration::from_secs(1), "{calm:?}");
        assert!(lossy.waiting.max > Duration::from_secs(3) && lossy.time.p50 > calm.time.p50, "{lossy:?}");
    }

    #[test]
    fn what_cannot_be_played_has_no_runs_and_ends() {
        for load in
            [0.0, -1.0, f64::NAN, f64::INFINITY].map(|runs_per_second| Load { runs_per_second, ..STORE })
        {
            assert_eq!(simulate(&load, &ONE, 10, 1), Outcome::default());
        }
        let never = Cluster { loss_every: Some(Duration::from_nanos(1)), ..Cluster::default() };
        assert_eq!(simulate(&Load::default(), &never, 10, 1).runs, 0);
        let none = Cluster { nodes: 0, steps: 0, copies: 0, ..Cluster::default() };
        assert!(simulate(&Load::default(), &none, 10, 1).runs > 0);
        assert_eq!(nodes(&Load { runs_per_second: 1e9, ..Load::default() }, &ONE, Duration::MAX), None);
    }

    #[test]
    fn more_load_needs_more_nodes() {
        let needed = |runs_per_second| {
            let load = Load { runs_per_second, ..Load::default() };
            nodes(&load, &Cluster { steps: 65_536, ..Cluster::default() }, Duration::from_secs(1))
        };
        assert_eq!([1.0, 12.0, 60.0].map(needed), [Some(2), Some(4), Some(18)]);
    }
}
