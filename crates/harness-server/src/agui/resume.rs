//! Decisions of AG-UI clients on pending calls.

use harness::core::port::{Decision, ProposedCall};
use harness::core::{ApprovalId, CallDigest, Json, ThreadId};
use harness::runtime::RuntimeError;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use utoipa::ToSchema;

use crate::app::App;
use crate::drive;
use crate::fault::Fault;

/// Decision on an interrupt.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct ResumeEntry {
    /// `id` of the interrupt, which is the id of the approval.
    interrupt_id: String,
    /// Whether there is a decision.
    status: ResumeStatus,
    /// The decision; required if it is `resolved`.
    payload: Option<ResumePayload>,
}

/// Whether an interrupt has a decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
enum ResumeStatus {
    /// It has.
    Resolved,
    /// It has none: the call is denied.
    Cancelled,
}

/// Decision on a call.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct ResumePayload {
    /// Whether the call may run.
    approved: bool,
    /// Arguments that replace those of the call.
    #[schema(value_type = Option<Object>)]
    edited_args: Option<Map<String, Value>>,
    /// Reason of a denial, for the model.
    reason: Option<String>,
    /// Digest of the call that was shown; a different call is not decided on.
    digest: Option<String>,
}

/// Returns the JSON Schema of a decision.
pub(super) fn schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "approved": { "type": "boolean" },
            "editedArgs": { "type": "object", "description": "Arguments that replace those of the call" },
            "reason": { "type": "string", "description": "Reason of a denial, for the model" },
            "digest": { "type": "string", "description": "Digest of the call that was shown" },
        },
        "required": ["approved"],
    })
}

/// Matches decisions with the pending calls of the thread: each call needs one.
pub(super) async fn decisions(
    app: &App,
    thread: &ThreadId,
    given: Vec<ResumeEntry>,
) -> Result<Vec<(ProposedCall, Decision)>, Fault> {
    let mut pending = drive::parked(app, thread).await?;
    let mut decisions = Vec::new();
    for (index, entry) in given.into_iter().enumerate() {
        let approval = ApprovalId::from(entry.interrupt_id.clone());
        let Some(at) = pending.iter().position(|call| call.id() == approval) else {
            let error = RuntimeError::NotHeld { thread: thread.clone(), approval };
            return Err(Fault::from(error).at(format!("resume[{index}].interruptId")));
        };
        let call = pending.swap_remove(at);
        let decision = decision(entry, &call, &format!("resume[{index}].payload"))?;
        decisions.push((call, decision));
    }
    if pending.is_empty() {
        return Ok(decisions);
    }
    let open: Vec<String> =
        pending.iter().map(|call| format!("`{}` ({})", call.call.name, call.id())).collect();
    Err(Fault::unreadable(format!("no decision on the pending calls of {}", open.join(", ")))
        .at("resume")
        .hint("decide on every pending call; the status `cancelled` denies one"))
}

fn decision(entry: ResumeEntry, call: &ProposedCall, at: &str) -> Result<Decision, Fault> {
    let denied = |reason: Option<String>, default: &str| Decision::Denied {
        reason: reason.unwrap_or_else(|| default.to_owned()),
    };
    if entry.status == ResumeStatus::Cancelled {
        return Ok(denied(None, "the user did not decide"));
    }
    let missing = || Fault::unreadable("missing field `payload`, an object with `approved`").at(at);
    let payload = entry.payload.ok_or_else(missing)?;
    if let Some(seen) = payload.digest.map(CallDigest::from)
        && seen != call.digest()
    {
        return Err(RuntimeError::OtherCall { approval: call.id(), seen, held: call.digest() }.into());
    }
    Ok(match (payload.approved, payload.edited_args) {
        (true, None) => Decision::Granted,
        (true, Some(arguments)) => Decision::Edited(Json::from(Value::Object(arguments))),
        (false, _) => denied(payload.reason, "not approved"),
    })
}
