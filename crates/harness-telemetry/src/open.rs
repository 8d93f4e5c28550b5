//! Spans and their attributes.

use std::borrow::Cow;

use harness_control::ControlEvent;
use harness_core::event::EventKind;
use harness_core::message::{Cost, ToolCall, Usage};
use harness_core::outcome::{Purpose, TotalUsage};
use harness_core::port::CompactionNote;
use harness_core::{AgentId, End, Evidence, Millis, Origin, Outcome};
use tracing::field::Empty;
use tracing::{Span, Value, info_span};

use crate::content::{PROBLEM_BYTES, cut};

/// The target of all spans of this crate, for filters.
pub const TARGET: &str = "harness::spans";

/// A span that is open until it is dropped. It is never entered: what runs meanwhile is not inside of it.
#[derive(Clone, Debug)]
pub(crate) struct Open(Span);

/// A count as an attribute.
pub(crate) fn count(number: impl TryInto<i64>) -> i64 {
    number.try_into().unwrap_or(i64::MAX)
}

fn money(cost: Cost) -> Option<f64> {
    cost.to_string().parse().ok()
}

/// A span below whatever is entered now, or below `$parent` where there is one.
macro_rules! root {
    ($parent:expr, $name:literal, $($fields:tt)*) => {
        match $parent {
            Some(parent) => info_span!(target: TARGET, parent: parent, $name, $($fields)*),
            None => info_span!(target: TARGET, $name, $($fields)*),
        }
    };
}

impl Open {
    /// A run, or a turn without one.
    pub(crate) fn work(parent: Option<&Span>, origin: &Origin) -> Self {
        let conversation = origin.thread.as_ref().map(harness_core::ThreadId::as_str);
        let session = origin.session.as_ref().map(harness_core::SessionId::as_str);
        Self(root!(
            parent,
            "invoke_agent",
            otel.name = Empty,
            otel.status_code = Empty,
            otel.status_description = Empty,
            "error.type" = Empty,
            gen_ai.operation.name = "invoke_agent",
            gen_ai.agent.name = Empty,
            gen_ai.conversation.id = conversation.or(session),
            gen_ai.usage.input_tokens = Empty,
            gen_ai.usage.output_tokens = Empty,
            gen_ai.input.messages = Empty,
            gen_ai.output.messages = Empty,
            harness.run.id = origin.run.as_ref().map(harness_core::RunId::as_str),
            harness.session.id = session,
            harness.descriptor.hash = origin.descriptor_hash.as_deref(),
            harness.resumed = Empty,
            harness.outcome = Empty,
            harness.stop_reason = Empty,
            harness.turns = Empty,
            harness.iterations = Empty,
            harness.model_calls = Empty,
            harness.tool_calls = Empty,
            harness.cost = Empty,
            harness.estimated_tokens = Empty,
            harness.usage_by_purpose = Empty,
        ))
    }

    /// A turn of a run.
    pub(crate) fn turn(&self, turn: u32, agent: &AgentId, resumed: bool) -> Self {
        Self(info_span!(
            target: TARGET,
            parent: &self.0,
            "turn",
            otel.name = format!("turn {turn}"),
            otel.status_code = Empty,
            otel.status_description = Empty,
            "error.type" = Empty,
            gen_ai.agent.name = agent.as_str(),
            gen_ai.usage.input_tokens = Empty,
            gen_ai.usage.output_tokens = Empty,
            harness.turn = count(turn),
            harness.resumed = resumed,
            harness.outcome = Empty,
            harness.stop_reason = Empty,
            harness.iterations = Empty,
            harness.model_calls = Empty,
            harness.tool_calls = Empty,
            harness.cost = Empty,
            harness.estimated_tokens = Empty,
            harness.usage_by_purpose = Empty,
        ))
    }

    /// Span of an agent after a handoff.
    pub(crate) fn handed(&self, agent: &AgentId, from: &AgentId) -> Self {
        Self(info_span!(
            target: TARGET,
            parent: &self.0,
            "invoke_agent",
            otel.name = format!("invoke_agent {agent}"),
            otel.status_code = Empty,
            otel.status_description = Empty,
            "error.type" = Empty,
            gen_ai.operation.name = "invoke_agent",
            gen_ai.agent.name = agent.as_str(),
            harness.handoff.from = from.as_str(),
        ))
    }

