//! Event stream: everything that happens, numbered by the machine.
//!
//! An event is emitted after its record is stored. Usage, run records and screen output are folds over events.
//!
//! ```
//! use std::sync::{Arc, Mutex};
//!
//! use harness_core::event::{
//!     Delta, Event, EventKind, Fold, Hub, RepairHow, ResultNote, Seen, Subscription,
//! };
//!
//! /// Counts interrupted calls and late results.
//! #[derive(Default)]
//! struct Counter(u32);
//!
//! impl Fold for Counter {
//!     fn apply(&mut self, event: &Event) {
//!         match &event.kind {
//!             EventKind::CallRepaired { how: RepairHow::Interrupted, .. }
//!             | EventKind::ToolFinished { note: Some(ResultNote::Late), .. } => self.0 += 1,
//!             _ => {}
//!         }
//!     }
//! }
//!
//! /// Prints the deltas of responses.
//! async fn print(mut subscription: Subscription) {
//!     while let Some(seen) = subscription.next().await {
//!         if let Seen::Delta(Delta { part, .. }) = seen {
//!             println!("{part:?}");
//!         }
//!     }
//! }
//!
//! let counter = Arc::new(Mutex::new(Counter::default()));
//! let mut hub = Hub::default();
//! hub.fold(Arc::clone(&counter));
//! let subscription = hub.subscribe(1_024);
//! # drop(hub);
//! # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(
//! print(subscription)
//! # );
//! ```

mod hub;
mod kind;

use std::borrow::Cow;
use std::sync::Arc;

pub use hub::{Fold, Hub, Seen, Subscription};
use kind::Field;
pub use kind::{EventKind, RepairHow, ResultNote};

pub use crate::schema::schema_settings;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::Error as _;
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::ids::OpId;
use crate::json::Json;
use crate::object::JsonObject;
use crate::origin::Origin;
use crate::outcome::{Purpose, TotalUsage};
use crate::port::DeltaPart;
use crate::time::Time;

/// Event of a run.
///
/// Serialized as one flat object: `seq`, `at` (milliseconds since 1970), `type`, `turn`, `iteration`, the fields of the
/// kind, and `origin`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Event {
    /// Number of the event, starting at 0, without gaps.
    pub seq: u64,
    /// Time.
    pub at: Time,
    /// Origin of the work.
    pub origin: Arc<Origin>,
    /// Turn of the run, starting at 1.
    pub turn: u32,
    /// Iteration; 0 before the first.
    pub iteration: u32,
    /// Kind, with its data.
    pub kind: EventKind,
}

impl JsonSchema for Event {
    fn schema_name() -> Cow<'static, str> {
        "Event".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let kinds = EventKind::schemas(generator);
        json_schema!({ "description": "Event of a run.", "oneOf": kinds })
    }
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
        let JsonObject(fields) = JsonObject::deserialize(deserializer)?;
        Self::read(&fields).map_err(D::Error::custom)
    }
}

impl Event {
    fn read(fields: &[(String, Json)]) -> Result<Self, String> {
        let name: String = Field::read("type", fields)?;
        let origin: Option<Arc<Origin>> = Field::read("origin", fields)?;
        let turn: Option<u32> = Field::read("turn", fields)?;
        let iteration: Option<u32> = Field::read("iteration", fields)?;
        Ok(Self {
            seq: Field::read("seq", fields)?,
            at: Time(Field::read("at", fields)?),
            origin: origin.unwrap_or_default(),
            turn: turn.unwrap_or(1),
            iteration: iteration.unwrap_or(0),
            kind: EventKind::read(&name, fields)?,
        })
    }
}

/// Delta of a response. Never stored; slow readers may miss some.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[non_exhaustive]
pub struct Delta {
    /// Operation of the response.
    pub op: OpId,
    /// Number of the delta in the operation, starting at 0.
    pub n: u32,
    /// Number of the last event before it.
    pub after: u64,
    /// Content.
    pub part: DeltaPart,
}

impl Delta {
    /// The `n`-th delta of an operation, behind the event with the number `after`.
    pub const fn new(op: OpId, n: u32, after: u64, part: DeltaPart) -> Self {
        Self { op, n, after, part }
    }
}

impl TotalUsage {
    /// Adds the usage of an event. Returns false if it reports none. Model calls that an abort interrupted have no event;
    /// the usage of the end includes them.
    #[expect(clippy::wildcard_enum_match_arm, reason = "other events report no usage")]
    pub fn count(&mut self, kind: &EventKind) -> bool {
        match kind {
            EventKind::ModelStepFinished { usage, .. } => {
                self.add_call(Purpose::Answer, usage.as_deref(), true);
            }
            EventKind::ModelStepFailed { usage, .. } => {
                self.add_call(Purpose::Answer, usage.as_deref(), false);
            }
            EventKind::ModelUsageCharged { purpose, usage } => self.add(*purpose, usage),
            EventKind::ToolStarted { .. } => self.tool_calls = self.tool_calls.saturating_add(1),
            EventKind::ToolFinished { outcome, .. } | EventKind::ToolFailed { outcome, .. } => {
                let Some(usage) = &outcome.usage else { return false };
                self.add_child(usage);
            }
            _ => return false,
        }
        true
    }
}
