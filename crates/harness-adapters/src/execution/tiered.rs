//! A router before two ways to answer: at once, or with the whole loop.

use std::error::Error;

use harness_core::Json;
use harness_core::cancel::Cancel;
use harness_core::message::Usage;
use harness_core::port::{ExecutionAdapter, ExecutionCx, ExecutionPart, ExecutionRequest, ExecutionResult};

use super::single_shot::{SingleShot, SingleShotFault, SingleShotRequest};

/// How a request is answered.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Tier {
    /// At once, by one model call without tools.
    Fast,
    /// By the whole loop.
    Harness,
    /// Not at all.
    Reject,
    /// A word that this version does not know; it is rejected, with a warning in the log.
    Other(String),
}

impl Tier {
    /// The tier of a router's word: `fast`, `harness`, `reject`, or another one.
    pub fn parse(word: &str) -> Self {
        match word {
            "fast" => Self::Fast,
            "harness" => Self::Harness,
            "reject" => Self::Reject,
            other => Self::Other(other.to_owned()),
        }
    }
}

/// What a router decided.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Routing {
    /// How the request is answered.
    pub tier: Tier,
    /// Why; shown to people who look for it.
    pub reason: Option<String>,
    /// The router's own data.
    pub metadata: Option<Json>,
}

impl Routing {
    /// A decision without a reason.
    pub fn new(tier: Tier) -> Self {
        Self { tier, reason: None, metadata: None }
    }

    /// The same with a reason.
    #[must_use]
    pub fn because(mut self, reason: impl Into<String>) -> Self {
        self.reason = Some(reason.into());
        self
    }
}

/// A fault of a router's own.
pub type RouterFault = Box<dyn Error + Send + Sync>;

/// Decides how a request is answered.
///
/// ```
/// use harness_adapters::execution::{RouterFault, Routing, Tier, TierRouter};
/// use harness_core::port::ExecutionRequest;
///
/// struct ByLength;
///
/// impl TierRouter for ByLength {
///     async fn route(&self, request: &ExecutionRequest) -> Result<Routing, RouterFault> {
///         let short = request.message.text.len() < 80;
///         Ok(Routing::new(if short { Tier::Fast } else { Tier::Harness }))
///     }
/// }
/// ```
pub trait TierRouter: Send + Sync {
    /// The decision; a fault ends the request with [`TieredFault::Router`].
    fn route(&self, request: &ExecutionRequest) -> impl Future<Output = Result<Routing, RouterFault>> + Send;
}

/// What came of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TieredOutcome {
    /// It was answered at once.
    Fast {
        /// The answer.
        text: String,
        /// What it used, when that was told.
        usage: Option<Usage>,
        /// What the router said.
        routing: Routing,
    },
    /// The whole loop ran.
    Harness {
        /// What came of it, failures included.
        result: Box<ExecutionResult>,
        /// What the router said.
        routing: Routing,
    },
    /// It was rejected.
    Rejected {
        /// What the user is told.
        text: String,
        /// What the router said.
        routing: Routing,
    },
}

/// Why a request has no outcome.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TieredFault {
    /// The router failed.
    #[error("the router failed: {0}")]
    Router(#[source] RouterFault),
    /// The quick answer failed.
    #[error("the quick answer failed: {0}")]
    Fast(#[source] SingleShotFault),
}

impl TieredFault {
    /// A stable code of the kind of fault.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Router(_) => "tiered.router",
            Self::Fast(fault) => fault.kind(),
        }
    }
}

/// Asks a router first, and then answers at once, runs the whole loop, or rejects.
///
/// The whole loop is any execution adapter; the facade's own harness is one.
#[derive(Debug)]
pub struct TieredRunner<R, F, H> {
    router: R,
    fast: F,
    harness: H,
    rejection: String,
}

impl<R: TierRouter, F: SingleShot, H: ExecutionAdapter> TieredRunner<R, F, H> {
    /// A runner that tells the user `I can't help with that request.` when it rejects.
    pub fn new(router: R, fast: F, harness: H) -> Self {
        Self { router, fast, harness, rejection: "I can't help with that request.".to_owned() }
    }

    /// The same with another text for rejected requests.
    #[must_use]
    pub fn rejecting_with(mut self, text: impl Into<String>) -> Self {
        self.rejection = text.into();
        self
    }

    /// Answers a request. The text of a quick answer reaches `cx.sink` as one part.
    ///
    /// # Errors
    /// When the router or the quick answer fails; the loop's failures are results.
    pub async fn run(
        &self,
        request: ExecutionRequest,
        cx: ExecutionCx<'_>,
    ) -> Result<TieredOutcome, TieredFault> {
        let routing = self.router.route(&request).await.map_err(TieredFault::Router)?;
        match &routing.tier {
            Tier::Fast => self.quick(&request, routing, cx).await,
            Tier::Harness => {
                let result = Box::new(Box::pin(self.harness.execute(request, cx)).await);
                Ok(TieredOutcome::Harness { result, routing })
            }
            Tier::Reject => Ok(self.rejected(routing)),
            Tier::Other(word) => {
                tracing::warn!(tier = word, "the router named an unknown tier: the request is rejected");
                Ok(self.rejected(routing))
            }
        }
    }

    async fn quick(
        &self,
        request: &ExecutionRequest,
        routing: Routing,
        cx: ExecutionCx<'_>,
    ) -> Result<TieredOutcome, TieredFault> {
        let cancel: &Cancel = cx.cancel;
        let answer = self.fast.generate(SingleShotRequest::of(request), cancel).await;
        let answer = answer.map_err(TieredFault::Fast)?;
        cx.sink.part(ExecutionPart::Text(answer.text.clone()));
        Ok(TieredOutcome::Fast { text: answer.text, usage: answer.usage, routing })
    }

    fn rejected(&self, routing: Routing) -> TieredOutcome {
        TieredOutcome::Rejected { text: self.rejection.clone(), routing }
    }
}
