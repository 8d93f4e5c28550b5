//! What configures the control of a run.

use std::collections::{BTreeMap, BTreeSet};

use harness_core::ToolName;
use harness_core::outcome::StopMode;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::feedback::FeedbackKind;
use super::instruction::{Instruction, Instructions};
use crate::contract::{ContractFault, TaskContract};

/// What makes a run go on until its work is done, and prove it. Each part is optional; a run without any is
/// judged by its checks of the end alone.
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
    /// The run is over only when the model says so by a tool. Without it an answer without tool calls claims
    /// to be the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signal: Option<SignalSpec>,
    /// What must have been produced.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub contract: Option<TaskContract>,
    /// The work items must be complete.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub work: Option<WorkSpec>,
    /// A run that changes nothing any more ends.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stall: Option<StallSpec>,
    /// What the model is told with each request.
    pub guidance: GuidanceSpec,
}

impl ControlSpec {
    /// What a run of this mode has unless something else is said: the completion signal, and in strict
    /// automation the detection of stalls.
    pub fn for_mode(mode: StopMode) -> Self {
        let stall = match mode {
            StopMode::Interactive => None,
            StopMode::StrictAutomation => Some(StallSpec::default()),
        };
        Self { signal: Some(SignalSpec::default()), stall, ..Self::default() }
    }

    /// The same with a completion signal.
    #[must_use]
    pub fn with_signal(self, signal: SignalSpec) -> Self {
        Self { signal: Some(signal), ..self }
    }

    /// The same with a contract.
    #[must_use]
    pub fn with_contract(self, contract: TaskContract) -> Self {
        Self { contract: Some(contract), ..self }
    }

    /// The same with work items.
    #[must_use]
    pub fn with_work(self, work: WorkSpec) -> Self {
        Self { work: Some(work), ..self }
    }

    /// The same with the detection of stalls.
    #[must_use]
    pub fn with_stall(self, stall: StallSpec) -> Self {
        Self { stall: Some(stall), ..self }
    }

    /// Checks the settings; gives every problem.
    pub fn check(&self) -> Vec<ControlFault> {
        let contract = self.contract.iter().flat_map(TaskContract::check).map(ControlFault::Contract);
        let mut faults: Vec<ControlFault> = contract.collect();
        let mut value = |field: &'static str, value: String, expected: &'static str| {
            faults.push(ControlFault::Value { field, value, expected });
        };
        if let Some(signal) = self.signal.as_ref().filter(|signal| signal.tool.as_str().is_empty()) {
            value("signal.tool", signal.tool.to_string(), "it must name a tool");
        }
        if let Some(stall) = self.stall.as_ref().filter(|stall| stall.threshold < 2) {
            value("stall.threshold", stall.threshold.to_string(), "it must be at least 2");
        }
        let guidance = &self.guidance;
        if !(0.0..=1.0).contains(&guidance.budget_from) {
            value("guidance.budget_from", guidance.budget_from.to_string(), "it must be between 0 and 1");
        }
        let texts = guidance.texts.keys().filter(|id| !GuidanceSpec::has_text(id));
        faults.extend(texts.map(|id| ControlFault::Text { id: id.clone() }));
        let mut seen = BTreeSet::new();
        let twice = guidance.instructions.iter().filter(|instruction| !seen.insert(&instruction.id));
        faults.extend(twice.map(|instruction| ControlFault::Twice { id: instruction.id.clone() }));
        faults
    }
}

/// Something in a [`ControlSpec`] that can not be meant.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ControlFault {
    /// The contract.
    #[error("contract: {0}")]
    Contract(ContractFault),
    /// A value.
    #[error("`{field}` is {value}: {expected}")]
    Value {
        /// The setting.
        field: &'static str,
        /// What was given.
        value: String,
        /// What it must be.
        expected: &'static str,
    },
    /// A text that nothing says.
    #[error("`guidance.texts` has `{id}`; there are {known}", known = GuidanceSpec::texts_known())]
    Text {
        /// What was given.
        id: String,
    },
    /// Two instructions have one name.
    #[error("`guidance.instructions` names `{id}` twice")]
    Twice {
        /// The name.
        id: String,
    },
}

/// The completion signal: a tool by which the model says that the work is done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct SignalSpec {
    /// Rejections in a row of an end without the signal, before an interactive run accepts it. Default 3.
    /// Strict automation never accepts it.
    pub retries: u32,
    /// Turns in a row without any tool call that are answered by a prompt to go on, before such a turn counts
    /// as an end without the signal. Default 5.
    pub prompts: u32,
    /// The tool. Default `work_complete`.
    #[schemars(with = "String")]
    pub tool: ToolName,
}

