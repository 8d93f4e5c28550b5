//! A run that an earlier process had begun, taken up where its session ends.
//!
//! A checkpoint holds the state of a run before one of its turns; the session holds every message, those of after the
//! checkpoint, too. Taken up, the run counts on: turns, budgets, control. The messages since
//! the checkpoint are folded into its state as if they were appended now, and what would have followed the
//! last of them follows. Time that passed while no process had the run does not count.

use std::fmt;
use std::sync::Arc;

use super::snapshot::{RestoreError, SNAPSHOT_VERSION, Snapshot};
use super::{Run, RunPhase, RunSpec, RunState, name_turn};
use crate::event::EventKind;
use crate::ids::RunId;
use crate::limits::{Budget, HeldGrants};
use crate::machine::{Cx, Input, Phase as _, Start};
use crate::origin::Origin;
use crate::outcome::End;
use crate::port::Checkpoint;
use crate::time::Time;
use crate::transcript::Transcript;
use crate::turn::{PriorUsage, TurnState};

/// A run that can be taken up, read from its last checkpoint.
///
/// ```
/// use std::sync::Arc;
///
/// use harness_core::Origin;
/// use harness_core::port::{Checkpoint, Loaded};
/// use harness_core::run::{Run, RunResume, RunResumeError, RunSpec};
///
/// fn take_up(saved: &Checkpoint, session: Loaded, here: &Origin, spec: RunSpec) -> Result<Run, RunResumeError> {
///     // More turns than before, if it had run out of them. Drive it with `Start::resume()` and the
///     // session's open calls.
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

/// Why a run cannot be taken up from a checkpoint. Nothing has begun, and the session is as it was: the
/// conversation can always go on from its transcript alone.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RunResumeError {
    /// The checkpoint is of another version, or the transcript is not the one that it belongs to.
    #[error("the run `{run}` cannot be taken up: {source}")]
    Restore {
        /// The run.
        run: RunId,
        /// What does not fit.
        source: RestoreError,
    },
    /// The checkpoint cannot be read.
    #[error("the checkpoint {number} of the run `{run}` cannot be read: {reason}")]
    Unreadable {
        /// The run.
        run: RunId,
        /// The number of the checkpoint.
        number: u64,
        /// What is wrong with it; quotes nothing of the state.
        reason: String,
    },
    /// The run belongs to another session or thread.
    #[error("the run `{run}` belongs to {expected}, and this is {found}")]
    Elsewhere {
        /// The run.
        run: RunId,
        /// Where it belongs.
        expected: String,
        /// Where it was to be taken up.
        found: String,
    },
    /// The run was begun under another descriptor.
    #[error(
        "the run `{run}` was begun under {expected}, and this is {found}; to take it up all the same, say so with `under_any_descriptor`"
    )]
    OtherDescriptor {
        /// The run.
        run: RunId,
        /// Its descriptor.
        expected: String,
        /// The descriptor here.
        found: String,
    },
}

impl RunResumeError {
    /// A stable code.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Restore { source: RestoreError::Version(_), .. } => "run_resume.version",
            Self::Restore { source: RestoreError::Stale { .. }, .. } => "run_resume.stale",
            Self::Restore { source: RestoreError::Foreign { .. }, .. } => "run_resume.foreign",
            Self::Restore { source: RestoreError::Control(_), .. } => "run_resume.control",
            Self::Unreadable { .. } => "run_resume.unreadable",
            Self::Elsewhere { .. } => "run_resume.elsewhere",
            Self::OtherDescriptor { .. } => "run_resume.other_descriptor",
        }
    }
}

impl RunResume {
    /// Reads a checkpoint.
    ///
    /// # Errors
    /// When it is of another version or cannot be read.
    pub fn read(checkpoint: &Checkpoint) -> Result<Self, RunResumeError> {
        let run = checkpoint.run.clone();
        if checkpoint.schema_version != SNAPSHOT_VERSION {
            let source = RestoreError::Version(checkpoint.schema_version);
            return Err(RunResumeError::Restore { run, source });
        }
        let snapshot = checkpoint.state.to().map_err(|error| {
            let reason = format!("{:?} at column {}", error.classify(), error.column());
            RunResumeError::Unreadable { run, number: checkpoint.number, reason }
        })?;
        Ok(Self { snapshot, any_descriptor: false })
    }

    /// The same under whatever descriptor there is now: an explicit choice, because agents and tools may not be
    /// what they were.
    #[must_use]
    pub fn under_any_descriptor(self) -> Self {
        Self { any_descriptor: true, ..self }
    }

    /// Whose run it is.
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

