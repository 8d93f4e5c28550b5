//! Evidence of stop reasons.

use std::borrow::Cow;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::fault::Fault;
use crate::ids::{CallId, GateName, ToolName};
use crate::json::Json;
use crate::limits::Reached;
use crate::message::{ApprovalRequest, Invalid};

crate::wire_enum! {
    /// Subject of a guardrail.
    pub enum GuardStage {
        /// Prompt.
        Input = "input",
        /// Answer or invalid output.
        Output = "output",
        /// Result of a call.
        Result = "result",
    }
}

crate::wire_enum! {
    /// Reason of a question to the user.
    #[derive(PartialOrd, Ord)]
    #[non_exhaustive]
    pub enum AskReason {
        /// Nothing was found.
        EmptyResults = "empty_results",
        /// The request matches several things.
        AmbiguousIdentifier = "ambiguous_identifier",
        /// The provider failed temporarily.
        TransientProviderError = "transient_provider_error",
        /// Another reason.
        Custom = "custom",
    }
}

/// Question of a check to the user.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Question {
    /// Question. It is trimmed; a blank one counts as none.
    pub text: String,
    /// Reason of the question.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<AskReason>,
    /// Caller data, kept in the evidence of the stop.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Json>,
}

impl Question {
    /// Creates a question.
    pub fn new(text: impl Into<String>, reason: AskReason) -> Self {
        Self { text: text.into(), reason: Some(reason), metadata: None }
    }
}

/// Answer that claims more than its evidence supports.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ThinEvidence {
    /// Number of tool results.
    pub tool_call_count: usize,
    /// Length of the results in UTF-16 units.
    pub output_chars: usize,
    /// Kinds of claims, in this order: `markdown_table`, `numbered_list`, `sha_like`, `date`, `owner_repo`.
    pub claim_markers: Vec<String>,
}

/// Tool result that raised a question to the user.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ToolEvidence {
    /// Call.
    pub call_id: CallId,
    /// Tool.
    pub tool_name: ToolName,
    /// `success` or `error`.
    pub status: Cow<'static, str>,
    /// Reason of the question.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<AskReason>,
    /// Caller data of the question.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Json>,
}

/// Evidence of a stop reason.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum Evidence {
    /// Nothing but the transcript.
    #[default]
    None,
    /// Limit that was reached.
    Limit(Reached),
    /// Invalid output of the model.
    Invalid(Invalid),
    /// Tool and its error code.
    Tool {
        /// Tool.
        name: Arc<str>,
        /// Error code, if any.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        code: Option<Arc<str>>,
    },
    /// Error of a part.
    Fault(Fault),
    /// Request for approval of the model.
    Approval(ApprovalRequest),
    /// Held calls that wait for approval.
    Held(Vec<ApprovalRequest>),
    /// Gate that ended the run.
    Gate {
        /// Gate.
        gate: GateName,
        /// Call.
        call: CallId,
        /// Called tool.
        tool: ToolName,
        /// Reason.
        reason: String,
    },
    /// Guardrail that was triggered.
    Guardrail {
        /// Guardrail.
        guardrail: GateName,
        /// Subject.
        stage: GuardStage,
        /// Reason.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// Repeated cycle of calls.
    Loop {
        /// Tools of the cycle, in order.
        tools: Vec<Arc<str>>,
    },
    /// Claims of an answer without enough evidence.
    Density(Box<ThinEvidence>),
    /// Tool result that raised a question to the user.
    ToolResult(Box<ToolEvidence>),
    /// Cancellation.
    Cancelled {
        /// Canceller.
        by: Arc<str>,
    },
}

impl Evidence {
    /// Describes the decision of a gate or a guardrail in one sentence.
    pub fn message(&self) -> Option<String> {
        if let Self::Guardrail { guardrail, stage, reason } = self {
            let which = match stage {
                GuardStage::Input => "Input",
                GuardStage::Output => "Output",
                GuardStage::Result => "Result",
            };
            let reason = reason.as_ref().map(|reason| format!(" Reason: {reason}")).unwrap_or_default();
            return Some(format!("{which} guardrail \"{guardrail}\" triggered.{reason}"));
        }
        let Self::Gate { gate, tool, reason, .. } = self else { return None };
        Some(format!("Gate \"{gate}\" refused \"{tool}\": {reason}"))
    }
}
