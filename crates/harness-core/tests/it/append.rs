//! Law 4: a session that fails once has neither a gap nor a message twice.

use std::sync::Arc;

use harness_core::driver::{Ports, drive};
use harness_core::machine::Start;
use harness_core::message::{AssistantMessage, Message, ToolCall};
use harness_core::port::{Durability, Entry, EntryHead, Loaded, Session, SessionError};
use harness_core::testing::{ScriptedModel, ScriptedTools, VirtualClock};
use harness_core::tool::{RetryClass, ToolDef, ToolOutcome};
use harness_core::transcript::Transcript;
use harness_core::turn::{Turn, TurnSpec};
use harness_core::{Cancel, Json, Origin, Time};
use parking_lot::Mutex;

use crate::bare::{bare, strict};

/// Keeps messages; its n-th append fails.
struct FailsOnce {
    nth: usize,
    state: Mutex<(usize, Vec<Arc<Message>>)>,
}

impl Session for FailsOnce {
    async fn append(&self, _: &EntryHead, entries: &[Entry<'_>], _: Durability) -> Result<(), SessionError> {
        let mut state = self.state.lock();
        state.0 += 1;
        if state.0 == self.nth {
            return Err(SessionError::new("session.full", "the disk is full"));
        }
        for entry in entries {
            if let Entry::Message(message) = entry {
                state.1.push(Arc::clone(message));
            }
        }
        Ok(())
    }

    async fn load(&self) -> Result<Loaded, SessionError> {
        Ok(Loaded::default())
    }
}

/// Runs a turn whose n-th append fails. How many appends there were.
async fn check(spec: TurnSpec, nth: usize) -> usize {
    let call = |id: &str, name: &str| ToolCall::new(id, name, Json::empty_object());
    let model = ScriptedModel::new([
        AssistantMessage::calls([call("c1", "look"), call("c2", "pay")]),
        AssistantMessage::calls([call("c3", "look"), call("c4", "look"), call("c5", "look")]),
        AssistantMessage::text("done"),
    ]);
    let defs = [ToolDef::new("look", "").with_class(RetryClass::Pure), ToolDef::new("pay", "")];
    let outcomes = (0..5).map(|n| ToolOutcome::text(format!("result {n}")));
    let session = Arc::new(FailsOnce { nth, state: Mutex::default() });
    let mut ports = Ports::new(Arc::new(model), Arc::new(VirtualClock::frozen(Time(0))));
    ports.tools = Arc::new(ScriptedTools::new(defs).answering(outcomes));
    ports.session = Some(Arc::clone(&session) as _);
    let mut turn = Turn::new(Arc::new(spec), Origin::default(), Transcript::default());
    drive(&mut turn, &ports, &Cancel::never(), Start::prompt(Message::user("go"))).await;
    let state = session.state.lock();
    let transcript: Vec<_> = turn.log().iter().cloned().collect();
    assert_eq!(state.1, transcript, "append {nth} failed");
    state.0
}

#[tokio::test]
async fn law_4_whichever_append_fails_the_session_holds_the_transcript_at_the_end() {
    let mut few_calls = strict();
    few_calls.limits.tool_calls = 3;
    for spec in [bare(), few_calls] {
        let appends = check(spec.clone(), 0).await;
        assert!(appends > 5, "{appends} appends");
        for nth in 1..=appends {
            check(spec.clone(), nth).await;
        }
    }
}