    /// The run as it was, over the transcript that its session holds now. `fresh` was made anew over that transcript,
    /// here, with the limits and the control that it goes on with. It goes on with [`Start::resume`] and the calls that
    /// the session shows as open; a prompt is guidance for the turn that goes on.
    ///
    /// # Errors
    /// When it belongs elsewhere: see [`RunResumeError`].
    pub fn onto(self, fresh: Run) -> Result<Run, RunResumeError> {
        let (run, here) = (self.run(), Arc::clone(fresh.origin()));
        self.check(&here)?;
        let mut machine =
            fresh.with_state(self.snapshot).map_err(|source| RunResumeError::Restore { run, source })?;
        // The log is what the session holds: what came after the checkpoint is not stored again.
        let stored = machine.log().len();
        machine = machine.with_stored(stored);
        let (state, shared) = machine.state_mut();
        state.resumed_from = Some(Box::new(SavePoint { at: shared.at, messages: shared.len }));
        shared.started = false;
        if self.any_descriptor {
            let origin = Origin::clone(&shared.origin);
            let descriptor_hash = here.descriptor_hash.clone();
            shared.origin = Arc::new(Origin { descriptor_hash, ..origin });
        }
        Ok(machine)
    }

    /// Whether the run belongs to this place and this transcript.
    ///
    /// # Errors
    /// What does not fit.
    pub fn fits(&self, here: &Origin, log: &Transcript) -> Result<(), RunResumeError> {
        self.check(here)?;
        self.snapshot.fits(log).map_err(|source| RunResumeError::Restore { run: self.run(), source })
    }

    fn run(&self) -> RunId {
        self.origin().run.clone().unwrap_or_else(|| RunId::from("run"))
    }

    fn check(&self, here: &Origin) -> Result<(), RunResumeError> {
        let own = self.origin();
        let session = |origin: &Origin| origin.session.as_ref().map(|id| id.as_str().to_owned());
        let thread = |origin: &Origin| origin.thread.as_ref().map(|id| id.as_str().to_owned());
        let places = [("session", session(own), session(here)), ("thread", thread(own), thread(here))];
        for (what, expected, found) in places {
            if expected != found {
                let (expected, found) = (named(what, expected.as_deref()), named(what, found.as_deref()));
                return Err(RunResumeError::Elsewhere { run: self.run(), expected, found });
            }
        }
        let (expected, found) = (own.descriptor_hash.as_deref(), here.descriptor_hash.as_deref());
        if expected != found && !self.any_descriptor {
            let (expected, found) = (named("descriptor", expected), named("descriptor", found));
            return Err(RunResumeError::OtherDescriptor { run: self.run(), expected, found });
        }
        Ok(())
    }
}

fn named(what: &str, name: Option<&str>) -> String {
    name.map_or_else(|| format!("no {what}"), |name| format!("{what} `{name}`"))
}

/// Where the state of a run that is taken up was saved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SavePoint {
    at: Time,
    /// Messages of the transcript then.
    pub(super) messages: usize,
}

impl RunState {
    /// Goes on where the session ends.
    pub(super) fn continue_resumed(
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
        let waiting = self.waiting.as_mut()?;
        if since == 0 && start.prompt.is_empty() {
            waiting.resume(start);
            return self.shorten_or_go_on(spec, cx);
        }
        let begun = self.waiting.take()?.into_start();
        // Whatever a turn appends is preceded by its prompt, but for the results of calls that were left open.
        let said = cx.log.range(from..cx.log.len()).any(|message| message.as_tool_result().is_none());
        if !said {
            start.prompt.splice(0..0, begun.prompt);
        }
        start.agent = start.agent.or(begun.agent);
        self.phase = RunPhase::Turn;
        self.turn = TurnState::resumed(PriorUsage::new(from, cx.log));
        name_turn(cx);
        let start = Input::Start(Box::new(start));
        let end = self.in_turn(spec, cx, |turn, cx| turn.step(&spec.turn, cx, None, start))?;
        self.decide(spec, cx, end)
    }

    /// The limits of the run as they are now, charged with what was used; time in which no process had the run
    /// does not count.
    fn reopen_budget(&mut self, spec: &RunSpec, cx: &mut Cx<'_>, saved: SavePoint) {
        let elapsed = saved.at.since(self.started_at);
        self.started_at = Time(cx.now.0.saturating_sub_unsigned(elapsed.0));
        let deadline = spec.limits.elapsed.map(|span| self.started_at.after(span));
        let run = cx.sh.budgets.take_used();
        cx.sh.budgets.push(Budget::new(spec.limits.amount, deadline).having_used(run));
        cx.sh.held = HeldGrants::default();
    }
}
