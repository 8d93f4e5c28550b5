//! Results with their trace and degradation: what is the same for every adapter.

use harness_core::port::Clock;
use harness_core::{Json, Time};

use crate::execution::{
    ExecutionAdapter, ExecutionError, ExecutionEvent, ExecutionEventKind, ExecutionOutput, ExecutionRequest,
    ExecutionResult, ExecutionSummary, ExecutionTrace, NegotiationReason,
};

/// A request that an adapter supports, perhaps degraded.
///
/// ```
/// use harness_adapters::execution::{
///     ExecutionAdapter, ExecutionCapabilities, ExecutionCx, ExecutionOutput, ExecutionRequest,
///     ExecutionResult, Negotiated,
/// };
/// use harness_core::Json;
/// use harness_core::port::Clock;
///
/// struct Parrot<C>(C);
///
/// impl<C: Clock> ExecutionAdapter for Parrot<C> {
///     fn backend_id(&self) -> &str {
///         "parrot"
///     }
///
///     fn capabilities(&self) -> ExecutionCapabilities {
///         ExecutionCapabilities::none()
///     }
///
///     async fn execute(&self, request: ExecutionRequest, _: ExecutionCx<'_>) -> ExecutionResult {
///         let attempt = match Negotiated::of(self, &request) {
///             Ok(negotiated) => negotiated.start(&self.0),
///             Err(unsupported) => return *unsupported,
///         };
///         let mut output = ExecutionOutput::default();
///         output.text = Some(request.message.text);
///         attempt.completed(output, Some(Json::empty_object()))
///     }
/// }
/// ```
#[derive(Debug)]
pub struct Negotiated {
    backend_id: String,
    degradation: Option<Vec<NegotiationReason>>,
}

impl Negotiated {
    /// Negotiates.
    ///
    /// # Errors
    /// The result that says why the request is not supported; no clock was read for it.
    pub fn of<A: ExecutionAdapter + ?Sized>(
        adapter: &A,
        request: &ExecutionRequest,
    ) -> Result<Self, Box<ExecutionResult>> {
        let negotiation = adapter.negotiate(request);
        if !negotiation.supported {
            return Err(Box::new(ExecutionResult::unsupported(adapter.backend_id(), negotiation)));
        }
        Ok(Self { backend_id: adapter.backend_id().to_owned(), degradation: negotiation.degradation() })
    }

    /// Whether less will be done than was asked for.
    pub fn degraded(&self) -> bool {
        self.degradation.is_some()
    }

    /// Failure before the start, without a trace.
    pub fn refused(self, error: ExecutionError) -> ExecutionResult {
        let mut result = ExecutionResult::failed(self.backend_id, error);
        result.degradation = self.degradation;
        result
    }

    /// Begins: reads the clock once.
    pub fn start(self, clock: &dyn Clock) -> Attempt<'_> {
        Attempt { negotiated: self, clock, started: clock.now(), tool_calls: None, between: Vec::new() }
    }
}

/// A backend at work; each of its ends reads the clock once.
#[must_use]
pub struct Attempt<'a> {
    negotiated: Negotiated,
    clock: &'a dyn Clock,
    started: Time,
    tool_calls: Option<u64>,
    between: Vec<ExecutionEvent>,
}

impl std::fmt::Debug for Attempt<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Attempt").field("negotiated", &self.negotiated).finish_non_exhaustive()
    }
}

impl Attempt<'_> {
    /// Start time.
    pub fn started(&self) -> Time {
        self.started
    }

    /// The trace's summary counts this many calls of tools. Without it the summary does not speak of calls.
    pub fn tool_calls(mut self, calls: u64) -> Self {
        self.tool_calls = Some(calls);
        self
    }

    /// Something that happened between start and end, for the trace of a completed result.
    pub fn event(&mut self, kind: ExecutionEventKind, data: Option<Json>) {
        let mut event = ExecutionEvent::new(kind, self.started, data);
        event.at = None;
        self.between.push(event);
    }

    /// An answer. `data` goes with the trace's last event.
    pub fn completed(self, output: ExecutionOutput, data: Option<Json>) -> ExecutionResult {
        let mut result = ExecutionResult::completed(String::new(), "");
        result.output = Some(output);
        self.adopted(result, data)
    }

    /// A failure. `data` goes with the trace's one event.
    pub fn failed(self, error: ExecutionError, data: Option<Json>) -> ExecutionResult {
        let now = self.clock.now();
        let trace = self.trace(now, vec![ExecutionEvent::new(ExecutionEventKind::Failure, now, data)]);
        let Negotiated { backend_id, degradation } = self.negotiated;
        let mut result = ExecutionResult::failed(backend_id, error);
        result.trace = Some(trace);
        result.degradation = degradation;
        result
    }

    /// A result of the backend's own, taken over whole: it gets the adapter's id, the negotiation's reasons
    /// after its own, and a trace when it has none; `data` goes with that trace's last event.
    pub fn adopted(mut self, mut result: ExecutionResult, data: Option<Json>) -> ExecutionResult {
        let now = self.clock.now();
        let between = std::mem::take(&mut self.between);
        let trace = result.trace.take().unwrap_or_else(|| {
            let start = ExecutionEvent::new(ExecutionEventKind::ModelStarted, self.started, None);
            let end = ExecutionEvent::new(ExecutionEventKind::ModelCompleted, now, data);
            self.trace(now, std::iter::once(start).chain(between).chain([end]).collect())
        });
        let Negotiated { backend_id, degradation } = self.negotiated;
        result.degradation = match (result.degradation, degradation) {
            (Some(theirs), Some(ours)) => Some(theirs.into_iter().chain(ours).collect()),
            (theirs, ours) => theirs.or(ours),
        };
        result.backend_id = backend_id;
        result.trace = Some(trace);
        result
    }

    fn trace(&self, now: Time, events: Vec<ExecutionEvent>) -> ExecutionTrace {
        let summary = ExecutionSummary {
            started_at: Some(self.started),
            completed_at: Some(now),
            step_count: Some(1),
            tool_call_count: self.tool_calls,
            degraded: Some(self.negotiated.degraded()),
        };
        ExecutionTrace { summary, events: Some(events), ..ExecutionTrace::default() }
    }
}
