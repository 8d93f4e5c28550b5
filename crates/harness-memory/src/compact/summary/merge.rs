//! An earlier summary goes into a newer one, section by section.

use super::types::{SpanReference, StructuredSummary};

impl StructuredSummary {
    /// This summary, which stands for what came later, with all that `earlier` says: facts, decisions,
    /// open items, artifacts and outcomes of both, each once; the task and the plan are those of the newer
    /// one where it has them.
    ///
    /// An open item that the newer summary decided on stays until it is removed by
    /// [`StructuredSummary::resolve`]: nothing is lost because a model did not repeat it.
    ///
    /// ```
    /// use harness_memory::compact::summary::StructuredSummary;
    ///
    /// let mut earlier = StructuredSummary::default();
    /// earlier.facts.push("The budget is 900.".to_owned());
    /// earlier.current_task = Some("pick a vendor".to_owned());
    /// let mut newer = StructuredSummary::default();
    /// newer.facts.push("Vendor B is cheaper.".to_owned());
    /// let merged = newer.merged_onto(&earlier);
    /// assert_eq!(merged.facts, ["The budget is 900.", "Vendor B is cheaper."]);
    /// assert_eq!(merged.current_task.as_deref(), Some("pick a vendor"));
    /// ```
    #[must_use]
    pub fn merged_onto(self, earlier: &Self) -> Self {
        Self {
            span: self.span.after(&earlier.span),
            facts: joined(&earlier.facts, self.facts, |a, b| a == b),
            decisions: joined(&earlier.decisions, self.decisions, |a, b| a.decision == b.decision),
            open_items: joined(&earlier.open_items, self.open_items, |a, b| a.description == b.description),
            artifacts: joined(&earlier.artifacts, self.artifacts, |a, b| a.artifact_id == b.artifact_id),
            tool_outcomes: joined(&earlier.tool_outcomes, self.tool_outcomes, |a, b| a == b),
            current_task: self.current_task.or_else(|| earlier.current_task.clone()),
            current_plan: self.current_plan.or_else(|| earlier.current_plan.clone()),
            schema_version: self.schema_version,
        }
    }

    /// Removes an open item that is done; returns whether it existed.
    pub fn resolve(&mut self, description: &str) -> bool {
        let before = self.open_items.len();
        self.open_items.retain(|item| item.description != description);
        self.open_items.len() < before
    }
}

impl SpanReference {
    /// The span from the begin of `earlier` to the end of this one.
    fn after(mut self, earlier: &Self) -> Self {
        if earlier.message_ids.is_empty() {
            return self;
        }
        if self.message_ids.is_empty() {
            return earlier.clone();
        }
        let mut message_ids = earlier.message_ids.clone();
        message_ids.append(&mut self.message_ids);
        Self { message_ids, first_turn: earlier.first_turn, last_turn: self.last_turn }
    }
}

/// The earlier entries, those that the newer list also has in its newer form, and then the new ones.
fn joined<T: Clone>(earlier: &[T], newer: Vec<T>, same: fn(&T, &T) -> bool) -> Vec<T> {
    let mut joined = earlier.to_vec();
    for entry in newer {
        match joined.iter_mut().find(|known| same(known, &entry)) {
            Some(known) => *known = entry,
            None => joined.push(entry),
        }
    }
    joined
}
