//! The model of a vector: it says what the vector wrote down.

use std::sync::Arc;

use harness_core::message::{AssistantMessage, Message};
use harness_core::port::{DeltaPart, Deltas, Model, ModelFault, ModelFaultCode, ModelRequest, ThinkingLevel};
use serde_json::{Value, json};

use super::play::perform;
use super::world::World;
use crate::turn::convert::{at, list, text};

pub(super) struct Script(pub(super) Arc<World>);

impl Model for Script {
    async fn step(&self, request: ModelRequest, deltas: &dyn Deltas) -> Result<AssistantMessage, ModelFault> {
        self.0.asked(described(&request));
        let Some(entry) = self.0.next_entry() else {
            return Err(failed("script exhausted"));
        };
        for action in list(&entry, "during") {
            self.act(action).await?;
        }
        if let Some(error) = entry.get("setup_error").and_then(Value::as_str) {
            return Err(failed(error));
        }
        self.stream(&entry, &request, deltas).await
    }
}

impl Script {
    async fn act(&self, action: &Value) -> Result<(), ModelFault> {
        let result = perform(&self.0, action).await.map_err(|error| failed(&error))?;
        self.0.note(result);
        Ok(())
    }

    async fn stream(
        &self,
        entry: &Value,
        request: &ModelRequest,
        deltas: &dyn Deltas,
    ) -> Result<AssistantMessage, ModelFault> {
        let (mut content, mut calls) = (Vec::<Value>::new(), 0);
        let tell = |part: DeltaPart| {
            if at(entry, "bare") != true {
                deltas.part(part);
            }
        };
        let broken = |content: &[Value], stop: &str, why: &str| {
            let message = answer(request, content, stop, Some(why), entry);
            let code = if stop == "aborted" { ModelFaultCode::Cancelled } else { ModelFaultCode::Provider };
            match message {
                Ok(message) => Err(ModelFault::new(code, why).with_partial(message)),
                Err(error) => Err(failed(&error)),
            }
        };
        for chunk in list(entry, "chunks") {
            // The driver hears of a cancellation when it is polled.
            tokio::task::yield_now().await;
            if request.cancel.is_cancelled() {
                return broken(&content, "aborted", "the request was cancelled");
            }
            if let Some(said) = chunk.get("text").and_then(Value::as_str) {
                said.split('|').for_each(|piece| tell(DeltaPart::Text(piece.to_owned())));
                content.push(json!({"type": "text", "text": said.replace('|', "")}));
            } else if let Some(thought) = chunk.get("thinking").and_then(Value::as_str) {
                tell(DeltaPart::Thinking(thought.to_owned()));
                let signature = text(chunk, "signature");
                content
                    .push(json!({"type": "thinking", "thinking": thought, "thinkingSignature": signature}));
            } else if let Some(call) = chunk.get("tool") {
                let id = call.get("id").and_then(Value::as_str).map(Into::into);
                tell(DeltaPart::CallStarted { index: calls, id, name: text(call, "name").into() });
                calls += 1;
                content.push(call.clone());
            } else if let Some(action) = chunk.get("do") {
                self.act(action).await?;
            }
        }
        tokio::task::yield_now().await;
        if request.cancel.is_cancelled() {
            return broken(&content, "aborted", "the request was cancelled");
        }
        if let Some(error) = entry.get("fail").and_then(Value::as_str) {
            return broken(&content, "error", error);
        }
        if at(entry, "no_terminal") == true {
            return broken(&content, "error", "stream closed without a final message");
        }
        let usual = if calls > 0 { "toolUse" } else { "stop" };
        let stop = entry.get("stop").and_then(Value::as_str).unwrap_or(usual);
        answer(request, &content, stop, None, entry).map_err(|error| failed(&error))
    }
}

/// A request in the vectors' words.
fn described(request: &ModelRequest) -> Value {
    let mut messages = Vec::new();
    request.view.for_each(|message| messages.push(json!(**message)));
    let tools: Vec<_> = request.tools().iter().map(|def| def.name.as_str()).collect();
    let key = request.key.as_ref().map_or("base-key", |key| key.expose());
    json!({
        "messages": messages,
        "model": request.offer.model,
        "systemPrompt": &*request.offer.instructions,
        "thinkingLevel": request.thinking.map_or("", ThinkingLevel::as_str),
        "tools": tools,
        "apiKey": key,
    })
}

fn failed(why: &str) -> ModelFault {
    ModelFault::new(ModelFaultCode::Provider, why)
}

fn answer(
    request: &ModelRequest,
    content: &[Value],
    stop: &str,
    error: Option<&str>,
    entry: &Value,
) -> Result<AssistantMessage, String> {
    let mut message = json!({
        "role": "assistant",
        "content": content,
        "protocol": super::play::PROTOCOL,
        "provider": super::play::PROVIDER,
        "model": request.offer.model,
        "stopReason": stop,
    });
    let fields = [("usage", "usage"), ("responseId", "response_id")];
    if let Some(object) = message.as_object_mut() {
        for (key, from) in fields {
            object.extend(entry.get(from).map(|value| (key.to_owned(), value.clone())));
        }
        object.extend(error.map(|error| ("errorMessage".to_owned(), json!(error))));
    }
    let parsed = serde_json::from_str::<Message>(&message.to_string()).map_err(|e| e.to_string())?;
    if let Message::Assistant(answer) = parsed { Ok(answer) } else { Err("it is no answer".to_owned()) }
}
