//! Where a run stands, for its control and for checks of its end.

use std::sync::Arc;

use super::{RunSpec, RunState};
use crate::decide::Point;
use crate::machine::Cx;
use crate::message::AssistantMessage;
use crate::port::{PreparedAgent, RunProgress, Used};
use crate::time::Time;

impl RunState {
    /// Counts the calls of the turn that is over, when a check is told.
    pub(super) fn count_calls(&mut self, cx: &Cx<'_>) {
        if cx.ports.next_check(Point::End, 0).is_none() {
            return;
        }
        let turn = cx.log.range(self.turn.began()..cx.log.len());
        for call in turn.filter_map(|message| message.as_assistant()).flat_map(AssistantMessage::tool_calls) {
            let times = self.tool_calls.entry(call.name.clone()).or_default();
            *times = times.saturating_add(1);
        }
    }

    /// Where the run stands, with the agent at work.
    pub(super) fn progress(
        &self,
        spec: &RunSpec,
        cx: &Cx<'_>,
        prepared: Option<Arc<PreparedAgent>>,
    ) -> RunProgress {
        RunProgress {
            turn: cx.sh.turn,
            max_turns: spec.limits.turns,
            mode: spec.mode,
            compactions: cx.sh.compactions,
            prepared,
            used: used(spec, cx, self.started_at),
            tool_calls: self.tool_calls.clone(),
            signalled: self.judging.as_ref().is_some_and(|judging| judging.signalled),
        }
    }
}

/// What is used of the run's limits.
fn used(spec: &RunSpec, cx: &Cx<'_>, began: Time) -> [Used; 5] {
    let most = spec.limits.amount;
    let run = cx.sh.budgets.outermost().map(|level| level.used()).unwrap_or_default();
    let seconds = spec.limits.elapsed.map_or(0, |span| span.0 / 1_000);
    [
        ("turns", u64::from(cx.sh.turn), u64::from(spec.limits.turns)),
        ("model calls", u64::from(run.iterations), u64::from(most.iterations)),
        ("tool calls", u64::from(run.tool_calls), u64::from(most.tool_calls)),
        ("tokens", run.tokens, most.tokens),
        ("seconds", cx.now.since(began).0 / 1_000, seconds),
    ]
    .map(|(what, used, most)| Used { what: what.into(), used, most })
}
