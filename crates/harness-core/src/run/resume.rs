//! The saved state of a run, and the run that resumes it where its session ends.
//!
//! A checkpoint holds the state of a run before one of its turns; the session holds every message, those after the
//! checkpoint too. A resumed run keeps its turns, budgets and control. The messages since the checkpoint are folded
//! into its state as if they were appended now, and the run continues behind the last of them. Time in which no process
//! had the run does not count.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::compaction::Waiting;
use super::{Run, RunSpec, RunStage, RunState};
use crate::canonical::sha256_hex;
use crate::event::EventKind;
use crate::ids::{RunId, ToolName};
use crate::json::Json;
use crate::limits::{Budget, HeldGrants};
use crate::machine::{Cx, Misplaced, Place, Shared, Start};
use crate::origin::Origin;
use crate::outcome::{End, TotalUsage};
use crate::port::Checkpoint;
use crate::time::Time;
use crate::transcript::Transcript;
use crate::turn::{PriorUsage, TurnState};

/// The version of the saved state of a run.
pub const SNAPSHOT_VERSION: u32 = 3;

/// The saved state. Its size does not grow with the transcript.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Snapshot {
    version: u32,
    shared: Shared,
    state: SavedState,
    /// The digest of the last message of its transcript; absent when there is none.
    #[serde(default)]
    anchor: Option<String>,
}

#[derive(Serialize, Deserialize)]
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
    control: Json,
}

/// The turn that starts next.
#[derive(Serialize, Deserialize)]
struct SavedTurn {
    start: Box<Start>,
}

/// A run that can be resumed, read from its last checkpoint.
///
/// ```
/// use std::sync::Arc;
///
/// use harness_core::Origin;
/// use harness_core::port::{Checkpoint, Loaded};
/// use harness_core::run::{Run, RunResume, RunResumeError, RunSpec};
///
/// fn resume(saved: &Checkpoint, session: Loaded, here: &Origin, spec: RunSpec) -> Result<Run, RunResumeError> {
///     // `spec` may permit more turns than before. Drive the run with `Start::resume()` and the open calls of the
///     // session.
///     let log = session.messages.into_iter().collect();
///     RunResume::read(saved)?.onto(Run::new(Arc::new(spec), here.clone(), log))
/// }
/// ```
pub struct RunResume {
    snapshot: Snapshot,
    any_descriptor: bool,
}

impl fmt::Debug for RunResume {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunResume")
            .field("origin", self.origin())
            .field("turn", &self.turn())
            .finish_non_exhaustive()
    }
}

/// An error of resuming a run from a checkpoint. Nothing has started, and the session is unchanged: the conversation
/// can continue from its transcript.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RunResumeError {
    /// The checkpoint has another version.
    #[error(
        "run `{run}` cannot be resumed: its checkpoint has version {version}, this program reads version \
         {SNAPSHOT_VERSION}; continue from the transcript instead"
    )]
    Version {
        /// The id of the run.
        run: RunId,
        /// The version of the checkpoint.
        version: u32,
    },
    /// The checkpoint cannot be read.
    #[error("checkpoint {number} of run `{run}` cannot be read: {reason}")]
    Unreadable {
        /// The id of the run.
        run: RunId,
        /// The number of the checkpoint.
        number: u64,
        /// The reason; quotes nothing of the state.
        reason: String,
    },
    /// The run belongs to another session, thread or descriptor. A change of the descriptor can be accepted with
    /// [`RunResume::under_any_descriptor`].
    #[error("run `{run}` {misplaced}{}", misplaced.hint("under_any_descriptor"))]
    Elsewhere {
        /// The id of the run.
        run: RunId,
        /// The place that differs.
        misplaced: Misplaced,
    },
    /// The transcript has fewer messages than at the checkpoint.
    #[error(
        "run `{run}` cannot be resumed: its checkpoint has {expected} messages, the transcript only {found}"
    )]
    Stale {
        /// The id of the run.
        run: RunId,
        /// Messages at the checkpoint.
        expected: usize,
        /// Messages now.
        found: usize,
    },
    /// The transcript has another message where the checkpoint was made: it is another conversation.
    #[error(
        "run `{run}` cannot be resumed: message {message} of the transcript is not that of its checkpoint"
    )]
    Foreign {
        /// The id of the run.
        run: RunId,
        /// The message, from 1.
        message: usize,
    },
    /// The control of the run cannot read its saved state.
    #[error("run `{run}` cannot be resumed: its control cannot read the saved state: {reason}")]
    Control {
        /// The id of the run.
        run: RunId,
        /// The reason of the control.
        reason: String,
    },
}

