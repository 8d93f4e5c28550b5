//! Fallback to other models.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use harness_core::ModelName;
use harness_core::message::AssistantMessage;
use harness_core::port::{Deltas, DynModel, Model, ModelFault, ModelFaultCode, ModelRequest, PreparedAgent};

use super::watched::Watched;

/// Conditions for calling the next model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FallbackPolicy {
    /// Time of all models together; after it the last error is returned. Default: 5 minutes. The
    /// driver also enforces the request's own deadline.
    pub longest: Duration,
    /// The time of one model, so that a model that hangs leaves time for the next one. Default none.
    pub each: Option<Duration>,
}

impl Default for FallbackPolicy {
    fn default() -> Self {
        Self { longest: Duration::from_mins(5), each: None }
    }
}

/// Models that are called in order until one answers.
///
/// The next model is called after errors that it may avoid: not after a cancellation or an invalid or too
/// long request, and not after the first delta, because text would appear twice. An invalid answer (empty,
/// garbled) is an answer; the turn counts it. The last error is returned, with the messages of the others.
///
/// ```
/// use harness_adapters::{Fallback, FallbackPolicy};
/// # use harness_core::{message::AssistantMessage, port::{Deltas, Model, ModelFault, ModelRequest}};
/// # struct Hosted;
/// # impl Model for Hosted {
/// #     async fn step(&self, _: ModelRequest, _: &dyn Deltas) -> Result<AssistantMessage, ModelFault> {
/// #         Ok(AssistantMessage::text("hi"))
/// #     }
/// # }
///
/// let model = Fallback::new("best", Hosted)
///     .or("cheap", Hosted)
///     .or_as("other", Hosted, "vendor/other-model")
///     .policy(FallbackPolicy::default());
/// ```
#[derive(Clone)]
pub struct Fallback {
    chain: Vec<Link>,
    policy: FallbackPolicy,
}

#[derive(Clone)]
struct Link {
    name: Arc<str>,
    model: Arc<dyn DynModel>,
    asks_for: Option<ModelName>,
}

impl Fallback {
    /// Sets the first model; `name` is used in errors.
    pub fn new(name: impl Into<Arc<str>>, model: impl Model + 'static) -> Self {
        Self { chain: Vec::new(), policy: FallbackPolicy::default() }.or(name, model)
    }

    /// A model that is asked after the others have failed, for what the request asks for.
    #[must_use]
    pub fn or(mut self, name: impl Into<Arc<str>>, model: impl Model + 'static) -> Self {
        self.chain.push(Link { name: name.into(), model: Arc::new(model), asks_for: None });
        self
    }

    /// A model that is asked after the others have failed, for the model `asks_for` instead of the one that
    /// the agent names.
    #[must_use]
    pub fn or_as(
        mut self,
        name: impl Into<Arc<str>>,
        model: impl Model + 'static,
        asks_for: impl Into<ModelName>,
    ) -> Self {
        let asks_for = Some(asks_for.into());
        self.chain.push(Link { name: name.into(), model: Arc::new(model), asks_for });
        self
    }

    /// Sets the conditions for calling the next model.
    #[must_use]
    pub fn policy(mut self, policy: FallbackPolicy) -> Self {
        self.policy = policy;
        self
    }
}

impl fmt::Debug for Fallback {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.chain.iter().map(|link| &link.name).collect();
        f.debug_struct("Fallback").field("chain", &names).field("policy", &self.policy).finish()
    }
}

impl Model for Fallback {
    async fn step(&self, request: ModelRequest, deltas: &dyn Deltas) -> Result<AssistantMessage, ModelFault> {
        let watched = Watched::new(deltas);
        let until = tokio::time::Instant::now().checked_add(self.policy.longest);
        let mut earlier = Vec::new();
        let mut rest = self.chain.iter().peekable();
        let mut request = request;
        while let Some(link) = rest.next() {
            let asked = link.request(&request);
            let left = until.map(|until| until.saturating_duration_since(tokio::time::Instant::now()));
            let span = [left, self.policy.each].into_iter().flatten().min();
            let fault = match within(span, link.model.step_boxed(asked, &watched)).await {
                Ok(message) => return Ok(message),
                Err(fault) => fault,
            };
            let over = until.is_some_and(|until| tokio::time::Instant::now() >= until);
            let stop = watched.passed_on() || request.cancel.is_cancelled() || !another_may(&fault);
            if rest.peek().is_none() || stop || over {
                return Err(explained(fault, &earlier));
            }
            tracing::debug!(model = %link.name, code = fault.code.as_str(), "calling the next model");
            earlier.push(format!("{}: {}", link.name, fault.message));
            // It was resolved for the first model; another may be of another provider.
            request.key = None;
        }
        Err(ModelFault::new(ModelFaultCode::Configuration, "the chain of models is empty: add one"))
    }

    fn has_structured_output(&self, agent: &PreparedAgent) -> bool {
        self.chain.iter().all(|link| link.model.has_structured_output_dyn(agent))
    }
}

impl Link {
    fn request(&self, request: &ModelRequest) -> ModelRequest {
        let mut request = request.clone();
        if let Some(model) = &self.asks_for {
            Arc::make_mut(&mut request.prepared).model = Some(model.clone());
        }
        request
    }
}

async fn within(
    span: Option<Duration>,
    step: impl Future<Output = Result<AssistantMessage, ModelFault>>,
) -> Result<AssistantMessage, ModelFault> {
    let Some(span) = span else { return step.await };
    tokio::time::timeout(span, step).await.unwrap_or_else(|_| {
        let message = format!("the model did not answer within {} ms", span.as_millis());
        Err(ModelFault::new(ModelFaultCode::Timeout, message).transient())
    })
}

/// Whether a different model may avoid the error.
fn another_may(fault: &ModelFault) -> bool {
    match fault.code {
        ModelFaultCode::InvalidRequest
        | ModelFaultCode::ContextLengthExceeded
        | ModelFaultCode::Cancelled
        | ModelFaultCode::Deferred
        | ModelFaultCode::Recording => false,
        ModelFaultCode::AuthFailed
        | ModelFaultCode::CreditsExhausted
        | ModelFaultCode::RateLimited
        | ModelFaultCode::ModelNotFound
        | ModelFaultCode::Timeout
        | ModelFaultCode::Network
        | ModelFaultCode::Provider
        | ModelFaultCode::Protocol
        | ModelFaultCode::Configuration
        | ModelFaultCode::Unknown
        | _ => true,
    }
}

fn explained(mut fault: ModelFault, earlier: &[String]) -> ModelFault {
    if !earlier.is_empty() {
        fault.message = format!("{} (before it: {})", fault.message, earlier.join("; "));
    }
    fault
}
