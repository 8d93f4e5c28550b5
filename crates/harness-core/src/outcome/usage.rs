//! Usage of a turn or a run: totals, and shares by purpose.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::limits::Amount;
use crate::message::{Cost, Usage};

/// Purpose of a model call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Purpose {
    /// A step of the agent itself.
    #[default]
    Answer,
    /// A memory layer.
    Layer,
    /// A guardrail of the prompt or the answer.
    Guardrail,
    /// A check of the end.
    StopGate,
    /// A compaction: summaries of the transcript.
    Compaction,
    /// A tool gate, an approver, a hook, or the verification of a contract.
    Judge,
    /// Work inside a tool call: sub-agents, and tools that report usage.
    Child,
}

impl Purpose {
    /// The wire name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Answer => "answer",
            Self::Layer => "layer",
            Self::Guardrail => "guardrail",
            Self::StopGate => "stop_gate",
            Self::Compaction => "compaction",
            Self::Judge => "judge",
            Self::Child => "child",
        }
    }
}

/// Usage of model calls that have one purpose. A total is absent until something was reported for it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct PurposeUsage {
    /// Model calls, failed ones included.
    pub model_calls: u32,
    /// Of these, calls that gave no answer.
    #[serde(skip_serializing_if = "is_zero")]
    pub failed_calls: u32,
    /// Input tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input_tokens: Option<u64>,
    /// Output tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_tokens: Option<u64>,
    /// All tokens as limits count them, those of caches included.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total_tokens: Option<u64>,
    /// Of all tokens, those that no provider reported: they are estimated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub estimated_tokens: Option<u64>,
    /// Money.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost: Option<Cost>,
}

impl PurposeUsage {
    /// Usage of one call.
    pub(crate) fn of_call(usage: Option<&Usage>, answered: bool) -> Self {
        let mut used = Self::default();
        used.add_call(usage, answered);
        used
    }

    /// Adds one call.
    pub(crate) fn add_call(&mut self, usage: Option<&Usage>, answered: bool) {
        self.model_calls = self.model_calls.saturating_add(1);
        self.failed_calls = self.failed_calls.saturating_add(u32::from(!answered));
        if let Some(usage) = usage {
            self.add_tokens(usage);
        }
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

    /// Tokens and money, as budgets count them.
    pub fn amount(&self) -> Amount {
        let parts = || self.input_tokens.unwrap_or(0).saturating_add(self.output_tokens.unwrap_or(0));
        let tokens = self.total_tokens.unwrap_or_else(parts);
        Amount { tokens, cost: self.cost.unwrap_or_default(), ..Amount::NONE }
    }
}

/// Usage of a turn or a run. A total is absent until something was reported for it (zero counts).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct TotalUsage {
    /// Model calls made on behalf of the run, whatever their purpose, failed ones included.
    pub model_calls: u32,
    /// Of these, calls that gave no answer.
    #[serde(skip_serializing_if = "is_zero")]
    pub failed_calls: u32,
    /// Tool calls that were started; retried attempts are not counted.
    pub tool_calls: u32,
    /// Input tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input_tokens: Option<u64>,
    /// Output tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_tokens: Option<u64>,
    /// Of all tokens, those that no provider reported: they are estimated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub estimated_tokens: Option<u64>,
    /// Money.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost: Option<Cost>,
    /// Time that models and tools reported.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub latency_ms: Option<u64>,
    /// Shares of the totals by purpose. Boxed, because a map sets aside room for more of them than there are.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub by_purpose: BTreeMap<Purpose, Box<PurposeUsage>>,
}

impl TotalUsage {
    /// Adds one model call: what it reported, and whether it gave an answer.
    pub fn add_call(&mut self, purpose: Purpose, usage: Option<&Usage>, answered: bool) {
        sum(&mut self.latency_ms, usage.and_then(|usage| usage.latency_ms));
        self.add(purpose, &PurposeUsage::of_call(usage, answered));
    }

    /// Adds what a tool call reported of model calls made inside of it: at least one, or `requests`.
    pub(crate) fn add_child(&mut self, usage: &Usage) {
        let model_calls = usage.requests.map_or(1, |made| u32::try_from(made).unwrap_or(u32::MAX));
        let mut child = PurposeUsage { model_calls, ..PurposeUsage::default() };
        child.add_tokens(usage);
        sum(&mut self.latency_ms, usage.latency_ms);
        self.add(Purpose::Child, &child);
    }

    /// Adds the usage of calls with one purpose.
    pub fn add(&mut self, purpose: Purpose, used: &PurposeUsage) {
        self.model_calls = self.model_calls.saturating_add(used.model_calls);
        self.failed_calls = self.failed_calls.saturating_add(used.failed_calls);
        sum(&mut self.input_tokens, used.input_tokens);
        sum(&mut self.output_tokens, used.output_tokens);
        sum(&mut self.estimated_tokens, used.estimated_tokens);
        add_cost(&mut self.cost, used.cost);
        self.by_purpose.entry(purpose).or_default().merge(used);
    }

    /// Adds the usage of another turn or run.
    pub fn merge(&mut self, other: &Self) {
        self.model_calls = self.model_calls.saturating_add(other.model_calls);
        self.failed_calls = self.failed_calls.saturating_add(other.failed_calls);
        self.tool_calls = self.tool_calls.saturating_add(other.tool_calls);
        sum(&mut self.input_tokens, other.input_tokens);
        sum(&mut self.output_tokens, other.output_tokens);
        sum(&mut self.estimated_tokens, other.estimated_tokens);
        sum(&mut self.latency_ms, other.latency_ms);
        add_cost(&mut self.cost, other.cost);
        for (purpose, used) in &other.by_purpose {
            self.by_purpose.entry(*purpose).or_default().merge(used);
        }
    }

    /// Tokens and money, as budgets count them.
    pub fn amount(&self) -> Amount {
        if self.by_purpose.is_empty() {
            return self.as_one().amount();
        }
        self.by_purpose.values().fold(Amount::NONE, |sum, used| sum.plus(used.amount()))
    }

    /// Usage of the calls with this purpose; nothing when there were none.
    pub fn of(&self, purpose: Purpose) -> PurposeUsage {
        self.by_purpose.get(&purpose).map(|used| PurposeUsage::clone(used)).unwrap_or_default()
    }

    /// All of it as the usage of one purpose: what a part says that it used itself.
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