impl RunResumeError {
    /// A stable code.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Version { .. } => "run_resume.version",
            Self::Unreadable { .. } => "run_resume.unreadable",
            Self::Elsewhere { misplaced: Misplaced { place: Place::Descriptor, .. }, .. } => {
                "run_resume.other_descriptor"
            }
            Self::Elsewhere { .. } => "run_resume.elsewhere",
            Self::Stale { .. } => "run_resume.stale",
            Self::Foreign { .. } => "run_resume.foreign",
            Self::Control { .. } => "run_resume.control",
        }
    }
}

impl RunResume {
    /// Reads a checkpoint.
    ///
    /// # Errors
    /// [`RunResumeError::Version`] and [`RunResumeError::Unreadable`].
    pub fn read(checkpoint: &Checkpoint) -> Result<Self, RunResumeError> {
        let run = checkpoint.run.clone();
        let version = checkpoint.schema_version;
        if version != SNAPSHOT_VERSION {
            return Err(RunResumeError::Version { run, version });
        }
        let snapshot: Snapshot = checkpoint.state.to().map_err(|error| {
            let reason = format!("{:?} at column {}", error.classify(), error.column());
            RunResumeError::Unreadable { run: run.clone(), number: checkpoint.number, reason }
        })?;
        let version = snapshot.version;
        if version != SNAPSHOT_VERSION {
            return Err(RunResumeError::Version { run, version });
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
    /// session; a prompt is guidance for the turn.
    ///
    /// # Errors
    /// When it does not fit ([`RunResume::fits`]), or its control cannot read the saved state.
    pub fn onto(self, fresh: Run) -> Result<Run, RunResumeError> {
        self.fits(fresh.origin(), fresh.log())?;
        let run = self.run();
        let (here, stored) = (Arc::clone(fresh.origin()), fresh.log().len());
        // The transcript is that of the session: messages after the checkpoint are not stored again.
        let mut machine = fresh.with_stored(stored);
        let (state, shared) = machine.state_mut();
        let Snapshot { state: saved, shared: saved_shared, .. } = self.snapshot;
        let restored = state.control.restore(&saved.control);
        restored.map_err(|error| RunResumeError::Control { run, reason: error.to_string() })?;
        *shared = saved_shared;
        (state.started_at, state.usage, state.iterations) = (saved.started_at, saved.usage, saved.iterations);
        state.tool_calls = saved.tool_calls;
        if let Some(SavedTurn { start }) = saved.waiting {
            state.stage = RunStage::Between(Box::new(Waiting::new(*start)));
        }
        state.resumed_from = Some(SavePoint { at: shared.at, messages: shared.len });
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
    pub fn fits(&self, here: &Origin, log: &Transcript) -> Result<(), RunResumeError> {
        let (run, own) = (self.run(), self.origin());
        let (session, thread) = (own.session.as_ref(), own.thread.as_ref());
        let descriptor = if self.any_descriptor { &here.descriptor_hash } else { &own.descriptor_hash };
        if let Some(misplaced) = Misplaced::find(session, thread, descriptor.as_deref(), here) {
            return Err(RunResumeError::Elsewhere { run, misplaced });
        }
        let (expected, found) = (self.messages(), log.len());
        if found < expected {
            return Err(RunResumeError::Stale { run, expected, found });
        }
        let own = &self.snapshot.anchor;
        if own.is_some() && *own != anchor(log, expected) {
            return Err(RunResumeError::Foreign { run, message: expected });
        }
        Ok(())
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
        let state = SavedState {
            started_at: self.started_at,
            usage: self.usage.clone(),
            iterations: self.iterations,
            tool_calls: self.tool_calls.clone(),
            waiting: waiting.map(|start| SavedTurn { start: start.clone() }),
            control: self.control.save(),
        };
        let (version, shared, anchor) = (SNAPSHOT_VERSION, shared.clone(), anchor(log, log.len()));
        Json::of(&Snapshot { version, shared, state, anchor }).ok()
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
        cx.event(EventKind::RunTakenUp { turn, messages: since as u64 });
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
