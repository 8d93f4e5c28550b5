//! What stop gates are told of the run.

use super::{RunSpec, RunState};
use crate::control::SignalSpec;
use crate::machine::Cx;
use crate::message::AssistantMessage;
use crate::port::StopStanding;

impl RunState {
    /// Counts the calls of the turn that is over, when anybody is told.
    pub(super) fn count_calls(&mut self, spec: &RunSpec, cx: &Cx<'_>) {
        if cx.ports.stop_gates.is_empty() {
            return;
        }
        let control = spec.control.as_ref().and_then(|control| control.signal.as_ref());
        let signal = control.map_or_else(|| SignalSpec::default().tool, |signal| signal.tool.clone());
        let turn = cx.log.range(self.turn.began()..cx.log.len());
        self.signalled = false;
        for call in turn.filter_map(|message| message.as_assistant()).flat_map(AssistantMessage::tool_calls) {
            let times = self.tool_usage.entry(call.name.clone()).or_default();
            *times = times.saturating_add(1);
            self.signalled |= call.name == signal;
        }
    }

    /// Where the run stands.
    pub(super) fn standing(&self, spec: &RunSpec, cx: &Cx<'_>) -> StopStanding {
        StopStanding {
            turn_count: cx.sh.turn,
            tool_usage: self.tool_usage.clone(),
            called_work_complete: self.signalled,
            mode: spec.mode,
        }
    }
}