    /// A model call.
    pub(crate) fn chat(&self, model: Option<&str>, agent: &AgentId, iteration: u32) -> Self {
        Self(info_span!(
            target: TARGET,
            parent: &self.0,
            "chat",
            otel.name = model.map(|model| format!("chat {model}")),
            otel.kind = "client",
            otel.status_code = Empty,
            otel.status_description = Empty,
            "error.type" = Empty,
            gen_ai.operation.name = "chat",
            gen_ai.provider.name = Empty,
            gen_ai.agent.name = agent.as_str(),
            gen_ai.request.model = model,
            gen_ai.response.model = Empty,
            gen_ai.response.id = Empty,
            gen_ai.response.finish_reasons = Empty,
            gen_ai.usage.input_tokens = Empty,
            gen_ai.usage.output_tokens = Empty,
            gen_ai.usage.cache_read.input_tokens = Empty,
            gen_ai.usage.cache_creation.input_tokens = Empty,
            gen_ai.usage.reasoning.output_tokens = Empty,
            gen_ai.system_instructions = Empty,
            gen_ai.input.messages = Empty,
            gen_ai.output.messages = Empty,
            gen_ai.output.type = Empty,
            harness.iteration = count(iteration),
            harness.output_type = Empty,
            harness.requests = Empty,
            harness.cost = Empty,
        ))
    }

    /// A tool call.
    pub(crate) fn tool(&self, call: &ToolCall, iteration: u32) -> Self {
        Self(info_span!(
            target: TARGET,
            parent: &self.0,
            "execute_tool",
            otel.name = format!("execute_tool {}", call.name),
            otel.status_code = Empty,
            otel.status_description = Empty,
            "error.type" = Empty,
            gen_ai.operation.name = "execute_tool",
            gen_ai.tool.name = call.name.as_str(),
            gen_ai.tool.call.id = call.id.as_str(),
            gen_ai.tool.call.arguments = Empty,
            gen_ai.tool.call.result = Empty,
            harness.iteration = count(iteration),
            harness.tool.ran = Empty,
            harness.tool.attempts = Empty,
            harness.tool.status = Empty,
            harness.tool.exit_code = Empty,
            harness.tool.note = Empty,
        ))
    }

    /// Span of an approval.
    pub(crate) fn approval(&self, call: Option<&str>, kind: &str) -> Self {
        Self(info_span!(
            target: TARGET,
            parent: &self.0,
            "approval",
            gen_ai.tool.call.id = call,
            harness.approval.kind = kind,
            harness.approval.decision = Empty,
        ))
    }

    /// Span of a compaction.
    pub(crate) fn compaction(parent: Option<&Self>, trigger: &str) -> Self {
        let parent = parent.map(|open| &open.0);
        Self(root!(
            parent,
            "compact",
            otel.status_code = Empty,
            otel.status_description = Empty,
            "error.type" = Empty,
            gen_ai.usage.input_tokens = Empty,
            gen_ai.usage.output_tokens = Empty,
            harness.compaction.trigger = trigger,
            harness.compaction.permanent = Empty,
            harness.compaction.tokens_before = Empty,
            harness.compaction.tokens_after = Empty,
            harness.model_calls = Empty,
            harness.tool_calls = Empty,
            harness.cost = Empty,
            harness.duration_ms = Empty,
        ))
    }

    /// The span, as a parent of others.
    pub(crate) fn span(&self) -> &Span {
        &self.0
    }

    pub(crate) fn set(&self, field: &'static str, value: impl Value) {
        self.0.record(field, value);
    }

    /// Marks the span as failed, with a stable code and a human-readable text.
    pub(crate) fn fail(&self, code: &str, text: Option<&str>) {
        self.set("otel.status_code", "ERROR");
        self.set("error.type", code);
        if let Some(text) = text {
            self.set("otel.status_description", &*cut(text, PROBLEM_BYTES));
        }
    }

    /// Records the usage of a model call. Input tokens include cached ones, as the conventions
    /// count them.
    pub(crate) fn used(&self, usage: &Usage) {
        let input = [usage.input, usage.cache_read, usage.cache_write];
        if input.iter().any(Option::is_some) {
            let all = input.into_iter().flatten().fold(0, u64::saturating_add);
            self.set("gen_ai.usage.input_tokens", count(all));
        }
        for (field, tokens) in [
            ("gen_ai.usage.output_tokens", usage.output),
            ("gen_ai.usage.cache_read.input_tokens", usage.cache_read),
            ("gen_ai.usage.cache_creation.input_tokens", usage.cache_write),
            ("gen_ai.usage.reasoning.output_tokens", usage.reasoning),
            ("harness.requests", usage.requests),
        ] {
            if let Some(tokens) = tokens {
                self.set(field, count(tokens));
            }
        }
        self.set("harness.cost", usage.total_cost().and_then(money));
    }

