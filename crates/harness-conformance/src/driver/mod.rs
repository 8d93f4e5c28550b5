//! Drivers of machines: a vector that runs turns must have the same result under each of them.

pub(crate) mod durable;

use std::sync::Arc;

use durable::Durable;
use harness_core::driver::{Ports, drive};
use harness_core::machine::Start;
use harness_core::port::BoxFuture;
use harness_core::testing::drive_stepwise;
use harness_core::transcript::Transcript;
use harness_core::turn::{Turn, TurnSpec};
use harness_core::{Cancel, End, Origin};

use crate::Done;
use crate::vector::Vector;

/// A turn to run, as a vector describes it.
#[derive(Debug)]
#[non_exhaustive]
pub struct TurnCase<'a> {
    /// Settings of the turn.
    pub spec: TurnSpec,
    /// The ids of the work.
    pub origin: Origin,
    /// Messages of earlier turns.
    pub log: Transcript,
    /// The ports; their listeners receive all events.
    pub ports: &'a Ports,
    /// Fires when the vector cancels the turn.
    pub cancel: &'a Cancel,
    /// Input that starts the turn.
    pub start: Start,
}

impl TurnCase<'_> {
    fn machine(&mut self) -> Turn {
        let log = std::mem::take(&mut self.log);
        Turn::new(Arc::new(self.spec.clone()), self.origin.clone(), log)
    }
}

/// Where the threads of a driver live.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Threads {
    /// In a runtime of this process.
    InProcess,
    /// On an engine.
    OnEngine,
}

/// Drives machines over ports.
///
/// To add a driver, implement this and list it in `DRIVERS`: every vector of the kinds that are driven becomes one
/// more test.
pub trait Driver: Sync {
    /// The name of its tests' group; empty for the driver that programs use.
    fn name(&self) -> &'static str;

    /// Reason to skip a vector: its test is skipped with this reason. `None` when it runs the vector.
    fn skips(&self, vector: &Vector) -> Option<&'static str> {
        let _ = vector;
        None
    }

    /// Where threads live under it; `None` when it drives turns alone.
    fn threads(&self) -> Option<Threads> {
        None
    }

    /// Runs a turn to its end, and gives its transcript.
    fn turn<'a>(&self, case: TurnCase<'a>) -> BoxFuture<'a, Done<(Arc<End>, Transcript)>>;
}

/// All drivers; the one that programs use is the first.
pub(crate) static DRIVERS: [&dyn Driver; 3] = [&Tokio, &Stepwise, &Durable];

/// The driver of programs.
struct Tokio;

impl Driver for Tokio {
    fn name(&self) -> &'static str {
        ""
    }

    fn threads(&self) -> Option<Threads> {
        Some(Threads::InProcess)
    }

    fn turn<'a>(&self, mut case: TurnCase<'a>) -> BoxFuture<'a, Done<(Arc<End>, Transcript)>> {
        Box::pin(async move {
            let mut turn = case.machine();
            let end = drive(&mut turn, case.ports, case.cancel, case.start).await;
            Ok((end, turn.into_log()))
        })
    }
}

/// The scripted driver of tests, one input at a time.
struct Stepwise;

impl Driver for Stepwise {
    fn name(&self) -> &'static str {
        "stepwise"
    }

    fn turn<'a>(&self, mut case: TurnCase<'a>) -> BoxFuture<'a, Done<(Arc<End>, Transcript)>> {
        Box::pin(async move {
            let (end, turn) = drive_stepwise(case.machine(), case.ports, case.cancel, case.start).await;
            Ok((end, turn.into_log()))
        })
    }
}
