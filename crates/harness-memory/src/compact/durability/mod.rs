//! Durability of tool results, and the parts of them that must survive.

mod determinism;
mod envelope;
mod fields;
mod names;
mod policy;

pub use determinism::DeterminismMetadata;
pub use envelope::{EnvelopeOutcome, ToolResultEnvelope};
pub use fields::KeyFields;
pub(super) use fields::pairs;
pub(super) use names::ToolNames;
pub use policy::{Capture, DurabilityPolicies, ToolDurability, ToolDurabilityPolicy};
