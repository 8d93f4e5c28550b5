//! Gate of the current mode.

use harness_core::decide::{DynGate, GateVerdict, Guarded, gate};

use super::{Modes, SET};

/// Denies calls that the mode does not allow; the model reads why, and the turn continues.
pub(super) fn of_modes(modes: Modes) -> Guarded<dyn DynGate> {
    gate::func("mode", move |ask, cx| {
        let mode = modes.of(cx.origin.thread.as_ref()).current();
        if mode.allows(&ask.def) {
            return GateVerdict::Allow;
        }
        let message = format!(
            "`{}` may change something, which the mode `{}` does not allow. {} Another mode is asked for with \
             `{SET}`.",
            ask.def.name, mode.name, mode.meaning
        );
        GateVerdict::Deny { message }
    })
}
