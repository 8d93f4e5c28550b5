//! The demo model: rules instead of a language model, for trying the program without an API key.
//!
//! [`situation`] reads a request, [`decide`] chooses the next calls by the words of names, descriptions and
//! schemas ([`words`], [`fill`]) and serves requests about files ([`files`]), [`answer`] reports the results.

mod answer;
mod decide;
mod files;
mod fill;
mod situation;
mod words;

use std::time::Duration;

use harness::core::Json;
use harness::core::message::{AssistantMessage, ToolCall, Usage};
use harness::core::port::{DeltaPart, Deltas, Model, ModelFault, ModelFaultCode, ModelRequest};

use decide::Next;
use situation::Situation;

/// Name of the demo model for `--model`.
pub(crate) const NAME: &str = "demo";

/// Behavior of the demo model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Demo {
    /// `demo`: answers at once.
    Quick,
    /// `demo/slow`: a pause before each word.
    Slow,
    /// `demo/fail`: every request fails.
    Failing,
}

/// Pause of the slow variant before each word.
const PAUSE: Duration = Duration::from_millis(150);

impl Demo {
    /// The demo model of that name.
    pub(crate) fn named(name: &str) -> Option<Self> {
        match name {
            NAME => Some(Self::Quick),
            "demo/slow" => Some(Self::Slow),
            "demo/fail" => Some(Self::Failing),
            _ => None,
        }
    }

    async fn said(self, text: &str, deltas: &dyn Deltas) {
        for piece in text.split_inclusive(' ') {
            if self == Self::Slow {
                tokio::time::sleep(PAUSE).await;
            }
            deltas.part(DeltaPart::Text(piece.to_owned()));
        }
    }
}

impl Model for Demo {
    async fn step(&self, request: ModelRequest, deltas: &dyn Deltas) -> Result<AssistantMessage, ModelFault> {
        if *self == Self::Failing {
            let text = "the model `demo/fail` fails every request; use `--model demo` for answers";
            return Err(ModelFault::new(ModelFaultCode::Provider, text));
        }
        let situation = Situation::of(&request);
        let next = decide::decide(&situation);
        let message = if let Next::Call(calls) = next {
            AssistantMessage::calls(made(calls, situation.done.len()))
        } else {
            let text = answer::answer(&situation, &next);
            self.said(&text, deltas).await;
            AssistantMessage::text(text)
        };
        let used = used(&request, &message);
        Ok(message.with_usage(used))
    }
}

/// The calls with ids; a turn makes them unique in its transcript.
fn made(calls: Vec<(String, serde_json::Value)>, before: usize) -> Vec<ToolCall> {
    let numbered = (before + 1..).zip(calls);
    let call = |(number, (name, arguments)): (usize, (String, serde_json::Value))| {
        let arguments = Json::of(&arguments).unwrap_or_else(|_| Json::empty_object());
        ToolCall::new(format!("call-{number}"), name, arguments)
    };
    numbered.map(call).collect()
}

/// Four bytes are a token, as an estimate.
fn used(request: &ModelRequest, message: &AssistantMessage) -> Usage {
    let mut input = request.prepared.instructions.len();
    request.view.for_each(|message| input += message.joined_text().len());
    let calls = message.tool_calls().map(|call| call.arguments.text().len());
    let output = message.joined_text().len() + calls.sum::<usize>();
    let tokens = |bytes: usize| u64::try_from(bytes.div_ceil(4)).unwrap_or(u64::MAX);
    let mut usage = Usage::tokens(tokens(input), tokens(output));
    usage.estimated = Some(true);
    usage
}
