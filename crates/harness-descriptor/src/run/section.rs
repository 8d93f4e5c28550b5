//! The section `run` of a descriptor.

use std::str::FromStr;

use harness_control::contract::TaskContract;
use harness_control::{ControlSpec, GuidanceSpec, SignalSpec, StallSpec, WorkSpec};
use harness_core::Millis;
use harness_core::message::Cost;
use harness_core::outcome::StopMode;
use harness_core::run::{RunLimits, RunSpec};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value as Json, json};

use super::shape::{Shape, span};
use super::{contract, table};
use crate::descriptor::Descriptor;
use crate::error::{DescriptorError, Fault};
use crate::faults::Faults;

/// Settings of the section `run`, which controls how runs continue until the work is done.
///
/// Every key is optional.
///
/// ```
/// use harness_core::outcome::StopMode;
/// use harness_descriptor::{Graph, Registry, load_text};
///
/// let descriptor = load_text("
/// runtime: { entry_agent: desk }
/// run:
///   mode: strict_automation
///   limits: { turns: 12, cost: 2.50, elapsed: 20m }
///   work_items: true
/// agents: { desk: { model: small } }
/// ")?;
/// let graph = Graph::build(&descriptor, &Registry::new())?;
/// let run = graph.run().unwrap();
/// assert_eq!(run.mode, Some(StopMode::StrictAutomation));
/// let control = run.control(StopMode::StrictAutomation).unwrap();
/// assert!(control.signal.is_some() && control.work.is_some());
/// # Ok::<(), harness_descriptor::DescriptorError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct RunSection {
    /// How an end is treated that a gate does not accept.
    pub mode: Option<StopMode>,
    /// Limits of a run, over all its turns.
    pub limits: RunLimitSettings,
    /// Whether the model must say that the work is done.
    pub signal: Switch<SignalSpec>,
    /// Required outputs.
    pub contract: Option<TaskContract>,
    /// Whether there are work items.
    pub work_items: Switch<WorkSpec>,
    /// Whether a run without progress ends.
    pub stall: Switch<StallSpec>,
    /// How the model is shown less of a long run.
    pub compaction: Option<CompactionSetting>,
    /// Texts for the model beside the conversation.
    pub guidance: Option<GuidanceSpec>,
}

/// A part that may be on, off, or what it is by default.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Switch<T> {
    /// Nothing is said.
    #[default]
    Unsaid,
    /// Off.
    Off,
    /// On, like this.
    On(T),
}

impl<T> Switch<T> {
    /// The value, or `usual` if it is not set.
    fn or(&self, usual: Option<T>) -> Option<T>
    where
        T: Clone,
    {
        match self {
            Self::Unsaid => usual,
            Self::Off => None,
            Self::On(setting) => Some(setting.clone()),
        }
    }

    fn is_said(&self) -> bool {
        !matches!(self, Self::Unsaid)
    }
}

/// Limits of a run as far as they are said.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RunLimitSettings {
    /// Turns.
    pub turns: Option<u32>,
    /// Model calls of all turns together.
    pub iterations: Option<u32>,
    /// Tool calls of all turns together.
    pub tool_calls: Option<u32>,
    /// Input and output tokens of all turns together.
    pub tokens: Option<u64>,
    /// Money.
    pub cost: Option<Cost>,
    /// Time of all turns together.
    pub elapsed: Switch<Millis>,
}

impl RunLimitSettings {
    /// Lays what is said over `limits`.
    pub fn apply(&self, limits: &mut RunLimits) {
        fn set<T: Copy>(limit: &mut T, said: Option<T>) {
            *limit = said.unwrap_or(*limit);
        }
        set(&mut limits.turns, self.turns);
        set(&mut limits.amount.iterations, self.iterations);
        set(&mut limits.amount.tool_calls, self.tool_calls);
        set(&mut limits.amount.tokens, self.tokens);
        set(&mut limits.amount.cost, self.cost);
        limits.elapsed = self.elapsed.or(limits.elapsed);
    }
}

/// How the model is shown less of a long run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CompactionSetting {
    /// Compaction preset.
    pub preset: CompactionPreset,
    /// Tokens of the model's context window. Default 128,000.
    pub window: u64,
}

impl CompactionSetting {
    /// This preset over a window of so many tokens.
    ///
    /// ```
    /// use harness_descriptor::{CompactionPreset, CompactionSetting};
    ///
    /// let setting = CompactionSetting::new("sliding-window".parse()?, 200_000);
    /// assert_eq!(setting.preset, CompactionPreset::SlidingWindow { groups: 40, keep_first_prompt: true });
    /// # Ok::<(), String>(())
    /// ```
    pub fn new(preset: CompactionPreset, window: u64) -> Self {
        Self { preset, window }
    }
}

/// The ways in which the model is shown less, with their settings. As text a name stands for its defaults.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(tag = "preset", rename_all = "kebab-case")]
#[non_exhaustive]
pub enum CompactionPreset {
    /// Old results are cleared or stored elsewhere first, the rest is summarized.
    Ladder,
    /// Old messages are summarized when the space for an answer gets short.
    Summarize,
    /// The oldest messages go.
    Truncate {
        /// Tokens of messages above which they go. Default 80 % of the window.
        above: Option<u64>,
        /// Tokens of messages that stay. Default 50 % of the window.
        to: Option<u64>,
        /// Whether the first message of the user stays. Default true.
        #[serde(default = "yes")]
        keep_first_prompt: bool,
    },
    /// Only the newest messages stay, calls with their results.
    SlidingWindow {
        /// How many; calls count as one with their results. Default 40.
        #[serde(default = "groups")]
        groups: usize,
        /// Whether the first message of the user stays. Default true.
        #[serde(default = "yes")]
        keep_first_prompt: bool,
    },
    /// Of all calls with their results only the newest stay.
    Selective {
        /// How many answers with calls. Default 4.
        #[serde(default = "calls")]
        calls: usize,
    },
    /// All but the newest calls become one line each.
    ToolResults {
        /// How many answers with calls stay as they are. Default 4.
        #[serde(default = "calls")]
        calls: usize,
    },
}

