//! The object `HarnessRun`: drives the machine of one run.

use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use harness::core::machine::Op;
use harness::core::port::Clock;
use harness::core::{RunId, ThreadId, Time};
use restate_sdk::context::{CallFuture, DurableFuture, InvocationHandle, RequestTarget, RunFuture as _};
use restate_sdk::endpoint::{ContextInternal, Error};
use restate_sdk::errors::TerminalError;
use restate_sdk::serde::Json;

use super::call::{RunAsk, to_object};
use super::relay::Outbox;
use super::service::{HandlerSpec, Handlers, LOG, RUN, STEP, ServiceSpec, THREAD, input, output, unfinished};
use super::step::{STOP, ended};
use super::thread::handler_of;
use crate::durable::{
    AgentHost, ControlAsk, ControlReply, DriveInput, DriveOptions, Driven, DurableContext, Handle, Reader,
    SegmentWork, StepAsk, StepReply, Stopped, ThreadAsk, ThreadReply, ThreadState, ThreadStore, TimedInput,
    Woken, delivered, drive, lost_reply,
};

pub(super) fn spec() -> ServiceSpec {
    let private = |name| HandlerSpec { name, is_private: true, ..HandlerSpec::default() };
    ServiceSpec {
        name: RUN,
        is_object: true,
        is_lazy: true,
        handlers: ["drive", "forget"].map(private).into(),
        keeps_journal: Duration::from_hours(24),
        inactivity: Duration::from_mins(1),
        attempts: (70, false),
    }
}

/// The handler of runs.
pub(super) struct Run<H, S> {
    pub(super) host: Arc<H>,
    pub(super) reader: Reader<S>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) options: DriveOptions,
    pub(super) outbox: Option<Arc<Outbox>>,
}

impl<H: AgentHost + 'static, S: ThreadStore + Clone + 'static> Handlers for Run<H, S> {
    async fn handle(&self, ctx: &ContextInternal, handler: &str) -> Result<(), Error> {
        match handler {
            "drive" => self.drive(ctx).await,
            "forget" => self.forget(ctx).await,
            unknown => return Err(Error::unknown_handler(RUN, unknown)),
        }
        Ok(())
    }
}

impl<H: AgentHost + 'static, S: ThreadStore + Clone + 'static> Run<H, S> {
    async fn drive(&self, ctx: &ContextInternal) {
        let (input, metadata) = input::<DriveInput>(ctx).await;
        let context = || Drive {
            ctx,
            clock: Arc::clone(&self.clock),
            outbox: self.outbox.as_deref(),
            thread: metadata.key.clone(),
            invocation: metadata.invocation_id.clone(),
            waits: Vec::new(),
            handles: 0,
            stops: Vec::new(),
        };
        let driven = drive(context(), &*self.host, &self.reader, self.options, input.clone());
        let driven = AssertUnwindSafe(driven).catch_unwind().await;
        let mut driven = driven.unwrap_or_else(|_| Err(Stopped::Refused("the driver panicked".to_owned())));
        if let Err(Stopped::Refused(why)) = &driven
            && let Err(Stopped::Over) = self.settle(context(), &input, why).await
        {
            driven = Err(Stopped::Over);
        }
        // Only the driver of a caller reads the result.
        let driven = driven.map(|driven| input.delegation.is_some().then_some(driven));
        output(ctx, driven.map_err(unfinished));
    }

    /// Ends a run whose driver stopped, so that its thread is free. What it wrote stays in the transcript.
    async fn settle(&self, mut ctx: Drive<'_>, input: &DriveInput, why: &str) -> Result<(), Stopped> {
        let ControlReply::Appended(log) = ctx.control(ControlAsk::Append { entries: Vec::new() }).await?
        else {
            return Ok(());
        };
        let look = to_object::<_, ThreadState>(ctx.ctx, THREAD, &ctx.thread, "snapshot", ());
        let Json(thread) = look.call().await.map_err(ended)?;
        let entries = self.reader.entries(&input.thread(), thread.log(), log).await?;
        let injected = delivered(&thread, &entries);
        let (run, at, state) = (input.run(), input.at, input.state().cloned());
        let ended =
            ControlAsk::Ended { run, end: Err(why.to_owned()), at, injected, log, state, states: None };
        ctx.control(ended).await.map(drop)
    }

