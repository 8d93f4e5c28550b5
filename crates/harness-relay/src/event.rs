//! Events of a relay.

use harness_core::JsonObject;
use tokio::sync::mpsc;

use super::transport::RelayMessage;

/// Event of a relay.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RelayEvent {
    /// Its number in the relay's stream; `None` for events that are not stored.
    pub seq: Option<u64>,
    /// Kind and content.
    pub kind: RelayEventKind,
}

/// Kind of a relay event.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RelayEventKind {
    /// A message between two agents; every subscriber receives it.
    Inbound(RelayInbound),
    /// An agent ended or was released.
    AgentGone {
        /// Name of the agent.
        name: String,
        /// How, in the relay's words.
        how: String,
    },
    /// The events after `requested` up to `oldest` are lost.
    Gap {
        /// Number of the last event received.
        requested: u64,
        /// The first one that the relay still holds.
        oldest: u64,
    },
    /// End of the stored events; new ones follow.
    CaughtUp,
    /// The connection was lost and restored. Events in between have arrived, or a [`Gap`](Self::Gap)
    /// comes first.
    Reconnected,
    /// The stream is over; no event follows.
    Closed {
        /// Reason of its end.
        reason: String,
    },
    /// Anything else, by its kind.
    Other(String),
}

/// A message as an event.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RelayInbound {
    /// The message's id.
    pub event_id: String,
    /// Sender, as stated in the message; the relay does not check it.
    pub from: String,
    /// Recipient; `None` when the relay does not name it.
    pub target: Option<String>,
    /// Text of the message.
    pub body: String,
    /// Thread of the message, if it has one.
    pub thread_id: Option<String>,
}

impl RelayEvent {
    /// Reads an event of a broker; `None` unless it is a JSON object with a `kind`. Unknown kinds
    /// keep their name; fields of an unexpected type count as missing.
    pub fn parse(text: &str) -> Option<Self> {
        let wire = JsonObject::parse(text)?;
        let kind = wire.text("kind")?;
        // The number in a gap is that of the newest event, which is still to come.
        let seq = if kind == GAP { None } else { number(&wire, "seq") };
        Some(Self { seq, kind: kind_of(kind, &wire) })
    }

    /// End of the stored events.
    pub fn caught_up() -> Self {
        Self { seq: None, kind: RelayEventKind::CaughtUp }
    }

    /// The stream is over.
    pub fn closed(reason: impl Into<String>) -> Self {
        Self { seq: None, kind: RelayEventKind::Closed { reason: reason.into() } }
    }

    /// A message as it would arrive.
    pub fn inbound(message: &RelayMessage) -> Self {
        let inbound = RelayInbound {
            event_id: String::new(),
            from: message.from.clone(),
            target: Some(message.to.clone()),
            body: message.text.clone(),
            thread_id: message.thread_id.clone(),
        };
        Self { seq: None, kind: RelayEventKind::Inbound(inbound) }
    }
}

/// Wire kind of a gap.
const GAP: &str = "replay_gap";

fn number(wire: &JsonObject, key: &str) -> Option<u64> {
    wire.get(key)?.to().ok()
}

fn kind_of(kind: String, wire: &JsonObject) -> RelayEventKind {
    let text = |key| wire.text(key).unwrap_or_default();
    match kind.as_str() {
        "relay_inbound" => RelayEventKind::Inbound(RelayInbound {
            event_id: text("event_id"),
            from: text("from"),
            target: wire.text("target"),
            body: text("body"),
            thread_id: wire.text("thread_id"),
        }),
        "agent_released" | "agent_exit" | "agent_exited" | "agent_permanently_dead" => {
            RelayEventKind::AgentGone { name: text("name"), how: ending(&kind, wire) }
        }
        GAP => {
            let (requested, oldest) = (number(wire, "requestedSinceSeq"), number(wire, "oldestAvailable"));
            let (requested, oldest) = (requested.unwrap_or(0), oldest.unwrap_or(0));
            // Brokers send a gap in front of the very first event, too, where nothing is missing.
            if oldest > requested.saturating_add(1) {
                RelayEventKind::Gap { requested, oldest }
            } else {
                RelayEventKind::Other(kind)
            }
        }
        _ => RelayEventKind::Other(kind),
    }
}

