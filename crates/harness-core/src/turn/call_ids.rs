//! Unique ids for the calls of a transcript.
//!
//! Providers do not promise that the ids of calls differ. A result, an event and a decision name their call by
//! its id, so a repeated id is changed when the answer is read, before anything refers to it: `c1` becomes
//! `c1-2`. Equal answers over equal transcripts get equal ids, so a replay repeats them.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::ids::CallId;
use crate::message::{AssistantMessage, Block, Message};
use crate::transcript::Transcript;

/// The answer with calls that no other call of the transcript is named like.
pub(super) fn unique(log: &Transcript, answer: Arc<Message>) -> Arc<Message> {
    let renamed = answer.as_assistant().and_then(|answer| renamed(log, answer));
    renamed.map_or(answer, |answer| Arc::new(Message::Assistant(answer)))
}

fn renamed(log: &Transcript, answer: &AssistantMessage) -> Option<AssistantMessage> {
    let ids = || answer.tool_calls().map(|call| &call.id);
    let is_new = !ids().any(|id| log.has_call(id));
    if is_new && ids().nth(1).is_none() {
        return None;
    }
    let own: BTreeSet<&CallId> = ids().collect();
    if is_new && own.len() == ids().count() {
        return None;
    }
    let (mut answer, mut taken) = (answer.clone(), BTreeSet::<CallId>::new());
    for block in &mut answer.content {
        let Block::ToolCall(call) = block else { continue };
        if call.hosted.is_some() || (!log.has_call(&call.id) && taken.insert(call.id.clone())) {
            continue;
        }
        let is_free = |id: &CallId| !log.has_call(id) && !own.contains(id) && !taken.contains(id);
        let mut names = (2_u64..).map(|count| CallId::from(format!("{}-{count}", call.id)));
        if let Some(id) = names.find(is_free) {
            Arc::make_mut(call).id = id.clone();
            taken.insert(id);
        }
    }
    Some(answer)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::Json;
    use crate::message::ToolCall;

    fn answer(ids: &[&str]) -> Arc<Message> {
        let calls = ids.iter().map(|id| ToolCall::new(*id, "pay", Json::empty_object()));
        Arc::new(Message::Assistant(AssistantMessage::calls(calls)))
    }

    fn ids(answer: &Message) -> Vec<String> {
        answer.as_assistant().expect("an answer").tool_calls().map(|call| call.id.to_string()).collect()
    }

    #[test]
    fn fault_03_repeated_call_ids_are_made_unique() {
        let mut log = Transcript::default();
        let first = unique(&log, answer(&["c1", "c1", "c1-2"]));
        assert_eq!(ids(&first), ["c1", "c1-3", "c1-2"]);
        log.push(first);
        assert_eq!(ids(&unique(&log, answer(&["c1", "c2", "c1-2", "c1"]))), ["c1-4", "c2", "c1-2-2", "c1-5"]);
        let other = answer(&["c3", "c4"]);
        assert!(Arc::ptr_eq(&unique(&log, Arc::clone(&other)), &other), "nothing repeats");
    }
}
