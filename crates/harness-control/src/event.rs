//! What the control of a run tells its listeners.

use harness_core::Json;
use harness_core::event::EventKind;
use serde::{Deserialize, Serialize};

use super::decision::StopDecision;
use crate::work::DeliverableRef;

/// Something that happened in the control of a run: what the event [`EventKind::Control`] holds.
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
    /// It was decided how the run goes on after a turn, or that it stops. Once for each turn.
    StopDecided {
        /// What, and on what that rests: also what the model is told, and turns in a row that changed nothing.
        decision: Box<StopDecision>,
    },
    /// A request carries guidance that is stored nowhere.
    GuidanceInjected {
        /// The parts, and the instructions as `instructions.ID`.
        sections: Vec<String>,
        /// About how many tokens.
        tokens: u64,
    },
    /// Work items changed.
    WorkItemsChanged {
        /// Which, by name.
        changed: Vec<String>,
        /// How many are done or skipped.
        closed: u64,
        /// How many there are.
        total: u64,
    },
    /// The deliverables of the run changed: an artifact was stored, replaced by a revision or withdrawn.
    DeliverablesUpdated {
        /// All deliverables, in the order of the work items.
        deliverables: Vec<DeliverableRef>,
    },
}

impl ControlEvent {
    /// What an event of a run tells of its control; `None` when it tells of something else, or of another control.
    pub fn of(kind: &EventKind) -> Option<Self> {
        if let EventKind::Control { event } = kind { event.to().ok() } else { None }
    }

    /// In the form that an event of a run holds.
    pub(super) fn to_json(&self) -> Json {
        Json::of(self).unwrap_or_default()
    }
}