impl CompactionPreset {
    /// The names of all, and what each does.
    pub fn names() -> impl Iterator<Item = (&'static str, &'static str)> {
        table::COMPACTIONS.iter().map(|kind| (kind.name, kind.about))
    }
}

impl FromStr for CompactionPreset {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        typed(&json!({ "preset": name }))
    }
}

fn yes() -> bool {
    true
}

fn groups() -> usize {
    40
}

fn calls() -> usize {
    4
}

const WINDOW: u64 = 128_000;

impl RunSection {
    /// Control settings of a run in this mode; `None` if the section has only limits and
    /// compaction.
    ///
    /// Defaults are those of [`ControlSpec::for_mode`]: the completion signal is on, and in strict
    /// automation stalls are detected.
    pub fn control(&self, mode: StopMode) -> Option<ControlSpec> {
        let said = self.mode.is_some()
            || self.signal.is_said()
            || self.contract.is_some()
            || self.work_items.is_said()
            || self.stall.is_said()
            || self.guidance.is_some();
        if !said {
            return None;
        }
        let mut control = ControlSpec::for_mode(mode);
        control.signal = self.signal.or(control.signal);
        control.contract.clone_from(&self.contract);
        control.work = self.work_items.or(None);
        control.stall = self.stall.or(control.stall);
        if let Some(guidance) = &self.guidance {
            control.guidance = guidance.clone();
        }
        Some(control)
    }

    /// Lays what is said over the settings of a run, but for the compaction and the [control](Self::control), which
    /// are ports.
    pub fn apply(&self, spec: &mut RunSpec) {
        spec.mode = self.mode.unwrap_or(spec.mode);
        self.limits.apply(&mut spec.limits);
    }
}

const SHAPE: Shape = Shape::Section(table::RUN);

/// Section of a descriptor; `None` without one, and if its errors were collected.
pub(crate) fn read(descriptor: &Descriptor, faults: &Faults) -> Result<Option<RunSection>, DescriptorError> {
    let document = descriptor.document();
    let Some(node) = document.get(descriptor.root_id(), "run") else { return Ok(None) };
    let before = faults.count();
    let has_shape = SHAPE.check(document, node, "run", faults)?;
    let contract = match (descriptor.contract(), document.get(node, "contract")) {
        (Some(file), _) => contract::read(file, file.root(), contract::ALONE, faults)?,
        // A file that could not be read is a fault of its own.
        (None, Some(inline)) if has_shape && document.string(inline).is_none() => {
            contract::read(document, Some(inline), contract::INLINE, faults)?
        }
        (None, _) => None,
    };
    if faults.count() > before {
        return Ok(None);
    }
    match section(&SHAPE.json(document, node), contract) {
        Ok(section) => Ok(Some(section)),
        Err(problem) => {
            let fault = Fault::setting(format!("run: {problem}"));
            faults.report(DescriptorError::new(fault, Some(document.place(node)))).map(|()| None)
        }
    }
}

fn section(json: &Json, contract: Option<TaskContract>) -> Result<RunSection, String> {
    let limit = |key: &str| json.get("limits").and_then(|limits| limits.get(key));
    let count = |key: &str| limit(key).and_then(Json::as_u64).and_then(|n| u32::try_from(n).ok());
    let limits = RunLimitSettings {
        turns: count("turns"),
        iterations: count("iterations"),
        tool_calls: count("tool_calls"),
        tokens: limit("tokens").and_then(Json::as_u64),
        cost: limit("cost").and_then(amount),
        elapsed: limit("elapsed").and_then(Json::as_str).and_then(span).unwrap_or_default(),
    };
    let section = RunSection {
        mode: json.get("mode").map(typed).transpose()?,
        limits,
        signal: switch(json.get("signal"))?,
        contract,
        work_items: switch(json.get("work_items"))?,
        stall: switch(json.get("stall"))?,
        compaction: json.get("compaction").map(compaction).transpose()?,
        guidance: json.get("guidance").map(typed).transpose()?,
    };
    let control = section.control(section.mode.unwrap_or_default()).unwrap_or_default();
    match control.check().first() {
        Some(fault) => Err(fault.to_string()),
        None => Ok(section),
    }
}

fn typed<T: DeserializeOwned>(json: &Json) -> Result<T, String> {
    T::deserialize(json).map_err(|error| error.to_string())
}

fn switch<T: DeserializeOwned + Default>(json: Option<&Json>) -> Result<Switch<T>, String> {
    Ok(match json {
        None => Switch::Unsaid,
        Some(Json::Bool(false)) => Switch::Off,
        Some(Json::Bool(true)) => Switch::On(T::default()),
        Some(settings) => Switch::On(typed(settings)?),
    })
}

fn amount(json: &Json) -> Option<Cost> {
    json.as_str().map_or_else(|| json.to_string(), ToOwned::to_owned).parse().ok()
}

fn compaction(json: &Json) -> Result<CompactionSetting, String> {
    Ok(CompactionSetting {
        preset: typed(json)?,
        window: json.get("window").and_then(Json::as_u64).unwrap_or(WINDOW),
    })
}
