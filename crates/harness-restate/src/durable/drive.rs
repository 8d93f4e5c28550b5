//! The run service: drives the machine of one run over a journal.

use std::collections::BTreeMap;
use std::sync::Arc;

use harness::core::driver::{OpScope, Ports};
use harness::core::event::EventKind;
use harness::core::machine::{Input, Op, Reply};
use harness::core::port::{Decision, DrainPoint, PreparedAgent};
use harness::core::run::SNAPSHOT_VERSION;
use harness::core::{End, EntryId, Json, Millis, OpId, Time};
use harness::runtime::DeliveryRules;

use super::blob::{Blob, BlobHash};
use super::child::{ChildEnd, Delegation};
use super::context::{
    Begin, ControlAsk, ControlReply, DriveInput, Driven, DurableContext, Handle, StepAsk, StepReply, Stopped,
    TimedInput, Woken,
};
use super::host::{AgentHost, ThreadStore};
use super::log::{LogEntry, LogItem};
use super::opening::{Opened, open};
use super::reader::Reader;
use super::request::{AgentSettings, Held};
use super::running::Running;
use super::sealed::HasAgent as _;
use super::segment::{Segment, Slot};
use super::states;

mod compaction;

/// Settings of a driver. Equal on all workers of a deployment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DriveOptions {
    /// How long a run waits for a decision before it ends parked and holds nothing. Default 60 s.
    pub park_after: Millis,
    /// Journal entries after which a run rolls over before its next iteration. Default 200.
    pub entries: u64,
    /// Bytes of the replies of steps, and of states of layers and tools, after which a run rolls over before its next iteration. Default
    /// 4 MiB.
    pub bytes: u64,
    /// Age of an invocation after which a run rolls over before its next iteration. Default 10 minutes.
    pub age: Millis,
}

impl Default for DriveOptions {
    fn default() -> Self {
        Self { park_after: Millis(60_000), entries: 200, bytes: 4 << 20, age: Millis(600_000) }
    }
}

/// Drives one run to its end, or to the invocation that continues it. Its end goes to the thread, and the result to the
/// driver of the caller if the run works for a call.
///
/// # Errors
/// [`Stopped`] when the attempt is over.
pub async fn drive<C: DurableContext>(
    mut ctx: C,
    host: &impl AgentHost,
    reader: &Reader<impl ThreadStore + 'static>,
    options: DriveOptions,
    mut input: DriveInput,
) -> Result<Driven, Stopped> {
    let mut entries = 1;
    if let Some(delegation) = input.delegation.clone().filter(|_| input.state().is_none()) {
        entries += 1;
        if let Err(why) = begin_child(&mut ctx, &mut input, &delegation).await? {
            return Ok(Driven::Ended(input.at, Err(why)));
        }
    }
    if let Some(spent) = &input.spent {
        reader.remove(&input.thread(), spent).await?;
    }
    let Opened { machine, start, ports, delivery, origin, states, mode } =
        match open(host, reader, &input).await? {
            Ok(opened) => opened,
            Err(why) => {
                let ended = ControlAsk::Ended {
                    run: input.run(),
                    end: Err(why.clone()),
                    at: input.at,
                    state: input.state().cloned(),
                    injected: input.injected,
                    log: input.log,
                    states: None,
                };
                ctx.control(ended).await?;
                return Ok(Driven::Ended(input.at, Err(why)));
            }
        };
    (input.origin, input.mode, input.states) = (origin, Some(mode), None);
    let mut running = Running::new(machine, input.at, ports.clone());
    running.states = states;
    running.injected.clone_from(&input.injected);
    let driver = Driver {
        bell: ctx.doorbell()?,
        ctx,
        reader,
        ports,
        options,
        entries,
        bytes: 0,
        delivery,
        log: input.log,
        takes: input.takes,
        input,
        steps: BTreeMap::new(),
        children: BTreeMap::new(),
        held: Vec::new(),
        put_off: Vec::new(),
        timer: None,
        grace: None,
        park: None,
        has_drained: false,
    };
    if let Begin::Compact { instructions } = &driver.input.begin {
        let instructions = instructions.clone();
        return Box::pin(driver.compact(running, instructions)).await;
    }
    running.begin(start, &driver.input);
    Box::pin(driver.run(running)).await
}

