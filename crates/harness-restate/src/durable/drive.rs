//! The run service: drives the machine of one run over a journal.

use std::collections::BTreeMap;
use std::sync::Arc;

use harness::core::driver::{OpScope, Ports};
use harness::core::machine::{Input, Journal, Op, Reply, Resume, Start, ViewState};
use harness::core::port::{ApprovalAsk, Approver, Checkpoint, Decision, DrainPoint, Loaded, PreparedAgent};
use harness::core::run::{Run, RunResume, SNAPSHOT_VERSION};
use harness::core::{End, EntryId, Json, Millis, OpId, Time};

use super::blob::{Blob, BlobHash};
use super::context::{
    Begin, ControlAsk, ControlReply, DriveInput, DurableContext, Handle, StepAsk, StepReply, Stopped,
    TimedInput, Woken,
};
use super::host::{Agent, AgentHost, HostAsk, ThreadStore};
use super::log::{LogEntry, LogItem};
use super::reader::Reader;
use super::request::Held;
use super::running::Running;
use super::sealed::HasAgent as _;
use super::segment::{Segment, Slot};

/// Settings of a driver. Equal on all workers of a deployment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DriveOptions {
    /// How long a run waits for a decision before it ends parked and holds nothing. Default 60 s.
    pub park_after: Millis,
    /// Journal entries after which a run rolls over before its next iteration. Default 200.
    pub entries: u64,
    /// Bytes of the replies of steps after which a run rolls over before its next iteration. Default 4 MiB.
    pub bytes: u64,
    /// Age of an invocation after which a run rolls over before its next iteration. Default 10 minutes.
    pub age: Millis,
}

impl Default for DriveOptions {
    fn default() -> Self {
        Self { park_after: Millis(60_000), entries: 200, bytes: 4 << 20, age: Millis(600_000) }
    }
}

/// Drives one run to its end, or to the invocation that continues it. Its end goes to the thread.
///
/// # Errors
/// [`Stopped`] when the attempt is over.
pub async fn drive<C: DurableContext>(
    mut ctx: C,
    host: &impl AgentHost,
    reader: &Reader<impl ThreadStore + 'static>,
    options: DriveOptions,
    input: DriveInput,
) -> Result<(), Stopped> {
    if let Some(spent) = &input.spent {
        reader.remove(&input.thread(), spent).await?;
    }
    let (machine, start, ports) = match open(host, reader, &input).await? {
        Ok(opened) => opened,
        Err(why) => {
            let ended = ControlAsk::Ended {
                run: input.run(),
                end: Err(why),
                at: input.at,
                state: input.state().cloned(),
                injected: input.injected,
                log: input.log,
            };
            return ctx.control(ended).await.map(drop);
        }
    };
    let bell = ctx.doorbell()?;
    let mut running = Running::new(machine, input.at);
    running.injected.clone_from(&input.injected);
    running.give(input.at, Input::Start(Box::new(start)));
    let driver = Driver {
        ctx,
        reader,
        ports,
        options,
        entries: 1,
        bytes: 0,
        log: input.log,
        takes: input.takes,
        input,
        steps: BTreeMap::new(),
        held: Vec::new(),
        bell,
        timer: None,
        grace: None,
        park: None,
        has_drained: false,
    };
    Box::pin(driver.run(running)).await
}

/// The machine of a run, its start and its ports; or why it cannot begin.
async fn open(
    host: &impl AgentHost,
    reader: &Reader<impl ThreadStore>,
    input: &DriveInput,
) -> Result<Result<(Run, Start, Ports), String>, Stopped> {
    let loaded = reader.fold(&input.thread(), input.first..input.log, Journal::reopen).await?;
    let saved = match &input.begin {
        Begin::Saved { state, .. } => Some(reader.get(&input.thread(), state).await?),
        Begin::Messages { .. } | Begin::Decided { .. } => None,
    };
    let agent = host.agent(HostAsk::new(&input.origin)).await;
    Ok(agent.map_err(|fault| fault.message).and_then(|agent| make(agent, input, loaded, saved.as_deref())))
}

