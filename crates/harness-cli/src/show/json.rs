//! JSON preview of an agent.

use harness::descriptor::{HandoffPreview, PartPreview, Preview, Standing, Value};
use serde::Serialize;

/// The output of `harness show --agent … --json`.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Shown<'a> {
    agent: &'a str,
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    model_settings: Option<&'a Value>,
    /// Absent when the agent has none, and when a turn would fail.
    #[serde(skip_serializing_if = "Option::is_none")]
    instructions: Option<&'a str>,
    parts: Vec<Part<'a>>,
    tools: Vec<Tool<'a>>,
    handoffs: Vec<Handoff<'a>>,
    context: &'a Value,
    #[serde(skip_serializing_if = "Option::is_none")]
    fault: Option<Fault>,
}

#[derive(Serialize)]
struct Part<'a> {
    source: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    gate: Option<&'a str>,
    #[serde(flatten)]
    standing: Stands,
}

#[derive(Serialize)]
struct Tool<'a> {
    id: &'a str,
    name: &'a str,
    target: &'a str,
    description: &'a str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Handoff<'a> {
    to: &'a str,
    tool_name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    gate: Option<&'a str>,
    #[serde(flatten)]
    standing: Stands,
}

/// `open`, `closed`, `repeated` or `faulty`, and what is wrong in the last case.
#[derive(Serialize)]
struct Stands {
    standing: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    fault: Option<Fault>,
}

#[derive(Serialize)]
struct Fault {
    kind: &'static str,
    message: String,
}

impl<'a> Shown<'a> {
    pub(super) fn of(preview: &'a Preview<'_>, context: &'a Value) -> Self {
        let agent = preview.agent;
        let resolved = preview.resolved.as_ref().ok();
        let tools = agent.tools().iter().map(|tool| Tool {
            id: &tool.id,
            name: &tool.name,
            target: &tool.target,
            description: &tool.description,
        });
        Self {
            agent: agent.id(),
            name: agent.name(),
            model: resolved.map(|resolved| &*resolved.model),
            model_settings: agent.model_settings(),
            instructions: resolved.and_then(|resolved| resolved.instructions.as_deref()),
            parts: preview.parts.iter().map(Part::of).collect(),
            tools: tools.collect(),
            handoffs: preview.handoffs.iter().map(|handoff| Handoff::of(handoff, preview)).collect(),
            context,
            fault: preview
                .resolved
                .as_ref()
                .err()
                .map(|error| Fault { kind: error.kind(), message: error.to_string() }),
        }
    }
}

impl<'a> Part<'a> {
    fn of(preview: &'a PartPreview<'_>) -> Self {
        Self {
            source: preview.part.template().source(),
            gate: preview.part.gate().map(harness::descriptor::ContextPath::as_str),
            standing: Stands::of(&preview.standing),
        }
    }
}

impl<'a> Handoff<'a> {
    fn of(preview: &'a HandoffPreview<'_>, whole: &'a Preview<'_>) -> Self {
        let handoff = preview.handoff;
        let offered = whole.resolved.as_ref().ok().filter(|_| matches!(preview.standing, Standing::Open));
        let offered =
            offered.and_then(|resolved| resolved.handoffs.iter().find(|open| *open.to == *handoff.to()));
        Self {
            to: handoff.to(),
            tool_name: handoff.tool_name(),
            description: offered.map(|open| &*open.description),
            gate: handoff.gate().map(harness::descriptor::ContextPath::as_str),
            standing: Stands::of(&preview.standing),
        }
    }
}

impl Stands {
    fn of(standing: &Standing) -> Self {
        let fault = if let Standing::Faulty(fault) = standing { Some(fault) } else { None };
        let fault = fault.map(|fault| Fault { kind: fault.kind(), message: fault.to_string() });
        Self { standing: standing.name(), fault }
    }
}
