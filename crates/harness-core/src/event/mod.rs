//! The one event stream: everything that happens, numbered by the machine.
//!
//! An event is told after the record it rests on is safe. Everything else (usage, a run
//! record, a rendering) is a fold over events.
//!
//! ```
//! use std::sync::{Arc, Mutex};
//!
//! use harness_core::event::{
//!     Delta, Event, EventKind, Fold, Hub, Observer, RepairHow, ResultNote, Seen, Subscription, observe,
//! };
//!
//! /// Counts calls that nobody knows the end of, and results that came too late.
//! #[derive(Default)]
//! struct Doubts(u32);
//!
//! impl Fold for Doubts {
//!     fn apply(&mut self, event: &Event) {
//!         match &event.kind {
//!             EventKind::CallRepaired { how: RepairHow::Interrupted, .. }
//!             | EventKind::ToolFinished { note: Some(ResultNote::Late), .. } => self.0 += 1,
//!             _ => {}
//!         }
//!     }
//! }
//!
//! /// Shows answers while they come.
//! struct Screen;
//!
//! impl Observer for Screen {
//!     async fn on(&mut self, seen: Seen) {
//!         if let Seen::Delta(Delta { part, .. }) = seen {
//!             println!("{part:?}");
//!         }
//!     }
//! }
//!
//! let doubts = Arc::new(Mutex::new(Doubts::default()));
//! let mut hub = Hub::default();
//! hub.fold(Arc::clone(&doubts));
//! let subscription: Subscription = hub.subscribe(1_024);
//! # drop(hub);
//! # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(
//! observe(subscription, Screen)
//! # );
//! ```

mod hub;
mod kind;
mod usage;

use std::sync::Arc;

pub use hub::{Fold, Hub, Observer, Seen, Subscription, observe};
pub use kind::{EventKind, RepairHow, ResultNote};

use serde::de::{Error as _, MapAccess, Visitor};
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::ids::OpId;
use crate::json::Json;
use crate::origin::Origin;
use crate::port::DeltaPart;
use crate::time::Time;

/// Something that happened.
///
/// As JSON one flat object: `seq`, `at` (milliseconds since 1970), the ids, `turn`, `iteration`, `type`, and the fields of
/// the kind.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Event {
    /// Numbers the events of a machine from 0, without gaps.
    pub seq: u64,
    /// When.
    pub at: Time,
    /// Whose work.
    pub origin: Arc<Origin>,
    /// The turn of the run, from 1.
    pub turn: u32,
    /// The iteration; 0 before the first.
    pub iteration: u32,
    /// What.
    pub kind: EventKind,
}

impl Serialize for Event {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("seq", &self.seq)?;
        map.serialize_entry("at", &self.at)?;
        map.serialize_entry("type", self.kind.name())?;
        map.serialize_entry("turn", &self.turn)?;
        map.serialize_entry("iteration", &self.iteration)?;
        self.kind.write_fields(&mut map)?;
        map.serialize_entry("origin", &*self.origin)?;
        map.end()
    }
}

impl<'de> Deserialize<'de> for Event {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Fields;
        impl<'de> Visitor<'de> for Fields {
            type Value = Event;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an event: an object with `seq`, `at` and `type`")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Event, A::Error> {
                let (mut seq, mut at, mut turn, mut iteration) = (None, None, 1, 0);
                let (mut name, mut origin) = (None::<String>, Arc::<Origin>::default());
                let mut rest = Vec::new();
                while let Some(key) = map.next_key::<String>()? {
                    match key.as_str() {
                        "seq" => seq = Some(map.next_value()?),
                        "at" => at = Some(map.next_value()?),
                        "type" => name = Some(map.next_value()?),
                        "turn" => turn = map.next_value()?,
                        "iteration" => iteration = map.next_value()?,
                        "origin" => origin = map.next_value()?,
                        _ => rest.push((key, map.next_value::<Json>()?)),
                    }
                }
                let name = name.ok_or_else(|| A::Error::missing_field("type"))?;
                Ok(Event {
                    seq: seq.ok_or_else(|| A::Error::missing_field("seq"))?,
                    at: at.ok_or_else(|| A::Error::missing_field("at"))?,
                    origin,
                    turn,
                    iteration,
                    kind: EventKind::read(&name, &rest).map_err(A::Error::custom)?,
                })
            }
        }
        deserializer.deserialize_map(Fields)
    }
}

/// A piece of a model's answer while it comes. Ephemeral: never stored, may be lost by slow readers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Delta {
    /// The operation whose answer it is part of.
    pub op: OpId,
    /// Numbers the pieces of the operation from 0.
    pub n: u32,
    /// The last event before it.
    pub after: u64,
    /// The piece.
    pub part: DeltaPart,
}