/// Notifies the thread of a child that its run starts; or returns why it cannot.
async fn begin_child(
    ctx: &mut impl DurableContext,
    input: &mut DriveInput,
    delegation: &Delegation,
) -> Result<Result<(), String>, Stopped> {
    let (origin, at) = (Box::new(input.origin.clone()), input.at);
    let (parent, caller) = (delegation.thread(), delegation.origin.run.clone().unwrap_or_default());
    let continues = input.begin == Begin::Parked;
    match ctx.control(ControlAsk::BeginChild { origin, parent, caller, continues, at }).await? {
        ControlReply::Began { log, spent, parked, states } => {
            input.states = states.or(input.states.take());
            (input.first, input.log, input.spent) = (log, log, spent);
            if let Some(parked) = parked {
                input.first = parked.first;
                input.begin = Begin::Resumed { from: Box::new(parked.from), prompt: Vec::new(), agent: None };
            }
            Ok(Ok(()))
        }
        ControlReply::Refused(why) => Ok(Err(why)),
        ControlReply::Taken { .. } | ControlReply::Noted | ControlReply::Appended(_) => {
            Err(Stopped::Refused("it gave another reply than the beginning of a run".to_owned()))
        }
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
    /// Bytes of the replies of its steps, and of the states of layers and tools.
    bytes: u64,
    /// How the thread delivers messages.
    delivery: DeliveryRules,
    /// Entries of the log.
    log: u64,
    /// Requests to the queue so far.
    takes: u64,
    /// Steps in flight.
    steps: BTreeMap<Handle, OpId>,
    /// Calls whose children are at work, with the time of their start, as steps that make their results.
    children: BTreeMap<Handle, (Time, StepAsk)>,
    /// Calls that wait for a decision.
    held: Vec<(OpId, Held)>,
    /// Calls whose decision was put off: they wait beyond the end of the run.
    put_off: Vec<Held>,
    bell: Handle,
    /// The timer of the machine's next wake-up.
    timer: Option<(Handle, Time)>,
    /// The end of the grace period of cancelled operations, which are those up to an operation.
    grace: Option<(Handle, OpId)>,
    /// When held calls are parked.
    park: Option<Handle>,
    /// Whether this invocation has gone past the point at which it started.
    has_drained: bool,
}

impl<C: DurableContext, S: ThreadStore + 'static> Driver<'_, C, S> {
    async fn run(mut self, mut running: Running) -> Result<Driven, Stopped> {
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
        self.bytes += inputs.iter().map(|input| states::size_of(input.states.as_ref())).sum::<u64>();
        let mut running = slot.take().ok_or(Stopped::Over)?;
        if !std::mem::take(&mut running.is_ahead) {
            for TimedInput { at, mut input, agent, states } in inputs {
                running.states = states::merged(running.states, states.as_ref());
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
            let (mut agent, mut began) = (None, Vec::new());
            if let LogItem::Event(event) = &mut item {
                if let EventKind::RunStarted { .. } = &event.kind {
                    began.clone_from(&self.input.began);
                }
                agent = event.seal();
            }
            let agent = self.keep(agent).await?;
            entries.push(LogEntry { seq: self.log, item, agent, began });
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

    async fn ask_queue(
        &mut self,
        point: Option<DrainPoint>,
        injected: Vec<EntryId>,
    ) -> Result<ControlReply, Stopped> {
        let (run, number, delivery) = (self.input.run(), self.takes, self.delivery);
        self.takes += 1;
        self.control(ControlAsk::Take { run, number, point, injected, delivery }).await
    }

    /// Asks the queue: for messages at a point of the turn, and for what was decided.
    async fn take(
        &mut self,
        running: &mut Running,
        drain: Option<(OpId, DrainPoint)>,
    ) -> Result<(), Stopped> {
        let (point, injected) = (drain.map(|(_, point)| point), std::mem::take(&mut running.injected));
        let ControlReply::Taken { at, entries, stop, decisions } = self.ask_queue(point, injected).await?
        else {
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
                let (op, held) = self.held.remove(at_held);
                if decided.decision == Decision::Later {
                    self.put_off.push(held);
                }
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
            let states = running.states.clone().filter(|_| states::asks(&what));
            let scope = OpScope::of(&running.machine);
            let step = StepAsk {
                origin: self.input.origin.clone(),
                op: id,
                what,
                agent,
                first: self.input.first,
                log: self.log,
                shown: self.log + running.items.len() as u64,
                turn: scope.turn,
                deadline: scope.deadline,
                left: scope.left,
                agents: self.input.agents.clone(),
                delegation: self.input.delegation.clone(),
                child: None,
                states,
            };
            if !self.delegate(running, &step).await? {
                self.start_step(step)?;
            }
        }
        if self.held.len() > before {
            let waiting = self.put_off.iter().chain(self.held.iter().map(|(_, held)| held));
            let calls = waiting.cloned().collect();
            self.control(ControlAsk::Hold { run: self.input.run(), calls }).await?;
            self.park.take().into_iter().for_each(|old| self.ctx.cancel(old));
            self.entries += 1;
            self.park = Some(self.ctx.timer(running.now.after(self.options.park_after))?);
        }
        match running.abort.take() {
            Some(last) => self.abort(running, last),
            None => Ok(()),
        }
    }

    fn start_step(&mut self, step: StepAsk) -> Result<(), Stopped> {
        self.entries += 1;
        let op = step.op;
        self.steps.insert(self.ctx.start(step)?, op);
        Ok(())
    }

    /// Starts the child of a call that hands its work to one. False for any other operation.
    async fn delegate(&mut self, running: &Running, step: &StepAsk) -> Result<bool, Stopped> {
        let Op::Tool { call, attempt, .. } = &step.what else { return Ok(false) };
        let now = running.now;
        let is_pending = self.input.is_pending(&call.id, *attempt);
        let delegation = Delegation {
            origin: Arc::new(step.origin.clone()),
            agents: step.agents.clone(),
            call: step.what.clone(),
            turn: step.turn,
            deadline: step.deadline,
            at: now,
            caller: step.delegation.clone(),
        };
        let Some(child) = delegation.child(&self.ports) else { return Ok(false) };
        let (prompt, waiting) = (vec![child.prompt], Vec::new());
        let begin = if is_pending { Begin::Parked } else { Begin::Messages { prompt, waiting, agent: None } };
        let input = DriveInput {
            origin: child.origin,
            begin,
            at: now,
            first: 0,
            log: 0,
            history: Vec::new(),
            spent: None,
            takes: 0,
            injected: Vec::new(),
            agents: AgentSettings::default(),
            delegation: Some(Arc::new(delegation)),
            began: Vec::new(),
            states: states::of_thread(&self.ports, running.states.as_ref()),
            mode: None,
            stop: None,
        };
        let (run, child, begins) = (self.input.run(), input.thread(), input.run());
        self.control(ControlAsk::Delegate { run, child, begins }).await?;
        self.call(input, (now, step.clone()))?;
        Ok(true)
    }

    fn call(&mut self, child: DriveInput, call: (Time, StepAsk)) -> Result<(), Stopped> {
        self.entries += 1;
        self.children.insert(self.ctx.call(child)?, call);
        Ok(())
    }

    /// A child has ended, or continues in another invocation.
    fn driven(&mut self, handle: Handle, driven: Driven) -> Result<(), Stopped> {
        let Some((started, step)) = self.children.remove(&handle) else { return Ok(()) };
        match driven {
            Driven::Next(next) => self.call(*next, (started, step)),
            Driven::Ended(_, end) => {
                self.bytes = self.bytes.saturating_add(Json::size_of(&end) as u64);
                let child = Some(Box::new(ChildEnd { started, end }));
                self.start_step(StepAsk { child, ..step })
            }
        }
    }

    /// Asks for the end of operations; those that do not reply in the grace period are given up. A child has such a period
    /// separate from it, and always ends.
    fn abort(&mut self, running: &mut Running, last: OpId) -> Result<(), Stopped> {
        for (handle, _) in self.steps.iter().filter(|(_, op)| **op <= last) {
            self.ctx.stop(*handle);
        }
        for (handle, _) in self.children.iter().filter(|(_, (_, step))| step.op <= last) {
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
            Woken::Child(driven) => self.driven(handle, *driven)?,
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
        self.bytes = self.bytes.saturating_add(step.bytes + states::size_of(step.states.as_ref()));
        let Some(op) = self.steps.remove(&handle) else { return };
        running.states = states::merged(running.states.take(), step.states.as_ref());
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
                self.put_off.push(held);
                running.give(at, Input::Reply(op, Reply::Approval(Decision::Later)));
            }
        }
    }

    fn rolls_over(&self, running: &Running) -> bool {
        let DriveOptions { entries, bytes, age, .. } = self.options;
        let is_long =
            self.entries >= entries || self.bytes >= bytes || running.now.since(self.input.at) >= age;
        let is_alone = self.steps.is_empty() && self.children.is_empty() && self.held.is_empty();
        is_long && self.has_drained && is_alone
    }

    /// Continues in another invocation, which asks for the queue in place of this one.
    async fn roll_over(mut self, mut running: Running, state: Json) -> Result<Driven, Stopped> {
        self.append(&mut running).await?;
        let (state, messages) = (Blob::new(state.text()), running.machine.log().len() as u64);
        self.reader.put(&self.input.thread(), &state).await?;
        let state = state.hash().clone();
        let spent = self.input.state().filter(|spent| **spent != state).cloned();
        let next = DriveInput {
            begin: Begin::Saved { version: SNAPSHOT_VERSION, messages, state },
            at: running.now,
            log: self.log,
            history: Vec::new(),
            takes: self.takes,
            injected: running.injected,
            spent,
            states: running.states,
            stop: None,
            ..self.input
        };
        if next.delegation.is_none() {
            self.ctx.roll_over(next.clone()).await?;
        }
        Ok(Driven::Next(Box::new(next)))
    }

    async fn end(mut self, mut running: Running, end: Arc<End>) -> Result<Driven, Stopped> {
        self.append(&mut running).await?;
        let injected: Vec<EntryId> = std::mem::take(&mut running.injected);
        let (run, at, log) = (self.input.run(), running.now, self.log);
        let state = self.input.state().cloned();
        let states = states::of_thread(&self.ports, running.states.as_ref());
        let ended = Driven::Ended(at, Ok(Arc::clone(&end)));
        self.control(ControlAsk::Ended { run, end: Ok(end), at, injected, log, state, states }).await?;
        Ok(ended)
    }
}