impl Default for SignalSpec {
    fn default() -> Self {
        Self { retries: 3, prompts: 5, tool: ToolName::from("work_complete") }
    }
}

impl SignalSpec {
    /// The same with so many rejections and prompts.
    #[must_use]
    pub fn patience(self, prompts: u32, retries: u32) -> Self {
        Self { retries, prompts, ..self }
    }
}

/// Work items: the run is over only when none is left.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct WorkSpec {
    /// Items that guidance and feedback name at most; of the others the number is told. Default 20.
    pub shown: u32,
}

impl Default for WorkSpec {
    fn default() -> Self {
        Self { shown: 20 }
    }
}

/// The detection of runs that change nothing any more.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct StallSpec {
    /// Turns in a row that leave the same behind. At least 2; default 3.
    pub threshold: u32,
    /// What follows. Default to stop.
    pub reaction: StallReaction,
}

impl Default for StallSpec {
    fn default() -> Self {
        Self { threshold: 3, reaction: StallReaction::default() }
    }
}

impl StallSpec {
    /// Stops after so many equal turns in a row.
    pub fn after(threshold: u32) -> Self {
        Self { threshold, ..Self::default() }
    }

    /// The same with one word to the model before the stop.
    #[must_use]
    pub fn nudging(self) -> Self {
        Self { reaction: StallReaction::NudgeThenStop, ..self }
    }
}

/// What follows when a run makes no progress.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum StallReaction {
    /// It stops.
    #[default]
    Stop,
    /// The model is told once; when the next turns leave the same behind again, it stops.
    NudgeThenStop,
}

/// A part of the guidance that goes with each request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum GuidanceSection {
    /// Which work items are left.
    Items,
    /// Instructions whose moment has come.
    Instructions,
    /// What is left of the limits, when it is little.
    Budget,
    /// Where the run takes place.
    Environment,
}

impl GuidanceSection {
    /// All of them, in the order in which they are told.
    pub const ALL: &[Self] = &[Self::Items, Self::Instructions, Self::Budget, Self::Environment];

    /// The wire name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Items => "items",
            Self::Instructions => "instructions",
            Self::Budget => "budget",
            Self::Environment => "environment",
        }
    }
}

/// What the model is told with each request, behind everything else and stored nowhere.
///
/// Each part is told at most once in a request and only when there is something to tell; together they keep
/// within a number of tokens (counted as four characters each): what does not fit is left out, the later
/// parts first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct GuidanceSpec {
    /// Tokens of all parts together at most. Default 600.
    pub tokens: u32,
    /// Parts that are not told. Default none.
    pub off: BTreeSet<GuidanceSection>,
    /// Other words for a part or for a kind of feedback, by its name; the facts (items, requirements) follow
    /// them.
    pub texts: BTreeMap<String, String>,
    /// What to tell when. Default [`Instructions::standard`].
    pub instructions: Vec<Instruction>,
    /// The share of a limit from which on what is left is told. Default 0.8.
    pub budget_from: f64,
    /// Where the run takes place, captured once by whoever begins it. Default nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub environment: Option<String>,
}

impl Default for GuidanceSpec {
    fn default() -> Self {
        Self {
            tokens: 600,
            off: BTreeSet::new(),
            texts: BTreeMap::new(),
            instructions: Instructions::standard().into_list(),
            budget_from: 0.8,
            environment: None,
        }
    }
}

impl GuidanceSpec {
    /// Whether a part is told.
    pub(crate) fn tells(&self, section: GuidanceSection) -> bool {
        !self.off.contains(&section)
    }

    /// The text of a part or a kind of feedback, or `usual`.
    pub fn text<'a>(&'a self, id: &str, usual: &'a str) -> &'a str {
        self.texts.get(id).map_or(usual, String::as_str)
    }

    fn has_text(id: &str) -> bool {
        Self::ids().any(|known| known == id)
    }

    fn ids() -> impl Iterator<Item = &'static str> {
        let sections = [GuidanceSection::Items, GuidanceSection::Budget, GuidanceSection::Environment];
        sections
            .map(GuidanceSection::as_str)
            .into_iter()
            .chain(FeedbackKind::ALL.iter().map(|kind| kind.as_str()))
    }

    fn texts_known() -> String {
        Self::ids().collect::<Vec<_>>().join(", ")
    }
}
