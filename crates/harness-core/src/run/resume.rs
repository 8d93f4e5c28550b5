//! The saved state of a run, and the run that resumes it where its session ends.
//!
//! A checkpoint holds the state of a run before one of its turns; the session holds every message, those after the
//! checkpoint too. A resumed run keeps its turns, budgets and control. The messages since the checkpoint are folded
//! into its state as if they were appended now, and the run continues behind the last of them. Time in which no process
//! had the run does not count.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::compaction::Waiting;
use super::{Run, RunSpec, RunStage, RunState};
use crate::canonical::sha256_hex;
use crate::event::EventKind;
use crate::ids::{RunId, ToolName};
use crate::json::Json;
use crate::limits::{Budget, HeldGrants};
use crate::machine::{Cx, ResumeError, ResumeErrorKind, Shared, Start, misplaced};
use crate::origin::Origin;
use crate::outcome::{End, TotalUsage};
use crate::port::Checkpoint;
use crate::time::Time;
use crate::transcript::Transcript;
use crate::turn::{PriorUsage, TurnState};

/// The version of the saved state of a run.
pub const SNAPSHOT_VERSION: u32 = 3;

/// The saved state. Its size does not grow with the transcript.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Snapshot {
    version: u32,
    shared: Shared,
    state: SavedState,
    /// The digest of the last message of its transcript; absent when there is none.
    #[serde(default)]
    anchor: Option<String>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct SavedState {
    #[serde(default)]
    started_at: Time,
    #[serde(default)]
    usage: TotalUsage,
    #[serde(default)]
    iterations: u32,
    #[serde(default)]
    tool_calls: BTreeMap<ToolName, u64>,
    waiting: Option<SavedTurn>,
    /// The turn that runs, in a state that was handed over ([`Run::hand_over`]).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    turn: Option<Json>,
    control: Json,
}

/// The turn that starts next.
#[derive(Debug, Serialize, Deserialize)]
struct SavedTurn {
    start: Box<Start>,
}

/// A run that can be resumed, read from its last checkpoint.
///
/// ```
/// use std::sync::Arc;
///
/// use harness_core::Origin;
/// use harness_core::machine::ResumeError;
/// use harness_core::port::{Checkpoint, Loaded};
/// use harness_core::run::{Run, RunResume, RunSpec};
///
/// fn resume(saved: &Checkpoint, session: Loaded, here: &Origin, spec: RunSpec) -> Result<Run, ResumeError> {
///     // `spec` may permit more turns than before. Drive the run with `Start::resume()` and the open calls of the
///     // session.
///     let log = session.messages.into_iter().collect();
///     RunResume::read(saved)?.onto(Run::new(Arc::new(spec), here.clone(), log))
/// }
/// ```
#[derive(Debug)]
pub struct RunResume {
    snapshot: Snapshot,
    any_descriptor: bool,
}

impl RunResume {
    /// Reads a checkpoint.
    ///
    /// # Errors
    /// `run_resume.version` and `run_resume.unreadable`: the conversation can continue from its transcript.
    pub fn read(checkpoint: &Checkpoint) -> Result<Self, ResumeError> {
        let Checkpoint { run, number, schema_version, state, .. } = checkpoint;
        let other_version = |version: u32| {
            let text = format!(
                "run `{run}` cannot be resumed: its checkpoint has version {version}, this program reads version \
                 {SNAPSHOT_VERSION}; continue from the transcript instead"
            );
            Err(ResumeError::new(ResumeErrorKind::RunVersion, text))
        };
        if *schema_version != SNAPSHOT_VERSION {
            return other_version(*schema_version);
        }
        let snapshot: Snapshot = state.to().map_err(|error| {
            let reason = format!("{:?} at column {}", error.classify(), error.column());
            let text = format!("checkpoint {number} of run `{run}` cannot be read: {reason}");
            ResumeError::new(ResumeErrorKind::RunUnreadable, text)
        })?;
        if snapshot.version != SNAPSHOT_VERSION {
            return other_version(snapshot.version);
        }
        Ok(Self { snapshot, any_descriptor: false })
    }

    /// Accepts another descriptor: agents and tools may have changed.
    #[must_use]
    pub fn under_any_descriptor(self) -> Self {
        Self { any_descriptor: true, ..self }
    }

