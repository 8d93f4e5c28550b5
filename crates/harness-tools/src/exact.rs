//! Results with data.

use harness_core::Json;
use harness_core::tool::ToolOutcome;
use serde::Serialize;

/// A success with data, which the model receives indented.
pub(crate) fn answered(value: &impl Serialize) -> ToolOutcome {
    let json = Json::of(value).unwrap_or_default();
    let mut outcome = ToolOutcome::text(json.indented(0, usize::MAX).unwrap_or_default());
    outcome.structured = Some(json);
    outcome
}
