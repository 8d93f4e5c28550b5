//! The contexts of invocations: journal, replay, crash points.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;

use harness::core::port::Clock as _;
use harness::core::{Fault, RunId, ThreadId, Time};
use parking_lot::{Mutex, MutexGuard};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::clock::SimClock;
use super::world::{Ended, Entry, Invocation, Letter, Work, World};
use crate::durable::blob::{Blob, BlobHash};
use crate::durable::context::{
    ControlAsk, ControlReply, DriveInput, DurableContext, Handle, SegmentWork, StepAsk, StepReply, Stopped,
    TimedInput, Woken,
};
use crate::durable::host::{ThreadStore, fault};
use crate::durable::log::LogEntry;
use crate::durable::request::ThreadAsk;
use crate::durable::step::{Nonce, StepContext};

/// The world of all invocations of an engine.
#[derive(Clone, Debug)]
pub(super) struct Shared(pub(super) Arc<Mutex<World>>);

impl Shared {
    pub(super) fn lock(&self) -> MutexGuard<'_, World> {
        self.0.lock()
    }
}

impl ThreadStore for Shared {
    async fn read(&self, thread: &ThreadId, from: u64, upto: u64) -> Result<Vec<LogEntry>, Fault> {
        let mut world = self.lock();
        let log = world.logs.get(thread).into_iter();
        let entries: Vec<_> = log.flat_map(|log| log.read(from, upto)).cloned().collect();
        let found = entries.len() as u64;
        if from + found < upto {
            let text = format!("thread {thread} has {} log entries, {upto} are needed", from + found);
            return Err(fault("log_too_short", text));
        }
        world.report.reads += found;
        Ok(entries)
    }

    async fn put_blob(&self, thread: &ThreadId, blob: &Blob) -> Result<(), Fault> {
        let (mut world, key) = (self.lock(), (thread.clone(), blob.hash().clone()));
        world.check_text(blob.text());
        world.blobs.insert(key, Arc::clone(blob.text()));
        Ok(())
    }

    async fn get_blob(&self, thread: &ThreadId, hash: &BlobHash) -> Result<Arc<str>, Fault> {
        let found = self.lock().blobs.get(&(thread.clone(), hash.clone())).cloned();
        found.ok_or_else(|| fault("blob_missing", format!("thread {thread} has no {hash}")))
    }

    async fn remove_blob(&self, thread: &ThreadId, hash: &BlobHash) -> Result<(), Fault> {
        self.lock().blobs.remove(&(thread.clone(), hash.clone()));
        Ok(())
    }

    async fn forget(&self, thread: &ThreadId, before: u64) -> Result<(), Fault> {
        self.lock().forget(thread, before);
        Ok(())
    }
}

