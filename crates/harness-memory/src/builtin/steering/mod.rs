//! Steering: rules that judge tool calls and answers, in code or by a model.

mod background;
mod judge;
mod layer;
mod rule;

pub use layer::Steering;
pub use rule::{LedgerEntry, SteerAsk, SteerPoint, SteeringRule};
