//! Approval of held calls.

use serde::{Deserialize, Serialize};

use super::ProposedCall;
use crate::cancel::Cancel;
use crate::json::Json;
use crate::message::ApprovalRequest;
use crate::outcome::Fault;
use crate::twin;

/// Request to decide on a held call.
#[derive(Clone, Debug)]
pub struct ApprovalAsk {
    /// Call, with the reason why it is held.
    pub proposed: ProposedCall,
    /// Fires when the request is cancelled.
    pub cancel: Cancel,
}

/// Decision on a held call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Decision {
    /// The call runs unchanged.
    Granted,
    /// The call runs with these arguments, if they are valid; a second hold denies.
    Edited(Json),
    /// The call does not run, and the model receives the reason.
    Denied {
        /// Reason.
        reason: String,
    },
    /// The decision is postponed: the turn ends `awaiting_approval` with the call pending.
    Later,
}

/// Request for approval of a model, as the approver stores it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Prepared {
    /// Request, possibly changed.
    pub request: ApprovalRequest,
    /// Continuation of the host, which replaces the turn's.
    pub continuation: Option<Json>,
}

/// Decides on held calls, and stores requests for approval of models.
///
/// ```
/// use harness_core::Fault;
/// use harness_core::message::ApprovalRequest;
/// use harness_core::port::{ApprovalAsk, Approver, Decision, Prepared};
///
/// /// Grants calls that cost nothing, and postpones the others.
/// struct Thrifty;
///
/// impl Approver for Thrifty {
///     async fn decide(&self, ask: ApprovalAsk) -> Decision {
///         if ask.proposed.call.name.as_str() == "pay" { Decision::Later } else { Decision::Granted }
///     }
///
///     async fn prepare(&self, request: ApprovalRequest) -> Result<Prepared, Fault> {
///         Ok(Prepared { request, continuation: None })
///     }
/// }
/// ```
pub trait Approver: Send + Sync {
    /// Decides on a held call. A panic or a timeout denies.
    fn decide(&self, ask: ApprovalAsk) -> impl Future<Output = Decision> + Send;

    /// Stores a request of a model before the turn ends with it. Default: keeps it unchanged.
    ///
    /// # Errors
    /// An error ends the turn with `runtime_error`.
    fn prepare(&self, request: ApprovalRequest) -> impl Future<Output = Result<Prepared, Fault>> + Send {
        async move { Ok(Prepared { request, continuation: None }) }
    }
}

twin! {
    DynApprover of Approver {
        async fn decide_boxed = decide(ask: ApprovalAsk) -> Decision;
        async fn prepare_boxed = prepare(request: ApprovalRequest) -> Result<Prepared, Fault>;
    }
}
