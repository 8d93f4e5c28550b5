//! Additions to the instructions of agents: skills, and texts of the host.

use std::sync::Arc;

use harness_core::Fault;
use harness_core::port::{AgentConfig, AgentSource, DynAgentSource, PrepareAsk};
use harness_runtime::skill::SkillSet;
use harness_runtime::template::TemplateSet;

use crate::builder::Builder;

impl Builder {
    /// The skills of all agents, given once: their instructions end with the names and descriptions, and each agent
    /// has the tool [`LOAD_SKILL`](harness_runtime::skill::LOAD_SKILL), with which it reads one when a task asks for
    /// it. The threads of a [runtime](Self::build_runtime) can be prompted with them, too. A descriptor's hash does
    /// not know of them. Default none.
    ///
    /// ```
    /// use harness::prelude::*;
    /// use harness::runtime::skill::{Skill, SkillSet};
    /// # struct Hosted;
    /// # impl Model for Hosted {
    /// #     async fn step(&self, _: ModelRequest, _: &dyn Deltas) -> Result<AssistantMessage, ModelFault> {
    /// #         Ok(AssistantMessage::text("hi"))
    /// #     }
    /// # }
    ///
    /// let release = Skill::new("release", "Cuts a release.", "Run the tests first.");
    /// let harness = Harness::new(Hosted).skills(SkillSet::new([release])).build()?;
    /// # Ok::<(), harness::HarnessError>(())
    /// ```
    pub fn skills(mut self, skills: SkillSet) -> Self {
        if let Some(tool) = skills.tool() {
            self = self.more_instructions(skills.instructions()).common_tool(tool);
        }
        self.threads.skills = skills;
        self
    }

    /// The prompt templates that the threads of a [runtime](Self::build_runtime) can be prompted with, in place of
    /// those given before. Default none.
    pub fn templates(mut self, templates: TemplateSet) -> Self {
        self.threads.templates = templates;
        self
    }

    /// One more text at the end of every agent's instructions, behind those that were given before and ahead of
    /// the [surroundings](Self::surroundings): what the rules of a project, for example. An empty one is left
    /// out. A descriptor's hash does not know of it. Default none.
    pub fn more_instructions(mut self, text: impl Into<Arc<str>>) -> Self {
        let text = text.into();
        if !text.is_empty() {
            self.more.push(text);
        }
        self
    }
}

/// Agents with a text after their instructions.
pub(crate) struct WithMore {
    agents: Arc<dyn DynAgentSource>,
    text: String,
}

impl WithMore {
    /// Appends texts to the instructions of agents.
    pub(crate) fn new(agents: Arc<dyn DynAgentSource>, texts: &[Arc<str>]) -> Self {
        Self { agents, text: texts.join("\n\n") }
    }
}

impl AgentSource for WithMore {
    async fn prepare(&self, ask: &PrepareAsk) -> Result<AgentConfig, Fault> {
        let mut config = self.agents.prepare_boxed(ask).await?;
        config.instructions = match &*config.instructions {
            "" => self.text.as_str().into(),
            own => format!("{own}\n\n{}", self.text).into(),
        };
        Ok(config)
    }
}
