//! The completion signal.

use std::sync::Arc;

use harness_core::tool::{DynTool, ToolOutcome, tool_fn};
use schemars::JsonSchema;
use serde::Deserialize;

const NAME: &str = "work_complete";
const DESCRIPTION: &str = "Says that the whole work is done. Call it once, when nothing is left to do; what else is \
                           in the same answer is still done. It ends your turn.";

#[derive(Debug, Deserialize, JsonSchema)]
struct Completion {
    /// What was done, in a few sentences.
    summary: String,
    /// What is handed over: files, items, results.
    #[serde(default)]
    #[expect(dead_code, reason = "the run reads it from the call")]
    deliverables: Vec<String>,
    /// What could not be settled.
    #[serde(default)]
    #[expect(dead_code, reason = "the run reads it from the call")]
    open_questions: Vec<String>,
    /// How sure you are that the work is done and right, 0 to 1.
    #[serde(default)]
    confidence: Option<f64>,
}

/// The tool `work_complete(summary, deliverables?, open_questions?, confidence?)`: the model's word that the
/// work is done. The run's control judges it; see [`harness_control::SignalSpec`].
///
/// A valid call ends the turn after its batch, so that no further model call is made. A
/// blank summary, or a confidence outside of 0 to 1, is rejected.
pub fn work_complete() -> Arc<dyn DynTool> {
    let tool = tool_fn(NAME, DESCRIPTION, |arguments: Completion, _| async move {
        let summary = arguments.summary.trim();
        if summary.is_empty() {
            return ToolOutcome::error("work_complete", "`summary` is blank; say what was done");
        }
        if let Some(share) = arguments.confidence.filter(|share| !(0.0..=1.0).contains(share)) {
            let why = format!("`confidence` is {share}, and must be between 0 and 1");
            return ToolOutcome::error("work_complete", why);
        }
        ToolOutcome::text(format!("Work recorded as complete: {summary}"))
    });
    Arc::new(tool.pure().internal().terminal())
}