    /// The ids of the run's work.
    pub fn origin(&self) -> &Origin {
        &self.snapshot.shared.origin
    }

    /// The turn at the checkpoint, from 1.
    pub fn turn(&self) -> u32 {
        self.snapshot.shared.turn
    }

    /// Messages of the transcript at the checkpoint.
    pub fn messages(&self) -> usize {
        self.snapshot.shared.len
    }

    /// Makes the run as it was, over the transcript of its session. `fresh` is a new run over that transcript, with the
    /// limits and the control that the run continues with. Start it with [`Start::resume`] and the open calls of the
    /// session; a prompt is guidance for the turn. A run that was handed over ([`Run::hand_over`]) reads neither.
    ///
    /// # Errors
    /// When it does not fit ([`RunResume::fits`]), or its control cannot read the saved state.
    pub fn onto(self, fresh: Run) -> Result<Run, ResumeError> {
        self.fits(fresh.origin(), fresh.log())?;
        let (run, turn) = (self.run(), self.turn_over(fresh.log())?);
        let (here, stored) = (Arc::clone(fresh.origin()), fresh.log().len());
        // The transcript is that of the session: messages after the checkpoint are not stored again.
        let mut machine = fresh.with_stored(stored);
        let (state, shared) = machine.state_mut();
        let Snapshot { state: saved, shared: saved_shared, .. } = self.snapshot;
        let restored = state.control.restore(&saved.control);
        restored.map_err(|error| {
            let text =
                format!("run `{run}` cannot be resumed: its control cannot read the saved state: {error}");
            ResumeError::new(ResumeErrorKind::RunControl, text)
        })?;
        *shared = saved_shared;
        (state.started_at, state.usage, state.iterations) = (saved.started_at, saved.usage, saved.iterations);
        state.tool_calls = saved.tool_calls;
        if let Some(SavedTurn { start }) = saved.waiting {
            state.stage = RunStage::Between(Box::new(Waiting::new(*start)));
        }
        match turn {
            Some(turn) => (state.stage, state.turn) = (RunStage::Turn, turn),
            None => state.resumed_from = Some(SavePoint { at: shared.at, messages: shared.len }),
        }
        shared.started = false;
        if self.any_descriptor {
            let descriptor_hash = here.descriptor_hash.clone();
            Arc::make_mut(&mut shared.origin).descriptor_hash = descriptor_hash;
        }
        Ok(machine)
    }

    /// Checks that the run belongs to this place and this transcript.
    ///
    /// # Errors
    /// The first difference.
    pub fn fits(&self, here: &Origin, log: &Transcript) -> Result<(), ResumeError> {
        let (run, own) = (self.run(), self.origin());
        let refused = |kind, text: String| Err(ResumeError::new(kind, format!("run `{run}` {text}")));
        let (session, thread) = (own.session.as_ref(), own.thread.as_ref());
        let descriptor = if self.any_descriptor { &here.descriptor_hash } else { &own.descriptor_hash };
        match misplaced(session, thread, descriptor.as_deref(), here) {
            Some(("descriptor", text)) => {
                let text = format!("{text}; accept the change with `under_any_descriptor`");
                return refused(ResumeErrorKind::RunOtherDescriptor, text);
            }
            Some((_, text)) => return refused(ResumeErrorKind::RunElsewhere, text),
            None => {}
        }
        let (expected, found) = (self.messages(), log.len());
        if found < expected {
            let text = format!(
                "cannot be resumed: its checkpoint has {expected} messages, the transcript only {found}"
            );
            return refused(ResumeErrorKind::RunStale, text);
        }
        let own = &self.snapshot.anchor;
        if own.is_some() && *own != anchor(log, expected) {
            let text = format!(
                "cannot be resumed: message {expected} of the transcript is not that of its checkpoint"
            );
            return refused(ResumeErrorKind::RunForeign, text);
        }
        Ok(())
    }

