//! Model calls through a ledger, and estimated tokens for providers that report none.

use std::sync::Arc;

use super::{DeltaPart, Deltas, DynModel, ModelFault, ModelFaultCode, ModelRequest, PreparedAgent};
use crate::message::{AssistantMessage, Block, Message};
use crate::outcome::ledger::Ledger;
use crate::transcript::View;

impl Ledger {
    /// Calls a model without streaming.
    ///
    /// # Errors
    /// The model's error, or `budget_reached` without a call if the request does not fit or the run has ended.
    ///
    /// # Cancel safety
    /// If the future is dropped, the estimated tokens of the request are charged.
    pub async fn call(
        &self,
        model: &dyn DynModel,
        request: ModelRequest,
    ) -> Result<AssistantMessage, ModelFault> {
        let input = request.estimated_tokens();
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

/// Sink that drops all deltas.
struct NoDeltas;

impl Deltas for NoDeltas {
    fn part(&self, _: DeltaPart) {}
}

/// Bytes per token: the average of English prose.
const BYTES: u64 = 4;
/// Tokens of a message in addition to its text.
const FORM: u64 = 4;
/// Tokens of an image of any size.
const IMAGE: u64 = 1_000;

/// Estimates the tokens of a request.
pub(crate) fn request_tokens(view: &View, prepared: &PreparedAgent, with_tools: bool) -> u64 {
    let mut tokens = prepared_tokens(prepared, with_tools);
    view.for_each(|message| tokens = tokens.saturating_add(message_tokens(message)));
    tokens
}

/// Estimates the tokens of a request without its messages.
pub(crate) fn prepared_tokens(prepared: &PreparedAgent, with_tools: bool) -> u64 {
    let tools = if with_tools { &*prepared.tools } else { &[] };
    let tools = tools.iter().map(|def| {
        let schema = def.input_schema.as_ref().map_or(0, |schema| schema.text().len());
        FORM.saturating_add(text(def.name.as_str().len() + def.description.len() + schema))
    });
    tools.fold(text(prepared.instructions.len()), u64::saturating_add)
}

/// Estimates the tokens of a response.
pub(crate) fn answer_tokens(answer: &AssistantMessage) -> u64 {
    answer.content.iter().map(block_tokens).fold(0, u64::saturating_add)
}

/// Estimates the tokens of a message.
pub(crate) fn message_tokens(message: &Message) -> u64 {
    message.content().iter().map(block_tokens).fold(FORM, u64::saturating_add)
}

fn block_tokens(block: &Block) -> u64 {
    let data = |data: &Option<String>| text(data.as_ref().map_or(0, String::len));
    match block {
        Block::Text(body) => text(body.text.len()),
        Block::Thinking(body) => text(body.thinking.len()),
        Block::Refusal(body) => text(body.text.len()),
        Block::Error(body) => text(body.message.len()),
        Block::ToolCall(call) => text(call.name.as_str().len() + call.arguments.text().len()),
        Block::Image(_) => IMAGE,
        Block::File(body) => data(&body.data),
        Block::Audio(body) => data(&body.data),
        Block::Approval(_) | Block::Extension(_) => FORM,
        Block::Unknown(raw) => text(raw.text().len()),
    }
}

fn text(bytes: usize) -> u64 {
    (bytes as u64).div_ceil(BYTES)
}
