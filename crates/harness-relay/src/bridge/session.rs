//! The life of a bridge between its registration and its release.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use harness_core::Cancel;
use tokio::task::JoinSet;

use super::job::Job;
use super::note::NoteLevel;
use super::seen::{Known, Seen};
use super::worker::{BridgeReport, Finished, Work};
use crate::event::{RelayEvent, RelayEventKind, RelayEvents, RelayInbound};
use crate::fault::RelayFault;
use crate::message::Body;
use crate::transport::SpawnAgent;

/// How often the agent that stands for the worker is started again at most.
const REGISTRATIONS: u32 = 8;

/// Time limit of runs that were cancelled.
const STOPPING: Duration = Duration::from_secs(2);

const FULL: &str = "The worker has too many requests waiting.";
const STOPS: &str = "The worker is stopping.";

/// Whether requests are still taken.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// Stored events are still arriving: earlier answers are not known yet.
    CatchingUp,
    Working,
    Draining,
}

pub(super) struct Session<'a> {
    work: Arc<Work>,
    agent: Option<&'a SpawnAgent>,
    phase: Phase,
    registrations: u32,
    /// Requests among stored events.
    early: Vec<Job>,
    waiting: VecDeque<Job>,
    running: usize,
    tasks: JoinSet<Finished>,
    cancel: Cancel,
    seen: Seen,
    report: BridgeReport,
    lost: Option<RelayFault>,
}

impl<'a> Session<'a> {
    pub(super) fn new(work: Arc<Work>, agent: Option<&'a SpawnAgent>) -> Self {
        let seen = Seen::new(work.config.remembered);
        Self {
            work,
            agent,
            phase: Phase::CatchingUp,
            registrations: 0,
            early: Vec::new(),
            waiting: VecDeque::new(),
            running: 0,
            tasks: JoinSet::new(),
            cancel: Cancel::new(),
            seen,
            report: BridgeReport::default(),
            lost: None,
        }
    }

    /// Answers requests until it is drained, stopped, or the relay is lost.
    pub(super) async fn run(
        mut self,
        mut events: RelayEvents,
        drain: &Cancel,
        stop: &Cancel,
    ) -> Result<BridgeReport, RelayFault> {
        while self.phase != Phase::Draining || !self.tasks.is_empty() {
            tokio::select! {
                biased;
                () = stop.cancelled() => {
                    self.stop().await;
                    break;
                }
                () = drain.cancelled(), if self.phase != Phase::Draining => self.drain(),
                Some(done) = self.tasks.join_next() => self.finished(done.ok()),
                event = events.next(), if self.lost.is_none() => self.heard(event).await,
            }
        }
        self.lost.map_or(Ok(self.report), Err)
    }

    async fn heard(&mut self, event: RelayEvent) {
        match event.kind {
            RelayEventKind::Inbound(inbound) => self.message(&inbound),
            RelayEventKind::CaughtUp if self.phase == Phase::CatchingUp => {
                self.phase = Phase::Working;
                for job in std::mem::take(&mut self.early) {
                    self.offer(job);
                }
            }
            RelayEventKind::AgentGone { name, how } if name == self.work.config.worker_name => {
                self.gone(&how).await;
            }
            RelayEventKind::Gap { requested, oldest } => {
                let text = format!("events {}..{oldest} are lost", requested.saturating_add(1));
                self.work.note(NoteLevel::Warn, "gap", None, text);
            }
            RelayEventKind::Closed { reason } => self.lose(RelayFault::Closed { reason }),
            RelayEventKind::AgentGone { .. }
            | RelayEventKind::CaughtUp
            | RelayEventKind::Reconnected
            | RelayEventKind::Other(_) => {}
        }
    }

