//! Whether a backend can do what a request asks for.

use serde::{Deserialize, Serialize};

use super::{ExecutionCapabilities, ExecutionRequest, Requested, Support, ToolUse, Usefulness};

/// Mismatch between a request and a backend.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum NegotiationCode {
    /// Tools.
    ToolUseUnsupported,
    /// Calls as data.
    StructuredToolCallsUnsupported,
    /// Continuations are not supported.
    ContinuationUnsupported,
    /// To stop for approvals.
    ApprovalInterruptUnsupported,
    /// Attachments.
    AttachmentsUnsupported,
    /// The trace has less detail than requested.
    TraceDepthReduced,
    /// The context may be too large.
    ContextPressureExpected,
    /// Anything else.
    #[serde(other)]
    Other,
}

/// How much a reason weighs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Severity {
    /// Good to know.
    Info,
    /// The backend does less than was asked for.
    Warning,
    /// The backend can not do it.
    Blocking,
}

/// One reason why a request is degraded or not supported.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct NegotiationReason {
    /// Subject of the reason.
    pub code: NegotiationCode,
    /// A human-readable text. The texts of [`ExecutionNegotiation::of`] are wire texts.
    pub message: String,
    /// How much it weighs.
    pub severity: Severity,
}

impl NegotiationReason {
    /// Creates a reason.
    pub fn new(code: NegotiationCode, severity: Severity, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), severity }
    }
}

/// Response of a backend to a request before anything runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ExecutionNegotiation {
    /// Whether no reason is blocking.
    pub supported: bool,
    /// Whether a reason is not blocking: what will be done is less than what was asked for.
    pub degraded: bool,
    /// All reasons, in the order of the rules.
    pub reasons: Vec<NegotiationReason>,
    /// All capabilities of the backend, never narrowed by the request.
    pub effective_capabilities: ExecutionCapabilities,
}

impl ExecutionNegotiation {
    /// Judges reasons found by rules of a backend's own.
    pub fn from_reasons(reasons: Vec<NegotiationReason>, capabilities: ExecutionCapabilities) -> Self {
        Self {
            supported: reasons.iter().all(|reason| reason.severity != Severity::Blocking),
            degraded: reasons.iter().any(|reason| reason.severity != Severity::Blocking),
            reasons,
            effective_capabilities: capabilities,
        }
    }

    /// Checks a request by the standard rules, for backends that add none.
    pub fn of(request: &ExecutionRequest, capabilities: &ExecutionCapabilities) -> Self {
        let empty = super::ExecutionRequirements::default();
        let wants = request.requirements.as_ref().unwrap_or(&empty);
        let mut found = Vec::new();
        let mut reason =
            |code, severity, message: &str| found.push(NegotiationReason::new(code, severity, message));
        let (has_tools, no_tools) = (!request.tools().is_empty(), capabilities.tool_use == ToolUse::None);
        if has_tools && wants.tool_use == Some(Usefulness::Forbidden) {
            reason(
                NegotiationCode::ToolUseUnsupported,
                Severity::Blocking,
                "Request forbids tool use but tools were supplied.",
            );
        }
        if (has_tools || wants.tool_use == Some(Usefulness::Required)) && no_tools {
            reason(
                NegotiationCode::ToolUseUnsupported,
                Severity::Blocking,
                "Backend does not support tool use.",
            );
        }
        for (code, wish, is_able, required, preferred) in wishes(wants, capabilities) {
            match wish {
                Some(Requested::Required) if !is_able => reason(code, Severity::Blocking, required),
                Some(Requested::Preferred) if !is_able => reason(code, Severity::Warning, preferred),
                Some(_) | None => {}
            }
        }
        let attached = !request.attachments().is_empty() || wants.attachments == Some(Usefulness::Required);
        if attached && !capabilities.attachments {
            reason(
                NegotiationCode::AttachmentsUnsupported,
                Severity::Blocking,
                "Attachments are required by the request but unsupported by this adapter path.",
            );
        }
        if let Some(depth) = wants.trace_depth.filter(|depth| *depth > capabilities.trace_depth) {
            let describe = format!(
                "{} trace depth was requested but only {} trace facts are available.",
                depth.as_str(),
                capabilities.trace_depth.as_str()
            );
            reason(NegotiationCode::TraceDepthReduced, Severity::Warning, &describe);
        }
        Self::from_reasons(found, capabilities.clone())
    }

    /// The messages of all reasons in one line.
    pub fn describe(&self) -> String {
        self.reasons.iter().map(|reason| reason.message.as_str()).collect::<Vec<_>>().join(" ")
    }

    /// Reasons for later results, if the request is degraded.
    pub fn degradation(&self) -> Option<Vec<NegotiationReason>> {
        self.degraded.then(|| self.reasons.clone())
    }
}

/// A reason, what is wished for, whether it can be had, and what is said where it is required or preferred in vain.
type Preference = (NegotiationCode, Option<Requested>, bool, &'static str, &'static str);

fn wishes(wants: &super::ExecutionRequirements, capabilities: &ExecutionCapabilities) -> [Preference; 3] {
    [
        (
            NegotiationCode::StructuredToolCallsUnsupported,
            wants.structured_tool_calls,
            capabilities.structured_tool_calls,
            "Structured tool calls are required but unsupported.",
            "Structured tool calls are preferred but unsupported.",
        ),
        (
            NegotiationCode::ContinuationUnsupported,
            wants.continuation_support,
            capabilities.continuation_support != Support::None,
            "Structured continuation support is required but unavailable.",
            "Continuation support is preferred but unavailable.",
        ),
        (
            NegotiationCode::ApprovalInterruptUnsupported,
            wants.approval_interrupts,
            capabilities.approval_interrupts != Support::None,
            "Approval interrupts are required but unsupported.",
            "Approval interrupts are preferred but unavailable.",
        ),
    ]
}