    /// Removes the log and the texts of a thread, and notifies the thread. Under the key of runs: each earlier
    /// invocation has ended, and none is replayed.
    async fn forget(&self, ctx: &ContextInternal) {
        let (before, metadata) = input(ctx).await;
        let removed = self.reader.forget(&ThreadId::from(&*metadata.key), before).await;
        if removed.is_ok() {
            let done = ThreadAsk::Forgotten { before };
            drop(to_object::<_, ()>(ctx, THREAD, &metadata.key, "forgotten", done).send());
        }
        output(ctx, removed.map_err(unfinished));
    }
}

/// A call in flight.
trait Call<T>: DurableFuture<Output = Result<Json<T>, TerminalError>> + Send {
    fn invocation(&self) -> BoxFuture<'_, Result<InvocationHandle, TerminalError>>;
}

impl<T, C: CallFuture<Response = Json<T>> + Send> Call<T> for C {
    fn invocation(&self) -> BoxFuture<'_, Result<InvocationHandle, TerminalError>> {
        Box::pin(self.invocation_handle())
    }
}

type StepFuture<'c> = Pin<Box<dyn Call<StepReply> + 'c>>;
type ChildFuture<'c> = Pin<Box<dyn Call<Option<Driven>> + 'c>>;
type WakeFuture<'c> = Pin<Box<dyn DurableFuture<Output = Result<(), TerminalError>> + Send + 'c>>;

