//! The state of runs, kept at their boundaries.

use std::sync::Arc;

use harness_core::decide::{Check, CheckDecision, CheckVerdict, DecideCx, Points, Subject, check};
use harness_core::driver::{Ports, drive};
use harness_core::machine::Start;
use harness_core::message::{AssistantMessage, Message};
use harness_core::outcome::StopMode;
use harness_core::port::{Checkpoint, CheckpointStore, SessionError};
use harness_core::run::{Run, RunResume, RunSpec};
use harness_core::testing::{EventLog, ModelStep, ScriptedModel, VirtualClock};
use harness_core::transcript::Transcript;
use harness_core::{Cancel, End, Fault, Origin, RunId, Time};
use parking_lot::Mutex;

/// Keeps all checkpoints, or fails.
#[derive(Clone, Default)]
struct Shelf {
    kept: Arc<Mutex<Vec<Checkpoint>>>,
    saved: Arc<Mutex<Vec<Checkpoint>>>,
    fails: bool,
}

impl CheckpointStore for Shelf {
    async fn save(&self, checkpoint: Checkpoint) -> Result<u64, SessionError> {
        if self.fails {
            return Err(SessionError::new("checkpoint.full", "the shelf is full"));
        }
        self.saved.lock().push(checkpoint.clone());
        let mut kept = self.kept.lock();
        kept.push(checkpoint);
        Ok(kept.len() as u64)
    }

    async fn latest(&self, _: &RunId) -> Result<Option<Checkpoint>, SessionError> {
        Ok(self.kept.lock().last().cloned())
    }

    async fn runs(&self) -> Result<Vec<RunId>, SessionError> {
        Ok(self.kept.lock().iter().map(|kept| kept.run.clone()).collect())
    }

    async fn clear(&self, _: &RunId) -> Result<(), SessionError> {
        self.kept.lock().clear();
        Ok(())
    }
}

/// Never content.
struct Nagging;

impl Check for Nagging {
    async fn judge(&self, _: &Subject, _: &DecideCx) -> Result<CheckDecision, Fault> {
        Ok(CheckVerdict::Continue { guidance: "go on".into() }.into())
    }
}

fn ports(shelf: &Shelf, turns: usize) -> Ports {
    let answers = (0..turns).map(|_| ModelStep::answer(AssistantMessage::text("an answer")));
    let clock = Arc::new(VirtualClock::jumping(Time(0)));
    let mut ports = Ports::new(Arc::new(ScriptedModel::new(answers)), clock);
    ports.checkpoints = Some(Arc::new(shelf.clone()));
    ports
}

fn spec(turns: u32) -> Arc<RunSpec> {
    let mut spec = RunSpec { mode: StopMode::StrictAutomation, ..RunSpec::default() };
    spec.limits.turns = turns;
    Arc::new(spec)
}

async fn run(ports: &Ports, turns: u32) -> Arc<End> {
    let mut origin = Origin::default();
    origin.run = Some("r".into());
    let mut run = Run::new(spec(turns), origin, Transcript::default());
    drive(&mut run, ports, &Cancel::never(), Start::prompt(Message::user("go"))).await
}

#[tokio::test]
async fn a_run_has_a_checkpoint_from_its_first_moment_until_it_is_completed() {
    let shelf = Shelf::default();
    let end = run(&ports(&shelf, 1), 1).await;
    assert_eq!(end.reason().as_str(), "answer_finalized");
    let saved: Vec<_> = shelf.saved.lock().iter().map(|saved| saved.messages).collect();
    assert_eq!(saved, [0], "before its turn, with the prompt; the last turn ends with the run");
    assert!(shelf.kept.lock().is_empty(), "there is nothing to take up");
}

#[tokio::test]
async fn a_run_that_is_not_completed_keeps_its_checkpoints_and_they_do_not_grow() {
    let shelf = Shelf::default();
    let mut ports = ports(&shelf, 40);
    ports.checks = vec![check::new("nagging", Points::END, Nagging)];
    let end = run(&ports, 40).await;
    assert_eq!(end.reason().as_str(), "max_turns_reached");
    let kept = shelf.kept.lock().clone();
    let sizes: Vec<_> = kept.iter().map(|kept| kept.state.text().len()).collect();
    assert!(kept.len() >= 40, "{} checkpoints", kept.len());
    assert!(sizes[sizes.len() - 1] < sizes[10] + 100, "they grow: {sizes:?}");

    let first = kept.first().expect("a checkpoint");
    let log = [Arc::new(Message::user("go"))].into_iter().collect();
    let fresh = Run::new(spec(40), Origin::default(), log).with_ports(ports.set());
    let resumed = RunResume::read(first).expect("its own form").onto(fresh).expect("it fits");
    assert_eq!((resumed.turn(), first.messages), (1, 0));
}

#[tokio::test]
async fn a_store_that_fails_is_told_and_stops_nothing() {
    let shelf = Shelf { fails: true, ..Shelf::default() };
    let mut ports = ports(&shelf, 1);
    let events = EventLog::default();
    ports.hub.fold(events.clone());
    let end = run(&ports, 1).await;
    assert_eq!(end.reason().as_str(), "answer_finalized");
    let lines = events.lines();
    let told = lines.iter().find(|line| line.starts_with("part_failed")).map(String::as_str);
    assert_eq!(told, Some("part_failed checkpoint store checkpoint.full \"the shelf is full\""));
    assert_eq!(lines.last().map(String::as_str), Some("run_finished answer_finalized"));
}