    /// The turn that was handed over, which continues over exactly its own transcript.
    fn turn_over(&self, log: &Transcript) -> Result<Option<TurnState>, ResumeError> {
        let Some(saved) = &self.snapshot.state.turn else { return Ok(None) };
        let (run, expected, found) = (self.run(), self.messages(), log.len());
        if found != expected {
            let text = format!(
                "run `{run}` cannot be taken over: it has {expected} messages, the transcript has {found}"
            );
            return Err(ResumeError::new(ResumeErrorKind::RunStale, text));
        }
        let unreadable = |error: serde_json::Error| {
            let text = format!("the turn of run `{run}` cannot be read: {:?}", error.classify());
            ResumeError::new(ResumeErrorKind::RunUnreadable, text)
        };
        TurnState::restored(saved, log).map(Some).map_err(unreadable)
    }

    fn run(&self) -> RunId {
        self.origin().run.clone().unwrap_or_else(|| RunId::from("run"))
    }
}

/// The digest of the last of the first `messages` messages.
fn anchor(log: &Transcript, messages: usize) -> Option<String> {
    let last = log.get(messages.checked_sub(1)?)?;
    serde_json::to_string(&**last).ok().map(|text| sha256_hex(&text))
}

/// The point at which the state of a resumed run was saved.
#[derive(Clone, Copy, Debug)]
pub(super) struct SavePoint {
    at: Time,
    /// Messages of the transcript.
    pub(super) messages: usize,
}

impl RunState {
    /// The state at rest, as JSON.
    pub(super) fn to_json(&self, shared: &Shared, log: &Transcript) -> Option<Json> {
        let waiting = if let RunStage::Between(waiting) = &self.stage { Some(&waiting.start) } else { None };
        let turn = if let RunStage::Turn = self.stage { Some(self.turn.save()?) } else { None };
        let state = SavedState {
            started_at: self.started_at,
            usage: self.usage.clone(),
            iterations: self.iterations,
            tool_calls: self.tool_calls.clone(),
            waiting: waiting.map(|start| SavedTurn { start: start.clone() }),
            turn,
            control: self.control.save(),
        };
        let (version, shared, anchor) = (SNAPSHOT_VERSION, shared.clone(), anchor(log, log.len()));
        Json::of(&Snapshot { version, shared, state, anchor }).ok()
    }

    /// Continues a turn that another process handed over.
    pub(super) fn take_up(&mut self, spec: &RunSpec, cx: &mut Cx<'_>) -> Option<End> {
        let end = self.turn.take_up(&spec.turn, cx);
        self.follow_turn(spec, cx, end)
    }

    /// Continues where the session ends.
    pub(super) fn resume(
        &mut self,
        spec: &RunSpec,
        cx: &mut Cx<'_>,
        saved: SavePoint,
        mut start: Start,
    ) -> Option<End> {
        self.reopen_budget(spec, cx, saved);
        let from = saved.messages.min(cx.log.len());
        let (turn, since) = (cx.sh.turn, cx.log.len() - from);
        cx.event(|| EventKind::RunTakenUp { turn, messages: since as u64 });
        cx.append_stored(from);
        let RunStage::Between(waiting) = &mut self.stage else { return None };
        if since == 0 && start.prompt.is_empty() {
            waiting.start.open_calls = start.open_calls;
            return self.compact_or_start(spec, cx);
        }
        let next = &waiting.start;
        // A turn first appends its prompt, unless it settles calls of an earlier turn.
        let has_prompt = cx.log.range(from..cx.log.len()).any(|message| message.as_tool_result().is_none());
        if !has_prompt {
            start.prompt.splice(0..0, next.prompt.iter().cloned());
        }
        start.agent = start.agent.or_else(|| next.agent.clone());
        let turn = TurnState::resumed(PriorUsage::new(from, cx.log));
        self.start_turn(spec, cx, turn, start)
    }

    /// Charges the current limits of the run with what it used.
    fn reopen_budget(&mut self, spec: &RunSpec, cx: &mut Cx<'_>, saved: SavePoint) {
        let elapsed = saved.at.since(self.started_at);
        self.started_at = Time(cx.now.0.saturating_sub_unsigned(elapsed.0));
        let deadline = spec.limits.elapsed.map(|span| self.started_at.after(span));
        let run = cx.sh.budgets.take_used();
        cx.sh.budgets.push(Budget::new(spec.limits.amount, deadline).having_used(run));
        cx.sh.held = HeldGrants::default();
    }
}