/// Something that a driver waits for.
enum Wait<'c> {
    Step(StepFuture<'c>, Box<Op>),
    /// A child, with its thread and its run.
    Child(ChildFuture<'c>, ThreadId, RunId),
    Timer(WakeFuture<'c>),
    Bell(WakeFuture<'c>),
}

/// A message to a step or a child that is no longer wanted.
enum Stop<'c> {
    /// It replies with what it has.
    Ask(Handle),
    /// It ends.
    Cancel(StepFuture<'c>),
}

/// The result of a child that the engine ended.
fn lost(why: String) -> Driven {
    Driven::Ended(Time::default(), Err(why))
}

/// One invocation of a driver.
struct Drive<'c> {
    ctx: &'c ContextInternal,
    clock: Arc<dyn Clock>,
    outbox: Option<&'c Outbox>,
    thread: String,
    invocation: String,
    waits: Vec<(Handle, Wait<'c>)>,
    /// Handles so far.
    handles: u64,
    /// Messages that are sent before the next entry.
    stops: Vec<Stop<'c>>,
}

impl<'c> Drive<'c> {
    fn handle(&mut self, wait: Wait<'c>) -> Handle {
        self.handles += 1;
        let handle = Handle(self.handles);
        self.waits.push((handle, wait));
        handle
    }

    /// Readers of the thread learn that it changed. Best effort; a replay repeats it.
    fn note_change(&self) {
        if let Some(outbox) = self.outbox {
            outbox.changed(&ThreadId::from(&*self.thread));
        }
    }

    /// Sends what steps have to know. The engine knows the invocation of a step shortly after its start.
    async fn send_stops(&mut self) -> Result<(), Stopped> {
        for stop in std::mem::take(&mut self.stops) {
            match stop {
                Stop::Ask(handle) => {
                    let wait = self.waits.iter().find(|(waited, _)| *waited == handle);
                    match wait.map(|(_, wait)| wait) {
                        Some(Wait::Step(call, _)) => {
                            call.invocation().await.map_err(ended)?.signal(STOP).resolve(());
                        }
                        Some(Wait::Child(_, thread, run)) => {
                            let (ask, key) = (ThreadAsk::StopRun(run.clone()), thread.as_str());
                            drop(to_object::<_, ()>(self.ctx, THREAD, key, handler_of(&ask), ask).send());
                        }
                        Some(Wait::Timer(_) | Wait::Bell(_)) | None => {}
                    }
                }
                Stop::Cancel(call) => {
                    let invocation = call.invocation().await;
                    invocation.map_err(ended)?.cancel();
                }
            }
        }
        Ok(())
    }
}

impl DurableContext for Drive<'_> {
    async fn segment<W: SegmentWork>(&mut self, work: W) -> Result<Vec<TimedInput>, Stopped> {
        self.send_stops().await?;
        let run = self.ctx.run(move || async move { Ok(Json(work.run().await)) });
        let Json(inputs) = run.name("segment").await.map_err(ended)?;
        Ok(inputs)
    }

    fn start(&mut self, step: StepAsk) -> Result<Handle, Stopped> {
        let what = Box::new(step.what.clone());
        let target = RequestTarget::service(STEP, "perform");
        let call = self.ctx.request::<_, Json<StepReply>>(target, Json(step)).call();
        Ok(self.handle(Wait::Step(Box::pin(call), what)))
    }

    fn call(&mut self, child: DriveInput) -> Result<Handle, Stopped> {
        let (thread, run) = (child.thread(), child.run());
        let call = to_object::<_, Option<Driven>>(self.ctx, RUN, thread.as_str(), "drive", child).call();
        Ok(self.handle(Wait::Child(Box::pin(call), thread, run)))
    }

    fn timer(&mut self, at: Time) -> Result<Handle, Stopped> {
        let sleep = self.ctx.sleep(at.since(self.clock.now()).duration());
        Ok(self.handle(Wait::Timer(Box::pin(sleep))))
    }

    fn doorbell(&mut self) -> Result<Handle, Stopped> {
        let ring = self.ctx.signal::<()>("ring");
        Ok(self.handle(Wait::Bell(Box::pin(ring))))
    }

    async fn next(&mut self) -> Result<(Handle, Woken), Stopped> {
        self.send_stops().await?;
        let handles = self.waits.iter().map(|(_, wait)| match wait {
            Wait::Step(call, _) => call.handle(),
            Wait::Child(call, ..) => call.handle(),
            Wait::Timer(wake) | Wait::Bell(wake) => wake.handle(),
        });
        let first = self.ctx.select(handles.collect()).await.map_err(ended)?;
        let (handle, wait) = self.waits.remove(first);
        let woken = match wait {
            Wait::Step(call, what) => Woken::Step(Box::new(match call.await {
                Ok(Json(reply)) => reply,
                Err(lost) => lost_reply(&what, lost.message()),
            })),
            Wait::Child(call, _, run) => Woken::Child(Box::new(match call.await {
                Ok(Json(Some(driven))) => driven,
                Ok(Json(None)) => lost(format!("run `{run}` has no result")),
                Err(error) => lost(error.message().to_owned()),
            })),
            Wait::Timer(wake) => wake.await.map(|()| Woken::Timer).map_err(ended)?,
            Wait::Bell(wake) => wake.await.map(|()| Woken::Rang).map_err(ended)?,
        };
        Ok((handle, woken))
    }

    fn stop(&mut self, handle: Handle) {
        self.stops.push(Stop::Ask(handle));
    }

    fn cancel(&mut self, handle: Handle) {
        let at = self.waits.iter().position(|(waited, _)| *waited == handle);
        if let Some((_, Wait::Step(call, _))) = at.map(|at| self.waits.remove(at)) {
            self.stops.push(Stop::Cancel(call));
        }
    }

    async fn control(&mut self, ask: ControlAsk) -> Result<ControlReply, Stopped> {
        self.send_stops().await?;
        let (ctx, thread) = (self.ctx, &self.thread);
        let handler = match &ask {
            ControlAsk::Append { entries } => {
                let append = to_object::<_, ControlReply>(ctx, LOG, thread, "append", entries.clone());
                let Json(reply) = append.call().await.map_err(ended)?;
                self.note_change();
                return Ok(reply);
            }
            ControlAsk::Take { .. } => "take",
            ControlAsk::Hold { .. } => "hold",
            ControlAsk::Delegate { .. } => "delegate",
            ControlAsk::BeginChild { .. } => "begin",
            ControlAsk::Ended { .. } => "ended",
            ControlAsk::Compacted { .. } => "compacted",
        };
        let ask = RunAsk { invocation: self.invocation.clone(), ask };
        let call = to_object::<_, ThreadReply>(ctx, THREAD, thread, handler, ask).call();
        let reply = call.await.map_err(ended)?;
        self.note_change();
        match reply {
            Json(ThreadReply::Run(reply)) => Ok(reply),
            Json(ThreadReply::Accepted(_)) => Ok(ControlReply::Noted),
            Json(ThreadReply::Refused(why)) => Ok(ControlReply::Refused(why)),
        }
    }

    async fn roll_over(mut self, next: DriveInput) -> Result<(), Stopped> {
        self.send_stops().await?;
        drop(to_object::<_, ()>(self.ctx, RUN, &self.thread, "drive", next).send());
        Ok(())
    }
}
