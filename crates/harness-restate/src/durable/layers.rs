//! States of memory layers, which travel with the journal of their run: any worker continues with them.

use harness::core::driver::Ports;
use harness::core::machine::Op;
use harness::core::{Json, Origin};

/// Bytes of the states of one run, at most: they are in journal entries. 512 KiB.
const LIMIT: usize = 512 << 10;

/// Whether the operation of a step asks layers.
pub(super) const fn asks(op: &Op) -> bool {
    matches!(op, Op::LayerStore { .. } | Op::Complete { .. })
}

/// Bytes of states in an entry of the journal.
pub(super) fn size_of(layers: Option<&Json>) -> u64 {
    layers.map_or(0, |layers| layers.text().len() as u64)
}

/// Puts the layers of this process where the run is.
pub(super) fn restore(ports: &Ports, origin: &Origin, saved: Option<&Json>) {
    if let Some(layers) = &ports.layers {
        layers.restore_run_dyn(origin, saved);
    }
}

/// The states after operations, if these changed them.
pub(super) fn changed(ports: &Ports, origin: &Origin, before: Option<&Json>) -> Option<Json> {
    let saved = ports.layers.as_ref()?.save_run_dyn(origin).filter(|saved| Some(saved) != before)?;
    let bytes = saved.text().len();
    if bytes > LIMIT {
        tracing::warn!(
            run = origin.run.as_ref().map(tracing::field::display),
            "the layers have {bytes} bytes of state, {LIMIT} are permitted; their last changes are lost"
        );
        return None;
    }
    Some(ports.redactor.as_ref().map_or_else(|| saved.clone(), |redactor| redactor.json(&saved)))
}
