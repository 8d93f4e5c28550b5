//! Saves the state of a run at its boundaries.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures_util::FutureExt as _;

use super::ports::Ports;
use crate::ids::RunId;
use crate::machine::{Machine, Phase, SNAPSHOT_VERSION};
use crate::outcome::{Fault, FaultSource, Outcome};
use crate::panics::panic_text;
use crate::port::{Checkpoint, DynCheckpointStore};
use crate::time::Time;

/// Saves a checkpoint, when there is a store and the run has a name. What went wrong, if anything did.
pub(super) async fn save<P: Phase>(ports: &Ports, machine: &Machine<P>, now: Time) -> Option<Fault> {
    let (store, run) = place(ports, machine)?;
    let fault = |code: &str, text: String| Fault::new(FaultSource::Checkpoints, code, text);
    let state = match machine.snapshot() {
        Ok(state) => Arc::new(state),
        Err(error) => return Some(fault("no_snapshot", error.to_string())),
    };
    let messages = machine.log().len() as u64;
    let checkpoint = Checkpoint::new(run, now, SNAPSHOT_VERSION, messages, state);
    match AssertUnwindSafe(async { store.save_boxed(checkpoint).await }).catch_unwind().await {
        Ok(saved) => saved.err().map(|error| fault(&error.kind, error.message)),
        Err(panic) => {
            Some(fault("panicked", format!("the checkpoint store panicked: {}", panic_text(&*panic))))
        }
    }
}

/// Lets go of the checkpoints of a run that ended as completed: there is nothing to take up.
pub(super) async fn clear<P: Phase>(ports: &Ports, machine: &Machine<P>) {
    let completed = machine.end().is_some_and(|end| end.outcome() == Outcome::Completed);
    let Some((store, run)) = place(ports, machine).filter(|_| completed) else { return };
    let cleared = AssertUnwindSafe(async { store.clear_boxed(&run).await }).catch_unwind().await;
    if !matches!(cleared, Ok(Ok(()))) {
        tracing::warn!(run = run.as_str(), "the checkpoints of a run that is over could not be removed");
    }
}

fn place<'p, P: Phase>(
    ports: &'p Ports,
    machine: &Machine<P>,
) -> Option<(&'p dyn DynCheckpointStore, RunId)> {
    Some((ports.checkpoints.as_deref()?, machine.origin().run.clone()?))
}
