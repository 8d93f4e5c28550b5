//! A model that says what it is told to.

use std::collections::VecDeque;
use std::sync::Arc;

use harness::core::Json;
use harness::core::message::ToolCall;
use harness::prelude::*;
use parking_lot::Mutex;

/// Answers in order; notes what each request shows it.
#[derive(Clone, Default)]
pub(crate) struct Script {
    answers: Arc<Mutex<VecDeque<AssistantMessage>>>,
    seen: Arc<Mutex<Vec<String>>>,
}

impl Script {
    pub(crate) fn new(answers: impl IntoIterator<Item = AssistantMessage>) -> Self {
        Self { answers: Arc::new(Mutex::new(answers.into_iter().collect())), seen: Arc::default() }
    }

    /// The requests so far: agent, instructions, and the text of each message.
    pub(crate) fn seen(&self) -> Vec<String> {
        self.seen.lock().clone()
    }
}

impl Model for Script {
    async fn step(&self, request: ModelRequest, _: &dyn Deltas) -> Result<AssistantMessage, ModelFault> {
        let mut shown = vec![format!("{}: {}", request.prepared.agent, request.prepared.instructions)];
        request.view.for_each(|message| shown.push(format!("{} {}", message.role(), message.joined_text())));
        self.seen.lock().push(shown.join(" | "));
        let next = self.answers.lock().pop_front();
        match next {
            Some(answer) => Ok(answer),
            None => std::future::pending().await,
        }
    }
}

pub(crate) fn call(id: &str, name: &str, arguments: &str) -> AssistantMessage {
    AssistantMessage::calls([ToolCall::new(id, name, Json::parse(arguments).unwrap())])
}
