//! Validated flows.

use std::fmt;
use std::sync::Arc;

use super::step::{Kind, Step};

/// Validated tree of steps. Cloning is cheap.
#[derive(Clone, Debug)]
pub struct Flow(Step);

/// Error in the definition of a flow.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FlowFault {
    /// A step has an empty id.
    #[error("missing id of a step in `{0}`")]
    EmptyId(Arc<str>),
    /// An id would make paths ambiguous.
    #[error("invalid step id `{0}`: it must not contain `/`, `#`, `[`, `]` or `&`")]
    IdForm(Arc<str>),
    /// A loop has no steps.
    #[error("loop `{0}` has no steps")]
    EmptyLoop(Arc<str>),
    /// A retry allows no attempt.
    #[error("retry of step `{0}` allows no attempts: at least 1 is required")]
    NoAttempts(Arc<str>),
}

impl FlowFault {
    /// Stable code.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::EmptyId(_) => "EMPTY_STEP_ID",
            Self::IdForm(_) => "STEP_ID_FORM",
            Self::EmptyLoop(_) => "MISSING_LOOP_BODY",
            Self::NoAttempts(_) => "RETRY_ATTEMPTS",
        }
    }
}

/// All errors in the definition of a flow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlowFaults(pub Vec<FlowFault>);

impl fmt::Display for FlowFaults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let faults: Vec<_> = self.0.iter().map(ToString::to_string).collect();
        f.write_str(&faults.join("; "))
    }
}

impl std::error::Error for FlowFaults {}

impl Flow {
    /// Validates a flow. Steps that a branch returns are not part of it.
    ///
    /// # Errors
    /// All errors of the definition.
    pub fn new(root: impl Into<Step>) -> Result<Self, FlowFaults> {
        let root = root.into();
        let mut faults = Vec::new();
        validate(&root, &"the root".into(), &mut faults);
        if faults.is_empty() { Ok(Self(root)) } else { Err(FlowFaults(faults)) }
    }

    pub(super) fn root(&self) -> &Step {
        &self.0
    }
}

fn validate(step: &Step, above: &Arc<str>, faults: &mut Vec<FlowFault>) {
    let id = step.id();
    if id.is_empty() {
        faults.push(FlowFault::EmptyId(Arc::clone(above)));
    }
    if id.contains(['/', '#', '[', ']', '&']) {
        faults.push(FlowFault::IdForm(Arc::clone(id)));
    }
    if step.options().retry.max_attempts == 0 {
        faults.push(FlowFault::NoAttempts(Arc::clone(id)));
    }
    match step.what() {
        Kind::Loop(rounds) => {
            if rounds.body.is_empty() {
                faults.push(FlowFault::EmptyLoop(Arc::clone(id)));
            }
            rounds.body.iter().for_each(|step| validate(step, id, faults));
        }
        Kind::Parallel(join) => join.paths.iter().for_each(|step| validate(step, id, faults)),
        Kind::Spawn(child, _) => validate(child, id, faults),
        Kind::Run(_) | Kind::Model(..) | Kind::Tool(..) | Kind::Branch(_) => {}
    }
}
