//! Configuration of a run's control.

use std::collections::{BTreeMap, BTreeSet};

use harness_core::ToolName;
use harness_core::outcome::StopMode;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use strum::VariantNames as _;

use super::feedback::FeedbackKind;
use super::instruction::Instruction;
use crate::contract::{ContractFault, TaskContract};

/// Configuration of a run that continues until its work is done. Each part is optional; without any, only the
/// checks of the application judge the end.
///
/// ```
/// use harness_control::contract::{PredicateKind, TaskContract};
/// use harness_control::{ControlSpec, SignalSpec};
///
/// let contract = TaskContract::new("c", "Publish").require("R1", "it is published", PredicateKind::AlwaysTrue);
/// let spec = ControlSpec::default().with_signal(SignalSpec::default()).with_contract(contract);
/// assert!(spec.check().is_empty());
/// ```
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct ControlSpec {
    /// Completion signal: the model ends the run by calling a tool. Without it, an answer without tool calls
    /// claims the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signal: Option<SignalSpec>,
    /// Contract: required outputs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub contract: Option<TaskContract>,
    /// Work items that must be complete.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub work: Option<WorkSpec>,
    /// Stall detection.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stall: Option<StallSpec>,
    /// Guidance at the end of each request.
    pub guidance: GuidanceSpec,
}

impl ControlSpec {
    /// Default configuration of a mode: the completion signal, and stall detection in strict automation.
    pub fn for_mode(mode: StopMode) -> Self {
        let stall = match mode {
            StopMode::Interactive => None,
            StopMode::StrictAutomation => Some(StallSpec::default()),
        };
        Self { signal: Some(SignalSpec::default()), stall, ..Self::default() }
    }

    /// Sets the completion signal.
    #[must_use]
    pub fn with_signal(self, signal: SignalSpec) -> Self {
        Self { signal: Some(signal), ..self }
    }

    /// Sets the contract.
    #[must_use]
    pub fn with_contract(self, contract: TaskContract) -> Self {
        Self { contract: Some(contract), ..self }
    }

    /// Requires complete work items.
    #[must_use]
    pub fn with_work(self, work: WorkSpec) -> Self {
        Self { work: Some(work), ..self }
    }

    /// Sets the stall detection.
    #[must_use]
    pub fn with_stall(self, stall: StallSpec) -> Self {
        Self { stall: Some(stall), ..self }
    }

    /// Checks the configuration and returns every error.
    pub fn check(&self) -> Vec<ControlFault> {
        let contract = self.contract.iter().flat_map(TaskContract::check).map(ControlFault::Contract);
        let mut faults: Vec<ControlFault> = contract.collect();
        let mut value = |field: &'static str, value: String, expected: &'static str| {
            faults.push(ControlFault::Value { field, value, expected });
        };
        if let Some(signal) = self.signal.as_ref().filter(|signal| signal.tool.as_str().is_empty()) {
            value("signal.tool", signal.tool.to_string(), "the name of a tool");
        }
        if let Some(stall) = self.stall.as_ref().filter(|stall| stall.threshold < 2) {
            value("stall.threshold", stall.threshold.to_string(), "at least 2");
        }
        let guidance = &self.guidance;
        if !(0.0..=1.0).contains(&guidance.budget_from) {
            value("guidance.budget_from", guidance.budget_from.to_string(), "a number between 0 and 1");
        }
        let texts = guidance.texts.keys().filter(|id| !GuidanceSpec::has_text(id));
        faults.extend(texts.map(|id| ControlFault::Text { id: id.clone() }));
        let mut seen = BTreeSet::new();
        let twice = guidance.instructions.iter().filter(|instruction| !seen.insert(&instruction.id));
        faults.extend(twice.map(|instruction| ControlFault::Twice { id: instruction.id.clone() }));
        faults
    }
}

/// Error in a [`ControlSpec`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ControlFault {
    /// Error in the contract.
    #[error("contract: {0}")]
    Contract(ContractFault),
    /// Invalid value.
    #[error("invalid `{field}` {value}: expected {expected}")]
    Value {
        /// Name of the setting.
        field: &'static str,
        /// Value in question.
        value: String,
        /// Expected value.
        expected: &'static str,
    },
    /// Unknown text.
    #[error("unknown text `{id}` in `guidance.texts`: expected one of {known}", known = GuidanceSpec::texts_known())]
    Text {
        /// Unknown id.
        id: String,
    },
    /// Two instructions have the same id.
    #[error("duplicate id `{id}` in `guidance.instructions`")]
    Twice {
        /// Duplicate id.
        id: String,
    },
}

