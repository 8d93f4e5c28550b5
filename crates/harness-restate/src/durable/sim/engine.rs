//! The engine: runs invocations, moves the time, restarts what lost its process.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use harness::core::port::{BoxFuture, Clock as _};
use harness::core::{Millis, Origin, Redactor, ThreadId, Time};
use parking_lot::Mutex;

use super::clock::SimClock;
use super::context::{Attempt, Shared};
use super::events::SimEvents;
use super::world::{Ended, Letter, SimFaults, SimReport, Work, World};
use crate::durable::answer::DeltaSink;
use crate::durable::context::Stopped;
use crate::durable::drive::{DriveOptions, drive};
use crate::durable::host::AgentHost;
use crate::durable::log::LogEntry;
use crate::durable::reader::Reader;
use crate::durable::request::{ThreadAsk, ThreadReply, ThreadStatus};
use crate::durable::step::perform;
use crate::durable::thread::ThreadState;

/// Rounds after which an engine gives up.
const ROUNDS: u64 = 100_000;

/// Sends requests to the threads of an engine, from tests and from inside of their models and tools.
#[derive(Clone, Debug)]
pub struct SimClient(Shared);

impl SimClient {
    pub(super) const fn shared(&self) -> &Shared {
        &self.0
    }

    /// Sends a request at a time. A name that was used before sends nothing: a model that runs again after a crash does
    /// not make its user speak twice.
    pub fn send(&self, name: impl Into<String>, at: Time, thread: &ThreadId, ask: ThreadAsk) {
        let (mut world, name) = (self.0.lock(), name.into());
        if world.replies.contains_key(&name) {
            return;
        }
        world.version += 1;
        let ask = match ask.redacted(world.redactor.as_ref()) {
            Ok(ask) => ask,
            Err(why) => {
                world.replies.insert(name, Some(ThreadReply::Refused(why)));
                return;
            }
        };
        world.check(&ask);
        world.replies.insert(name.clone(), None);
        world.letters.push(Letter { at, thread: thread.clone(), ask, name: Some(name) });
    }

    /// Sends a request now, and waits for its reply: in a client of [`SimEngine::play`], in a model or in a tool.
    pub async fn ask(&self, name: impl Into<String>, thread: &ThreadId, ask: ThreadAsk) -> ThreadReply {
        let name = name.into();
        self.send(name.clone(), Time::default(), thread, ask);
        poll_fn(|_| self.reply(&name).map_or(Poll::Pending, Poll::Ready)).await
    }

    /// Waits until the state of a thread is as wanted. An engine polls everything when something happened.
    pub async fn until(&self, thread: &ThreadId, mut is_so: impl FnMut(&ThreadState) -> bool) -> ThreadState {
        poll_fn(|_| {
            let world = self.0.lock();
            let state = world.threads.get(thread).filter(|state| is_so(state));
            state.cloned().map_or(Poll::Pending, Poll::Ready)
        })
        .await
    }

    /// The entries of a log from a number on, with the agents of its events.
    pub fn entries(&self, thread: &ThreadId, from: u64) -> Vec<LogEntry> {
        let world = self.0.lock();
        let entries = world.logs.get(thread).into_iter().flat_map(|log| log.read(from, u64::MAX));
        let opened = entries.map(|entry| {
            let agent = entry.agent.clone().and_then(|hash| world.blobs.get(&(thread.clone(), hash)));
            agent.and_then(|text| entry.clone().opened(text).ok()).unwrap_or_else(|| entry.clone())
        });
        opened.collect()
    }

    /// The events of a thread, with the deltas of its answers unless [`SimEngine::with_deltas`] sends these elsewhere.
    pub fn events(&self, thread: &ThreadId) -> SimEvents {
        let feed = self.0.lock().feed.reader(thread);
        SimEvents::new(self.clone(), thread, feed)
    }

    /// The reply to a request; `None` until it arrives.
    pub fn reply(&self, name: &str) -> Option<ThreadReply> {
        self.0.lock().replies.get(name).cloned().flatten()
    }
}