/// The machine of a run over what its log holds, and the state that the invocation before this one left.
fn make(
    agent: Agent,
    input: &DriveInput,
    loaded: Loaded,
    saved: Option<&str>,
) -> Result<(Run, Start, Ports), String> {
    let Agent { mut ports, spec, control } = agent;
    ports.approver.get_or_insert_with(|| Arc::new(ThreadDecides));
    let mut set = ports.set();
    (set.session, set.steering, set.approver, set.listeners) = (true, true, true, true);
    // What the journal holds is enough.
    set.checkpoints = false;
    let stored = loaded.messages.len();
    let view = ViewState { plan: loaded.plan, ..ViewState::default() };
    let log = loaded.messages.into_iter().collect();
    let fresh = Run::new(spec, input.origin.clone(), log).with_control(control).with_view(view);
    let fresh = fresh.with_stored(stored).with_ports(set);
    let mut start = Start::resume();
    let machine = match &input.begin {
        Begin::Messages { prompt, waiting, agent } => {
            (start.prompt, start.waiting, start.agent) = (prompt.clone(), waiting.clone(), agent.clone());
            fresh
        }
        Begin::Decided { continuation, decisions } => {
            let decided = Resume::decided(decisions.iter().cloned());
            let resumed = continuation.clone().start(decided, &input.origin, fresh.log());
            start = resumed.map_err(|error| error.message)?;
            fresh
        }
        Begin::Saved { version, messages, .. } => {
            let state = Json::parse(saved.unwrap_or_default()).map_err(|error| error.to_string())?;
            let saved = Checkpoint::new(input.run(), input.at, *version, *messages, Arc::new(state));
            let resumed = RunResume::read(&saved).and_then(|saved| saved.onto(fresh));
            resumed.map_err(|error| error.message)?
        }
    };
    Ok((machine, start.with_open_calls(loaded.open_calls), ports))
}

/// The approver of agents that have none.
struct ThreadDecides;

impl Approver for ThreadDecides {
    async fn decide(&self, _: ApprovalAsk) -> Decision {
        Decision::Later
    }
}

struct Driver<'r, C, S> {
    ctx: C,
    reader: &'r Reader<S>,
    ports: Ports,
    options: DriveOptions,
    input: DriveInput,
    /// Journal entries of this invocation.
    entries: u64,
    /// Bytes of the replies of its steps.
    bytes: u64,
    /// Entries of the log.
    log: u64,
    /// Requests to the queue so far.
    takes: u64,
    /// Steps in flight.
    steps: BTreeMap<Handle, OpId>,
    /// Calls that wait for a decision.
    held: Vec<(OpId, Held)>,
    bell: Handle,
    /// The timer of the machine's next wake-up.
    timer: Option<(Handle, Time)>,
    /// The end of the grace period of cancelled operations, which are those up to an operation.
    grace: Option<(Handle, OpId)>,
    /// When held calls are parked.
    park: Option<Handle>,
    /// Whether this invocation has gone past the point at which it began.
    has_drained: bool,
}

impl<C: DurableContext, S: ThreadStore + 'static> Driver<'_, C, S> {
    async fn run(mut self, mut running: Running) -> Result<(), Stopped> {
        loop {
            if !running.quick.is_empty() {
                running = self.segment(running).await?;
            } else if let Some(op) = running.store.take() {
                self.append(&mut running).await?;
                running.give(running.now, Input::Reply(op, Reply::Stored(Ok(()))));
            } else if let Some(drain) = running.drain.take() {
                if self.rolls_over(&running)
                    && let Some(state) = running.machine.hand_over()
                {
                    return self.roll_over(running, state).await;
                }
                self.has_drained = true;
                self.take(&mut running, Some(drain)).await?;
            } else if let Some(end) = running.end.take() {
                return self.end(running, end).await;
            } else {
                self.start(&mut running).await?;
                self.append(&mut running).await?;
                self.wait(&mut running).await?;
            }
        }
    }

    /// Performs quick operations in one entry. A replay gives the machine the inputs of the entry instead.
    async fn segment(&mut self, running: Running) -> Result<Running, Stopped> {
        self.entries += 1;
        let slot = Slot::new(running);
        let (thread, reader) = (self.input.thread(), self.reader.clone());
        let first = self.input.first;
        let work = Segment { slot: slot.clone(), ports: self.ports.clone(), thread, first, reader };
        let inputs = self.ctx.segment(work).await?;
        let mut running = slot.take().ok_or(Stopped::Over)?;
        if !std::mem::take(&mut running.is_ahead) {
            for TimedInput { at, mut input, agent } in inputs {
                if let Some(agent) = agent {
                    input.open(self.reader.agent(&self.input.thread(), &agent).await?);
                }
                running.give(at, input);
            }
        }
        Ok(running)
    }

