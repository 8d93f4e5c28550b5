//! Events of a run's control.

use harness_core::Json;
use harness_core::event::EventKind;
use serde::{Deserialize, Serialize};

use super::decision::StopDecision;
use crate::work::DeliverableRef;

/// Event of a run's control: the content of [`EventKind::Control`].
///
/// ```
/// use harness_control::ControlEvent;
/// use harness_core::event::EventKind;
///
/// fn stops(kind: &EventKind) -> bool {
///     matches!(ControlEvent::of(kind), Some(ControlEvent::StopDecided { decision }) if decision.stops)
/// }
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[non_exhaustive]
pub enum ControlEvent {
    /// The stop decision of a turn. Emitted once per turn.
    StopDecided {
        /// Decision with its reasons and the feedback to the model.
        decision: Box<StopDecision>,
    },
    /// A request carries guidance, which is not stored.
    GuidanceInjected {
        /// Ids of its sections; instructions are `instructions.ID`.
        sections: Vec<String>,
        /// Estimated tokens.
        tokens: u64,
        /// Text of the guidance.
        #[serde(default)]
        text: String,
    },
    /// Work items changed.
    WorkItemsChanged {
        /// Ids of changed items.
        changed: Vec<String>,
        /// Number of items that are done or skipped.
        closed: u64,
        /// Number of items.
        total: u64,
    },
    /// The deliverables changed: an artifact was stored, replaced by a revision or withdrawn.
    DeliverablesUpdated {
        /// All deliverables, in the order of the items.
        deliverables: Vec<DeliverableRef>,
    },
}

impl ControlEvent {
    /// Reads the event of a run; `None` for other kinds, and for a different control.
    pub fn of(kind: &EventKind) -> Option<Self> {
        if let EventKind::Control { event } = kind { event.to().ok() } else { None }
    }

    /// Converts it to the content of an event.
    pub(super) fn to_json(&self) -> Json {
        Json::of(self).unwrap_or_default()
    }
}