/// An engine with one worker process at a time, on virtual time.
///
/// ```
/// use std::sync::Arc;
///
/// use harness::core::driver::Ports;
/// use harness::core::message::{AssistantMessage, Message};
/// use harness::core::port::{Deltas, Model, ModelFault, ModelRequest};
/// use harness::core::run::RunSpec;
/// use harness::core::{Fault, Time};
/// use harness::runtime::{DeliveryRules, DeliveryMode};
/// use harness_restate::durable::sim::{SimFaults, SimClock};
/// use harness_restate::durable::{Agent, AgentHost, HostAsk, RunOptions, SimEngine, ThreadAsk, fold};
///
/// struct Hello;
///
/// impl Model for Hello {
///     async fn step(&self, _: ModelRequest, _: &dyn Deltas) -> Result<AssistantMessage, ModelFault> {
///         Ok(AssistantMessage::text("Hello."))
///     }
/// }
///
/// struct Host(SimClock);
///
/// impl AgentHost for Host {
///     async fn agent(&self, _: HostAsk<'_>) -> Result<Agent, Fault> {
///         let ports = Ports::new(Arc::new(Hello), Arc::new(self.0.clone()));
///         let (spec, control) = (Arc::new(RunSpec::default()), Box::default());
///         let delivery = DeliveryRules::default();
///         Ok(Agent { ports, spec, control, delivery, allowed_tools: None })
///     }
/// }
///
/// // The process dies three times on the way.
/// let faults = SimFaults { crash_at: [2, 9, 20].into(), ..SimFaults::default() };
/// let (engine, thread) = (SimEngine::new(faults), "t1".into());
/// let message = Arc::new(Message::user("Hi"));
/// let (mode, options) = (DeliveryMode::NextTurn, RunOptions::default());
/// let ask = ThreadAsk::Deliver { entry: "m1".into(), message, mode, wakes: true, options };
/// engine.client().send("request 1", Time(0), &thread, ask);
/// let report = engine.run(&Arc::new(Host(engine.clock())));
///
/// assert!(report.stuck.is_empty() && report.violations.is_empty());
/// let log = engine.log(&thread);
/// let said: Vec<_> = fold(&log).messages().map(|message| message.joined_text()).collect();
/// assert_eq!(said, ["Hi", "Hello."]);
/// ```
#[derive(Debug)]
pub struct SimEngine {
    shared: Shared,
    clock: SimClock,
    options: DriveOptions,
    deltas: Option<DeltaSink>,
    stop: Option<Time>,
}

impl SimEngine {
    /// An engine that fails like this.
    pub fn new(faults: SimFaults) -> Self {
        let shared = Shared(Arc::new(Mutex::new(World::new(faults))));
        Self {
            shared,
            clock: SimClock::default(),
            options: DriveOptions::default(),
            deltas: None,
            stop: None,
        }
    }

    /// Sets the settings of the driver.
    #[must_use]
    pub fn with_options(mut self, options: DriveOptions) -> Self {
        self.options = options;
        self
    }

    /// Sets the time at which it begins. Default 0.
    #[must_use]
    pub fn with_time(self, now: Time) -> Self {
        self.clock.set(now);
        self
    }

    /// Sets the time at which it stops, with the work that is left. Default never.
    #[must_use]
    pub fn with_stop(mut self, at: Time) -> Self {
        self.stop = Some(at);
        self
    }

    /// Makes a thread whose runs have the ids of `origin` ([`ThreadState::of`]). Without this, the first request to a thread
    /// makes it.
    pub fn open(&self, origin: Origin) {
        let thread = ThreadState::of(origin);
        self.shared.lock().threads.insert(thread.id(), thread);
    }

    /// Sets the redactor of its front ends and workers. Default none.
    #[must_use]
    pub fn with_redactor(self, redactor: Redactor) -> Self {
        self.shared.lock().redactor = Some(redactor);
        self
    }

    /// Sets the receiver of deltas of its workers. Default: the readers of [`SimClient::events`].
    #[must_use]
    pub fn with_deltas(mut self, deltas: DeltaSink) -> Self {
        self.deltas = Some(deltas);
        self
    }

    /// The clock of the engine and its workers.
    pub fn clock(&self) -> SimClock {
        self.clock.clone()
    }

    /// Sends requests.
    pub fn client(&self) -> SimClient {
        SimClient(self.shared.clone())
    }

    /// The log of a thread, with the agents of its events.
    pub fn log(&self, thread: &ThreadId) -> Vec<LogEntry> {
        self.client().entries(thread, 0)
    }

    /// The texts that are kept beside the log of a thread.
    pub fn texts(&self, thread: &ThreadId) -> Vec<Arc<str>> {
        let world = self.shared.lock();
        let own = world.blobs.iter().filter(|((of, _), _)| of == thread);
        own.map(|(_, text)| Arc::clone(text)).collect()
    }

