//! Drivers of machines: a vector that runs turns must have the same result under each of them.

use std::sync::Arc;

use harness_core::driver::{Ports, drive};
use harness_core::machine::Start;
use harness_core::port::BoxFuture;
use harness_core::testing::drive_stepwise;
use harness_core::turn::Turn;
use harness_core::{Cancel, End};

/// Drives machines over ports.
///
/// To add a driver, implement this and list it in `DRIVERS`: every vector of the kinds that are driven becomes one
/// more test.
pub trait Driver: Sync {
    /// The name of its tests' group; empty for the driver that programs use.
    fn name(&self) -> &'static str;

    /// Runs a turn to its end, and gives it back with its transcript.
    fn turn<'a>(
        &self,
        turn: Turn,
        ports: &'a Ports,
        cancel: &'a Cancel,
        start: Start,
    ) -> BoxFuture<'a, (Arc<End>, Turn)>;
}

/// All drivers; the one that programs use is the first.
pub(crate) static DRIVERS: [&dyn Driver; 2] = [&Tokio, &Stepwise];

/// The driver of programs.
struct Tokio;

impl Driver for Tokio {
    fn name(&self) -> &'static str {
        ""
    }

    fn turn<'a>(
        &self,
        mut turn: Turn,
        ports: &'a Ports,
        cancel: &'a Cancel,
        start: Start,
    ) -> BoxFuture<'a, (Arc<End>, Turn)> {
        Box::pin(async move { (drive(&mut turn, ports, cancel, start).await, turn) })
    }
}

/// The scripted driver of tests, one input at a time.
struct Stepwise;

impl Driver for Stepwise {
    fn name(&self) -> &'static str {
        "stepwise"
    }

    fn turn<'a>(
        &self,
        turn: Turn,
        ports: &'a Ports,
        cancel: &'a Cancel,
        start: Start,
    ) -> BoxFuture<'a, (Arc<End>, Turn)> {
        Box::pin(drive_stepwise(turn, ports, cancel, start))
    }
}
