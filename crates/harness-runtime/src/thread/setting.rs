//! Changing what a thread is made of. A run captures it when it begins; changes hold from the next run on.

use std::sync::Arc;

use harness_core::port::ThinkingLevel;
use harness_core::tool::{DynToolRegistry, ToolDef, ToolScope};
use harness_core::{Json, ToolName};

use super::handle::Thread;
use crate::config::{Instructions, ModelChoice, PromptInfo, ResolvedConfig, ThreadConfig};
use crate::error::RuntimeError;
use crate::skill::SkillSet;
use crate::template::TemplateSet;

impl Thread {
    /// Configuration of the next run.
    pub fn config(&self) -> ThreadConfig {
        self.0.lock().settled.config.clone()
    }

    /// Changes anything that the next run is made from.
    pub fn configure(&self, change: impl FnOnce(&mut ThreadConfig)) {
        let mut state = self.0.lock();
        let mut config = state.settled.config.clone();
        change(&mut config);
        state.settled = ResolvedConfig::new(config);
    }

    /// Another model.
    pub fn set_model(&self, model: ModelChoice) {
        self.configure(|config| config.choose(model));
    }

    /// How hard the model thinks; `None` leaves it to the adapter and its settings.
    pub fn set_thinking(&self, level: Option<ThinkingLevel>) {
        self.configure(|config| config.thinking = level);
    }

    /// The system prompt.
    pub fn set_instructions(&self, text: impl Into<Arc<str>>) {
        self.configure(|config| config.instructions = Instructions::Text(text.into()));
    }

    /// Builds the system prompt before every iteration.
    pub fn build_instructions(&self, build: impl Fn(&PromptInfo) -> String + Send + Sync + 'static) {
        self.configure(|config| config.instructions = Instructions::Built(Arc::new(build)));
    }

    /// Options of every request.
    pub fn set_settings(&self, settings: Option<Json>) {
        self.configure(|config| config.settings = settings);
    }

    /// Replaces the tools. Names of active tools stay: an unregistered one matches nothing until it is registered again.
    pub fn set_tools(&self, tools: Arc<dyn DynToolRegistry>) {
        self.configure(|config| config.ports.tools = tools);
    }

    /// All tools that are registered.
    ///
    /// # Errors
    /// [`RuntimeError::Part`] when they cannot be listed.
    pub async fn tools(&self) -> Result<Arc<[ToolDef]>, RuntimeError> {
        let settled = Arc::clone(&self.0.lock().settled);
        let scope = ToolScope::new(Arc::default(), None);
        settled.config.ports.tools.list_boxed(&scope).await.map_err(RuntimeError::Part)
    }

    /// The tools in use, in the order of the registry.
    ///
    /// # Errors
    /// As [`Thread::tools`].
    pub async fn active_tools(&self) -> Result<Vec<ToolName>, RuntimeError> {
        let active = self.0.lock().settled.config.active_tools.clone();
        let listed = self.tools().await?;
        let names = listed.iter().map(|def| &def.name);
        Ok(names.filter(|name| active.as_ref().is_none_or(|active| active.contains(name))).cloned().collect())
    }

    /// The tools in use from the next run on; no names are all tools. A tool that is not in use is unknown to
    /// the model.
    ///
    /// # Errors
    /// [`RuntimeError::UnknownTools`], and nothing changes; as [`Thread::tools`].
    pub async fn set_active_tools<N: Into<ToolName>>(
        &self,
        names: impl IntoIterator<Item = N>,
    ) -> Result<(), RuntimeError> {
        let names: Vec<ToolName> = names.into_iter().map(Into::into).collect();
        let listed = self.tools().await?;
        let unknown = names.iter().filter(|name| !listed.iter().any(|def| def.name == **name));
        let unknown: Vec<ToolName> = unknown.cloned().collect();
        if !unknown.is_empty() {
            return Err(RuntimeError::UnknownTools { names: unknown });
        }
        self.configure(|config| config.active_tools = (!names.is_empty()).then(|| names.into()));
        Ok(())
    }

    /// Other skills.
    pub fn set_skills(&self, skills: SkillSet) {
        self.configure(|config| config.skills = skills);
    }

    /// Other prompt templates.
    pub fn set_templates(&self, templates: TemplateSet) {
        self.configure(|config| config.templates = templates);
    }
}
