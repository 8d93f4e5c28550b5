//! What may be called in a mode.

use harness_core::GateName;
use harness_core::port::{GateCx, ProposedCall, ToolGate, Verdict};

use super::{Modes, SET};

/// Denies calls that the mode does not allow; the model reads why, and the turn goes on. Made by
/// [`Modes::gate`].
#[derive(Clone, Debug)]
pub struct ModeGate {
    modes: Modes,
}

impl ModeGate {
    pub(super) fn new(modes: Modes) -> Self {
        Self { modes }
    }
}

impl ToolGate for ModeGate {
    fn name(&self) -> GateName {
        "mode".into()
    }

    async fn check(&self, ask: &ProposedCall, _: &GateCx) -> Verdict {
        let mode = self.modes.current();
        if mode.allows(&ask.def) {
            return Verdict::Allow;
        }
        let message = format!(
            "`{}` may change something, which the mode `{}` does not allow. {} Another mode is asked for with \
             `{SET}`.",
            ask.def.name, mode.name, mode.meaning
        );
        Verdict::Deny { message }
    }
}
