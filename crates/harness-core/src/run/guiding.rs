//! What the control of a run sees, and what it tells the model with a request.

use std::sync::Arc;

use super::{RunSpec, RunState};
use crate::event::EventKind;
use crate::machine::{Cx, Effect, Mark, Op, Shared};
use crate::message::Message;
use crate::outcome::End;
use crate::port::PreparedAgent;
use crate::transcript::{Plan, Span};
use crate::turn::TurnState;

/// The guidance of the latest request, and whose request that was.
#[derive(Debug)]
pub(super) struct Guidance {
    turn: u32,
    iteration: u32,
    message: Option<Arc<Message>>,
}

impl Guidance {
    fn is_of(&self, shared: &Shared) -> bool {
        (self.turn, self.iteration) == (shared.turn, shared.iteration)
    }
}

impl RunState {
    /// Lets the turn take a step. A request that it makes gets the guidance of the moment.
    pub(super) fn in_turn(
        &mut self,
        spec: &RunSpec,
        cx: &mut Cx<'_>,
        step: impl FnOnce(&mut TurnState, &mut Cx<'_>) -> Option<End>,
    ) -> Option<End> {
        let mark = cx.mark();
        let end = step(&mut self.turn, cx);
        let request = cx.since(mark).find_map(|effect| {
            let Effect::Perform(_, Op::Model { prepared, .. }) = effect else { return None };
            Some(Arc::clone(prepared))
        });
        if let Some(prepared) = request {
            self.guide(spec, cx, mark, prepared);
        }
        end
    }

    /// Puts the guidance of the moment behind the request among the effects since `mark`.
    fn guide(&mut self, spec: &RunSpec, cx: &mut Cx<'_>, mark: Mark, prepared: Arc<PreparedAgent>) {
        self.observe(cx);
        if !self.guidance.as_ref().is_some_and(|guidance| guidance.is_of(cx.sh)) {
            let progress = self.progress(spec, cx, Some(prepared));
            let message = self.control.get_mut().guide(&progress);
            self.guidance = Some(Guidance { turn: cx.sh.turn, iteration: cx.sh.iteration, message });
            self.emit_control(cx);
        }
        let guidance = self.guidance.as_ref().filter(|guidance| guidance.is_of(cx.sh));
        let Some(message) = guidance.and_then(|guidance| guidance.message.clone()) else { return };
        let messages = cx.log.len();
        for effect in cx.since(mark) {
            if let Effect::Perform(_, Op::Model { plan, .. }) = effect {
                let made = Span::Made([Arc::clone(&message)].into());
                let spans: Arc<[Span]> = match plan {
                    Some(plan) => plan.spans.iter().cloned().chain([made]).collect(),
                    None => [Span::Kept(0..messages), made].into(),
                };
                *plan = Some(Plan { spans });
            }
        }
    }

    /// Lets the control see what was appended since the last time.
    pub(super) fn observe(&mut self, cx: &mut Cx<'_>) {
        let Some(mut appended) = cx.sh.appended.take() else { return };
        for (at, piece) in appended.iter().enumerate() {
            let to = appended.get(at + 1).map_or(cx.log.len(), |next| next.from);
            for (message, event) in cx.log.range(piece.from..to).zip(piece.event..) {
                self.control.get_mut().observe(event, message);
            }
        }
        appended.clear();
        cx.sh.appended = Some(appended);
        self.emit_control(cx);
    }

    /// Tells what happened in the control.
    pub(super) fn emit_control(&mut self, cx: &mut Cx<'_>) {
        for event in self.control.get_mut().take_events() {
            cx.event(|| EventKind::Control { event });
        }
    }
}
