//! Conversations with the agents of a descriptor, or with a model alone: the common part of `chat`, `serve` and
//! `acp`.

mod disk;
pub(crate) mod found;

use std::path::Path;
use std::sync::Arc;

use harness::core::port::{Approver, Clock, DynModel};
use harness::core::{AgentId, ThreadId};
use harness::runtime::Runtime;
use harness::tools::{Modes, Registry};
use harness::{BoundGraph, Builder, SessionStore};

use self::found::Found;
use crate::agents::{Agents, has_output_schema};
use crate::args::{AgentArgs, SpanArgs};
use crate::bind::{self, Bound, Needs};
use crate::error::CliError;
use crate::model::{self, Source};
use crate::run::{answers, context};

/// Runtime of conversations, with its model and registry.
pub(crate) struct Threads {
    pub(crate) runtime: Runtime,
    /// The model that answers.
    pub(crate) model: Arc<dyn DynModel>,
    /// The model that stands for those that the descriptor names.
    pub(crate) model_name: Option<String>,
    /// Context window of the model, if the registry file declares it.
    pub(crate) window: Option<u64>,
    /// The line about the demo model that answers in place of a live one, for the caller to show.
    pub(crate) notice: Option<String>,
    /// Whether an output schema validates the answers.
    pub(crate) are_validated: bool,
    /// Skills and context files in addition to the descriptor.
    pub(crate) found: Found,
    pub(crate) registry: Option<Registry>,
    /// Agents of the descriptor, from its entry on.
    pub(crate) agents: Vec<AgentId>,
}

/// Agents and storage of conversations.
pub(crate) struct Of<'a> {
    /// The file with the agents; without one there is one agent without instructions and tools, and
    /// `--model` or a backend must be given.
    pub(crate) descriptor: Option<&'a Path>,
    /// Where they are kept; `None` keeps them in memory.
    pub(crate) sessions: Option<SessionStore>,
    /// The one conversation that a backend has.
    pub(crate) thread: Option<ThreadId>,
    /// Quotas and budgets that other processes share.
    pub(crate) pools: Option<model::Pools>,
}

impl Threads {
    /// Builds the runtime, and prints the skills and context files on standard error. `change` is applied last.
    pub(crate) async fn open(
        of: Of<'_>,
        args: &AgentArgs,
        spans: &SpanArgs,
        approver: impl Approver + 'static,
        clock: &Arc<dyn Clock>,
        change: impl FnOnce(Builder) -> Builder,
    ) -> Result<Self, CliError> {
        let bound = of
            .descriptor
            .map(|descriptor| bind::bind(descriptor, args.registry.as_deref(), clock))
            .transpose()?;
        let graph = bound.as_ref().map(|bound| &bound.graph);
        // Without a descriptor, a registry file is read for its models.
        let models = match (&of.descriptor, &args.registry) {
            (None, Some(path)) => Some(Registry::load(path)?),
            (Some(_), _) | (None, None) => None,
        };
        let registry = bound.as_ref().and_then(|bound| bound.registry.as_ref()).or(models.as_ref());
        let of_graph = |graph: &BoundGraph| graph.graph().agents().map(|agent| agent.id().into()).collect();
        let agent_ids = graph.map(of_graph).unwrap_or_default();
        let are_validated = graph.is_some_and(|graph| has_output_schema(graph.graph()));
        let source = answers(&args.model, &args.backend, of.thread, clock, || {
            model::find(&args.model, graph, registry, clock, of.pools)
        })?;
        let overrides = context::overrides(&args.context)?;
        let mut found = Found::read(&args.folders, of.descriptor).await?;
        found.tell();
        if args.backend.backend.is_some() {
            found.keep_skills_to_people();
        }
        let (graph, registry) =
            bound.map_or((None, models), |Bound { graph, registry }| (Some(graph), registry));
        let needs = Needs::of(registry.as_ref());
        let agents = Agents { graph, needs, overrides, source: &source, clock, session: None };
        let mut builder = agents.builder(&args.limits, &args.view, spans, approver)?;
        if let Some(sessions) = of.sessions {
            builder = builder.sessions(sessions);
        }
        if args.allow_changed {
            builder = builder.any_descriptor();
        }
        let runtime = change(found.give(builder)).build_runtime()?;
        let Source { model, name: model_name, window, notice, .. } = source;
        Ok(Self {
            runtime,
            model,
            model_name,
            window,
            notice,
            are_validated,
            found,
            registry,
            agents: agent_ids,
        })
    }

    /// The modes that the registry names.
    pub(crate) fn modes(&self) -> Option<&Modes> {
        self.registry.as_ref().and_then(Registry::modes)
    }

    /// Ends all conversations, and the programs of their tools.
    pub(crate) async fn close(&self) {
        self.runtime.shutdown().await;
        if let Some(registry) = &self.registry {
            registry.close().await;
        }
    }
}
