//! Time limit of a tool's calls.

use std::sync::Arc;

use futures_util::future::{Either, select};
use parking_lot::Mutex;

use super::{ArgumentFault, DynTool, Tool, ToolCx, ToolDef, ToolOutcome, ToolStatus, ToolUpdates, Updates};
use crate::clock::Clock;
use crate::json::Json;
use crate::message::{Block, ToolCall};
use crate::time::Millis;

/// Maximum text of an update that is kept for the result: 64 KiB.
const KEPT: usize = 64 << 10;

/// Tool with a time limit for each attempt, in addition to the turn's deadline.
///
/// When the limit is reached, the call's `cancel` fires, and the tool has a grace period ([`Timed::with_grace`]) to
/// return. Then its future is dropped. Either way the result is an error of status and code `timeout`, with the limit and
/// the partial result: the tool's late result, or its last [`ToolCx::emit`] (up to 64 KiB of text).
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
    /// Limits the duration of `tool`, with a grace period of one second.
    pub fn new(tool: Arc<dyn DynTool>, within: Millis, clock: Arc<dyn Clock>) -> Self {
        Self { tool, within, grace: Millis(1_000), clock }
    }

    /// Sets the grace period.
    #[must_use]
    pub fn with_grace(mut self, grace: Millis) -> Self {
        self.grace = grace;
        self
    }

    fn late(&self, call: &ToolCall, partial: Vec<Block>) -> ToolOutcome {
        let name = &call.name;
        let text = format!(
            "`{name}` did not finish within {}. It may have taken effect: check before it is repeated.",
            self.within
        );
        let mut outcome = ToolOutcome::with_error(ToolStatus::Timeout, "timeout", text.clone());
        if !partial.is_empty() {
            let heading = Block::text(format!("{text} Partial result:"));
            outcome.content = [heading].into_iter().chain(partial).collect();
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
        let updates = Arc::new(LastUpdate { outer: std::mem::take(&mut cx.updates), last: Mutex::default() });
        cx.cancel = stop.clone();
        cx.deadline = Some(cx.deadline.map_or(until, |deadline| deadline.min(until)));
        cx.updates = Updates::to(Some(Arc::clone(&updates) as Arc<dyn ToolUpdates>));
        let running = match select(self.tool.call_boxed(cx), self.clock.sleep_until(until)).await {
            Either::Left((outcome, _)) => return outcome,
            Either::Right(((), running)) => running,
        };
        stop.cancel();
        match select(running, self.clock.sleep_until(until.after(self.grace))).await {
            Either::Left((outcome, _)) => {
                let partial = if outcome.content.is_empty() { updates.take() } else { outcome.content };
                let late = self.late(&call, partial);
                ToolOutcome {
                    usage: outcome.usage,
                    spent: outcome.spent,
                    structured: outcome.structured,
                    ..late
                }
            }
            Either::Right(_) => self.late(&call, updates.take()),
        }
    }
}

/// Forwards updates and keeps the last one.
struct LastUpdate {
    outer: Updates,
    last: Mutex<Vec<Block>>,
}

impl LastUpdate {
    fn take(&self) -> Vec<Block> {
        std::mem::take(&mut *self.last.lock())
    }
}

impl ToolUpdates for LastUpdate {
    fn update(&self, call: &Arc<ToolCall>, content: Vec<Block>) {
        let size: usize = content.iter().filter_map(Block::as_text).map(str::len).sum();
        if size <= KEPT {
            self.last.lock().clone_from(&content);
        }
        self.outer.emit(call, content);
    }
}
