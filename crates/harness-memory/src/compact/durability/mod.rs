//! What may be done with the result of a tool, and what of it must outlive that.

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
pub use policy::{Capture, DurabilityPolicies, ReplayCost, ToolDurability, ToolDurabilityPolicy};
