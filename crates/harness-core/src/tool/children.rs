//! Work that calls hand to a child elsewhere.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use crate::base::BoxFuture;
use crate::outcome::End;
use crate::time::Time;

/// The work that a call hands to a child. Made from a [`ChildRun`](crate::driver::ChildRun), and read as one by the driver
/// that runs it.
///
/// ```
/// use harness_core::tool::Child;
///
/// let child = Child::new("any parts");
/// assert_eq!(child.into_parts().downcast_ref(), Some(&"any parts"));
/// ```
pub struct Child(Box<dyn Any + Send>);

impl fmt::Debug for Child {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Child").finish_non_exhaustive()
    }
}

impl Child {
    /// Work with these parts.
    pub fn new(parts: impl Any + Send) -> Self {
        Self(Box::new(parts))
    }

    /// Returns the parts that [`new`](Self::new) received.
    pub fn into_parts(self) -> Box<dyn Any + Send> {
        self.0
    }
}

/// The end of a child, or why it has none.
pub type ChildFuture = BoxFuture<'static, Result<Arc<End>, String>>;

/// Runs the children of calls elsewhere: a durable driver gives each a separate journal, so that none is lost with the
/// process that called. Tools reach it through [`ToolCx::children`](super::ToolCx::children); only calls that
/// [delegate](super::Tool::delegates) have it. A tool that has none runs the child itself.
///
/// ```
/// use std::future::ready;
///
/// use harness_core::Time;
/// use harness_core::tool::{Child, ChildFuture, Children};
///
/// /// Accepts no work.
/// #[derive(Debug)]
/// struct Closed;
///
/// impl Children for Closed {
///     fn started(&self) -> Time {
///         Time(0)
///     }
///
///     fn run(&self, _: Child) -> ChildFuture {
///         Box::pin(ready(Err("closed".to_owned())))
///     }
/// }
/// ```
pub trait Children: fmt::Debug + Send + Sync {
    /// When the child started, equal on all attempts of the call. Time limits of the child count from here.
    fn started(&self) -> Time;

    /// The end of the child. The future may never complete: the driver then runs the child, and calls the tool once more
    /// when it has the end. A child that ends because it waits for approval is continued when the call is performed again
    /// ([`ToolOutcome::waiting_for`](super::ToolOutcome::waiting_for)).
    fn run(&self, child: Child) -> ChildFuture;
}
