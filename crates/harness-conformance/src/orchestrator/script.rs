//! The model of a vector: it says what the vector wrote down.

use std::sync::Arc;

use harness_core::message::{AssistantMessage, Message};
use harness_core::port::{DeltaPart, Deltas, Model, ModelFault, ModelFaultCode, ModelRequest, ThinkingLevel};
use serde_json::{Value, json};

use super::play::perform_all;
use super::words::{ActionChunk, Chunk, Entry, TextChunk, ThoughtChunk, ToolChunk};
use super::world::World;

pub(super) struct Script(pub(super) Arc<World>);

impl Model for Script {
    async fn step(&self, request: ModelRequest, deltas: &dyn Deltas) -> Result<AssistantMessage, ModelFault> {
        self.0.asked(described(&request));
        let Some(entry) = self.0.next_entry() else {
            return Err(failed("script exhausted"));
        };
        perform_all(&self.0, &entry.during).await;
        if let Some(error) = &entry.setup_error {
            return Err(failed(error));
        }
        self.stream(&entry, &request, deltas).await
    }
}

impl Script {
    async fn stream(
        &self,
        entry: &Entry,
        request: &ModelRequest,
        deltas: &dyn Deltas,
    ) -> Result<AssistantMessage, ModelFault> {
        let (mut content, mut calls) = (Vec::<Value>::new(), 0);
        let tell = |part: DeltaPart| {
            if !entry.bare {
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
        for chunk in &entry.chunks {
            // The driver hears of a cancellation when it is polled.
            tokio::task::yield_now().await;
            if request.cancel.is_cancelled() {
                return broken(&content, "aborted", "the request was cancelled");
            }
            if let Chunk::Act(ActionChunk { r#do }) = chunk {
                perform_all(&self.0, std::slice::from_ref(r#do)).await;
            }
            content.extend(said(chunk, &mut calls, tell));
        }
        tokio::task::yield_now().await;
        if request.cancel.is_cancelled() {
            return broken(&content, "aborted", "the request was cancelled");
        }
        if let Some(error) = &entry.fail {
            return broken(&content, "error", error);
        }
        if entry.no_terminal {
            return broken(&content, "error", "stream closed without a final message");
        }
        let usual = if calls > 0 { "toolUse" } else { "stop" };
        let stop = entry.stop.as_deref().unwrap_or(usual);
        answer(request, &content, stop, None, entry).map_err(|error| failed(&error))
    }
}

/// Block of a chunk, in its parts.
fn said(chunk: &Chunk, calls: &mut u32, tell: impl Fn(DeltaPart)) -> Option<Value> {
    match chunk {
        Chunk::Text(TextChunk { text }) => {
            text.split('|').for_each(|piece| tell(DeltaPart::Text(piece.to_owned())));
            Some(json!({"type": "text", "text": text.replace('|', "")}))
        }
        Chunk::Thought(ThoughtChunk { thinking, signature }) => {
            tell(DeltaPart::Thinking(thinking.clone()));
            let signature = signature.as_deref().unwrap_or_default();
            Some(json!({"type": "thinking", "thinking": thinking, "thinkingSignature": signature}))
        }
        Chunk::Tool(ToolChunk { tool }) => {
            let (id, name) = (Some(tool.id.as_str().into()), tool.name.as_str().into());
            tell(DeltaPart::CallStarted { index: *calls, id, name });
            *calls += 1;
            Some(json!(tool))
        }
        Chunk::Act(_) => None,
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
        "model": request.prepared.model,
        "systemPrompt": &*request.prepared.instructions,
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
    entry: &Entry,
) -> Result<AssistantMessage, String> {
    let mut message = json!({
        "role": "assistant",
        "content": content,
        "protocol": super::play::PROTOCOL,
        "provider": super::play::PROVIDER,
        "model": request.prepared.model,
        "stopReason": stop,
    });
    if let Some(object) = message.as_object_mut() {
        object.extend(entry.usage.as_ref().map(|usage| ("usage".to_owned(), json!(usage))));
        object.extend(entry.response_id.as_ref().map(|id| ("responseId".to_owned(), json!(id))));
        object.extend(error.map(|error| ("errorMessage".to_owned(), json!(error))));
    }
    let parsed = serde_json::from_str::<Message>(&message.to_string()).map_err(|e| e.to_string())?;
    if let Message::Assistant(answer) = parsed { Ok(answer) } else { Err("it is not an answer".to_owned()) }
}