/// One attempt at an invocation.
#[derive(Debug)]
pub(super) struct Attempt {
    pub(super) shared: Shared,
    pub(super) clock: SimClock,
    pub(super) id: usize,
    /// Number of the attempt at its invocation.
    pub(super) number: u64,
    /// The next entry of the journal.
    pub(super) at: usize,
    /// The handles that are waited for.
    pub(super) waits: Vec<(Handle, Wait)>,
    /// Handles so far.
    pub(super) handles: u64,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Wait {
    /// A step or a child.
    Reply,
    Timer(Time),
    Bell,
}

impl Attempt {
    /// The invocation, while this attempt is the one that may write.
    fn own<'w>(&self, world: &'w mut World) -> Result<&'w mut Invocation, Stopped> {
        let is_crashed = world.is_crashed;
        let invocation = world.invocations.get_mut(self.id).ok_or(Stopped::Over)?;
        if invocation.attempt == self.number && !invocation.is_done && !is_crashed {
            Ok(invocation)
        } else {
            Err(Stopped::Over)
        }
    }

    /// A point at which the process may die; `Over` for an attempt that was cut off.
    fn point(&self) -> Result<(), Stopped> {
        let mut world = self.shared.lock();
        self.own(&mut world)?;
        world.point()
    }

    /// The next entry of the journal on a replay.
    fn replayed(&mut self) -> Result<Option<Entry>, Stopped> {
        let mut world = self.shared.lock();
        let entry = self.own(&mut world)?.journal.get(self.at).cloned();
        self.at += usize::from(entry.is_some());
        Ok(entry)
    }

    /// A replay asks for something else than the journal has.
    fn mismatch<T>(&self, found: &Entry, asked: &str) -> Result<T, Stopped> {
        let mut world = self.shared.lock();
        world
            .broken(format!("journal mismatch at entry {}: asked for {asked}, found {found:?}", self.at - 1));
        if let Some(invocation) = world.invocations.get_mut(self.id) {
            invocation.is_done = true;
        }
        Err(Stopped::Over)
    }

    /// Writes an entry.
    fn write(&mut self, entry: Entry) -> Result<(), Stopped> {
        self.point()?;
        let mut world = self.shared.lock();
        world.check(&entry);
        self.own(&mut world)?.journal.push(entry);
        world.report.entries += 1;
        self.at += 1;
        world.point()
    }

    fn handle(&mut self, wait: Wait) -> Handle {
        self.handles += 1;
        let handle = Handle(self.handles);
        self.waits.push((handle, wait));
        handle
    }

    /// Starts the invocation of a handle, unless an earlier attempt did.
    fn invoke(&self, handle: Handle, work: Work) -> Result<Handle, Stopped> {
        let mut world = self.shared.lock();
        if !self.own(&mut world)?.steps.contains_key(&handle) {
            let asked = world.invoke(work);
            self.own(&mut world)?.steps.insert(handle, asked);
        }
        Ok(handle)
    }

    fn names(&self) -> (ThreadId, RunId) {
        let world = self.shared.lock();
        match world.invocations.get(self.id).map(|invocation| &invocation.work) {
            Some(Work::Drive(input)) => (input.thread(), input.run()),
            Some(Work::Step(_)) | None => Default::default(),
        }
    }

    /// Writes an entry for a new handle, or finds it on a replay.
    fn announce(&mut self, wait: Wait, entry: impl FnOnce(Handle) -> Entry) -> Result<Handle, Stopped> {
        let handle = self.handle(wait);
        let entry = entry(handle);
        match self.replayed()? {
            Some(found) if found == entry => Ok(handle),
            Some(found) => self.mismatch(&found, &format!("{entry:?}")),
            None => self.write(entry).map(|()| handle),
        }
    }

    /// The results that are ready, in the order of their start.
    fn ready(&self, world: &World, run: &RunId) -> Vec<(Handle, Woken)> {
        let steps = world.invocations.get(self.id).map(|invocation| &invocation.steps);
        let ready = self.waits.iter().filter_map(|(handle, wait)| {
            let woken = match wait {
                Wait::Reply => {
                    let asked = steps.and_then(|steps| world.invocations.get(*steps.get(handle)?))?;
                    match asked.reply.clone()? {
                        Ended::Step(reply) => Woken::Step(Box::new(reply)),
                        Ended::Drive(driven) => Woken::Child(Box::new(driven)),
                    }
                }
                Wait::Timer(at) => Some(Woken::Timer).filter(|_| self.clock.now() >= *at)?,
                Wait::Bell => Some(Woken::Rang).filter(|_| world.rung.contains(run))?,
            };
            Some((*handle, woken))
        });
        ready.collect()
    }
}

impl DurableContext for Attempt {
    async fn segment<W: SegmentWork>(&mut self, work: W) -> Result<Vec<TimedInput>, Stopped> {
        match self.replayed()? {
            Some(Entry::Segment(inputs)) => return Ok(inputs),
            Some(found) => return self.mismatch(&found, "a segment"),
            None => self.point()?,
        }
        let inputs = work.run().await;
        self.write(Entry::Segment(inputs.clone()))?;
        Ok(inputs)
    }

    fn start(&mut self, step: StepAsk) -> Result<Handle, Stopped> {
        let ask = Box::new(step);
        let handle = self.announce(Wait::Reply, |handle| Entry::Started(handle, ask.clone()))?;
        self.invoke(handle, Work::Step(ask))
    }

    fn call(&mut self, child: DriveInput) -> Result<Handle, Stopped> {
        let child = Box::new(child);
        let handle = self.announce(Wait::Reply, |handle| Entry::Child(handle, child.clone()))?;
        self.invoke(handle, Work::Drive(child))
    }

