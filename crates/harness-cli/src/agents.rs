//! The agents of a command line: what `run`, `chat`, `serve` and `acp` put together in the same way.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use harness::core::port::{Approver, Clock};
use harness::descriptor::{Graph, Map};
use harness::{BoundGraph, Builder, Harness};

use crate::args::{LimitArgs, SpanArgs, ViewArgs};
use crate::bind::Needs;
use crate::error::CliError;
use crate::model::Source;
use crate::run::{set_limits, view};

/// Agents, and their model or backend.
pub(crate) struct Agents<'a> {
    /// The graph; without one there is one agent without instructions and tools.
    pub(crate) graph: Option<BoundGraph>,
    /// Requirements of its tools.
    pub(crate) needs: Needs,
    /// Values for the context of the graph.
    pub(crate) overrides: Map,
    /// The model or the backend.
    pub(crate) source: &'a Source,
    pub(crate) clock: &'a Arc<dyn Clock>,
    /// The file of the conversation, when there is one conversation.
    pub(crate) session: Option<&'a Path>,
}

impl Agents<'_> {
    /// A builder with all of them, and with what the command line says of limits, memory and spans.
    pub(crate) fn builder(
        self,
        limits: &LimitArgs,
        view: &ViewArgs,
        spans: &SpanArgs,
        approver: impl Approver + 'static,
    ) -> Result<Builder, CliError> {
        let Self { graph, needs, overrides, source, clock, session } = self;
        let memory = needs.memory.clone();
        let mut builder = Harness::new(Arc::clone(&source.model));
        let mut compaction = None;
        if let Some(graph) = graph {
            compaction = graph.graph().run().and_then(|section| section.compaction);
            builder = builder.graph(graph).context(overrides);
        }
        builder = source.name.iter().fold(builder, |builder, name| builder.model_name(name.as_str()));
        builder = needs.meet(spans.apply(builder));
        builder = builder.approver(approver).clock(Arc::clone(clock)).spec(|spec| set_limits(spec, limits));
        let view = &ViewArgs { window: Some(view.window(source.window)), ..view.clone() };
        builder = view::compacted(builder, view, compaction, session, &source.model, clock)?;
        view::remembering(builder, view, memory)
    }
}

/// Whether an output schema validates answers of this graph: that of the entry agent, or of an agent behind handoffs.
pub(crate) fn has_output_schema(graph: &Graph) -> bool {
    let (mut next, mut seen) = (vec![graph.entry_agent()], BTreeSet::new());
    while let Some(agent) = next.pop() {
        if agent.output().is_some() {
            return true;
        }
        if seen.insert(agent.id()) {
            next.extend(agent.handoffs().iter().filter_map(|handoff| graph.agent(handoff.to())));
        }
    }
    false
}
