//! What a simulation knows: its numbers, its clock, what was sent, and what went wrong.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use harness_core::message::Message;
use harness_core::port::{BoxFuture, Clock, Ids};
use harness_core::{EntryId, Millis, RunId, Time};
use harness_runtime::{LateSteering, QueueMode, Runtime, Thread};
use parking_lot::{Mutex, MutexGuard};

use super::dice::Dice;
use super::store::{Shelf, SimSession};
use super::tricks::Trick;
use super::turns::Used;

/// How a seed plays: the same in all of its lives.
#[derive(Clone, Copy, Debug)]
pub(super) struct Plan {
    pub(super) threads: u64,
    pub(super) lives: u64,
    pub(super) acts: u64,
    /// Whether sessions fail now and then.
    pub(super) faulty: bool,
    pub(super) appends_at_once: bool,
    /// Whether all turns come to their ends before the process dies, or before everybody behaves.
    pub(super) waits: bool,
    /// Whether views are made shorter.
    pub(super) compacts: bool,
    pub(super) iterations: u32,
    pub(super) tool_calls: u32,
    pub(super) elapsed: Millis,
    pub(super) grace: Millis,
    pub(super) event_log: usize,
    pub(super) loaded: usize,
    pub(super) queue: usize,
}

impl Plan {
    fn of(dice: &mut Dice) -> Self {
        Self {
            threads: 1 + dice.below(3),
            lives: 1 + dice.below(3),
            acts: 6 + dice.below(30),
            faulty: dice.one_in(4),
            appends_at_once: dice.one_in(2),
            compacts: dice.one_in(3),
            iterations: dice.pick(&[2, 4, 8]),
            tool_calls: dice.pick(&[1, 3, 9]),
            elapsed: Millis(dice.pick(&[200, 2_000, 20_000])),
            grace: Millis(dice.pick(&[0, 10, 500])),
            event_log: dice.pick(&[4, 16, 64, 1_024]),
            loaded: dice.pick(&[0, 1, 8]),
            queue: dice.pick(&[3, 64]),
            waits: dice.one_in(3),
        }
    }
}

/// What must have become of a message at the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// It stands in the history, once.
    Once,
    /// Once or not at all: nobody was told whether it was taken.
    Perhaps,
    /// It stands nowhere.
    Never,
}

/// In what way a message was sent. Messages of one way come in the order in which they were sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    Prompt,
    NextTurn,
    BetweenRounds,
    Interrupt,
    Steer,
    FollowUp,
}

pub(super) struct Sent {
    pub(super) thread: String,
    pub(super) instance: u32,
    pub(super) text: String,
    pub(super) entry: Option<EntryId>,
    pub(super) way: Way,
    pub(super) fate: Fate,
    /// Whether somebody put it in another place of the queue.
    pub(super) moved: bool,
    /// For an interruption: what waited when it came.
    pub(super) before: Vec<usize>,
}

/// What a model was asked, and what it said.
pub(super) struct Asked {
    pub(super) thread: String,
    pub(super) view: Vec<Arc<Message>>,
    pub(super) answer: Option<String>,
}

pub(super) struct Inner {
    dice: Dice,
    timeline: Vec<String>,
    faults: Vec<String>,
    counted: u64,
    opens: u32,
    /// Until when no session can be opened.
    broken_until: Time,
    /// Everybody behaves, so that what is left to do gets done.
    calm: bool,
    crashed: bool,
    began: Option<tokio::time::Instant>,
    before: Millis,
    runtime: Option<Runtime>,
    /// Which thread of that name it is: a closed one is followed by another.
    instances: HashMap<String, u32>,
    configured: HashSet<(String, u32)>,
    shelves: BTreeMap<String, Shelf>,
    pub(super) sent: Vec<Sent>,
    pub(super) asked: Vec<Asked>,
    /// Threads whose views were made shorter.
    pub(super) shortened: HashSet<String>,
    /// Who waits for an answer.
    pub(super) waiting: BTreeMap<u64, String>,
    /// The event log of each thread.
    pub(super) tapes: HashMap<(String, u32), HashMap<u64, String>>,
    /// Calls of tools that must not run twice.
    pub(super) effects: HashMap<String, u32>,
    /// The turns that go on.
    pub(super) turns: HashMap<String, Used>,
    /// How often the trick could have been played.
    pub(super) chances: u64,
    /// Sessions that stay open.
    pub(super) kept: Vec<Arc<SimSession>>,
}

