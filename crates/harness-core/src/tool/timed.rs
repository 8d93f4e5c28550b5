//! A tool that must answer in time.

use std::sync::{Arc, Mutex, PoisonError};

use futures_util::future::{Either, select};

use super::{ArgumentFault, DynTool, Tool, ToolCx, ToolDef, ToolOutcome, ToolStatus, ToolUpdates, Updates};
use crate::clock::Clock;
use crate::json::Json;
use crate::message::{Block, ToolCall};
use crate::time::Millis;

/// Bytes of text of the last update that are kept for the result of a call that took too long: 64 KiB.
const KEPT: usize = 64 << 10;

/// A tool whose calls take no longer than a time of their own, whatever the turn's deadline.
///
/// When the time is over, the call's `cancel` fires and the tool may still say what it has, for at most
/// [`Timed::with_grace`]. Then its future is dropped. Either way the call ends with an error result of status
/// and code `timeout`; the model reads how long it was waited, and what came so far: what the tool said in the
/// end, or else its last [`ToolCx::emit`] (up to 64 KiB of text).
///
/// The time is that of one attempt: a call that is tried again has it anew.
///
/// ```
/// use std::sync::Arc;
///
/// use harness_core::Millis;
/// use harness_core::port::Clock;
/// use harness_core::tool::{DynTool, Timed, Toolbox};
///
/// fn bounded(slow: Arc<dyn DynTool>, clock: Arc<dyn Clock>) -> Toolbox {
///     Toolbox::new([Arc::new(Timed::new(slow, Millis(5_000), clock)) as Arc<dyn DynTool>])
/// }
/// ```
#[derive(Clone)]
pub struct Timed {
    tool: Arc<dyn DynTool>,
    within: Millis,
    grace: Millis,
    clock: Arc<dyn Clock>,
}

impl std::fmt::Debug for Timed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Timed")
            .field("tool", &self.tool.tool_def().name)
            .field("within", &self.within)
            .finish_non_exhaustive()
    }
}

impl Timed {
    /// A tool that must answer within `within`, with a grace of one second.
    pub fn new(tool: Arc<dyn DynTool>, within: Millis, clock: Arc<dyn Clock>) -> Self {
        Self { tool, within, grace: Millis(1_000), clock }
    }

    /// The same with another time for what it has to say once it was told to stop.
    #[must_use]
    pub fn with_grace(mut self, grace: Millis) -> Self {
        self.grace = grace;
        self
    }

    fn late(&self, call: &ToolCall, so_far: Vec<Block>) -> ToolOutcome {
        let name = &call.name;
        let text = format!(
            "`{name}` did not finish within {}. It may have taken effect: check before it is repeated.",
            self.within
        );
        let mut outcome = ToolOutcome::with_error(ToolStatus::Timeout, "timeout", text.clone());
        if !so_far.is_empty() {
            let heading = Block::text(format!("{text} What came so far:"));
            outcome.content = [heading].into_iter().chain(so_far).collect();
        }
        outcome
    }
}

impl Tool for Timed {
    fn def(&self) -> &ToolDef {
        self.tool.tool_def()
    }

    fn check(&self, arguments: &Json) -> Result<(), ArgumentFault> {
        self.tool.check_dyn(arguments)
    }

    async fn call(&self, mut cx: ToolCx) -> ToolOutcome {
        let until = self.clock.now().after(self.within);
        let (call, stop) = (Arc::clone(&cx.call), cx.cancel.child());
        let heard = Arc::new(Heard { outer: std::mem::take(&mut cx.updates), last: Mutex::default() });
        cx.cancel = stop.clone();
        cx.deadline = Some(cx.deadline.map_or(until, |deadline| deadline.min(until)));
        cx.updates = Updates::to(Some(Arc::clone(&heard) as Arc<dyn ToolUpdates>));
        let running = match select(self.tool.call_boxed(cx), self.clock.sleep_until(until)).await {
            Either::Left((outcome, _)) => return outcome,
            Either::Right(((), running)) => running,
        };
        stop.cancel();
        match select(running, self.clock.sleep_until(until.after(self.grace))).await {
            Either::Left((said, _)) => {
                let so_far = if said.content.is_empty() { heard.take() } else { said.content };
                let late = self.late(&call, so_far);
                ToolOutcome { usage: said.usage, spent: said.spent, structured: said.structured, ..late }
            }
            Either::Right(_) => self.late(&call, heard.take()),
        }
    }
}

/// Passes updates on, and keeps the last one.
struct Heard {
    outer: Updates,
    last: Mutex<Vec<Block>>,
}

impl Heard {
    fn take(&self) -> Vec<Block> {
        std::mem::take(&mut *self.last.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl ToolUpdates for Heard {
    fn update(&self, call: &Arc<ToolCall>, content: Vec<Block>) {
        let size: usize = content.iter().filter_map(Block::as_text).map(str::len).sum();
        if size <= KEPT {
            self.last.lock().unwrap_or_else(PoisonError::into_inner).clone_from(&content);
        }
        self.outer.emit(call, content);
    }
}