    fn message(&mut self, inbound: &RelayInbound) {
        let name = &self.work.config.worker_name;
        let (ours, from_us) = (inbound.target.as_ref() == Some(name), inbound.from == *name);
        let catching_up = self.phase == Phase::CatchingUp;
        if !ours && !from_us {
            return;
        }
        match Body::read(&inbound.body) {
            Body::Request(body) if ours => match Job::read(&body, inbound) {
                Ok(job) if catching_up && self.early.len() < self.work.config.remembered => {
                    self.early.push(job);
                }
                Ok(job) => self.offer(job),
                Err(turn) => {
                    let text = format!("a request from {} has no address for the reply", inbound.from);
                    self.work.note(NoteLevel::Warn, "unanswerable", turn.as_deref(), text);
                }
            },
            Body::Reply { key, .. } if from_us && catching_up => self.seen.heard(key),
            Body::Request(_) | Body::Reply { .. } | Body::Other => {}
        }
    }

    /// Takes a request, unless it was taken before.
    fn offer(&mut self, job: Job) {
        match self.seen.take(&job) {
            Known::New if self.phase == Phase::Draining => self.refuse(job, STOPS),
            Known::New if self.running < self.work.config.concurrency.max(1) => self.start(job),
            Known::New if self.waiting.len() < self.work.config.waiting => self.waiting.push_back(job),
            Known::New => self.refuse(job, FULL),
            known @ (Known::Taken | Known::Answered(_)) => {
                self.report.duplicates += 1;
                self.work.note(NoteLevel::Info, "duplicate", job.turn_id.as_deref(), "");
                if let Known::Answered(reply) = known {
                    let work = Arc::clone(&self.work);
                    self.tasks.spawn(async move { work.repeat(job, reply).await });
                }
            }
        }
    }

    fn start(&mut self, job: Job) {
        self.running += 1;
        let (work, cancel) = (Arc::clone(&self.work), self.cancel.child());
        self.tasks.spawn(async move { work.serve(job, cancel).await });
    }

    fn refuse(&mut self, job: Job, why: &'static str) {
        self.report.refused += 1;
        self.seen.answered(&job, false, "");
        let work = Arc::clone(&self.work);
        self.tasks.spawn(async move { work.refuse(job, why).await });
    }

    /// `None` for a task that did not come to its end.
    fn finished(&mut self, finished: Option<Finished>) {
        let Some(Finished { job, reply, ran, published }) = finished else { return };
        self.report.unpublished += u64::from(!published);
        if let Some(completed) = ran {
            self.running = self.running.saturating_sub(1);
            let count = if completed { &mut self.report.completed } else { &mut self.report.failed };
            *count += 1;
            self.seen.answered(&job, completed, &reply);
        }
        if self.phase == Phase::Working
            && self.running < self.work.config.concurrency.max(1)
            && let Some(next) = self.waiting.pop_front()
        {
            self.start(next);
        }
    }

    /// The worker's agent ended: a new one is started, unless one is running.
    async fn gone(&mut self, how: &str) {
        let Some(agent) = self.agent.filter(|_| self.phase == Phase::Working) else { return };
        let there = self.work.transport.agents_boxed().await;
        if there.is_ok_and(|names| names.contains(&agent.name)) {
            return;
        }
        self.registrations += 1;
        if self.registrations > REGISTRATIONS {
            let (name, reason) = (agent.name.clone(), format!("its agent keeps ending: {how}"));
            return self.lose(RelayFault::NotRegistered { name, reason });
        }
        if let Err(fault) = self.work.register(agent).await {
            self.lose(fault);
        }
    }

    /// No event follows: running requests finish, waiting ones are rejected.
    fn lose(&mut self, fault: RelayFault) {
        self.lost = Some(fault);
        self.drain();
    }

    fn drain(&mut self) {
        self.phase = Phase::Draining;
        let (running, waiting) = (self.running, self.waiting.len());
        self.work.note(NoteLevel::Info, "draining", None, format!("{running} running, {waiting} waiting"));
        for job in std::mem::take(&mut self.waiting) {
            self.refuse(job, STOPS);
        }
    }

    /// Stops what runs: each runner by its signal, and by force when that takes too long.
    async fn stop(&mut self) {
        self.cancel.cancel();
        let ended = async { while self.tasks.join_next().await.is_some() {} };
        if tokio::time::timeout(STOPPING, ended).await.is_err() {
            self.tasks.shutdown().await;
        }
    }
}
