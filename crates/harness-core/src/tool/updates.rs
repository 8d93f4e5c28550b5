//! What a call tells while it runs.

use std::fmt;
use std::sync::Arc;

use crate::message::{Block, ToolCall};

/// Hears what tools tell while their calls run: progress for people, never for the model. It must not wait.
pub trait ToolUpdates: Send + Sync {
    /// One update of a call, with the arguments that the tool was given. One that comes after the call has
    /// ended is to be ignored.
    fn update(&self, call: &Arc<ToolCall>, content: Vec<Block>);
}

/// Where a tool tells how far it is; nobody may listen.
#[derive(Clone, Default)]
pub struct Updates(Option<Arc<dyn ToolUpdates>>);

impl Updates {
    /// Tells `listener`.
    pub(crate) fn to(listener: Option<Arc<dyn ToolUpdates>>) -> Self {
        Self(listener)
    }

    pub(super) fn emit(&self, call: &Arc<ToolCall>, content: Vec<Block>) {
        if let Some(listener) = &self.0 {
            listener.update(call, content);
        }
    }
}

impl fmt::Debug for Updates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Updates").field(&self.0.is_some()).finish()
    }
}
