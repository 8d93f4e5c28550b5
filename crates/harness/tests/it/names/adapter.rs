//! A model of one's own, which streams.

use harness::core::message::AssistantMessage;
use harness::core::port::{DeltaPart, Deltas, Model, ModelFault, ModelRequest};

pub(super) struct Echo;

impl Model for Echo {
    async fn step(&self, request: ModelRequest, deltas: &dyn Deltas) -> Result<AssistantMessage, ModelFault> {
        let text = request.view.last().map(|message| message.joined_text()).unwrap_or_default();
        deltas.part(DeltaPart::Text(text.clone()));
        Ok(AssistantMessage::text(text))
    }
}
