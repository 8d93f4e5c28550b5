//! The port over the threads of this process.

use std::pin::pin;
use std::sync::Arc;

use futures_util::FutureExt as _;
use futures_util::stream::{self, BoxStream};
use harness_core::message::Message;
use harness_core::port::{CompactionNote, ProposedCall};
use harness_core::{EntryId, RunId, ThreadId, Time};

use super::held::{self, HeldCalls};
use super::{
    ApprovalDecision, PendingApproval, ThreadAttributes, ThreadInfo, ThreadMessage, ThreadService,
    ThreadSummary,
};
use crate::error::RuntimeError;
use crate::prompt::Prompt;
use crate::queue::QueueEntry;
use crate::report::Report;
use crate::runtime::Runtime;
use crate::stream::{StartAt, StreamItem, ThreadEvent};
use crate::thread::{Snapshot, Status, Thread};

impl Runtime {
    /// The open thread of that id.
    fn open(&self, thread: &ThreadId) -> Result<Thread, RuntimeError> {
        self.existing(thread).ok_or_else(|| RuntimeError::Closed { thread: thread.clone() })
    }

    fn status_of(&self, thread: &Thread) -> Status {
        let held = self.decides().map_or(0, |approvals| approvals.held(thread.id()).len());
        held::status(thread.status(), held)
    }

    fn summary(&self, thread: &Thread) -> ThreadSummary {
        let mut summary = ThreadSummary::new(thread.id().clone(), self.status_of(thread));
        (summary.waiting, summary.attributes) = (thread.queue_len(), attributes(thread));
        summary
    }
}

fn attributes(thread: &Thread) -> ThreadAttributes {
    let config = thread.config();
    ThreadAttributes { user: config.origin.user, context: config.context, metadata: config.origin.metadata }
}

impl ThreadService for Runtime {
    fn now(&self) -> Time {
        self.clock().now()
    }

    fn open_threads(&self) -> usize {
        self.ids().len()
    }

    async fn list(&self, after: Option<&ThreadId>, limit: usize) -> Result<Vec<ThreadSummary>, RuntimeError> {
        let mut ids = self.ids();
        ids.retain(|id| after.is_none_or(|after| id.as_str() > after.as_str()));
        ids.sort_unstable_by(|one, other| one.as_str().cmp(other.as_str()));
        // A thread may be closed meanwhile.
        let threads = ids.iter().filter_map(|id| self.existing(id));
        Ok(threads.take(limit).map(|thread| self.summary(&thread)).collect())
    }

    async fn exists(&self, thread: &ThreadId) -> Result<bool, RuntimeError> {
        Ok(self.existing(thread).is_some())
    }

    async fn create(&self, thread: &ThreadId, attributes: ThreadAttributes) -> Result<(), RuntimeError> {
        let thread = self.thread(thread.clone());
        if attributes == ThreadAttributes::default() {
            return Ok(());
        }
        thread.configure(|config| {
            config.origin.user = attributes.user.or(config.origin.user.take());
            config.origin.metadata = attributes.metadata.or(config.origin.metadata.take());
            config.context = attributes.context.or(config.context.take());
        });
        Ok(())
    }

    async fn forget(&self, thread: &ThreadId) -> Result<(), RuntimeError> {
        if let Some(thread) = self.existing(thread) {
            thread.close().await;
        }
        Ok(())
    }

    async fn info(&self, thread: &ThreadId) -> Result<ThreadInfo, RuntimeError> {
        let thread = self.open(thread)?;
        Ok(ThreadInfo {
            status: self.status_of(&thread),
            waiting: thread.queue_len(),
            attributes: attributes(&thread),
            descriptor: thread.config().origin.descriptor_hash,
            next_seq: thread.events(StartAt::Live).position(),
            turn_seq: thread.events(StartAt::Turn).position(),
        })
    }

    async fn snapshot(&self, thread: &ThreadId) -> Result<Snapshot, RuntimeError> {
        let thread = self.open(thread)?;
        let mut snapshot = thread.snapshot().await?;
        let held = self.decides().map_or(0, |approvals| approvals.held(thread.id()).len());
        snapshot.status = held::status(snapshot.status, held);
        Ok(snapshot)
    }

    async fn deliver(&self, thread: &ThreadId, message: ThreadMessage) -> Result<EntryId, RuntimeError> {
        self.open(thread)?.deliver(message)
    }

    async fn start(&self, thread: &ThreadId, prompt: Prompt) -> Result<RunId, RuntimeError> {
        let thread = self.open(thread)?;
        let mut events = thread.events(StartAt::Live);
        held::begin(thread.prompt(prompt))?;
        while let Some(item) = events.next().await {
            let StreamItem::Event { event, .. } = item else { continue };
            if let ThreadEvent::RunStarted { run, .. } = event {
                return Ok(run);
            } else if let ThreadEvent::RunFailed { error, .. } = event {
                return Err(RuntimeError::clone(&error));
            }
        }
        Err(RuntimeError::Closed { thread: thread.id().clone() })
    }