pub(super) struct World {
    pub(super) plan: Plan,
    pub(super) trick: Option<Trick>,
    inner: Mutex<Inner>,
}

impl World {
    pub(super) fn new(seed: u64, trick: Option<Trick>) -> Arc<Self> {
        let mut dice = Dice::new(seed);
        let plan = Plan::of(&mut dice);
        let inner = Inner {
            dice,
            timeline: vec![format!("{plan:?}")],
            faults: Vec::new(),
            counted: 0,
            opens: 0,
            broken_until: Time(0),
            calm: false,
            crashed: false,
            began: None,
            before: Millis(0),
            runtime: None,
            instances: HashMap::new(),
            configured: HashSet::new(),
            shelves: BTreeMap::new(),
            sent: Vec::new(),
            asked: Vec::new(),
            shortened: HashSet::new(),
            waiting: BTreeMap::new(),
            tapes: HashMap::new(),
            effects: HashMap::new(),
            turns: HashMap::new(),
            chances: 0,
            kept: Vec::new(),
        };
        Arc::new(Self { plan, trick, inner: Mutex::new(inner) })
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock()
    }

    // Chance.

    pub(super) fn below(&self, n: u64) -> u64 {
        self.lock().dice.below(n)
    }

    pub(super) fn one_in(&self, n: u64) -> bool {
        self.lock().dice.one_in(n)
    }

    pub(super) fn pick<T: Copy>(&self, from: &[T]) -> T {
        self.lock().dice.pick(from)
    }

    pub(super) fn queue_mode(&self) -> (QueueMode, LateSteering) {
        (
            self.pick(&[QueueMode::OneAtATime, QueueMode::All]),
            self.pick(&[LateSteering::GoesOn, LateSteering::NextTurn]),
        )
    }

    pub(super) fn fails(&self) -> bool {
        self.plan.faulty && !self.is_calm() && self.one_in(8)
    }

    /// Whether sessions cannot be opened for a while.
    pub(super) fn is_broken(&self) -> bool {
        let now = self.now();
        if self.fails() && self.one_in(2) {
            self.lock().broken_until = now.after(Millis(100));
        }
        let inner = self.lock();
        !inner.calm && now < inner.broken_until
    }

    /// Never the same number again.
    pub(super) fn count(&self) -> u64 {
        let mut inner = self.lock();
        inner.counted += 1;
        inner.counted
    }

    /// Work without an end shows as sessions that are opened without an end.
    pub(super) fn count_open(&self) {
        let mut inner = self.lock();
        inner.opens += 1;
        let last = inner.timeline.len().saturating_sub(40);
        assert!(
            inner.opens < 5_000,
            "sessions are opened without an end\n{}",
            inner.timeline[last..].join("\n")
        );
    }

    // Time.

    /// Mostly a short wait, sometimes none: other tasks have their turn.
    pub(super) async fn pause(&self) {
        match self.below(6) {
            0 | 1 => {}
            2 | 3 => tokio::task::yield_now().await,
            4 => self.sleep(self.pick(&[1, 2, 5])).await,
            _ => self.sleep(self.pick(&[1, 20, 60])).await,
        }
    }

    pub(super) async fn sleep(&self, millis: u64) {
        tokio::time::sleep(std::time::Duration::from_millis(millis)).await;
    }

    // What happened.

    pub(super) fn log(&self, thread: &str, what: &str) {
        let now = self.now().0;
        self.lock().timeline.push(format!("{now:>6} {thread}: {what}"));
    }

    pub(super) fn fault(&self, what: String) {
        let now = self.now().0;
        let mut inner = self.lock();
        inner.timeline.push(format!("{now:>6} FAULT {what}"));
        inner.faults.push(what);
    }

    pub(super) fn expect(&self, holds: bool, what: impl FnOnce() -> String) {
        if !holds {
            self.fault(what());
        }
    }

    pub(super) fn faults(&self) -> Vec<String> {
        self.lock().faults.clone()
    }

    /// What went wrong, with all that had happened.
    pub(super) fn verdict(&self) -> Result<(), String> {
        let inner = self.lock();
        if inner.faults.is_empty() {
            return Ok(());
        }
        Err(format!("{}\n--- timeline\n{}", inner.faults.join("\n"), inner.timeline.join("\n")))
    }

    pub(super) fn is_calm(&self) -> bool {
        self.lock().calm
    }

    pub(super) fn calm(&self) {
        self.lock().calm = true;
    }

    pub(super) fn has_crashed(&self) -> bool {
        self.lock().crashed
    }