/// Completion signal: a tool that the model calls when the work is done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct SignalSpec {
    /// Consecutive rejections of an end without the signal, before an interactive run accepts it. Default 3.
    /// Strict automation never accepts it.
    pub retries: u32,
    /// Consecutive continuation prompts after turns without a tool call, before such a turn counts as an end
    /// without the signal. Default 5.
    pub prompts: u32,
    /// Name of the tool. Default `work_complete`.
    #[schemars(with = "String")]
    pub tool: ToolName,
}

impl Default for SignalSpec {
    fn default() -> Self {
        Self { retries: 3, prompts: 5, tool: ToolName::from("work_complete") }
    }
}

impl SignalSpec {
    /// Sets the numbers of prompts and rejections.
    #[must_use]
    pub fn patience(self, prompts: u32, retries: u32) -> Self {
        Self { retries, prompts, ..self }
    }
}

/// Work items: the run ends when all are complete.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct WorkSpec {
    /// Maximum number of items that guidance and feedback list; the others are counted. Default 20.
    pub shown: u32,
}

impl Default for WorkSpec {
    fn default() -> Self {
        Self { shown: 20 }
    }
}

/// Stall detection: ends runs that make no progress.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct StallSpec {
    /// Consecutive turns without progress. At least 2; default 3.
    pub threshold: u32,
    /// Reaction to a stall. Default [`StallReaction::Stop`].
    pub reaction: StallReaction,
}

impl Default for StallSpec {
    fn default() -> Self {
        Self { threshold: 3, reaction: StallReaction::default() }
    }
}

impl StallSpec {
    /// Stops after `threshold` consecutive turns without progress.
    pub fn after(threshold: u32) -> Self {
        Self { threshold, ..Self::default() }
    }

    /// Warns the model once before the stop.
    #[must_use]
    pub fn nudging(self) -> Self {
        Self { reaction: StallReaction::NudgeThenStop, ..self }
    }
}

/// Reaction to a stall.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum StallReaction {
    /// Stops the run.
    #[default]
    Stop,
    /// Warns the model once, and stops the run if the next turns make no progress either.
    NudgeThenStop,
}

/// Section of the guidance.
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    JsonSchema,
    strum::IntoStaticStr,
    strum::VariantArray,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
#[non_exhaustive]
pub enum GuidanceSection {
    /// Open work items.
    Items,
    /// Instructions whose condition holds.
    Instructions,
    /// Limits that are almost reached.
    Budget,
    /// Environment of the run.
    Environment,
}

impl GuidanceSection {
    /// Every section, in order.
    pub const ALL: &'static [Self] = <Self as strum::VariantArray>::VARIANTS;

    /// Wire name.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

/// Guidance at the end of each request, which is not stored.
///
/// A section without content is omitted. All sections together are bounded by a number of tokens, estimated at four
/// characters each; text that does not fit is cut, last sections first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct GuidanceSpec {
    /// Maximum number of tokens. Default 600.
    pub tokens: u32,
    /// Disabled sections. Default none.
    pub off: BTreeSet<GuidanceSection>,
    /// Custom texts by section or kind of feedback; the facts (items, requirements) follow them.
    pub texts: BTreeMap<String, String>,
    /// Instructions. Default [`Instruction::standard`].
    pub instructions: Vec<Instruction>,
    /// Share of a limit from which the budget section reports it. Default 0.8.
    pub budget_from: f64,
    /// Environment of the run, captured by the caller at the start. Default none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub environment: Option<String>,
}

impl Default for GuidanceSpec {
    fn default() -> Self {
        Self {
            tokens: 600,
            off: BTreeSet::new(),
            texts: BTreeMap::new(),
            instructions: Instruction::standard(),
            budget_from: 0.8,
            environment: None,
        }
    }
}

impl GuidanceSpec {
    /// Whether a section is enabled.
    pub(super) fn has(&self, section: GuidanceSection) -> bool {
        !self.off.contains(&section)
    }

    /// Custom text of a section or a kind of feedback, or `default`.
    pub(super) fn text<'a>(&'a self, id: &str, default: &'a str) -> &'a str {
        self.texts.get(id).map_or(default, String::as_str)
    }

    fn has_text(id: &str) -> bool {
        Self::ids().any(|known| known == id)
    }

    fn ids() -> impl Iterator<Item = &'static str> {
        let sections = [GuidanceSection::Items, GuidanceSection::Budget, GuidanceSection::Environment];
        sections.map(GuidanceSection::as_str).into_iter().chain(FeedbackKind::VARIANTS.iter().copied())
    }

    fn texts_known() -> String {
        Self::ids().collect::<Vec<_>>().join(", ")
    }
}
