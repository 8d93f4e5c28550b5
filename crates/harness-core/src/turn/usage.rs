//! What the calls of a turn's own model used, reported or estimated.

use std::sync::Arc;

use super::state::TurnState;
use crate::limits::Amount;
use crate::machine::Cx;
use crate::message::{AssistantMessage, Message};
use crate::outcome::Purpose;
use crate::port::{answer_tokens, message_tokens, prepared_tokens, request_tokens};
use crate::transcript::View;

impl TurnState {
    /// The answer with estimated tokens where tokens are limited and its provider reported none, so that limits
    /// bind.
    pub(super) fn estimated(&mut self, cx: &Cx<'_>, mut answer: Arc<Message>) -> Arc<Message> {
        let reported = answer.as_assistant().and_then(|answer| answer.usage.as_ref());
        let missing = !reported.is_some_and(|usage| usage.has_tokens());
        if missing
            && cx.sh.budgets.limits_tokens()
            && let Message::Assistant(answer) = Arc::make_mut(&mut answer)
        {
            self.estimate(cx, answer);
        }
        answer
    }

    /// The same for what there is of an answer.
    pub(super) fn estimate(&mut self, cx: &Cx<'_>, answer: &mut AssistantMessage) {
        let reported = answer.usage.as_deref().cloned().unwrap_or_default();
        let Some(prepared) = self.prepared.clone() else { return };
        if reported.has_tokens() || !cx.sh.budgets.limits_tokens() {
            return;
        }
        let with_tools = self.closing.is_none();
        let input = match self.recovering.view(self.plan.as_ref()) {
            Some(plan) => request_tokens(&View::planned(cx.log.prefix(), plan), &prepared, with_tools),
            None => self.log_tokens(cx).saturating_add(prepared_tokens(&prepared, with_tools)),
        };
        answer.usage = Some(Arc::new(reported.or_estimated(input, answer_tokens(answer))));
    }

    /// Tokens of the transcript. Each message is looked at once in a turn.
    fn log_tokens(&mut self, cx: &Cx<'_>) -> u64 {
        let (seen, tokens) = self.counted;
        let new = cx.log.range(seen.min(cx.log.len())..cx.log.len()).map(|message| message_tokens(message));
        self.counted = (cx.log.len(), new.fold(tokens, u64::saturating_add));
        self.counted.1
    }

    /// Books what a call used; calls that failed or were cut off count, too.
    pub(super) fn book(&mut self, cx: &mut Cx<'_>, message: &AssistantMessage, answered: bool) {
        let mut used = Amount { iterations: 1, ..Amount::NONE };
        self.usage.add_call(Purpose::Answer, message.usage.as_deref(), answered);
        if let Some(usage) = &message.usage {
            used.tokens = usage.all_tokens();
            used.cost = usage.total_cost().unwrap_or_default();
        }
        self.last_step = used;
        self.last_step_took = cx.now.since(self.asked_at);
        cx.sh.budgets.settle(std::mem::take(&mut self.grant), used);
    }
}