    pub(super) fn crash(&self) {
        self.lock().crashed = true;
    }

    // Lives and threads.

    pub(super) fn begin(&self, runtime: Runtime) {
        let mut inner = self.lock();
        inner.runtime = Some(runtime);
        inner.began = Some(tokio::time::Instant::now());
        (inner.calm, inner.crashed, inner.opens) = (false, false, 0);
        inner.waiting.clear();
        inner.turns.clear();
        for instance in inner.instances.values_mut() {
            *instance += 1;
        }
    }

    /// Stops the clock: time is only known inside of a life.
    pub(super) fn stop(&self) {
        let now = u64::try_from(self.now().0).unwrap();
        let mut inner = self.lock();
        (inner.began, inner.before) = (None, Millis(now));
    }

    /// Lets go of the life that is over.
    pub(super) fn end(&self) {
        let (runtime, kept) = {
            let mut inner = self.lock();
            (inner.runtime.take(), std::mem::take(&mut inner.kept))
        };
        drop((runtime, kept));
    }

    pub(super) fn runtime(&self) -> Runtime {
        self.lock().runtime.clone().expect("a life")
    }

    pub(super) fn names(&self) -> Vec<String> {
        (0..self.plan.threads).map(|n| format!("t{n}")).collect()
    }

    pub(super) fn any_name(&self) -> String {
        format!("t{}", self.below(self.plan.threads))
    }

    /// Which thread of that name lives now.
    pub(super) fn instance(&self, name: &str) -> u32 {
        *self.lock().instances.entry(name.to_owned()).or_default()
    }

    /// That one is closed: the next of its name is another.
    pub(super) fn is_gone(&self, name: &str, instance: u32) {
        let mut inner = self.lock();
        let now = inner.instances.entry(name.to_owned()).or_default();
        if *now == instance {
            *now += 1;
        }
    }

    /// The thread of that name; whether it is seen for the first time.
    pub(super) fn thread(&self, name: &str) -> (Thread, bool) {
        let thread = self.runtime().thread(name);
        let instance = self.instance(name);
        let new = self.lock().configured.insert((name.to_owned(), instance));
        (thread, new)
    }

    pub(super) fn shelf<T>(&self, name: &str, look: impl FnOnce(&mut Shelf) -> T) -> T {
        look(self.lock().shelves.entry(name.to_owned()).or_default())
    }

    // What was sent.

    pub(super) fn send(&self, name: &str, way: Way, entry: Option<EntryId>, fate: Fate) -> (usize, String) {
        let instance = self.instance(name);
        let mut inner = self.lock();
        inner.counted += 1;
        let text = format!("<{name}.{}>", inner.counted);
        let (thread, said) = (name.to_owned(), text.clone());
        inner.sent.push(Sent { thread, instance, text, entry, way, fate, moved: false, before: Vec::new() });
        (inner.sent.len() - 1, said)
    }

    /// What waits under that id in that thread.
    pub(super) fn sent_as(&self, name: &str, entry: &EntryId) -> Option<usize> {
        let instance = self.instance(name);
        let inner = self.lock();
        inner.sent.iter().rposition(|sent| {
            sent.thread == name && sent.instance == instance && sent.entry.as_ref() == Some(entry)
        })
    }

    /// Somebody waits until the number is given back.
    pub(super) fn waits(&self, what: String) -> u64 {
        let number = self.count();
        self.lock().waiting.insert(number, what);
        number
    }

    pub(super) fn is_answered(&self, number: u64) {
        self.lock().waiting.remove(&number);
    }
}

/// Virtual time of all lives.
pub(super) struct SimClock(pub(super) Arc<World>);

impl World {
    pub(super) fn now(&self) -> Time {
        let inner = self.lock();
        let lived = inner.began.map(|began| began.elapsed().as_millis()).unwrap_or_default();
        Time(i64::try_from(u128::from(inner.before.0) + lived).unwrap_or(i64::MAX))
    }
}

impl Clock for SimClock {
    fn now(&self) -> Time {
        self.0.now()
    }

    fn sleep_until(&self, at: Time) -> BoxFuture<'static, ()> {
        let mut left = at.since(self.0.now());
        if self.0.plays(Trick::Oversleeps) {
            left = Millis(left.0 * 100);
        }
        Box::pin(tokio::time::sleep(left.duration()))
    }
}

pub(super) struct SimIds(pub(super) Arc<World>);

impl Ids for SimIds {
    fn run_id(&self) -> RunId {
        RunId::from(format!("run-{}", self.0.count()))
    }
}