    async fn run(&self, thread: &ThreadId, prompt: Prompt) -> Result<Report, RuntimeError> {
        self.open(thread)?.prompt(prompt).await
    }

    async fn response(&self, thread: &ThreadId) -> Result<Option<Report>, RuntimeError> {
        let thread = self.open(thread)?;
        if thread.status() == Status::Idle {
            // A waiter would wait for somebody to prompt the thread.
            return Box::pin(thread.response()).now_or_never().transpose();
        }
        thread.response().await.map(Some)
    }

    async fn wait_idle(&self, thread: &ThreadId) -> Result<(), RuntimeError> {
        self.open(thread)?.wait_idle().await;
        Ok(())
    }

    async fn abort(&self, thread: &ThreadId, reason: Arc<str>, wait: bool) -> Result<bool, RuntimeError> {
        let thread = self.open(thread)?;
        let stopping = thread.abort(Arc::clone(&reason));
        if !stopping.any() {
            return held::abort(&thread, reason, wait).await;
        }
        if wait {
            stopping.ended().await;
        }
        Ok(true)
    }

    async fn queue(&self, thread: &ThreadId) -> Result<Vec<QueueEntry>, RuntimeError> {
        Ok(self.open(thread)?.queue())
    }

    async fn edit(
        &self,
        thread: &ThreadId,
        entry: &EntryId,
        message: Arc<Message>,
    ) -> Result<(), RuntimeError> {
        self.open(thread)?.edit(entry, Arc::unwrap_or_clone(message))
    }

    async fn reorder(&self, thread: &ThreadId, entry: &EntryId, place: usize) -> Result<(), RuntimeError> {
        self.open(thread)?.reorder(entry, place)
    }

    async fn cancel(&self, thread: &ThreadId, entry: &EntryId) -> Result<QueueEntry, RuntimeError> {
        self.open(thread)?.cancel(entry)
    }

    async fn approvals(&self, thread: &ThreadId) -> Result<Vec<PendingApproval>, RuntimeError> {
        let thread = self.open(thread)?;
        let held = match self.decides() {
            Some(approvals) => held::held(&thread, approvals).await,
            None => Vec::new(),
        };
        let parked = held::parked(&thread).await?.into_iter().map(|call| pending(call, true));
        Ok(held.into_iter().map(|call| pending(call, false)).chain(parked).collect())
    }

    async fn held(&self) -> Result<Vec<PendingApproval>, RuntimeError> {
        let held = self.decides().map(crate::Approvals::all).unwrap_or_default();
        Ok(held.into_iter().map(|call| pending(call, false)).collect())
    }

    async fn decide(&self, thread: &ThreadId, decision: ApprovalDecision) -> Result<(), RuntimeError> {
        let thread = self.open(thread)?;
        match self.decides() {
            Some(approvals) => held::decide(&thread, approvals, &decision).await,
            None => Err(RuntimeError::NotHeld { thread: thread.id().clone(), approval: decision.approval }),
        }
    }

    async fn events(
        &self,
        thread: &ThreadId,
        from: StartAt,
    ) -> Result<BoxStream<'static, StreamItem>, RuntimeError> {
        let events = self.open(thread)?.events(from);
        let held = self.decides().map(|approvals| HeldCalls::new(approvals.clone(), thread.clone()));
        let items = stream::unfold((events, held), |(mut events, mut held)| async move {
            let item = {
                let mut changed = pin!(HeldCalls::changed(held.as_mut()));
                tokio::select! {
                    biased;
                    item = events.next() => item?,
                    calls = &mut changed => StreamItem::Held { calls },
                }
            };
            Some((item, (events, held)))
        });
        Ok(Box::pin(items))
    }

    async fn compact(
        &self,
        thread: &ThreadId,
        instructions: Option<String>,
    ) -> Result<Option<Arc<CompactionNote>>, RuntimeError> {
        let thread = self.open(thread)?;
        let id = thread.id().clone();
        // It continues if the future is dropped: its claim on the thread must be given back in order.
        let compaction = tokio::spawn(async move { thread.compact(instructions).await });
        compaction.await.map_err(|_| RuntimeError::Lost { thread: id })?
    }

    async fn seed(&self, thread: &ThreadId, messages: Vec<Message>) -> Result<(), RuntimeError> {
        self.open(thread)?.seed_history(messages).await.map(drop)
    }

    async fn stop(&self) {
        if let Some(approvals) = self.decides() {
            held::park_all(self, approvals).await;
        }
        self.shutdown().await;
    }
}

fn pending(proposed: ProposedCall, is_parked: bool) -> PendingApproval {
    PendingApproval { proposed, is_parked }
}
