//! What may be done with the result of a tool, and what of it must outlive that.

mod determinism;
mod envelope;
mod names;
mod policy;

pub use determinism::DeterminismMetadata;
pub use envelope::{EnvelopeOutcome, ToolResultEnvelope};
pub(super) use envelope::{text_of, with_key_data};
pub(super) use names::ToolNames;
pub use policy::{Capture, DurabilityPolicies, ReplayCost, ToolDurability, ToolDurabilityPolicy};
