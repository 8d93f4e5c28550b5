//! The environment: where and when the work is done.

use std::sync::Arc;

use harness_core::Time;

use super::text::{fenced, one_line};
use crate::MemoryError;
use crate::layer::{Hook, Layer, LayerCx, LayerDef, RecallAsk, Recalled};

/// Shows the date and facts about the surroundings (working directory, platform, user). Of the time only the day is
/// shown, so that the view stays the same for a day and a provider can cache it.
///
/// ```
/// use harness_memory::builtin::Environment;
///
/// let layer = Environment::new().with("Working directory", "/srv/shop").with("Platform", "linux");
/// # let _ = layer;
/// ```
#[derive(Clone, Debug)]
pub struct Environment {
    /// Definition: id, slot, scope, budget, placement, hooks.
    pub def: LayerDef,
    facts: Vec<(Arc<str>, Arc<str>)>,
    /// Minutes of local time ahead of UTC. Default 0.
    pub utc_offset: i32,
}

impl Environment {
    /// The date in UTC, and nothing else.
    pub fn new() -> Self {
        let def = LayerDef::new("environment", 210, [Hook::Recall]).with_range(0, 500);
        Self { def, facts: Vec::new(), utc_offset: 0 }
    }

    /// Adds a fact.
    #[must_use]
    pub fn with(mut self, name: impl Into<Arc<str>>, value: impl Into<Arc<str>>) -> Self {
        self.facts.push((name.into(), value.into()));
        self
    }
}

impl Layer for Environment {
    fn def(&self) -> &LayerDef {
        &self.def
    }

    async fn recall(&self, _ask: RecallAsk, cx: &LayerCx) -> Result<Recalled, MemoryError> {
        let local = Time(cx.now.0.saturating_add(i64::from(self.utc_offset) * 60_000)).iso();
        let mut lines = vec![format!("Date: {}", local.split('T').next().unwrap_or(&local))];
        let facts = self.facts.iter().map(|(name, value)| one_line(&format!("{name}: {value}"), 500));
        lines.extend(facts);
        Ok(Recalled::text(fenced("environment", &lines.join("\n"))))
    }
}
