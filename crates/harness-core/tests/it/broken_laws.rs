//! The checks of laws find what is wrong with a finished run.

use std::sync::Arc;

use harness_core::driver::{Ports, drive};
use harness_core::event::Event;
use harness_core::machine::Start;
use harness_core::message::{AssistantMessage, Message, ToolCall};
use harness_core::testing::{EventLog, ScriptedModel, VirtualClock, laws};
use harness_core::transcript::Transcript;
use harness_core::turn::{Turn, TurnSpec};
use harness_core::{Cancel, End, Evidence, Json, Origin, StopReason, Time};

/// A finished turn with one call.
struct Finished {
    end: End,
    messages: Vec<Arc<Message>>,
    events: Vec<Event>,
}

async fn finished() -> Finished {
    let call = ToolCall::new("c1", "missing", Json::empty_object());
    let model = ScriptedModel::new([AssistantMessage::calls([call]), AssistantMessage::text("Done.")]);
    let events = EventLog::default();
    let mut ports = Ports::new(Arc::new(model), Arc::new(VirtualClock::jumping(Time(0))));
    ports.hub.fold(events.clone());
    let mut turn = Turn::new(Arc::new(TurnSpec::default()), Origin::default(), Transcript::default());
    let end = drive(&mut turn, &ports, &Cancel::never(), Start::prompt(Message::user("Go"))).await;
    Finished {
        end: Arc::unwrap_or_clone(end),
        messages: turn.log().iter().cloned().collect(),
        events: events.events(),
    }
}

#[track_caller]
fn check(found: Result<(), laws::BrokenLaw>, expected: &str) {
    assert_eq!(found.map_err(|broken| broken.to_string()), Err(expected.to_owned()));
}

#[tokio::test]
async fn a_whole_run_keeps_every_law() {
    let Finished { end, messages, events } = finished().await;
    assert_eq!(laws::transcript(&messages), Ok(()));
    assert_eq!(laws::calls(&messages, &end), Ok(()));
    assert_eq!(laws::end(&end), Ok(()));
    assert_eq!(laws::limits(&end, &TurnSpec::default().limits.amount()), Ok(()));
    assert_eq!(laws::events(&events), Ok(()));
}

#[tokio::test]
async fn a_call_without_its_result_breaks_law_1() {
    let Finished { messages, .. } = finished().await;
    check(laws::transcript(&messages[..2]), "law 1 is broken: calls without results at the end: `c1`");
}

#[tokio::test]
async fn an_end_without_its_evidence_breaks_law_2() {
    let Finished { mut end, .. } = finished().await;
    end.stop.reason = StopReason::MaxIterationsReached;
    end.stop.evidence = Evidence::None;
    check(laws::end(&end), "law 2 is broken: evidence of `max_iterations_reached` is None");
}

#[tokio::test]
async fn more_than_is_permitted_breaks_law_3() {
    let Finished { end, .. } = finished().await;
    let mut limit = TurnSpec::default().limits.amount();
    limit.iterations = 1;
    check(laws::limits(&end, &limit), "law 3 is broken: 2 iterations exceed the limit of 1");
}

#[tokio::test]
async fn a_missing_event_breaks_law_7() {
    let Finished { mut events, .. } = finished().await;
    events.remove(2);
    check(laws::events(&events), "law 7 is broken: event 3 follows event 1");
}
