//! The port of threads over an engine.

use std::ops::Range;
use std::sync::Arc;

use futures_util::stream::BoxStream;
use harness::core::event::EventKind;
use harness::core::machine::CallDecision;
use harness::core::message::Message;
use harness::core::port::{Clock as _, CompactionNote, Decision};
use harness::core::{EntryId, Fault, FaultSource, RunId, ThreadId, Time, transcript};
use harness::runtime::{
    ApprovalDecision, MessageOptions, PendingApproval, Prompt, QueueEntry, Report, ResumeFrom, RuntimeError,
    Snapshot, StartAt, StreamItem, ThreadAttributes, ThreadInfo, ThreadMessage, ThreadService, ThreadSummary,
};

use super::call::ReadReply;
use super::client::DurableThreads;
use super::follow::{self, first_of, next_of};
use super::relay::FeedReader;
use crate::durable::{
    AgentSettings, LogItem, Queued, ResumeAsk, RunOptions, ThreadAsk, ThreadState, ThreadStatus, report,
};

fn unsupported<T>(what: &'static str) -> Result<T, RuntimeError> {
    Err(RuntimeError::Unsupported { what })
}

/// Options of a run on an engine.
fn run_options(options: MessageOptions) -> Result<RunOptions, RuntimeError> {
    let mut others = options.clone();
    (others.user, others.metadata, others.agent, others.allowed_tools) = (None, None, None, None);
    (others.context, others.output) = (None, None);
    if others != MessageOptions::default() {
        return unsupported("layers, an assistant, a workspace or a turn id of a message");
    }
    let MessageOptions { user, metadata, agent, allowed_tools, context, output, .. } = options;
    Ok(RunOptions { user, metadata, allowed_tools, agent, agents: AgentSettings { context, output } })
}

fn queue_entry(queued: Queued) -> QueueEntry {
    let mut options = MessageOptions::default();
    let RunOptions { user, metadata, allowed_tools, agent, agents } = queued.options;
    (options.user, options.metadata, options.allowed_tools, options.agent) =
        (user, metadata, allowed_tools, agent);
    (options.context, options.output) = (agents.context, agents.output);
    let mut entry =
        QueueEntry::new(queued.id, queued.message, queued.mode, queued.wakes, options, queued.queued_at);
    entry.state = queued.state;
    entry
}

impl DurableThreads {
    /// Report of a run that ended at an entry of the log.
    pub(super) async fn report(
        &self,
        thread: &ThreadId,
        run: &RunId,
        end: &Arc<harness::core::End>,
        upto: u64,
    ) -> Result<Report, RuntimeError> {
        let first = self.extent(thread).await?.first.min(upto);
        let transcript = self.transcript(thread, first..upto).await?;
        let from = self.first_message(thread, run, first..upto).await?;
        let from = from.map_or(transcript.len(), |from| from.min(transcript.len()));
        Ok(report(run.clone(), Arc::clone(end), transcript, from))
    }

    /// Position of the first message of a run in the transcript.
    async fn first_message(
        &self,
        thread: &ThreadId,
        run: &RunId,
        entries: Range<u64>,
    ) -> Result<Option<usize>, RuntimeError> {
        let (mut upto, mut first) = (entries.end, None);
        while upto > entries.start {
            let from = upto.saturating_sub(Self::PAGE).max(entries.start);
            for entry in self.entries(thread, from, upto).await?.iter().rev() {
                let LogItem::Event(event) = &entry.item else { continue };
                if event.origin.run.as_ref() != Some(run) {
                    continue;
                }
                if let EventKind::MessageAppended { index, .. } = &event.kind {
                    first = usize::try_from(*index).ok();
                } else if let EventKind::RunStarted { .. } = &event.kind {
                    return Ok(first);
                }
            }
            upto = from;
        }
        Ok(first)
    }

    /// Report of the last run; `None` if there was none.
    async fn last(&self, thread: &ThreadId, state: &ThreadState) -> Result<Option<Report>, RuntimeError> {
        let (Some(last), Some(run)) = (state.last(), state.last_run()) else { return Ok(None) };
        let end = last.as_ref().map_err(|why| follow::failed(why))?;
        let mut report = self.report(thread, &run, end, state.last_log()).await?;
        report.waiting = state.waiting();
        Ok(Some(report))
    }

    /// Waits until the state of a thread is as wanted.
    async fn until(
        &self,
        thread: &ThreadId,
        is_so: impl Fn(&ThreadState) -> bool + Send,
    ) -> Result<ThreadState, RuntimeError> {
        let (mut pause, most) = follow::PAUSES;
        let feed = self.feed(thread);
        loop {
            let mut changed = std::pin::pin!(self.changed());
            changed.as_mut().enable();
            let notices = feed.as_ref().map(FeedReader::changes);
            let state = self.state(thread).await?;
            if is_so(&state) {
                return Ok(state);
            }
            tokio::select! {
                () = self.stopped() => return Err(RuntimeError::Closed { thread: thread.clone() }),
                () = changed => {}
                () = FeedReader::changed(feed.as_ref(), notices) => pause = follow::PAUSES.0,
                () = tokio::time::sleep(pause) => pause = (pause * 2).min(most),
            }
        }
    }
}

