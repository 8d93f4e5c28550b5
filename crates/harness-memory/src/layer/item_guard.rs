//! Item schemas over what enters a run: prompts, tool calls and tool results.

use std::sync::Arc;

use harness_core::decide::{
    CheckVerdict, DynCheck, DynGate, GateVerdict, Guarded, Points, Subject, check, gate,
};
use harness_core::message::{Message, ToolCall};
use harness_core::tool::{
    ArgumentFault, DynToolRegistry, ToolCx, ToolDef, ToolOutcome, ToolRegistry, ToolScope,
};
use harness_core::{Fault, Origin, Time};

use super::schema::ItemSchemas;

/// Name of the gate and of the check.
const NAME: &str = "item-schemas";

impl ItemSchemas {
    /// A gate named `item-schemas`: a tool call that its schemas do not accept is denied, and the model reads why.
    ///
    /// ```
    /// use harness_memory::layer::ItemSchemas;
    ///
    /// assert_eq!(ItemSchemas::default().gate().guard().name.as_str(), "item-schemas");
    /// ```
    pub fn gate(&self) -> Guarded<dyn DynGate> {
        let schemas = self.clone();
        let gate = gate::func(NAME, move |ask, _| match schemas.check_call(&ask.call) {
            Ok(()) => GateVerdict::Allow,
            Err(error) => GateVerdict::deny(error),
        });
        gate.at(Points::CALL)
    }

    /// A check named `item-schemas`: a prompt with a message that its schemas do not accept is refused.
    pub fn check_prompts(&self) -> Guarded<dyn DynCheck> {
        let schemas = self.clone();
        check::func(NAME, Points::PROMPT, move |subject, _| {
            let Subject::Prompt(messages) = subject else { return CheckVerdict::Accept };
            match messages.iter().try_for_each(|message| schemas.check_message(message)) {
                Ok(()) => CheckVerdict::Accept,
                Err(error) => CheckVerdict::refuse(error.to_string()),
            }
        })
    }

    /// Tools whose results are judged: in place of a successful result that its schemas do not accept, the model receives
    /// the error `item_schema_mismatch`. What the call used is charged.
    pub fn checked_results(&self, inner: Arc<dyn DynToolRegistry>) -> Arc<dyn DynToolRegistry> {
        Arc::new(CheckedResults { schemas: self.clone(), inner })
    }
}

struct CheckedResults {
    schemas: ItemSchemas,
    inner: Arc<dyn DynToolRegistry>,
}

impl CheckedResults {
    fn judge(&self, call: &ToolCall, mut outcome: ToolOutcome) -> ToolOutcome {
        let message = Message::ToolResult(outcome.to_message(call, None, Time(0)));
        let Err(error) = self.schemas.check_message(&message) else { return outcome };
        let failed = ToolOutcome::error(
            "item_schema_mismatch",
            format!("the result of `{}` was discarded: {error}", call.name),
        );
        (outcome.status, outcome.error) = (failed.status, failed.error);
        (outcome.content, outcome.structured) = (Vec::new(), None);
        outcome
    }
}

impl ToolRegistry for CheckedResults {
    async fn list(&self, scope: &ToolScope) -> Result<Arc<[ToolDef]>, Fault> {
        self.inner.list_boxed(scope).await
    }

    fn check(&self, call: &ToolCall) -> Result<(), ArgumentFault> {
        self.inner.check_dyn(call)
    }

    fn delegates(&self, call: &ToolCall, origin: &Origin) -> bool {
        self.inner.delegates_dyn(call, origin)
    }

    async fn call(&self, cx: ToolCx) -> Result<ToolOutcome, Fault> {
        let call = Arc::clone(&cx.call);
        let outcome = self.inner.call_boxed(cx).await?;
        Ok(if outcome.is_error() { outcome } else { self.judge(&call, outcome) })
    }
}
