//! Common imports of a program: `use harness::prelude::*;`.

pub use harness_core::Cancel;
pub use harness_core::decide::{
    Check, CheckDecision, CheckVerdict, DecideCx, Gate, GateDecision, GateVerdict, Points, Subject, check,
    gate,
};
pub use harness_core::message::{AssistantMessage, Message};
pub use harness_core::port::{Approver, Decision, Deltas, Model, ModelFault, ModelRequest, ProposedCall};
pub use harness_core::tool::{ToolCx, ToolOutcome, tool_fn};

pub use harness_runtime::{Prompt, Report, ResumeFrom};

pub use crate::Harness;
