//! A flat stream of a turn as JSON, made from its events.

use serde::Serialize;

use super::trace::turn_result;
use super::{Event, EventKind, Seen};
use crate::json::Json;
use crate::message::{AssistantMessage, ModelOutput};
use crate::port::DeltaPart;

/// Turns what a [`super::Subscription`] shows into the stream events of `@agent-assistant/harness` 0.4.35:
/// `text_delta`, `step_finished`, `tool_started`, `tool_finished`, `tool_failed`, and one `turn_finished` with
/// the whole result. A model that streams gives a `text_delta` for each piece; for one that does not,
/// the whole text comes as one, after its step.
///
/// ```
/// use harness_core::event::{Hub, SourceStream};
///
/// let mut hub = Hub::default();
/// let mut seen = hub.subscribe(1024);
/// let mut stream = SourceStream::default();
/// // … drive the turn, and meanwhile or afterwards:
/// while let Some(seen) = seen.try_next() {
///     for event in stream.next(&seen) {
///         println!("{}", event.text());
///     }
/// }
/// ```
#[derive(Debug, Default)]
pub struct SourceStream {
    iteration: u32,
    /// Whether the model of this iteration streamed text.
    streamed: bool,
    said: Option<String>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct TextDelta<'a> {
    r#type: &'static str,
    iteration: u32,
    text: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    output_type: Option<&'a str>,
}

#[derive(Serialize)]
struct Finished {
    r#type: &'static str,
    result: Json,
}

impl SourceStream {
    /// The stream events of one thing that was seen; often none, at most two.
    pub fn next(&mut self, seen: &Seen) -> Vec<Json> {
        match seen {
            Seen::Event(event) => self.event(event),
            Seen::Delta(delta) => match &delta.part {
                DeltaPart::Text(text) => {
                    self.streamed = true;
                    vec![self.delta(text, None)]
                }
                DeltaPart::Thinking(_)
                | DeltaPart::CallStarted { .. }
                | DeltaPart::CallArguments { .. }
                | DeltaPart::BackendToolStarted { .. }
                | DeltaPart::BackendToolFinished { .. }
                | DeltaPart::Note(_) => Vec::new(),
            },
            Seen::Lagged { .. } => Vec::new(),
        }
    }

    fn event(&mut self, event: &Event) -> Vec<Json> {
        self.iteration = event.iteration;
        let kind = &event.kind;
        if let EventKind::ModelStepStarted { .. } = kind {
            (self.streamed, self.said) = (false, None);
        } else if let EventKind::MessageAppended { message, .. } = kind
            && let Some(answer) = message.as_assistant()
        {
            self.said = said(answer);
        } else if let EventKind::ModelStepFinished { output_type, .. } = kind {
            let whole = self.said.take().filter(|_| !self.streamed);
            let delta = whole.map(|text| self.delta(&text, Some(output_type)));
            return super::trace::stream_fields("step_finished", event).into_iter().chain(delta).collect();
        } else if let EventKind::TurnFinished { end } = kind {
            let result = turn_result(end, &event.origin);
            return vec![Json::of(&Finished { r#type: "turn_finished", result }).unwrap_or_default()];
        } else if matches!(kind.name(), "tool_started" | "tool_finished" | "tool_failed") {
            return super::trace::stream_fields(kind.name(), event).into_iter().collect();
        }
        Vec::new()
    }

    fn delta(&self, text: &str, output_type: Option<&str>) -> Json {
        let delta = TextDelta { r#type: "text_delta", iteration: self.iteration, text, output_type };
        Json::of(&delta).unwrap_or_default()
    }
}

/// What an answer says to the user.
fn said(answer: &AssistantMessage) -> Option<String> {
    match answer.output() {
        ModelOutput::FinalAnswer => Some(answer.joined_text()),
        ModelOutput::Clarification { question } => Some(question),
        ModelOutput::Refusal { reason } => Some(reason.to_owned()),
        ModelOutput::ToolRequest | ModelOutput::ApprovalRequest(_) | ModelOutput::Invalid(_) => None,
    }
}
