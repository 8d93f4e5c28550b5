//! What most programs need: `use harness::prelude::*;`.

pub use harness_core::Cancel;
pub use harness_core::message::{AssistantMessage, Message};
pub use harness_core::port::{
    Approver, Decision, Deltas, GateCx, Judgement, Model, ModelFault, ModelRequest, ProposedCall, StopGate,
    ToolCx, ToolGate, ToolOutcome, Verdict, tool_fn,
};

pub use crate::{Harness, Report};
