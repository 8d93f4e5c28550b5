//! Calls of models through a ledger.

use std::sync::Arc;

use super::estimate::{answer_tokens, request_tokens};
use super::{DeltaPart, Deltas, DynModel, ModelFault, ModelFaultCode, ModelRequest};
use crate::message::AssistantMessage;
use crate::outcome::ledger::Ledger;

impl Ledger {
    /// Calls a model without streaming.
    ///
    /// # Errors
    /// The model's fault; `budget_reached` when the budget has no room for the request, or the run is over: the
    /// model was not called then.
    ///
    /// # Cancel safety
    /// When the future is dropped, the request counts with an estimate of its tokens.
    pub async fn call(
        &self,
        model: &dyn DynModel,
        request: ModelRequest,
    ) -> Result<AssistantMessage, ModelFault> {
        let input = request_tokens(&request.view, &request.prepared, request.with_tools);
        let refused = |why| ModelFault::new(ModelFaultCode::BudgetReached, why);
        let mut open = self.reserve(input).map_err(refused)?;
        let answered = model.step_boxed(request, &NoDeltas).await;
        let estimated = |answer: &AssistantMessage| {
            let reported = answer.usage.as_deref().cloned().unwrap_or_default();
            reported.or_estimated(input, answer_tokens(answer))
        };
        match answered {
            Ok(mut answer) => {
                let usage = estimated(&answer);
                open.close(Some(&usage), true);
                answer.usage = Some(Arc::new(usage));
                Ok(answer)
            }
            Err(fault) => {
                open.close(fault.partial.as_deref().map(estimated).as_ref(), false);
                Err(fault)
            }
        }
    }
}

/// Drops every piece.
struct NoDeltas;

impl Deltas for NoDeltas {
    fn part(&self, _: DeltaPart) {}
}
