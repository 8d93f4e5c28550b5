//! The view of a run's control, and its guidance behind a request.

use std::sync::Arc;

use super::{RunSpec, RunStage, RunState};
use crate::decide::Point;
use crate::event::EventKind;
use crate::machine::{Cx, Op};
use crate::message::{AssistantMessage, Message};
use crate::port::{PreparedAgent, RunProgress, Used};
use crate::transcript::Plan;

/// The guidance of the latest request, and the turn and the iteration of that request.
#[derive(Debug)]
pub(super) struct Guidance {
    of: (u32, u32),
    message: Option<Arc<Message>>,
}

impl RunState {
    /// Puts guidance behind the request that the turn makes, if it makes one. Attempts of one iteration have the same.
    pub(super) fn guide(&mut self, spec: &RunSpec, cx: &mut Cx<'_>) {
        let Some(Op::Model { prepared, .. }) = &cx.sh.request else { return };
        let prepared = Arc::clone(prepared);
        self.observe(cx);
        let of = (cx.sh.turn, cx.sh.iteration);
        if self.guidance.as_ref().is_none_or(|guidance| guidance.of != of) {
            let progress = self.progress(spec, cx, Some(prepared));
            let message = self.control.guide(&progress);
            self.guidance = Some(Guidance { of, message });
            self.emit_control(cx);
        }
        let message = self.guidance.as_ref().and_then(|guidance| guidance.message.clone());
        if let (Some(message), Some(Op::Model { plan, .. })) = (message, &mut cx.sh.request) {
            *plan = Some(Plan::followed_by(plan.as_ref(), message));
        }
    }

    /// Shows the control the messages that were appended since the last time.
    pub(super) fn observe(&mut self, cx: &mut Cx<'_>) {
        let appended = cx.sh.appended.as_mut().map(std::mem::take).unwrap_or_default();
        for (at, new) in appended.iter().enumerate() {
            let to = appended.get(at + 1).map_or(cx.log.len(), |next| next.from);
            for (message, event) in cx.log.range(new.from..to).zip(new.event..) {
                self.control.observe(event, message);
            }
        }
        self.emit_control(cx);
    }

    /// Emits the events of the control.
    pub(super) fn emit_control(&mut self, cx: &mut Cx<'_>) {
        for event in self.control.take_events() {
            cx.event(|| EventKind::Control { event });
        }
    }

    /// Counts the calls of the turn that is over, when a check needs them.
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

    /// The progress of the run, for its control and for checks of its end.
    pub(super) fn progress(
        &self,
        spec: &RunSpec,
        cx: &Cx<'_>,
        prepared: Option<Arc<PreparedAgent>>,
    ) -> RunProgress {
        let most = spec.limits.amount;
        let used = cx.sh.budgets.outermost().map(|level| level.used()).unwrap_or_default();
        let most_seconds = spec.limits.elapsed.map_or(0, |span| span.0 / 1_000);
        let used = [
            ("turns", u64::from(cx.sh.turn), u64::from(spec.limits.turns)),
            ("model calls", u64::from(used.iterations), u64::from(most.iterations)),
            ("tool calls", u64::from(used.tool_calls), u64::from(most.tool_calls)),
            ("tokens", used.tokens, most.tokens),
            ("seconds", cx.now.since(self.started_at).0 / 1_000, most_seconds),
        ];
        RunProgress {
            turn: cx.sh.turn,
            max_turns: spec.limits.turns,
            mode: spec.mode,
            compactions: cx.sh.compactions,
            prepared,
            used: used.map(|(what, used, most)| Used { what: what.into(), used, most }),
            tool_calls: self.tool_calls.clone(),
            signalled: matches!(&self.stage, RunStage::Deciding(judging) if judging.signalled),
        }
    }
}
