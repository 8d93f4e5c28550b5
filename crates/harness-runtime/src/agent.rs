//! The agents of a thread: the configuration's, with what the thread lays over them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use harness_core::Fault;
use harness_core::port::{AgentConfig, AgentSource, DynAgentSource, PrepareAsk};
use harness_core::tool::{ToolDef, ToolScope};
use harness_core::transcript::Prefix;
use harness_host::{Params, RootCwd};

use crate::config::{Instructions, PromptInfo, ResolvedConfig};

/// The agents of one run.
pub(crate) struct ThreadAgents {
    settled: Arc<ResolvedConfig>,
    cwd: RootCwd,
    params: Params,
    agents: Arc<dyn DynAgentSource>,
    /// The transcript before the run.
    base: Prefix,
    /// Whether an agent was prepared already.
    begun: AtomicBool,
}

impl ThreadAgents {
    pub(crate) fn new(
        settled: Arc<ResolvedConfig>,
        (cwd, params): (RootCwd, Params),
        agents: Arc<dyn DynAgentSource>,
        base: Prefix,
    ) -> Self {
        Self { settled, cwd, params, agents, base, begun: AtomicBool::new(false) }
    }

    async fn tools(&self, ask: &PrepareAsk, agent: &AgentConfig) -> Result<Arc<[ToolDef]>, Fault> {
        let scope = ToolScope::new(Arc::clone(&ask.origin), None);
        let listed = self.settled.config.ports.tools.list_boxed(&scope).await?;
        let own = agent.tools.as_ref();
        let most = ask.origin.allowed_tools.as_ref();
        let used = listed.iter().filter(|def| {
            let named = |names: &Arc<[_]>| names.contains(&def.name);
            own.is_none_or(named) && most.is_none_or(named)
        });
        Ok(used.cloned().collect())
    }
}

impl AgentSource for ThreadAgents {
    async fn prepare(&self, ask: &PrepareAsk) -> Result<AgentConfig, Fault> {
        let config = &self.settled.config;
        let mut agent = self.agents.prepare_boxed(ask).await?;
        agent.model = agent.model.or_else(|| config.model_name.clone());
        agent.settings = agent.settings.or_else(|| config.settings.clone());
        agent.output = self.settled.output.clone().or(agent.output);
        if !config.provider.is_empty() {
            agent.provider = Some(Arc::clone(&config.provider));
        }
        agent.protocol = config.protocol.clone().or(agent.protocol);
        match &config.instructions {
            Instructions::OfAgents => {}
            Instructions::Text(text) => agent.instructions = Arc::clone(text),
            Instructions::Built(build) => {
                let begun = self.begun.swap(true, Ordering::Relaxed);
                let info = PromptInfo {
                    model: agent.model.clone(),
                    thinking: config.thinking,
                    tools: self.tools(ask, &agent).await?,
                    messages: if begun { ask.log.clone() } else { self.base.clone() },
                    skills: config.skills.clone(),
                    cwd: self.cwd.get(),
                    params: self.params.clone(),
                };
                agent.instructions = Arc::from(build(&info));
                agent.changes = true;
            }
        }
        Ok(agent)
    }
}
