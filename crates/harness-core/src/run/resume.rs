//! A run that an earlier process had begun, taken up where its session ends.
//!
//! A checkpoint holds the state of a run at a boundary between its phases; the session holds every message,
//! also those of after the boundary. Taken up, the run counts on: turns, budgets, control. The messages since
//! the checkpoint are folded into its state as if they were appended now, and what would have followed the
//! last of them follows. Time that passed while no process had the run does not count.

use std::fmt;
use std::sync::Arc;

use super::{Run, RunPhase, RunSpec, RunState, name_turn};
use crate::event::EventKind;
use crate::ids::{OpId, RunId};
use crate::limits::{Amount, Budget, HeldGrants};
use crate::machine::{
    Cx, Input, Origin, Pending, Phase as _, RestoreError, SNAPSHOT_VERSION, Snapshot, Start,
};
use crate::outcome::{End, TotalUsage};
use crate::port::Checkpoint;
use crate::time::Time;
use crate::transcript::Transcript;
use crate::turn::{PriorUsage, TurnState};

/// A run that can be taken up, read from its last checkpoint.
///
/// ```
/// use std::sync::Arc;
///
/// use harness_core::machine::Origin;
/// use harness_core::port::{Checkpoint, Loaded};
/// use harness_core::run::{Run, RunSpec, RunResume, RunResumeError};
///
/// fn take_up(saved: &Checkpoint, session: Loaded, here: &Origin, spec: RunSpec) -> Result<Run, RunResumeError> {
///     // More turns than before, if it had run out of them. Drive it with `Start::resume()` and the
///     // session's open calls.
///     let log = session.messages.into_iter().collect();
///     RunResume::read(saved)?.onto(Run::new(Arc::new(spec), here.clone(), log))
/// }
/// ```
pub struct RunResume {
    snapshot: Snapshot<RunState>,
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
        // The log is what the session holds: a driver must not store again what came after the checkpoint.
        machine.set_stored(machine.log().len());
        let (state, shared) = machine.parts_mut();
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "camelCase")]
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
        let charged = self.reopen_budget(spec, cx, saved);
        let from = saved.messages.min(cx.log.len());
        let (turn, since) = (cx.sh.turn, cx.log.len() - from);
        cx.event(|| EventKind::RunTakenUp { turn, messages: since as u64 });
        cx.append_stored(from);
        let outstanding = std::mem::take(&mut cx.sh.pending);
        let told = since > 0 || !start.prompt.is_empty();
        if self.leaving.is_some() || (self.is_between_turns() && !told) {
            return self.ask_again(spec, cx, outstanding, start);
        }
        let (began, used) = self.turn_at(cx, from, charged);
        // Whatever a turn appends is preceded by its prompt, but for the results of calls that were left open.
        let said = cx.log.range(from..cx.log.len()).any(|message| message.as_tool_result().is_none());
        let owed = self.turn.take_prompt();
        if !said {
            start.prompt.splice(0..0, owed);
        }
        if start.agent.is_none() {
            start.agent = self.turn.agent();
        }
        self.phase = RunPhase::Turn;
        self.turn = TurnState::resumed(PriorUsage::new((began, from), used, cx.log));
        name_turn(cx);
        let start = Input::Start(Box::new(start));
        let end = self.in_turn(spec, cx, |turn, cx| turn.step(&spec.turn, cx, None, start))?;
        self.decide(spec, cx, end)
    }

    /// Whether something other than a turn was going on.
    fn is_between_turns(&self) -> bool {
        self.waiting.is_some() || self.phase == RunPhase::Decide
    }

    /// The turn that goes on: where it began, and what it had used and was charged with. One that had not begun
    /// when the state was saved is prepared.
    fn turn_at(&mut self, cx: &mut Cx<'_>, saved: usize, charged: Amount) -> (usize, (TotalUsage, Amount)) {
        if let Some(waiting) = self.waiting.take() {
            self.turn = TurnState::of_start(waiting.into_start());
            return (saved, (TotalUsage::default(), Amount::NONE));
        }
        if let Some(judging) = self.judging.take() {
            let judged = judging.end;
            self.usage.merge(&judged.usage);
            self.iterations = self.iterations.saturating_add(judged.iterations);
            cx.sh.turn += 1;
            self.turn = TurnState::of_start(Start::default().with_agent(judged.agent.clone()));
            return (saved, (TotalUsage::default(), Amount::NONE));
        }
        (self.turn.began(), (self.turn.take_usage(), charged))
    }

    /// Asks for everything again that was outstanding.
    fn ask_again(
        &mut self,
        spec: &RunSpec,
        cx: &mut Cx<'_>,
        outstanding: Vec<(OpId, Pending)>,
        start: Start,
    ) -> Option<End> {
        if let Some(waiting) = &mut self.waiting {
            waiting.resume(cx.now, start);
        }
        for (_, pending) in outstanding {
            if let Some(op) = self.reissue(spec, cx, pending) {
                cx.perform(pending, op);
            }
        }
        if self.phase == RunPhase::Decide {
            self.judge_within(cx);
        }
        None
    }

    /// The limits of the run as they are now, charged with what was used; time in which no process had the run
    /// does not count. Gives what the turn's own level was charged with.
    fn reopen_budget(&mut self, spec: &RunSpec, cx: &mut Cx<'_>, saved: SavePoint) -> Amount {
        let elapsed = saved.at.since(self.started_at);
        self.started_at = Time(cx.now.0.saturating_sub_unsigned(elapsed.0));
        let deadline = spec.limits.elapsed.map(|span| self.started_at.after(span));
        let (run, turn) = cx.sh.budgets.take_used();
        cx.sh.budgets.push(Budget::new(spec.limits.amount, deadline).having_used(run));
        cx.sh.held = HeldGrants::default();
        turn
    }
}
