//! The tool that loads a skill.

use std::sync::Arc;

use harness_core::tool::{DynTool, ToolOutcome, tool_fn};
use schemars::JsonSchema;
use serde::Deserialize;

use super::{SkillSet, render};

/// The name of the tool that loads a skill.
pub const LOAD_SKILL: &str = "load_skill";

/// The arguments of the tool.
#[derive(Deserialize, JsonSchema)]
struct LoadSkill {
    /// The name of the skill, as listed.
    name: String,
}

impl SkillSet {
    /// The tool [`LOAD_SKILL`], which gives a model the instructions of a visible skill; `None` when there are
    /// none. It changes nothing, so it is of class `pure`. A name that is not listed is an error result with
    /// the names that are.
    pub fn tool(&self) -> Option<Arc<dyn DynTool>> {
        if self.visible_names().is_empty() {
            return None;
        }
        let skills = self.clone();
        let tool = tool_fn(LOAD_SKILL, "Gives the instructions of a skill.", move |args: LoadSkill, _| {
            let loaded = skills.load(&args.name);
            async move { loaded }
        });
        Some(Arc::new(tool.pure()))
    }

    fn load(&self, name: &str) -> ToolOutcome {
        if let Some(skill) = self.get(name).filter(|skill| !skill.hidden) {
            return ToolOutcome::text(render::body(skill));
        }
        let names = self.visible_names().join("`, `");
        ToolOutcome::error("unknown_skill", format!("there is no skill `{name}`: the skills are `{names}`"))
    }
}
