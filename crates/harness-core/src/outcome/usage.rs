//! Usage of a turn or a run, in total and by purpose.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::limits::Amount;
use crate::message::{Cost, Usage};

crate::wire_enum! {
    /// Purpose of a model call.
    #[derive(Default, PartialOrd, Ord)]
    #[non_exhaustive]
    pub enum Purpose {
        /// Step of the agent.
        #[default]
        Answer = "answer",
        /// Memory layer.
        Layer = "layer",
        /// Check of a prompt or an answer.
        Guardrail = "guardrail",
        /// Check of the end.
        StopGate = "stop_gate",
        /// Compaction.
        Compaction = "compaction",
        /// Gate, approver, or verification of a contract.
        Judge = "judge",
        /// Work inside of a tool call, such as a sub-agent.
        Child = "child",
    }
}

/// Usage of model calls with one purpose. Totals are absent until a value is reported.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct PurposeUsage {
    /// Model calls, including failed ones.
    pub model_calls: u32,
    /// Failed model calls.
    #[serde(skip_serializing_if = "is_zero")]
    pub failed_calls: u32,
    /// Input tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input_tokens: Option<u64>,
    /// Output tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_tokens: Option<u64>,
    /// Total tokens as limits count them, including caches.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total_tokens: Option<u64>,
    /// Part of the total that is estimated, because no provider reported it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub estimated_tokens: Option<u64>,
    /// Cost.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost: Option<Cost>,
}

impl PurposeUsage {
    /// Creates the usage of one call.
    pub(crate) fn of_call(usage: Option<&Usage>, answered: bool) -> Self {
        let mut call = Self { model_calls: 1, failed_calls: u32::from(!answered), ..Self::default() };
        if let Some(usage) = usage {
            call.add_tokens(usage);
        }
        call
    }

    fn add_tokens(&mut self, usage: &Usage) {
        sum(&mut self.input_tokens, usage.input);
        sum(&mut self.output_tokens, usage.output);
        sum(&mut self.total_tokens, usage.has_tokens().then(|| usage.all_tokens()));
        sum(&mut self.estimated_tokens, usage.is_estimated().then(|| usage.all_tokens()));
        add_cost(&mut self.cost, usage.total_cost());
    }

    /// Adds the usage of other calls.
    pub(crate) fn merge(&mut self, other: &Self) {
        self.model_calls = self.model_calls.saturating_add(other.model_calls);
        self.failed_calls = self.failed_calls.saturating_add(other.failed_calls);
        sum(&mut self.input_tokens, other.input_tokens);
        sum(&mut self.output_tokens, other.output_tokens);
        sum(&mut self.total_tokens, other.total_tokens);
        sum(&mut self.estimated_tokens, other.estimated_tokens);
        add_cost(&mut self.cost, other.cost);
    }

    /// Returns tokens and cost as budgets count them.
    pub fn amount(&self) -> Amount {
        let parts = || self.input_tokens.unwrap_or(0).saturating_add(self.output_tokens.unwrap_or(0));
        let tokens = self.total_tokens.unwrap_or_else(parts);
        Amount { tokens, cost: self.cost.unwrap_or_default(), ..Amount::NONE }
    }
}

/// Usage of a turn or a run. Totals are absent until a value is reported.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct TotalUsage {
    /// Model calls of all purposes, including failed ones.
    pub model_calls: u32,
    /// Failed model calls.
    #[serde(skip_serializing_if = "is_zero")]
    pub failed_calls: u32,
    /// Started tool calls, excluding retried attempts.
    pub tool_calls: u32,
    /// Input tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input_tokens: Option<u64>,
    /// Output tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_tokens: Option<u64>,
    /// Part of all tokens that is estimated, because no provider reported it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub estimated_tokens: Option<u64>,
    /// Cost.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost: Option<Cost>,
    /// Reported latency of models and tools, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub latency_ms: Option<u64>,
    /// Usage by purpose. Boxed, because a map allocates more values than it has.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub by_purpose: BTreeMap<Purpose, Box<PurposeUsage>>,
}

impl TotalUsage {
    /// Adds a model call.
    pub fn add_call(&mut self, purpose: Purpose, usage: Option<&Usage>, answered: bool) {
        sum(&mut self.latency_ms, usage.and_then(|usage| usage.latency_ms));
        self.add(purpose, &PurposeUsage::of_call(usage, answered));
    }

    /// Adds model calls inside of a tool call: at least one, or `requests`.
    pub(crate) fn add_child(&mut self, usage: &Usage) {
        let model_calls = usage.requests.map_or(1, |made| u32::try_from(made).unwrap_or(u32::MAX));
        let mut child = PurposeUsage { model_calls, ..PurposeUsage::default() };
        child.add_tokens(usage);
        sum(&mut self.latency_ms, usage.latency_ms);
        self.add(Purpose::Child, &child);
    }

    /// Adds the usage of calls with one purpose.
    pub fn add(&mut self, purpose: Purpose, used: &PurposeUsage) {
        self.add_totals(used);
        self.by_purpose.entry(purpose).or_default().merge(used);
    }

    /// Adds the usage of another turn or run.
    pub fn merge(&mut self, other: &Self) {
        self.tool_calls = self.tool_calls.saturating_add(other.tool_calls);
        sum(&mut self.latency_ms, other.latency_ms);
        self.add_totals(&other.as_one());
        for (purpose, used) in &other.by_purpose {
            self.by_purpose.entry(*purpose).or_default().merge(used);
        }
    }

    fn add_totals(&mut self, used: &PurposeUsage) {
        self.model_calls = self.model_calls.saturating_add(used.model_calls);
        self.failed_calls = self.failed_calls.saturating_add(used.failed_calls);
        sum(&mut self.input_tokens, used.input_tokens);
        sum(&mut self.output_tokens, used.output_tokens);
        sum(&mut self.estimated_tokens, used.estimated_tokens);
        add_cost(&mut self.cost, used.cost);
    }

    /// Returns tokens and cost as budgets count them.
    pub fn amount(&self) -> Amount {
        if self.by_purpose.is_empty() {
            return self.as_one().amount();
        }
        self.by_purpose.values().fold(Amount::NONE, |sum, used| sum.plus(used.amount()))
    }

    /// Returns the usage of calls with this purpose.
    pub fn of(&self, purpose: Purpose) -> PurposeUsage {
        self.by_purpose.get(&purpose).map(|used| PurposeUsage::clone(used)).unwrap_or_default()
    }

    /// Returns the totals as the usage of one purpose.
    pub(crate) fn as_one(&self) -> PurposeUsage {
        PurposeUsage {
            total_tokens: None,
            model_calls: self.model_calls,
            failed_calls: self.failed_calls,
            input_tokens: self.input_tokens,
            output_tokens: self.output_tokens,
            estimated_tokens: self.estimated_tokens,
            cost: self.cost,
        }
    }
}

fn sum(total: &mut Option<u64>, part: Option<u64>) {
    if let Some(part) = part {
        *total = Some(total.unwrap_or(0).saturating_add(part));
    }
}

fn add_cost(total: &mut Option<Cost>, part: Option<Cost>) {
    if let Some(part) = part {
        *total = Some(total.unwrap_or_default().plus(part));
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(count: &u32) -> bool {
    *count == 0
}