    /// All threads, those of sub-agents included.
    pub fn threads(&self) -> Vec<ThreadId> {
        self.shared.lock().threads.keys().cloned().collect()
    }

    /// The state of a thread.
    pub fn thread(&self, thread: &ThreadId) -> Option<ThreadState> {
        self.shared.lock().threads.get(thread).cloned()
    }

    /// Runs until no work is left.
    pub fn run<H: AgentHost + 'static>(&self, host: &Arc<H>) -> SimReport {
        self.rounds(host, &mut |_| true)
    }

    /// Runs until no work is left, beside a client, which no crash ends. It is polled whenever something may have happened.
    /// The result is `None` when it waits for what never happens.
    pub fn play<H: AgentHost + 'static, T>(
        &self,
        host: &Arc<H>,
        client: impl Future<Output = T>,
    ) -> (SimReport, Option<T>) {
        let (mut client, mut result) = (pin!(client), None);
        let report = self.rounds(host, &mut |cx| {
            if result.is_none()
                && let Poll::Ready(value) = client.as_mut().poll(cx)
            {
                result = Some(value);
            }
            result.is_some()
        });
        (report, result)
    }

    /// Runs until no work is left. The client is polled between all tasks.
    fn rounds<H: AgentHost + 'static>(&self, host: &Arc<H>, client: &mut Client<'_>) -> SimReport {
        let (mut tasks, mut zombies): (Vec<Task>, Vec<Task>) = (Vec::new(), Vec::new());
        let mut reader = Reader::new(self.shared.clone());
        let flag = Arc::new(Woken::default());
        let waker = Waker::from(Arc::clone(&flag));
        for _ in 0..ROUNDS {
            let before = self.shared.lock().version;
            flag.0.store(false, Ordering::Relaxed);
            client(&mut Context::from_waker(&waker));
            self.deliver();
            self.shared.lock().start_queued();
            self.begin(host, &reader, &mut tasks);
            self.poll(&mut tasks, &waker, client);
            zombies
                .retain_mut(|task| task.future.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
            if self.restart() {
                reader = Reader::new(self.shared.clone());
                let dead = std::mem::take(&mut tasks);
                if self.shared.lock().faults.freeze {
                    zombies.extend(dead);
                }
                continue;
            }
            let moved = self.shared.lock().version != before || flag.0.load(Ordering::Relaxed);
            if !moved && !self.pass_time(&tasks) {
                return self.report();
            }
        }
        self.shared.lock().report.stuck.push(format!("no end after {ROUNDS} rounds"));
        self.report()
    }

    /// The receiver of deltas.
    fn deltas(&self) -> DeltaSink {
        let own = || DeltaSink::new(Arc::new(self.shared.lock().feed.clone()));
        self.deltas.clone().unwrap_or_else(own)
    }

    /// Delivers the requests that are due.
    fn deliver(&self) {
        let now = self.clock.now();
        loop {
            let mut world = self.shared.lock();
            let Some(at) = world.letters.iter().position(|letter| world.is_due(letter, now)) else { return };
            if world.point().is_err() {
                return;
            }
            let letter = world.letters.remove(at);
            if let ThreadAsk::Forgotten { before } = letter.ask {
                world.forget(&letter.thread, before);
                if world.point().is_err() {
                    world.letters.push(letter);
                    return;
                }
            }
            let reply = world.ask(&letter.thread, &letter.ask, now);
            if let Some(name) = letter.name {
                if world.faults.duplicate && matches!(letter.ask, ThreadAsk::Deliver { .. }) {
                    let at = now.after(Millis(60_000));
                    let (thread, ask) = (letter.thread.clone(), letter.ask.clone());
                    world.letters.push(Letter { at, thread, ask, name: None });
                }
                world.replies.insert(name, Some(reply));
            }
            if world.point().is_err() {
                return;
            }
        }
    }

    /// Begins an attempt at each invocation that has none.
    fn begin<H: AgentHost + 'static>(&self, host: &Arc<H>, reader: &Reader<Shared>, tasks: &mut Vec<Task>) {
        let count = self.shared.lock().invocations.len();
        for id in 0..count {
            if tasks.iter().any(|task| task.id == id) {
                continue;
            }
            let mut world = self.shared.lock();
            let Some(invocation) = world.invocations.get_mut(id).filter(|invocation| !invocation.is_done)
            else {
                continue;
            };
            invocation.attempt += 1;
            let (attempt, work, cancel) =
                (invocation.attempt, invocation.work.clone(), invocation.cancel.clone());
            drop(world);
            let (host, shared, reader) = (Arc::clone(host), self.shared.clone(), reader.clone());
            let (clock, options, deltas) = (self.clock.clone(), self.options, Some(self.deltas()));
            let ctx = Attempt {
                shared: shared.clone(),
                clock,
                id,
                number: attempt,
                at: 0,
                waits: Vec::new(),
                handles: 0,
            };
            let future: BoxFuture<'static, ()> = match work {
                Work::Drive(input) => Box::pin(async move {
                    match drive(ctx, &*host, &reader, options, *input).await {
                        Ok(driven) => shared.lock().finish(id, attempt, Ended::Drive(driven)),
                        Err(Stopped::Over) => {}
                        Err(refused) => shared.lock().refuse(id, attempt, &refused),
                    }
                }),
                Work::Step(ask) => Box::pin(async move {
                    if let Ok(reply) = perform(ctx, host, &reader, *ask, deltas, cancel).await {
                        shared.lock().finish(id, attempt, Ended::Step(reply));
                    }
                }),
            };
            tasks.push(Task { id, future });
        }
    }

    /// Polls all tasks once, in an order of the seed, until the process dies.
    fn poll(&self, tasks: &mut Vec<Task>, waker: &Waker, client: &mut Client<'_>) {
        let len = if self.shared.lock().faults.seed == 0 { 0 } else { tasks.len() };
        for at in (1..len).rev() {
            let other = self.shared.lock().pick(at + 1);
            tasks.swap(at, other);
        }
        let mut cx = Context::from_waker(waker);
        let mut at = 0;
        while at < tasks.len() && !self.shared.lock().is_crashed {
            let Some(task) = tasks.get_mut(at) else { return };
            if let Poll::Ready(()) = task.future.as_mut().poll(&mut cx) {
                drop(tasks.remove(at));
                self.shared.lock().version += 1;
            } else {
                at += 1;
            }
            client(&mut cx);
        }
    }

    /// Starts a new process after a crash. Attempts of the old one may not write from here on.
    fn restart(&self) -> bool {
        let mut world = self.shared.lock();
        if !std::mem::take(&mut world.is_crashed) {
            return false;
        }
        world.invocations.iter_mut().for_each(|invocation| invocation.attempt += 1);
        true
    }

    /// Moves the time to what happens next; false when nothing does.
    fn pass_time(&self, tasks: &[Task]) -> bool {
        let world = self.shared.lock();
        let timers = world
            .invocations
            .iter()
            .enumerate()
            .filter(|(id, invocation)| !invocation.is_done && tasks.iter().any(|task| task.id == *id));
        let timers = timers.filter_map(|(_, invocation)| invocation.next_timer(self.clock.now()));
        let letters = world.letters.iter().map(|letter| letter.at);
        let next = timers.chain(letters).chain(self.clock.next()).filter(|at| *at > self.clock.now()).min();
        drop(world);
        let next = next.filter(|at| self.stop.is_none_or(|stop| *at <= stop));
        next.inspect(|at| self.clock.set(*at)).is_some()
    }

    fn report(&self) -> SimReport {
        let world = self.shared.lock();
        let mut report = world.report.clone();
        let open = world.invocations.iter().filter(|invocation| !invocation.is_done);
        report.stuck.extend(open.filter_map(|invocation| match &invocation.work {
            Work::Drive(input) => Some(format!("run {} has no end", input.run())),
            Work::Step(_) => None,
        }));
        for (id, thread) in &world.threads {
            if let ThreadStatus::Running(run) = thread.status() {
                report.stuck.push(format!("thread {id} waits for run {run}"));
            }
            if thread.is_forgetting() {
                report.stuck.push(format!("thread {id} is not forgotten"));
            }
        }
        report
    }
}

/// Polls the client of an engine. Whether it is done.
type Client<'c> = dyn FnMut(&mut Context<'_>) -> bool + 'c;

/// A future of the process at hand.
struct Task {
    id: usize,
    future: BoxFuture<'static, ()>,
}

/// Notes that something wants to be polled again.
#[derive(Default)]
struct Woken(AtomicBool);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Relaxed);
    }
}