    /// Appends what the log does not have.
    async fn append(&mut self, running: &mut Running) -> Result<(), Stopped> {
        if running.items.is_empty() {
            return Ok(());
        }
        let mut entries = Vec::new();
        for mut item in std::mem::take(&mut running.items) {
            let agent = if let LogItem::Event(event) = &mut item { event.seal() } else { None };
            let agent = self.keep(agent).await?;
            entries.push(LogEntry { seq: self.log, item, agent });
            self.log += 1;
        }
        self.control(ControlAsk::Append { entries }).await.map(drop)
    }

    /// Keeps an agent with the thread, and gives its name.
    async fn keep(&mut self, agent: Option<Arc<PreparedAgent>>) -> Result<Option<BlobHash>, Stopped> {
        match agent {
            Some(agent) => self.reader.keep(&self.input.thread(), self.input.first, &agent).await.map(Some),
            None => Ok(None),
        }
    }

    async fn control(&mut self, ask: ControlAsk) -> Result<ControlReply, Stopped> {
        self.entries += 1;
        let reply = self.ctx.control(ask).await?;
        if let ControlReply::Refused(why) = reply {
            return Err(Stopped::Refused(why));
        }
        Ok(reply)
    }

    /// Asks the queue: for messages at a point of the turn, and for what was decided.
    async fn take(
        &mut self,
        running: &mut Running,
        drain: Option<(OpId, DrainPoint)>,
    ) -> Result<(), Stopped> {
        let number = self.takes;
        self.takes += 1;
        let ask = ControlAsk::Take {
            run: self.input.run(),
            number,
            point: drain.map(|(_, point)| point),
            injected: std::mem::take(&mut running.injected),
        };
        let ControlReply::Taken { at, entries, stop, decisions } = self.control(ask).await? else {
            return Err(Stopped::Refused("it gave another reply than messages".to_owned()));
        };
        // A stop comes first: a reply that is ready would hide it.
        if let Some(by) = stop {
            running.give(at, Input::Cancel { by });
        }
        if let Some((op, _)) = drain {
            running.give(at, Input::Reply(op, Reply::Drained(entries)));
        }
        for decided in decisions {
            let is_decided = |(_, held): &(OpId, Held)| held.call() == &decided.call;
            if let Some(at_held) = self.held.iter().position(is_decided) {
                let (op, _) = self.held.remove(at_held);
                running.give(at, Input::Reply(op, Reply::Approval(decided.decision)));
            }
        }
        Ok(())
    }

    /// Starts steps, holds calls, and stops what is cancelled.
    async fn start(&mut self, running: &mut Running) -> Result<(), Stopped> {
        let before = self.held.len();
        for (id, mut what) in std::mem::take(&mut running.slow) {
            if let Op::Approve { proposed } = what {
                self.held.push((id, Held { proposed: *proposed, since: running.now }));
                continue;
            }
            let agent = self.keep(what.seal()).await?;
            let scope = OpScope::of(&running.machine);
            let step = StepAsk {
                origin: (**scope.origin).clone(),
                op: id,
                what,
                agent,
                first: self.input.first,
                log: self.log,
                turn: scope.turn,
                deadline: scope.deadline,
                left: scope.left,
            };
            self.entries += 1;
            self.steps.insert(self.ctx.start(step)?, id);
        }
        if self.held.len() > before {
            let calls = self.held.iter().map(|(_, held)| held.clone()).collect();
            self.control(ControlAsk::Hold { run: self.input.run(), calls }).await?;
            self.entries += 1;
            self.park.take().into_iter().for_each(|old| self.ctx.cancel(old));
            self.park = Some(self.ctx.timer(running.now.after(self.options.park_after))?);
        }
        match running.abort.take() {
            Some(last) => self.abort(running, last),
            None => Ok(()),
        }
    }

