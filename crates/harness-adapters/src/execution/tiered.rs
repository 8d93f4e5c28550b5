//! A router before two ways to answer: at once, or with the whole loop.

use std::error::Error;

use harness_core::Json;

use crate::execution::{ExecutionAdapter, ExecutionCx, ExecutionRequest, ExecutionResult};

/// How a request is answered.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Tier {
    /// At once, usually by one step of a model.
    Fast,
    /// By the whole loop.
    Harness,
    /// Not at all.
    Reject,
    /// A word that this version does not know; it is rejected, with a warning in the log.
    Other(String),
}

impl Tier {
    /// Parses a tier: `fast`, `harness`, `reject`, or a custom one.
    pub fn parse(word: &str) -> Self {
        match word {
            "fast" => Self::Fast,
            "harness" => Self::Harness,
            "reject" => Self::Reject,
            other => Self::Other(other.to_owned()),
        }
    }
}

/// Decision of a router.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Routing {
    /// How the request is answered.
    pub tier: Tier,
    /// Reason, for diagnostics.
    pub reason: Option<String>,
    /// The router's own data.
    pub metadata: Option<Json>,
}

impl Routing {
    /// A decision without a reason.
    pub fn new(tier: Tier) -> Self {
        Self { tier, reason: None, metadata: None }
    }

    /// Sets the reason.
    #[must_use]
    pub fn because(mut self, reason: impl Into<String>) -> Self {
        self.reason = Some(reason.into());
        self
    }
}

/// Error of a router.
pub type RouterFault = Box<dyn Error + Send + Sync>;

/// Decides how a request is answered.
///
/// ```
/// use harness_adapters::execution::{ExecutionRequest, RouterFault, Routing, Tier, TierRouter};
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
    /// Selects a tier; an error ends the request.
    fn route(&self, request: &ExecutionRequest) -> impl Future<Output = Result<Routing, RouterFault>> + Send;
}

/// Outcome of a routed request.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TieredOutcome {
    /// The backend of the router's tier ran.
    Answered {
        /// Result, including failures.
        result: Box<ExecutionResult>,
        /// Decision of the router.
        routing: Routing,
    },
    /// It was rejected.
    Rejected {
        /// Text for the user.
        text: String,
        /// Decision of the router.
        routing: Routing,
    },
}

/// Asks a router first, and then answers at once, runs the whole loop, or rejects.
///
/// Both ways are execution adapters: the quick one usually a [`ModelBackend`](super::ModelBackend), the whole loop for
/// example the facade's own harness.
#[derive(Debug)]
pub struct TieredRunner<R, F, H> {
    router: R,
    fast: F,
    harness: H,
    rejection: String,
}

impl<R: TierRouter, F: ExecutionAdapter, H: ExecutionAdapter> TieredRunner<R, F, H> {
    /// Creates a runner that rejects with `I can't help with that request.`
    pub fn new(router: R, fast: F, harness: H) -> Self {
        Self { router, fast, harness, rejection: "I can't help with that request.".to_owned() }
    }

    /// Sets the text for rejected requests.
    #[must_use]
    pub fn rejecting_with(mut self, text: impl Into<String>) -> Self {
        self.rejection = text.into();
        self
    }

    /// Answers a request.
    ///
    /// # Errors
    /// When the router fails; failures of the backends are results.
    pub async fn run(
        &self,
        request: ExecutionRequest,
        cx: ExecutionCx<'_>,
    ) -> Result<TieredOutcome, RouterFault> {
        let routing = self.router.route(&request).await?;
        let result = match &routing.tier {
            Tier::Fast => Box::pin(self.fast.execute(request, cx)).await,
            Tier::Harness => Box::pin(self.harness.execute(request, cx)).await,
            Tier::Reject => return Ok(self.rejected(routing)),
            Tier::Other(word) => {
                tracing::warn!(tier = word, "the router named an unknown tier: the request is rejected");
                return Ok(self.rejected(routing));
            }
        };
        Ok(TieredOutcome::Answered { result: Box::new(result), routing })
    }

    fn rejected(&self, routing: Routing) -> TieredOutcome {
        TieredOutcome::Rejected { text: self.rejection.clone(), routing }
    }
}
