//! Spares a provider that is down.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use harness_core::message::AssistantMessage;
use harness_core::port::{Deltas, Model, ModelFault, ModelFaultCode, ModelRequest, PreparedAgent};
use parking_lot::Mutex;
use tokio::time::Instant;

/// When a circuit opens, and for how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct BreakerPolicy {
    /// Consecutive errors of the provider, not of the request, that open the circuit. Default: 5; 0
    /// counts as 1.
    pub faults: u32,
    /// How long it stays open before one request tries again. Default 30 s.
    pub cool_down: Duration,
}

impl Default for BreakerPolicy {
    fn default() -> Self {
        Self { faults: 5, cool_down: Duration::from_secs(30) }
    }
}

/// Wraps a model; after several consecutive errors, requests fail at once for a while.
///
/// Only errors of the provider count: transient ones, timeouts, broken connections. A wrong API key or a
/// rejected request counts as a success. After the cool-down, one request is tried: a response closes the
/// circuit, an error opens it again. A dropped request does not count. Clones share the circuit.
///
/// ```
/// use harness_adapters::{Breaker, BreakerPolicy};
/// # use harness_core::{message::AssistantMessage, port::{Deltas, Model, ModelFault, ModelRequest}};
/// # struct Hosted;
/// # impl Model for Hosted {
/// #     async fn step(&self, _: ModelRequest, _: &dyn Deltas) -> Result<AssistantMessage, ModelFault> {
/// #         Ok(AssistantMessage::text("hi"))
/// #     }
/// # }
///
/// let model = Breaker::new(Hosted, BreakerPolicy::default());
/// ```
#[derive(Clone)]
pub struct Breaker<M> {
    inner: M,
    policy: BreakerPolicy,
    circuit: Arc<Mutex<Circuit>>,
}

#[derive(Default)]
struct Circuit {
    faults: u32,
    open_until: Option<Instant>,
    /// Whether a request is trying.
    trying: bool,
}

impl<M> Breaker<M> {
    /// Wraps `inner`; the circuit is closed.
    pub fn new(inner: M, policy: BreakerPolicy) -> Self {
        Self { inner, policy, circuit: Arc::default() }
    }

    /// Lets a request through, or says how long the circuit stays open.
    fn enter(&self, now: Instant) -> Result<Trial<'_>, ModelFault> {
        let mut circuit = self.circuit.lock();
        let Some(until) = circuit.open_until else {
            return Ok(Trial { circuit: &self.circuit, tries: false });
        };
        if now >= until && !circuit.trying {
            circuit.trying = true;
            return Ok(Trial { circuit: &self.circuit, tries: true });
        }
        let wait = until.saturating_duration_since(now);
        let message = format!(
            "the provider failed {} times in a row and is not asked for another {} ms",
            circuit.faults,
            wait.as_millis()
        );
        let fault = ModelFault::new(ModelFaultCode::Provider, message).transient();
        Err(ModelFault { retry_after: Some(wait.into()), ..fault })
    }

    fn learn(&self, fault: Option<&ModelFault>) {
        let mut circuit = self.circuit.lock();
        match fault {
            None => *circuit = Circuit { trying: circuit.trying, ..Circuit::default() },
            Some(fault) if fault.code == ModelFaultCode::Cancelled => {}
            Some(_) => {
                circuit.faults = circuit.faults.saturating_add(1);
                if circuit.faults >= self.policy.faults.max(1) {
                    circuit.open_until = Instant::now().checked_add(self.policy.cool_down);
                }
            }
        }
    }
}

/// A request that was let through. Dropped, it makes room for the next one that tries.
struct Trial<'a> {
    circuit: &'a Mutex<Circuit>,
    tries: bool,
}

impl Drop for Trial<'_> {
    fn drop(&mut self) {
        if self.tries {
            self.circuit.lock().trying = false;
        }
    }
}

/// Whether an error concerns the provider, and not the request.
fn counts(fault: &ModelFault) -> bool {
    fault.transient
        || matches!(
            fault.code,
            ModelFaultCode::Timeout
                | ModelFaultCode::Network
                | ModelFaultCode::Provider
                | ModelFaultCode::Protocol
                | ModelFaultCode::Cancelled
        )
}

impl<M> fmt::Debug for Breaker<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Breaker").field("policy", &self.policy).finish_non_exhaustive()
    }
}

impl<M: Model> Model for Breaker<M> {
    async fn step(&self, request: ModelRequest, deltas: &dyn Deltas) -> Result<AssistantMessage, ModelFault> {
        let _trial = self.enter(Instant::now())?;
        let answer = self.inner.step(request, deltas).await;
        self.learn(answer.as_ref().err().filter(|fault| counts(fault)));
        answer
    }

    fn has_structured_output(&self, agent: &PreparedAgent) -> bool {
        self.inner.has_structured_output(agent)
    }
}
