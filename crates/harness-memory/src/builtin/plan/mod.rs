//! Plan memory: an agent plans before it acts, and acts by the plan that was approved.

mod document;
mod layer;
mod render;
mod session;
mod state;

pub use layer::{Plan, PlanHost};
pub use state::{PlanOptions, PlanPhase, PlanState, PlanStyle};