    /// Asks for the end of operations; those that do not reply in the grace period are given up.
    fn abort(&mut self, running: &mut Running, last: OpId) -> Result<(), Stopped> {
        for (handle, _) in self.steps.iter().filter(|(_, op)| **op <= last) {
            self.ctx.stop(*handle);
        }
        self.entries += 1;
        self.grace = Some((self.ctx.timer(running.now.after(self.ports.grace))?, last));
        for (op, _) in self.held.extract_if(.., |(op, _)| *op <= last).collect::<Vec<_>>() {
            running.give(running.now, Input::Reply(op, Reply::Interrupted { partial: None }));
        }
        Ok(())
    }

    /// Waits for the next input.
    async fn wait(&mut self, running: &mut Running) -> Result<(), Stopped> {
        if running.has_work() {
            return Ok(());
        }
        let wake_at = running.machine.wake_at();
        if self.timer.map(|(_, at)| at) != wake_at {
            self.timer.take().into_iter().for_each(|(old, _)| self.ctx.cancel(old));
            if let Some(at) = wake_at {
                self.entries += 1;
                self.timer = Some((self.ctx.timer(at)?, at));
            }
        }
        self.entries += 1;
        let (handle, woken) = self.ctx.next().await?;
        match woken {
            Woken::Step(reply) => self.stepped(running, handle, *reply),
            Woken::Rang => {
                self.entries += 1;
                self.bell = self.ctx.doorbell()?;
                self.take(running, None).await?;
            }
            Woken::Timer => self.timed(running, handle),
        }
        Ok(())
    }

    fn stepped(&mut self, running: &mut Running, handle: Handle, step: StepReply) {
        self.bytes = self.bytes.saturating_add(step.bytes);
        let Some(op) = self.steps.remove(&handle) else { return };
        if let Some(spent) = step.spent {
            running.give(step.at, Input::Spent(Box::new(spent)));
        }
        running.give(step.at, Input::Reply(op, step.reply));
    }

    fn timed(&mut self, running: &mut Running, handle: Handle) {
        if let Some((_, at)) = self.timer.take_if(|(timer, _)| *timer == handle) {
            running.give(at, Input::Wake);
        } else if let Some((_, last)) = self.grace.take_if(|(timer, _)| *timer == handle) {
            for (handle, op) in self.steps.extract_if(.., |_, op| *op <= last).collect::<Vec<_>>() {
                self.ctx.cancel(handle);
                running.give(running.now, Input::Reply(op, Reply::Interrupted { partial: None }));
            }
        } else if self.park.take_if(|timer| *timer == handle).is_some() {
            for (op, held) in std::mem::take(&mut self.held) {
                let at = held.since.after(self.options.park_after);
                running.give(at, Input::Reply(op, Reply::Approval(Decision::Later)));
            }
        }
    }

    fn rolls_over(&self, running: &Running) -> bool {
        let DriveOptions { entries, bytes, age, .. } = self.options;
        let is_long =
            self.entries >= entries || self.bytes >= bytes || running.now.since(self.input.at) >= age;
        is_long && self.has_drained && self.steps.is_empty() && self.held.is_empty()
    }

    /// Continues in another invocation, which asks for the queue in place of this one.
    async fn roll_over(mut self, mut running: Running, state: Json) -> Result<(), Stopped> {
        self.append(&mut running).await?;
        let (state, messages) = (Blob::new(state.text()), running.machine.log().len() as u64);
        self.reader.put(&self.input.thread(), &state).await?;
        let state = state.hash().clone();
        let spent = self.input.state().filter(|spent| **spent != state).cloned();
        let next = DriveInput {
            begin: Begin::Saved { version: SNAPSHOT_VERSION, messages, state },
            at: running.now,
            log: self.log,
            takes: self.takes,
            injected: running.injected,
            spent,
            ..self.input
        };
        self.ctx.roll_over(next).await
    }

    async fn end(mut self, mut running: Running, end: Arc<End>) -> Result<(), Stopped> {
        self.append(&mut running).await?;
        let injected: Vec<EntryId> = std::mem::take(&mut running.injected);
        let (run, at, log) = (self.input.run(), running.now, self.log);
        let state = self.input.state().cloned();
        self.control(ControlAsk::Ended { run, end: Ok(end), at, injected, log, state }).await.map(drop)
    }
}
