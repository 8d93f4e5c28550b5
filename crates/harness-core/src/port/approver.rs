//! People, or whoever decides in their place.

use serde::{Deserialize, Serialize};

use super::ProposedCall;
use crate::cancel::Cancel;
use crate::json::Json;
use crate::message::ApprovalRequest;
use crate::outcome::Fault;
use crate::twin;

/// A held call that somebody must decide about.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ApprovalAsk {
    /// The call, with the reason why it is held.
    pub proposed: ProposedCall,
    /// Fires when the decision is not wanted any more.
    pub cancel: Cancel,
}

impl ApprovalAsk {
    /// A question about a call; for tests and for tools that are called directly.
    pub fn new(proposed: ProposedCall, cancel: Cancel) -> Self {
        Self { proposed, cancel }
    }
}

/// What was decided about a held call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Decision {
    /// Run it as it is.
    Granted,
    /// Run it with these arguments; they are checked again, and a second hold denies.
    Edited(Json),
    /// Do not run it; the model is told why.
    Denied {
        /// Why.
        reason: String,
    },
    /// Not now: the turn ends `awaiting_approval` with the call parked.
    Later,
}

/// A model's own wish for approval, as the approver wants it kept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Prepared {
    /// The request, possibly changed.
    pub request: ApprovalRequest,
    /// A continuation of the host's own, in place of ours.
    pub continuation: Option<Json>,
}

impl Prepared {
    /// A request, and perhaps a continuation of the host's own.
    pub fn new(request: ApprovalRequest, continuation: Option<Json>) -> Self {
        Self { request, continuation }
    }
}

/// Decides about held calls, and takes note of what a model itself wants approved.
///
/// ```
/// use harness_core::Fault;
/// use harness_core::message::ApprovalRequest;
/// use harness_core::port::{ApprovalAsk, Approver, Decision, Prepared};
///
/// /// Allows what costs nothing; a person decides about the rest, later.
/// struct Thrifty;
///
/// impl Approver for Thrifty {
///     async fn decide(&self, ask: ApprovalAsk) -> Decision {
///         if ask.proposed.call.name.as_str() == "pay" { Decision::Later } else { Decision::Granted }
///     }
///
///     async fn prepare(&self, request: ApprovalRequest) -> Result<Prepared, Fault> {
///         Ok(Prepared::new(request, None))
///     }
/// }
/// ```
pub trait Approver: Send + Sync {
    /// Decides about a held call. A panic, or no answer in time, denies.
    fn decide(&self, ask: ApprovalAsk) -> impl Future<Output = Decision> + Send;

    /// Takes note of a model's own request before the turn ends with it. The default keeps it as it is.
    ///
    /// # Errors
    /// A fault ends the turn with `runtime_error`.
    fn prepare(&self, request: ApprovalRequest) -> impl Future<Output = Result<Prepared, Fault>> + Send {
        async move { Ok(Prepared::new(request, None)) }
    }
}

twin! {
    DynApprover of Approver {
        async fn decide_boxed = decide(ask: ApprovalAsk) -> Decision;
        async fn prepare_boxed = prepare(request: ApprovalRequest) -> Result<Prepared, Fault>;
    }
}
