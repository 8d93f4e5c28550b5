//! Runs that calls start.

use std::sync::Arc;

use super::ports::Ports;
use crate::message::Message;
use crate::origin::Origin;
use crate::run::RunSpec;
use crate::tool::Child;

/// The run that a call hands its work to: the parts of a sub-agent.
///
/// ```
/// use std::sync::Arc;
///
/// use harness_core::Origin;
/// use harness_core::driver::{ChildRun, Ports};
/// use harness_core::message::Message;
/// use harness_core::run::RunSpec;
/// use harness_core::tool::Child;
///
/// fn child(ports: &Ports, origin: Origin) -> Child {
///     let prompt = Arc::new(Message::user("Which files are about berths?"));
///     ChildRun::new(ports.for_child(), Arc::new(RunSpec::default()), origin, prompt).into()
/// }
/// # let _ = child;
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ChildRun {
    /// The ports, as [`Ports::for_child`] gives them.
    pub ports: Ports,
    /// The settings: the limits are those of the child and of the call's grant.
    pub spec: Arc<RunSpec>,
    /// The ids of the work. [`Origin::parent`] is the call, and [`Origin::run`] is equal on all attempts of the call.
    pub origin: Origin,
    /// Task of the child, its first message.
    pub prompt: Arc<Message>,
}

impl ChildRun {
    /// The run of a task.
    pub fn new(ports: Ports, spec: Arc<RunSpec>, origin: Origin, prompt: Arc<Message>) -> Self {
        Self { ports, spec, origin, prompt }
    }

    /// The run that a call asks for; `None` if it asks for something else.
    pub fn of(child: Child) -> Option<Self> {
        child.into_parts().downcast().ok().map(|run| *run)
    }
}

impl From<ChildRun> for Child {
    fn from(run: ChildRun) -> Self {
        Self::new(run)
    }
}