/// How an agent ended: `agent_exited (signal 9)`.
fn ending(kind: &str, wire: &JsonObject) -> String {
    let mut more = Vec::new();
    more.extend(wire.filled_text("reason"));
    more.extend(wire.filled_text("signal").map(|signal| format!("signal {signal}")));
    more.extend(
        wire.get("code").and_then(|code| code.to::<i64>().ok()).map(|code| format!("exit code {code}")),
    );
    if more.is_empty() { kind.to_owned() } else { format!("{kind} ({})", more.join(", ")) }
}

/// A subscription. Dropping it ends it.
#[derive(Debug)]
pub struct RelayEvents(mpsc::Receiver<RelayEvent>);

/// The transport's side of a subscription.
#[derive(Clone, Debug)]
pub struct RelayEventSender(mpsc::Sender<RelayEvent>);

impl RelayEvents {
    /// A subscription that holds at most `waiting` events, at least one; a sender waits when it is full.
    pub fn channel(waiting: usize) -> (RelayEventSender, Self) {
        let (sender, receiver) = mpsc::channel(waiting.max(1));
        (RelayEventSender(sender), Self(receiver))
    }

    /// Receives the next event. Without a sender, the stream is [closed](RelayEventKind::Closed).
    pub async fn next(&mut self) -> RelayEvent {
        self.0.recv().await.unwrap_or_else(|| RelayEvent::closed("the transport went away"))
    }
}

impl RelayEventSender {
    /// Sends an event, and waits for room. False when the subscription was dropped.
    pub async fn send(&self, event: RelayEvent) -> bool {
        self.0.send(event).await.is_ok()
    }

    /// Whether the subscription was dropped.
    pub fn is_closed(&self) -> bool {
        self.0.is_closed()
    }

    /// Completes when the subscription is dropped.
    pub async fn closed(&self) {
        self.0.closed().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &str) {
        let event = RelayEvent::parse(text).map(|event| format!("{:?} {:?}", event.seq, event.kind));
        assert_eq!(event.unwrap_or_default(), expected);
    }

    #[test]
    fn events_of_brokers_are_read() {
        check(
            r#"{"kind":"relay_inbound","seq":3,"event_id":"e","from":"a","target":"b","thread_id":null,"body":"x","workspace_id":"w"}"#,
            r#"Some(3) Inbound(RelayInbound { event_id: "e", from: "a", target: Some("b"), body: "x", thread_id: None })"#,
        );
        check(
            r#"{"code":null,"kind":"agent_exited","name":"w","reason":"worker_exited","seq":14,"signal":"9"}"#,
            r#"Some(14) AgentGone { name: "w", how: "agent_exited (worker_exited, signal 9)" }"#,
        );
        check(
            r#"{"kind":"agent_released","name":"w","seq":2}"#,
            r#"Some(2) AgentGone { name: "w", how: "agent_released" }"#,
        );
        check(r#"{"kind":"worker_stream","chunk":"x"}"#, r#"None Other("worker_stream")"#);
    }

    #[test]
    fn only_what_is_missing_is_a_gap() {
        check(
            r#"{"kind":"replay_gap","oldestAvailable":1,"requestedSinceSeq":0,"seq":11}"#,
            r#"None Other("replay_gap")"#,
        );
        check(
            r#"{"kind":"replay_gap","oldestAvailable":9,"requestedSinceSeq":4,"seq":11}"#,
            "None Gap { requested: 4, oldest: 9 }",
        );
    }

    #[test]
    fn what_is_no_event_is_refused() {
        check("[]", "");
        check(r#"{"seq":1}"#, "");
    }

    #[test]
    fn a_field_of_another_type_counts_as_missing() {
        check(r#"{"kind":"x","seq":"7","name":{}}"#, r#"None Other("x")"#);
    }
}