    fn timer(&mut self, at: Time) -> Result<Handle, Stopped> {
        self.announce(Wait::Timer(at), |handle| Entry::Timer(handle, at))
    }

    fn doorbell(&mut self) -> Result<Handle, Stopped> {
        self.announce(Wait::Bell, Entry::Bell)
    }

    async fn next(&mut self) -> Result<(Handle, Woken), Stopped> {
        let (handle, woken) = match self.replayed()? {
            Some(Entry::Woken(handle, woken)) => (handle, woken),
            Some(found) => return self.mismatch(&found, "a result"),
            None => {
                let (_, run) = self.names();
                let (handle, woken) = poll_fn(|_| {
                    let mut world = self.shared.lock();
                    let mut ready = self.ready(&world, &run);
                    if ready.is_empty() {
                        return if self.own(&mut world).is_ok() { Poll::Pending } else { Poll::Ready(None) };
                    }
                    let at = world.pick(ready.len());
                    Poll::Ready(Some(ready.swap_remove(at)))
                })
                .await
                .ok_or(Stopped::Over)?;
                self.write(Entry::Woken(handle, woken.clone()))?;
                if woken == Woken::Rang {
                    self.shared.lock().rung.remove(&run);
                }
                (handle, woken)
            }
        };
        self.waits.retain(|(waited, _)| *waited != handle);
        Ok((handle, woken))
    }

    fn stop(&mut self, handle: Handle) {
        let mut world = self.shared.lock();
        let asked = world.invocations.get(self.id).and_then(|own| own.steps.get(&handle));
        let Some(asked) = asked.and_then(|asked| world.invocations.get(*asked)) else { return };
        asked.cancel.cancel();
        if let Work::Drive(child) = &asked.work {
            let (thread, ask) = (child.thread(), ThreadAsk::StopRun(child.run()));
            world.letters.push(Letter { at: Time(0), thread, ask, name: None });
        }
    }

    fn cancel(&mut self, handle: Handle) {
        self.waits.retain(|(waited, _)| *waited != handle);
        let mut world = self.shared.lock();
        let step = world.invocations.get(self.id).and_then(|own| own.steps.get(&handle)).copied();
        if let Some(step) = step.and_then(|step| world.invocations.get_mut(step)) {
            step.is_done = true;
        }
    }

    async fn control(&mut self, ask: ControlAsk) -> Result<ControlReply, Stopped> {
        match self.replayed()? {
            Some(Entry::Called(asked, reply)) if *asked == ask => return Ok(reply),
            Some(found) => return self.mismatch(&found, &format!("{ask:?}")),
            None => self.point()?,
        }
        let (thread, _) = self.names();
        let reply = self.shared.lock().control(&thread, &ask, self.clock.now());
        self.write(Entry::Called(Box::new(ask), reply.clone()))?;
        Ok(reply)
    }

    async fn roll_over(self, next: DriveInput) -> Result<(), Stopped> {
        self.point()?;
        let mut world = self.shared.lock();
        self.own(&mut world)?.is_done = true;
        world.queued.push_front(next);
        world.point()
    }
}

impl Attempt {
    /// Does work inside of one entry of a step's journal, at least once.
    async fn value<T: Serialize + DeserializeOwned>(
        &mut self,
        work: impl Future<Output = T>,
    ) -> Result<T, Stopped> {
        let found = self.own(&mut self.shared.lock())?.values.get(self.at).cloned();
        self.at += 1;
        if let Some(found) = found {
            return serde_json::from_str(&found).map_err(|_| Stopped::Over);
        }
        self.point()?;
        let value = work.await;
        self.point()?;
        let json = serde_json::to_string(&value).map_err(|_| Stopped::Over)?;
        let mut world = self.shared.lock();
        world.check_text(&json);
        self.own(&mut world)?.values.push(json);
        world.point()?;
        Ok(value)
    }
}

impl StepContext for Attempt {
    fn nonce(&self) -> Nonce {
        Nonce(format!("{}-{}", self.id, self.number))
    }

    async fn intent(&mut self) -> Result<Nonce, Stopped> {
        let own = self.nonce();
        self.value(std::future::ready(own)).await
    }

    async fn effect(
        &mut self,
        work: impl Future<Output = StepReply> + Send + 'static,
    ) -> Result<StepReply, Stopped> {
        self.value(work).await
    }
}
