//! What stop gates are told of the run.

use super::{RunSpec, RunState};
use crate::machine::Cx;
use crate::message::AssistantMessage;
use crate::port::StopStanding;

impl RunState {
    /// Counts the calls of the turn that is over, when anybody is told.
    pub(super) fn count_calls(&mut self, cx: &Cx<'_>) {
        if cx.ports.stop_gates.is_empty() {
            return;
        }
        let turn = cx.log.range(self.turn.began()..cx.log.len());
        for call in turn.filter_map(|message| message.as_assistant()).flat_map(AssistantMessage::tool_calls) {
            let times = self.tool_usage.entry(call.name.clone()).or_default();
            *times = times.saturating_add(1);
        }
    }

    /// Where the run stands.
    pub(super) fn standing(&self, spec: &RunSpec, cx: &Cx<'_>) -> StopStanding {
        StopStanding {
            turn_count: cx.sh.turn,
            tool_usage: self.tool_usage.clone(),
            called_work_complete: self.judging.as_ref().is_some_and(|judging| judging.signalled),
            mode: spec.mode,
        }
    }
}
