//! What a call tells while it runs.

use std::fmt;
use std::sync::Arc;

use crate::message::{Block, ToolCall};

/// Hears what tools tell while their calls run: progress for people, never for the model. It must not wait.
///
/// ```
/// use std::sync::Arc;
///
/// use harness_core::message::{Block, ToolCall};
/// use harness_core::tool::ToolUpdates;
///
/// /// Prints what tools say while they run.
/// struct Print;
///
/// impl ToolUpdates for Print {
///     fn update(&self, call: &Arc<ToolCall>, content: Vec<Block>) {
///         for text in content.iter().filter_map(Block::as_text) {
///             println!("{}: {text}", call.name);
///         }
///     }
/// }
/// ```
pub trait ToolUpdates: Send + Sync {
    /// One update of a call, with the arguments that the tool was given. One that comes after the call has
    /// ended is to be ignored.
    fn update(&self, call: &Arc<ToolCall>, content: Vec<Block>);
}

/// Where a tool tells how far it is; nobody may listen.
///
/// ```
/// use std::sync::Arc;
///
/// use harness_core::Json;
/// use harness_core::message::{Block, ToolCall};
/// use harness_core::tool::{ToolCx, Updates};
///
/// let mut cx = ToolCx::for_call(Arc::new(ToolCall::new("c1", "search", Json::empty_object())));
/// cx.updates = Updates::default();
/// cx.emit(vec![Block::text("half of the files are read; nobody hears it")]);
/// ```
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