pub(super) fn is_free(state: &ThreadState) -> bool {
    !matches!(state.status(), ThreadStatus::Running(_))
}

impl ThreadService for DurableThreads {
    fn now(&self) -> Time {
        self.clock().now()
    }

    fn open_threads(&self) -> usize {
        0
    }

    /// Needs the admin URL of the engine. It reads the state of each thread that it lists, and its title once.
    async fn list(&self, after: Option<&ThreadId>, limit: usize) -> Result<Vec<ThreadSummary>, RuntimeError> {
        self.summaries(after, limit).await
    }

    async fn exists(&self, thread: &ThreadId) -> Result<bool, RuntimeError> {
        Ok(self.state(thread).await?.created().is_some())
    }

    async fn create(&self, thread: &ThreadId, attributes: ThreadAttributes) -> Result<(), RuntimeError> {
        if attributes == ThreadAttributes::default() && self.exists(thread).await? {
            return Ok(());
        }
        let mut options = MessageOptions::default();
        (options.user, options.metadata, options.context) =
            (attributes.user, attributes.metadata, attributes.context);
        self.change(thread, ThreadAsk::Configure(run_options(options)?)).await.map(drop)
    }

    /// Stops the run at hand, and removes messages, decisions, options, log and texts. Events of its next conversation have
    /// later numbers. The engine keeps the journals of ended runs for 24 h, and processes may have parts of the conversation
    /// in memory until these make room for others.
    async fn forget(&self, thread: &ThreadId) -> Result<(), RuntimeError> {
        if self.state(thread).await?.created().is_none() {
            return Ok(());
        }
        self.change(thread, ThreadAsk::Forget).await?;
        self.until(thread, |state| !state.is_forgetting()).await.map(drop)
    }

    async fn info(&self, thread: &ThreadId) -> Result<ThreadInfo, RuntimeError> {
        let state = self.state(thread).await?;
        let mut info = ThreadInfo::new(state.shown_status());
        info.waiting = state.waiting();
        let RunOptions { user, metadata, agents, .. } = state.defaults().clone();
        (info.attributes.user, info.attributes.metadata) = (user, metadata);
        info.attributes.context = agents.context;
        info.descriptor = state.descriptor().cloned();
        info.next_seq = next_of(&state, self.extent(thread).await?.len);
        info.turn_seq = first_of(state.turn());
        Ok(info)
    }

    async fn snapshot(&self, thread: &ThreadId) -> Result<Snapshot, RuntimeError> {
        let state = self.state(thread).await?;
        let ReadReply { first, len, .. } = self.extent(thread).await?;
        let mut snapshot = Snapshot::new(state.shown_status(), self.transcript(thread, first..len).await?);
        snapshot.waiting = state.waiting();
        if is_free(&state) {
            snapshot.error = match self.last(thread, &state).await {
                Ok(report) => report.and_then(|report| report.problem()),
                Err(error) => Some(error.to_string()),
            };
        }
        Ok(snapshot)
    }

    async fn deliver(&self, thread: &ThreadId, message: ThreadMessage) -> Result<EntryId, RuntimeError> {
        let ThreadMessage { entry, message, mode, wakes, options, .. } = message;
        if matches!(&*message, Message::User(user) if user.is_blank()) {
            return Err(RuntimeError::EmptyMessage { thread: thread.clone() });
        }
        let entry = entry.unwrap_or_else(|| self.new_entry());
        let options = run_options(options)?;
        self.change(thread, ThreadAsk::Deliver { entry: entry.clone(), message, mode, wakes, options })
            .await?;
        Ok(entry)
    }

    async fn start(&self, thread: &ThreadId, prompt: Prompt) -> Result<RunId, RuntimeError> {
        let Prompt { messages, from, options, .. } = prompt;
        let options = run_options(options)?;
        let resume = match from {
            ResumeFrom::Transcript => None,
            ResumeFrom::Continuation { continuation, resume } => {
                Some(Box::new(ResumeAsk::new(*continuation, resume)))
            }
            ResumeFrom::Checkpoint(_) | _ => return unsupported("continuing from a checkpoint"),
        };
        let ask = if messages.is_empty() && resume.is_none() {
            ThreadAsk::Continue { options }
        } else {
            ThreadAsk::Start { entry: self.new_entry(), messages, resume, options }
        };
        let run = self.change(thread, ask).await?;
        run.ok_or_else(|| RuntimeError::Lost { thread: thread.clone() })
    }

    async fn run(&self, thread: &ThreadId, prompt: Prompt) -> Result<Report, RuntimeError> {
        self.start(thread, prompt).await?;
        self.response(thread).await?.ok_or_else(|| RuntimeError::Lost { thread: thread.clone() })
    }

    async fn response(&self, thread: &ThreadId) -> Result<Option<Report>, RuntimeError> {
        let state = self.until(thread, is_free).await?;
        self.last(thread, &state).await
    }