    fn used_in_all(&self, usage: &TotalUsage, cached: u64) {
        let input = usage.input_tokens.map(|input| count(input.saturating_add(cached)));
        self.set("gen_ai.usage.input_tokens", input);
        self.set("gen_ai.usage.output_tokens", usage.output_tokens.map(count));
        self.set("harness.model_calls", count(usage.model_calls));
        self.set("harness.tool_calls", count(usage.tool_calls));
        self.set("harness.cost", usage.cost.and_then(money));
        self.set("harness.estimated_tokens", usage.estimated_tokens.map(count));
        if usage.by_purpose.keys().any(|purpose| *purpose != Purpose::Answer) {
            let shares = harness_core::Json::of(&usage.by_purpose).ok();
            self.set("harness.usage_by_purpose", shares.as_ref().map(harness_core::Json::text));
        }
    }

    /// Records the end of a turn or run. An outcome other than failure is not an error.
    ///
    /// `cached`: cached input tokens, which totals exclude and the conventions include.
    pub(crate) fn ended(&self, end: &End, cached: u64) {
        self.set("harness.outcome", end.outcome().as_str());
        self.set("harness.stop_reason", end.reason().as_str());
        self.set("harness.turns", count(end.turns));
        self.set("harness.iterations", count(end.iterations));
        self.used_in_all(&end.usage, cached);
        if end.outcome() == Outcome::Failed {
            self.fail(end.reason().as_str(), problem(&end.stop.evidence).as_deref());
        }
    }

    pub(crate) fn compacted(&self, note: &CompactionNote, permanent: bool, usage: &TotalUsage, took: Millis) {
        self.set("harness.compaction.permanent", permanent);
        self.set("harness.compaction.tokens_before", count(note.tokens_before));
        self.set("harness.compaction.tokens_after", count(note.tokens_after));
        self.set("harness.duration_ms", count(took.0));
        self.used_in_all(usage, 0);
    }

    /// Notes something that happened in it and took no time.
    pub(crate) fn note(&self, kind: &EventKind) {
        let Some(facts) = facts(kind) else { return };
        let name = kind.name();
        tracing::debug!(target: TARGET, parent: &self.0, facts = %facts, "{name}");
    }
}

/// Failure in one sentence, without content.
fn problem(evidence: &Evidence) -> Option<Cow<'_, str>> {
    match evidence {
        Evidence::Fault(fault) => Some(Cow::Borrowed(&fault.message)),
        Evidence::Cancelled { by } => Some(format!("cancelled by {by}").into()),
        Evidence::Tool { name, .. } => Some(format!("tool `{name}`").into()),
        Evidence::Guardrail { guardrail, stage, .. } => {
            Some(format!("{stage} guardrail `{guardrail}`").into())
        }
        Evidence::Gate { gate, tool, .. } => Some(format!("gate `{gate}` refused `{tool}`").into()),
        Evidence::Loop { tools } => Some(tools.join(", ").into()),
        Evidence::None
        | Evidence::Limit(_)
        | Evidence::Invalid(_)
        | Evidence::Approval(_)
        | Evidence::Held(_)
        | Evidence::Density(_)
        | Evidence::ToolResult(_)
        | _ => None,
    }
}

/// The facts of what is noted; `None` for what is not.
#[expect(clippy::wildcard_enum_match_arm, reason = "everything else has spans, or only updates a span")]
fn facts(kind: &EventKind) -> Option<Cow<'_, str>> {
    Some(match kind {
        EventKind::Decided { by, point, call, verdict, .. } => {
            let call = call.as_ref().map(|call| format!(" ({call})")).unwrap_or_default();
            format!("{by}: {verdict} {point}{call}").into()
        }
        EventKind::ToolRetried { attempt, max_attempts, backoff, .. } => {
            format!("attempt {attempt} of {max_attempts} after {backoff}").into()
        }
        EventKind::Control { .. } => match ControlEvent::of(kind)? {
            ControlEvent::StopDecided { decision } => Cow::Borrowed(decision.code.as_str()),
            _ => return None,
        },
        EventKind::LimitReached { reason, .. } => Cow::Borrowed(reason.as_str()),
        EventKind::CallRepaired { call, how } => format!("{}: {how:?}", call.id).into(),
        EventKind::SteeringInjected { entries } => format!("{} messages", entries.len()).into(),
        EventKind::ModelUsageCharged { purpose, usage } => {
            let (calls, tokens) = (usage.model_calls, usage.amount().tokens);
            format!("{}: {calls} model calls, {tokens} tokens", purpose.as_str()).into()
        }
        EventKind::PartFailed { fault } => format!("{}: {}", fault.source_part, fault.code).into(),
        EventKind::PersistFailed { message } => Cow::Borrowed(message),
        EventKind::ContextPressure { estimate, window, .. } => {
            format!("about {estimate} of {window} tokens").into()
        }
        _ => return None,
    })
}
