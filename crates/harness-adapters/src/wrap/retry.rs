//! Repeats a model step that failed for a passing reason.

use std::sync::Arc;
use std::time::Duration;

use backon::{BackoffBuilder as _, ExponentialBuilder};
use harness_core::Millis;
use harness_core::message::AssistantMessage;
use harness_core::port::{Clock, Deltas, Model, ModelFault, ModelRequest, PreparedAgent};

use super::watched::Watched;

/// How often, and after which waits, a step is repeated.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct RetryPolicy {
    /// Attempts in all, the first one included. Default 3; 0 counts as 1.
    pub attempts: u32,
    /// The wait before the second attempt, unless the provider asks for another. Default 500 ms.
    pub first_wait: Duration,
    /// By how much each wait is longer than the one before. Default 2.
    pub factor: f32,
    /// The longest wait, also of those that a provider asks for: a longer one ends the retries, since
    /// the caller can use the time better. Default 60 s.
    pub longest_wait: Duration,
    /// Whether a random part, at most as long as the wait itself, is added, so that many clients do not
    /// come back at the same moment. Default true. A wait that the provider asks for is kept as it is.
    pub jitter: bool,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self {
            attempts: 3,
            first_wait: Duration::from_millis(500),
            factor: 2.0,
            longest_wait: Duration::from_mins(1),
            jitter: true,
        }
    }
}

/// Wraps a model and repeats its steps after transient errors.
///
/// A step is repeated only before its first delta, because text would appear twice. A wait that the
/// provider requests is kept. Nothing is repeated after the last attempt, after a cancellation, or, with
/// a [`clock`](Self::clock), if the wait would reach the request's deadline. The error of the last
/// attempt is returned with the number of attempts and, if it is transient and a clock is set, the time of the last one.
///
/// ```
/// use harness_adapters::{Retry, RetryPolicy};
/// # use harness_core::{message::AssistantMessage, port::{Deltas, Model, ModelFault, ModelRequest}};
/// # struct Hosted;
/// # impl Model for Hosted {
/// #     async fn step(&self, _: ModelRequest, _: &dyn Deltas) -> Result<AssistantMessage, ModelFault> {
/// #         Ok(AssistantMessage::text("hi"))
/// #     }
/// # }
///
/// let mut policy = RetryPolicy::default();
/// policy.attempts = 5;
/// let model = Retry::new(Hosted, policy);
/// ```
#[derive(Clone)]
pub struct Retry<M> {
    inner: M,
    policy: RetryPolicy,
    clock: Option<Arc<dyn Clock>>,
}

impl<M> Retry<M> {
    /// Wraps `inner`.
    pub fn new(inner: M, policy: RetryPolicy) -> Self {
        Self { inner, policy, clock: None }
    }

    /// Sets the clock that deadlines are compared with and that stamps
    /// [`retried_at`](ModelFault::retried_at). Without one the driver alone enforces the deadline.
    #[must_use]
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = Some(clock);
        self
    }

    /// The wait before the next attempt, or `None` when there must be none.
    fn wait(
        &self,
        fault: &ModelFault,
        planned: Option<Duration>,
        request: &ModelRequest,
    ) -> Option<Duration> {
        let planned = planned?;
        if !fault.transient || fault.partial.is_some() || request.cancel.is_cancelled() {
            return None;
        }
        let wait = match fault.retry_after.map(Millis::duration) {
            Some(asked) if asked > self.policy.longest_wait => return None,
            Some(asked) => asked,
            // A clock counts whole milliseconds; the rest of a random wait could pass the deadline.
            None => Millis::from(planned).duration(),
        };
        let deadline = request.deadline.zip(self.clock.as_ref());
        let in_time = deadline.is_none_or(|(deadline, clock)| clock.now().after(wait.into()) < deadline);
        in_time.then_some(wait)
    }

    fn waits(&self) -> impl Iterator<Item = Duration> + use<M> {
        let times = usize::try_from(self.policy.attempts.saturating_sub(1)).unwrap_or(usize::MAX);
        let builder = ExponentialBuilder::default()
            .with_min_delay(self.policy.first_wait)
            .with_max_delay(self.policy.longest_wait)
            .with_factor(self.policy.factor)
            .with_max_times(times);
        if self.policy.jitter { builder.with_jitter() } else { builder }.build()
    }
}

impl<M> std::fmt::Debug for Retry<M> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Retry").field("policy", &self.policy).finish_non_exhaustive()
    }
}

impl<M: Model> Model for Retry<M> {
    async fn step(&self, request: ModelRequest, deltas: &dyn Deltas) -> Result<AssistantMessage, ModelFault> {
        let watched = Watched::new(deltas);
        let mut waits = self.waits();
        let mut attempts: u32 = 0;
        let mut retried_at = None;
        loop {
            attempts = attempts.saturating_add(1);
            if attempts > 1 {
                retried_at = self.clock.as_ref().map(|clock| clock.now());
            }
            let mut fault = match self.inner.step(request.clone(), &watched).await {
                Ok(message) => return Ok(counted(message, attempts)),
                Err(fault) => fault,
            };
            if fault.transient {
                fault.retried_at = retried_at.or(fault.retried_at);
            }
            let planned = waits.next().filter(|_| !watched.passed_on());
            let Some(wait) = self.wait(&fault, planned, &request) else {
                return Err(explained(fault, attempts));
            };
            tracing::debug!(code = fault.code.as_str(), attempts, ?wait, "repeating the model call");
            tokio::select! {
                biased;
                () = request.cancel.cancelled() => return Err(explained(fault, attempts)),
                () = tokio::time::sleep(wait) => {}
            }
        }
    }

    fn has_structured_output(&self, agent: &PreparedAgent) -> bool {
        self.inner.has_structured_output(agent)
    }
}

/// Notes the requests behind a message, when there was more than one. The attempt that succeeded may itself
/// have taken several.
fn counted(mut message: AssistantMessage, attempts: u32) -> AssistantMessage {
    if attempts > 1 {
        let usage = Arc::make_mut(message.usage.get_or_insert_default());
        let earlier = u64::from(attempts).saturating_sub(1);
        usage.requests = Some(usage.requests.unwrap_or(1).saturating_add(earlier));
    }
    message
}

fn explained(mut fault: ModelFault, attempts: u32) -> ModelFault {
    if attempts > 1 {
        fault.message = format!("{} (after {attempts} attempts)", fault.message);
    }
    fault
}
