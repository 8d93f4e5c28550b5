//! Modes as data.

use std::sync::Arc;

use harness_core::ToolName;
use harness_core::outcome::StopMode;
use harness_core::tool::ToolDef;

/// Which tools may be called in a mode.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum ModeCalls {
    /// All that there are.
    #[default]
    All,
    /// Those that change nothing outside of the conversation ([`ToolDef::mutates`]).
    Looking,
}

/// A way of working, with a name.
///
/// ```
/// use harness_core::outcome::StopMode;
/// use harness_tools::{Mode, ModeCalls};
///
/// let mut review = Mode::new("review", "You read what is there and say what you would change.");
/// review.calls = ModeCalls::Looking;
/// review.also = vec!["comment".into()];
/// review.stop = Some(StopMode::Interactive);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Mode {
    /// Its name, by which it is chosen.
    pub name: Arc<str>,
    /// Instructions for the model.
    pub meaning: String,
    /// Which tools may be called. Default all.
    pub calls: ModeCalls,
    /// Tools that may be called all the same. Default none.
    pub also: Vec<ToolName>,
    /// How runs that begin in it treat a check of the end that is not satisfied. Default as they are configured.
    pub stop: Option<StopMode>,
}

impl Mode {
    /// A mode in which everything may be called.
    pub fn new(name: impl Into<Arc<str>>, meaning: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            meaning: meaning.into(),
            calls: ModeCalls::All,
            also: Vec::new(),
            stop: None,
        }
    }

    /// The mode `plan`: only looking around, asking, and agreeing on a plan; runs are interactive.
    pub fn plan() -> Self {
        let meaning = "Look around and ask the user what is unclear, change nothing, and propose a plan. When \
                       the user approves of it, ask for the mode `execute`.";
        let mut mode = Self::new("plan", meaning);
        (mode.calls, mode.stop) = (ModeCalls::Looking, Some(StopMode::Interactive));
        mode
    }

    /// The mode `execute`: work on one's own until all is done; runs are as they are configured.
    pub fn execute() -> Self {
        Self::new("execute", "Work on your own until everything is done, without asking before each step.")
    }

    /// Whether a tool may be called.
    pub fn allows(&self, def: &ToolDef) -> bool {
        match self.calls {
            ModeCalls::All => true,
            ModeCalls::Looking => !def.mutates() || self.also.contains(&def.name),
        }
    }
}
