//! Rules, and their input.

use std::sync::Arc;

use harness_core::message::Message;
use harness_core::{ModelName, Time};
use serde::{Deserialize, Serialize};

use super::judge::JudgeMode;
use crate::layer::{Decision, Hook, LayerCx, ToolAsk};

/// Subject of a rule.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum SteerPoint<'a> {
    /// A tool call that is about to run.
    Tool(&'a ToolAsk),
    /// A model's answer that does not count yet.
    Answer(&'a Arc<Message>),
}

impl SteerPoint<'_> {
    /// The hook at which it is asked.
    pub(super) fn hook(self) -> Hook {
        match self {
            Self::Tool(_) => Hook::BeforeTool,
            Self::Answer(_) => Hook::AfterModel,
        }
    }
}

/// Something that happened in the execution, as rules remember it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", rename_all_fields = "camelCase")]
#[non_exhaustive]
pub enum LedgerEntry {
    /// A tool call was judged.
    ToolCall {
        /// The tool's registered name.
        name: String,
        /// Decision: `allow`, `deny` or `guide`.
        action: String,
        /// Time of the decision.
        at: Time,
    },
    /// An answer was judged.
    ModelTurn {
        /// Decision: `allow`, `deny` or `guide`.
        action: String,
        /// Time of the decision.
        at: Time,
    },
    /// Something that the host put there.
    Custom {
        /// The host's word for it.
        name: String,
        /// Time of the entry.
        at: Time,
    },
}

/// Input of a rule.
#[derive(Debug)]
#[non_exhaustive]
pub struct SteerAsk<'a> {
    /// Subject of the rule.
    pub point: SteerPoint<'a>,
    /// Earlier events, newest last.
    pub ledger: &'a [LedgerEntry],
    /// Everything else.
    pub cx: &'a LayerCx,
}

type Predicate = Arc<dyn Fn(&SteerAsk<'_>) -> Decision + Send + Sync>;

#[derive(Clone, derive_more::Debug)]
pub(super) enum Test {
    Predicate(#[debug(skip)] Predicate),
    Judge { mode: JudgeMode, prompt: Arc<str>, model: Option<ModelName> },
}

/// A rule: code that decides, or a question to a model that judges.
#[derive(Clone, Debug)]
pub struct SteeringRule {
    pub(super) id: Arc<str>,
    pub(super) points: Vec<Hook>,
    pub(super) test: Test,
}

impl SteeringRule {
    /// A rule in code. It must be quick.
    pub fn code(
        id: impl Into<Arc<str>>,
        decide: impl Fn(&SteerAsk<'_>) -> Decision + Send + Sync + 'static,
    ) -> Self {
        Self::new(id, Test::Predicate(Arc::new(decide)))
    }

    /// Creates a rule for a judging model: `prompt` describes what is forbidden. The agent waits for the verdict.
    pub fn judged(id: impl Into<Arc<str>>, prompt: impl Into<Arc<str>>) -> Self {
        Self::new(id, Test::Judge { mode: JudgeMode::Sync, prompt: prompt.into(), model: None })
    }

    fn new(id: impl Into<Arc<str>>, test: Test) -> Self {
        Self { id: id.into(), points: vec![Hook::BeforeTool, Hook::AfterModel], test }
    }

    /// Applies the rule to tool calls only.
    #[must_use]
    pub fn for_tools(self) -> Self {
        Self { points: vec![Hook::BeforeTool], ..self }
    }

    /// Applies the rule to answers only.
    #[must_use]
    pub fn for_answers(self) -> Self {
        Self { points: vec![Hook::AfterModel], ..self }
    }

    /// Judges in the background: an objection is shown in a later view. A rule in code is not affected.
    #[must_use]
    pub fn in_background(mut self) -> Self {
        if let Test::Judge { mode, .. } = &mut self.test {
            *mode = JudgeMode::Async;
        }
        self
    }

    /// Sets the judging model. Default: the agent's. A rule in code is not affected.
    #[must_use]
    pub fn with_model(mut self, name: impl Into<ModelName>) -> Self {
        if let Test::Judge { model, .. } = &mut self.test {
            *model = Some(name.into());
        }
        self
    }
}
