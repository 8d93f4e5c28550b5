//! Messages of vectors, with their names and costs, and views of them.

use std::collections::HashMap;
use std::sync::Arc;

use harness_core::message::{AssistantMessage, Message};
use harness_core::port::{CompactAsk, Compaction, Compactor as _, ViewCx};
use harness_core::transcript::{Plan, Transcript, View};
use harness_core::{Origin, Time};
use harness_memory::compact::ContextCompactor;
use harness_memory::compact::tokens::{TokenCounter, message_tokens};
use serde_json::{Map, Value, json};

use super::convert::{MessageWords, shown};
use crate::Done;
use crate::case::block_on;

/// The messages of an input as a transcript. Results that share a message share its name.
pub(super) struct Named {
    pub(super) log: Transcript,
    ids: Vec<String>,
    /// Costs of messages in a vector, by position.
    costs: HashMap<usize, u64>,
}

impl Named {
    pub(super) fn of(messages: Vec<MessageWords>) -> Self {
        let mut named = Self { log: Transcript::default(), ids: Vec::new(), costs: HashMap::new() };
        for words in messages {
            let (id, mut tokens) = (words.id.clone(), words.tokens);
            for message in words.messages() {
                let message = Arc::new(message);
                let cost = tokens.replace(0).map(|tokens| (address(&message), tokens));
                named.costs.extend(cost);
                named.log.push(message);
                named.ids.push(id.clone());
            }
        }
        named
    }

    /// The name of the message at a position.
    pub(super) fn id_at(&self, position: usize) -> &str {
        self.ids.get(position).map_or("", String::as_str)
    }

    /// The names of all messages, each once.
    pub(super) fn ids(&self) -> Vec<&str> {
        let mut ids: Vec<&str> = self.ids.iter().map(String::as_str).collect();
        ids.dedup();
        ids
    }

    /// The name of a message of a view: that of the message itself, or of the result in whose place it is.
    pub(super) fn id_of(&self, message: &Message) -> Option<&str> {
        let is_it = |held: &Arc<Message>| match (held.as_tool_result(), message.as_tool_result()) {
            (Some(held), Some(shown)) => held.tool_call_id == shown.tool_call_id,
            (Some(_), None) | (None, Some(_)) => false,
            (None, None) => std::ptr::eq(&raw const **held, message),
        };
        let is_alike = |held: &Arc<Message>| held.as_tool_result().is_none() && **held == *message;
        let position = self.log.iter().position(is_it).or_else(|| self.log.iter().position(is_alike));
        position.map(|position| self.id_at(position))
    }

    /// A view in the vectors' form. A made message has no name.
    pub(super) fn view(&self, plan: Option<&Plan>, with_calls: bool) -> Value {
        let mut view: Vec<Map<String, Value>> = Vec::new();
        for message in self.shown(plan) {
            let id = self.id_of(&message);
            if let Some(result) = message.as_tool_result() {
                let part = json!({"id": result.tool_call_id.as_str(), "text": shown(&message.joined_text())});
                let before = view.last_mut().filter(|before| before.get("id") == Some(&json!(id)));
                if let Some(before) = before {
                    if let Some(results) = before.get_mut("results").and_then(Value::as_array_mut) {
                        results.push(part);
                    }
                    continue;
                }
                let mut entry = bare(&message, id);
                if with_calls {
                    entry.insert("results".to_owned(), json!([part]));
                }
                view.push(entry);
                continue;
            }
            let mut entry = bare(&message, id);
            let calls = message.as_assistant().into_iter().flat_map(AssistantMessage::tool_calls);
            let calls: Vec<Value> =
                calls.map(|call| json!({"id": call.id.as_str(), "tool": call.name.as_str()})).collect();
            if with_calls && !calls.is_empty() {
                entry.insert("calls".to_owned(), json!(calls));
            }
            view.push(entry);
        }
        json!(view)
    }

    /// The messages of a view.
    pub(super) fn shown(&self, plan: Option<&Plan>) -> Vec<Arc<Message>> {
        let mut messages = Vec::new();
        seen(&self.log, plan).for_each(|message| messages.push(Arc::clone(message)));
        messages
    }

    /// Tokens of a view.
    pub(super) fn tokens(&self, counter: &dyn TokenCounter, plan: Option<&Plan>) -> u64 {
        self.shown(plan).iter().map(|message| message_tokens(counter, message)).sum()
    }

    /// Tokens of each message of the vector, whose results count together.
    pub(super) fn tokens_of_each(&self, counter: &dyn TokenCounter) -> Vec<u64> {
        let mut each: Vec<(&str, u64)> = Vec::new();
        for (id, message) in self.ids.iter().zip(self.log.iter()) {
            let tokens = message_tokens(counter, message);
            match each.last_mut().filter(|(before, _)| before == id) {
                Some((_, sum)) => *sum += tokens,
                None => each.push((id, tokens)),
            }
        }
        each.into_iter().map(|(_, tokens)| tokens).collect()
    }

    /// Asks a compactor for a shorter view.
    pub(super) fn compact(&self, compactor: &ContextCompactor, plan: Option<&Plan>) -> Done<Compaction> {
        compact(compactor, &self.log, plan)
    }

    /// The costs that the vector gives.
    pub(super) fn costs(&self) -> Costs {
        Costs(self.costs.clone())
    }
}

/// Asks a compactor for a shorter view within the turn of the vector.
pub(super) fn compact(
    compactor: &ContextCompactor,
    log: &Transcript,
    plan: Option<&Plan>,
) -> Done<Compaction> {
    let mut origin = Origin::default();
    origin.turn = Some("turn".into());
    let cx = ViewCx::new(log.prefix(), Arc::new(origin), Time(0));
    let ask = CompactAsk::new(seen(log, plan), plan.cloned(), cx);
    block_on(compactor.compact(ask))?.map_err(|fault| fault.to_string())
}

fn seen(log: &Transcript, plan: Option<&Plan>) -> View {
    match plan {
        Some(plan) => View::planned(log.prefix(), plan.clone()),
        None => View::whole(log.prefix()),
    }
}

fn address(message: &Message) -> usize {
    &raw const *message as usize
}

/// An entry without calls and results.
fn bare(message: &Message, id: Option<&str>) -> Map<String, Value> {
    let is_result = message.as_tool_result().is_some();
    let mut entry = Map::new();
    entry.extend(id.map(|id| ("id".to_owned(), json!(id))));
    entry.insert("role".to_owned(), json!(if is_result { "tool" } else { message.role() }));
    let said = message.joined_text();
    if !is_result && !said.is_empty() {
        entry.insert("text".to_owned(), json!(shown(&said)));
    }
    entry
}

/// Costs of messages in a vector: its own figure, or a quarter of the characters of a made one, at least 1.
pub(super) struct Costs(HashMap<usize, u64>);

impl TokenCounter for Costs {
    fn count(&self, text: &str) -> u64 {
        (text.chars().count() as u64 / 4).max(1)
    }

    fn count_message(&self, message: &Message) -> Option<u64> {
        let given = self.0.get(&address(message)).copied();
        Some(given.unwrap_or_else(|| self.count(&message.joined_text())))
    }

    fn name(&self) -> &'static str {
        "of the vector"
    }
}
