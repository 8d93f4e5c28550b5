//! A flow that has been looked through.

use std::fmt;
use std::sync::Arc;

use super::step::{Kind, Step};

/// A tree of steps without faults. Cloning is cheap.
#[derive(Clone, Debug)]
pub struct Flow(Step);

/// What is wrong with a step of a flow.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FlowFault {
    /// A step has no name.
    #[error("a step beneath `{0}` has no id: give it one")]
    EmptyId(Arc<str>),
    /// A name would make paths ambiguous.
    #[error("the id `{0}` has one of `/`, `#`, `[`, `]` or `&` in it, which paths are made of: leave it out")]
    IdForm(Arc<str>),
    /// A loop has nothing to do.
    #[error("loop `{0}` has no steps")]
    EmptyLoop(Arc<str>),
    /// A step is never tried.
    #[error("step `{0}` has a retry of no attempts: 1 is the first")]
    NoAttempts(Arc<str>),
}

impl FlowFault {
    /// A stable code.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::EmptyId(_) => "EMPTY_STEP_ID",
            Self::IdForm(_) => "STEP_ID_FORM",
            Self::EmptyLoop(_) => "MISSING_LOOP_BODY",
            Self::NoAttempts(_) => "RETRY_ATTEMPTS",
        }
    }
}

/// Everything that is wrong with a flow.
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
    /// A flow with this root.
    ///
    /// # Errors
    /// Everything that is wrong with it. (Steps that a branch chooses are looked at when they are chosen.)
    pub fn new(root: impl Into<Step>) -> Result<Self, FlowFaults> {
        let root = root.into();
        let mut faults = Vec::new();
        look_through(&root, &"the root".into(), &mut faults);
        if faults.is_empty() { Ok(Self(root)) } else { Err(FlowFaults(faults)) }
    }

    pub(super) fn root(&self) -> &Step {
        &self.0
    }
}

fn look_through(step: &Step, above: &Arc<str>, faults: &mut Vec<FlowFault>) {
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
            rounds.body.iter().for_each(|step| look_through(step, id, faults));
        }
        Kind::Parallel(join) => join.paths.iter().for_each(|step| look_through(step, id, faults)),
        Kind::Spawn(child, _) => look_through(child, id, faults),
        Kind::Run(_) | Kind::Model(..) | Kind::Tool(..) | Kind::Branch(_) => {}
    }
}