    async fn wait_idle(&self, thread: &ThreadId) -> Result<(), RuntimeError> {
        self.until(thread, is_free).await.map(drop)
    }

    async fn abort(&self, thread: &ThreadId, reason: Arc<str>, wait: bool) -> Result<bool, RuntimeError> {
        let Some(run) = self.change(thread, ThreadAsk::Abort { reason: Some(reason) }).await? else {
            return Ok(false);
        };
        if wait {
            let stopped = ThreadStatus::Running(run);
            self.until(thread, |state| *state.status() != stopped).await?;
        }
        Ok(true)
    }

    async fn queue(&self, thread: &ThreadId) -> Result<Vec<QueueEntry>, RuntimeError> {
        let queue: Vec<Queued> = self.look(thread, "queue").await?;
        Ok(queue.into_iter().map(queue_entry).collect())
    }

    async fn edit(
        &self,
        thread: &ThreadId,
        entry: &EntryId,
        message: Arc<Message>,
    ) -> Result<(), RuntimeError> {
        self.change(thread, ThreadAsk::Edit { entry: entry.clone(), message }).await.map(drop)
    }

    async fn reorder(&self, thread: &ThreadId, entry: &EntryId, place: usize) -> Result<(), RuntimeError> {
        self.change(thread, ThreadAsk::Reorder { entry: entry.clone(), place }).await.map(drop)
    }

    async fn cancel(&self, thread: &ThreadId, entry: &EntryId) -> Result<QueueEntry, RuntimeError> {
        let queue = self.queue(thread).await?;
        self.change(thread, ThreadAsk::Cancel { entry: entry.clone() }).await?;
        let removed = queue.into_iter().find(|queued| queued.id == *entry);
        removed.ok_or_else(|| RuntimeError::NotWaiting { thread: thread.clone(), entry: entry.clone() })
    }

    async fn approvals(&self, thread: &ThreadId) -> Result<Vec<PendingApproval>, RuntimeError> {
        let state = self.state(thread).await?;
        let is_parked = is_free(&state);
        let held = state.approvals().map(|held| held.proposed.clone());
        Ok(held.map(|proposed| PendingApproval { proposed, is_parked }).collect())
    }

    /// Needs the admin URL of the engine.
    async fn held(&self) -> Result<Vec<PendingApproval>, RuntimeError> {
        self.held_calls().await
    }

    async fn decide(&self, thread: &ThreadId, decision: ApprovalDecision) -> Result<(), RuntimeError> {
        let ApprovalDecision { approval, digest, decision } = decision;
        let state = self.state(thread).await?;
        let not_held = || RuntimeError::NotHeld { thread: thread.clone(), approval: approval.clone() };
        let Some(held) = state.approvals().find(|held| held.proposed.id() == approval) else {
            return match state.decided(&digest, &decision).filter(|_| digest.approval() == approval) {
                Some(true) => Ok(()),
                Some(false) => Err(RuntimeError::Decided { approval }),
                None => Err(not_held()),
            };
        };
        let pending = held.proposed.digest();
        if pending != digest {
            return Err(RuntimeError::OtherCall { approval, seen: digest, held: pending });
        }
        if decision == Decision::Later && is_free(&state) {
            return Ok(());
        }
        let decided = CallDecision::new(held.call().clone(), decision).having_seen(digest);
        match self.change(thread, ThreadAsk::Decide(decided)).await {
            // Another decision, or the end of the run, came first.
            Err(RuntimeError::Engine(fault)) if &*fault.code == "engine.not_pending" => Err(not_held()),
            Err(RuntimeError::Engine(fault)) if &*fault.code == "engine.decided" => {
                Err(RuntimeError::Decided { approval })
            }
            done => done.map(drop),
        }
    }

    async fn events(
        &self,
        thread: &ThreadId,
        from: StartAt,
    ) -> Result<BoxStream<'static, StreamItem>, RuntimeError> {
        follow::follow(self.clone(), thread, from).await
    }

    async fn compact(
        &self,
        thread: &ThreadId,
        instructions: Option<String>,
    ) -> Result<Option<Arc<CompactionNote>>, RuntimeError> {
        let ask = ThreadAsk::Compact { entry: self.new_entry(), instructions };
        let started = self.change(thread, ask).await?;
        let state = self.until(thread, |state| !state.is_compacting()).await?;
        let result = started.and_then(|id| state.compaction(&id).cloned());
        let result = result.unwrap_or_else(|| {
            let text = "the conversation was removed or compacted again before its result was read";
            Err(Fault::new(FaultSource::Compactor, "lost", text))
        });
        result.map_err(RuntimeError::Compaction)
    }

    async fn seed(&self, thread: &ThreadId, messages: Vec<Message>) -> Result<(), RuntimeError> {
        let messages: Vec<_> = messages.into_iter().map(Arc::new).collect();
        let repaired = transcript::repair(&messages).messages.into_iter();
        let messages = repaired.map(|(message, _)| message).collect();
        self.change(thread, ThreadAsk::Seed { messages }).await.map(drop)
    }

    async fn stop(&self) {
        self.stop_streams();
    }
}
