//! Which tool a result is of.

use std::collections::HashMap;

use harness_core::ToolName;
use harness_core::message::{AssistantMessage, Message, ToolResultMessage};

use super::envelope::ToolResultEnvelope;
use super::policy::DurabilityPolicies;

/// The tools of calls by call id: a result whose own name is empty is named by its call.
pub(in crate::compact) struct ToolNames<'a>(HashMap<&'a str, &'a ToolName>);

impl<'a> ToolNames<'a> {
    /// The calls of `messages`, when some result does not name its tool.
    pub(in crate::compact) fn of<M: AsRef<Message>>(messages: &'a [M]) -> Self {
        let mut results = messages.iter().filter_map(|message| message.as_ref().as_tool_result());
        if results.all(|result| !result.tool_name.as_str().is_empty()) {
            return Self(HashMap::new());
        }
        let answers = messages.iter().filter_map(|message| message.as_ref().as_assistant());
        let calls = answers.flat_map(AssistantMessage::tool_calls);
        Self(calls.map(|call| (call.id.as_str(), &call.name)).collect())
    }

    /// The tool of a result; empty when neither it nor a call names one.
    pub(in crate::compact) fn name_of<'r>(&'r self, result: &'r ToolResultMessage) -> &'r str {
        let own = result.tool_name.as_str();
        let of_call = || self.0.get(result.tool_call_id.as_str()).map_or("", |name| name.as_str());
        if own.is_empty() { of_call() } else { own }
    }

    /// The envelope of a result: its own, else one that is made.
    pub(in crate::compact) fn envelope(
        &self,
        result: &ToolResultMessage,
        policies: &DurabilityPolicies,
    ) -> ToolResultEnvelope {
        if let Some(attached) = ToolResultEnvelope::attached(result) {
            return attached;
        }
        let mut envelope = ToolResultEnvelope::of(result, policies);
        self.name_of(result).clone_into(&mut envelope.tool_name);
        envelope
    }
}
