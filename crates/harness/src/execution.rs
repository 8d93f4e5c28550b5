//! A harness as an execution adapter.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use harness_adapters::execution::{
    Attempt, ExecutionAdapter, ExecutionApproval, ExecutionCapabilities, ExecutionContinuation, ExecutionCx,
    ExecutionError, ExecutionErrorCode, ExecutionEventKind, ExecutionOutput, ExecutionPart, ExecutionRequest,
    ExecutionResult, ExecutionSink, ExecutionStatus, Negotiated, Support, ToolUse, TraceDepth, user_text,
};
use harness_core::event::{EventKind, Seen, Subscription};
use harness_core::machine::{CallDecision, Resume};
use harness_core::message::{ApprovalRequest, ToolCall, Usage};
use harness_core::outcome::{Continuation, TotalUsage};
use harness_core::port::{Clock, DeltaPart};
use harness_core::{Evidence, Json, Outcome, StopReason};
use harness_runtime::{Prompt, Report, ResumeFrom, RuntimeError};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

use crate::builder::Builder;
use crate::error::HarnessError;
use crate::harness::Harness;
use crate::system::SystemClock;

/// Conversations that are kept, at most.
const KEPT: usize = 64;

/// Things seen that may wait while a run is busy; after that deltas go first.
const WAITING: usize = 4_096;

/// Bytes of a tool's output that are reported.
const SHOWN: usize = 8 << 10;

/// The name of this backend in results.
const BACKEND_ID: &str = "harness";

type Make = dyn Fn(&ExecutionRequest) -> Result<Builder, HarnessError> + Send + Sync;

/// A harness as a backend: each request is a prompt, so that a worker bridge or a tiered runner can run the
/// whole loop with its agents and tools.
///
/// A function makes the harness of each new conversation; it decides what of the request's instructions its
/// agents are given. What is said to them is the request's developer prompt, context and message
/// ([`user_text`]), or the message alone when there is nothing else.
///
/// Its capabilities are what it does: it runs its own loop of tools (`native-iterative`), stops for approvals
/// (`native`), reports its steps, and continues the conversation of a request with its continuation
/// (`opaque-resume`; the newest 64 conversations are kept in memory). A continuation of kind `approval` is
/// decided by `metadata.approved` of the continuation that is given back: true runs the held calls, false
/// denies them; without it the message is a new prompt.
///
/// ```
/// use harness::HarnessExecution;
/// use harness::adapters::execution::{ExecutionAdapter, ExecutionCx, ExecutionMessage, ExecutionRequest};
/// use harness::prelude::*;
/// # struct Hosted;
/// # impl Model for Hosted {
/// #     async fn step(&self, _: ModelRequest, _: &dyn Deltas) -> Result<AssistantMessage, ModelFault> {
/// #         Ok(AssistantMessage::text("2, 3, 5"))
/// #     }
/// # }
///
/// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
/// let backend = HarnessExecution::new(|request| {
///     Ok(Harness::new(Hosted).instructions(request.instructions.system_prompt.as_str()))
/// });
/// let message = ExecutionMessage::new("m1", "Name three primes.");
/// let request = ExecutionRequest::new("assistant", "t1", "Answer in one line.", message);
/// let cancel = harness::core::Cancel::never();
/// let result = backend.execute(request, ExecutionCx::new(&(), &cancel)).await;
/// assert_eq!(result.text(), "2, 3, 5");
/// # });
/// # Ok::<(), std::io::Error>(())
/// ```
pub struct HarnessExecution {
    make: Box<Make>,
    clock: Arc<dyn Clock>,
    kept: Mutex<VecDeque<Conversation>>,
    count: AtomicU64,
}

impl fmt::Debug for HarnessExecution {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HarnessExecution").finish_non_exhaustive()
    }
}

/// A conversation between its requests.
struct Conversation {
    id: String,
    harness: Harness,
    seen: Subscription,
    /// Continuation of its last run.
    left: Option<Box<Continuation>>,
}

/// State in a continuation of this backend.
#[derive(Serialize, Deserialize)]
struct State {
    conversation: String,
}

/// Decision of a host on held calls.
#[derive(Default, Deserialize)]
struct Decided {
    approved: Option<bool>,
}

impl HarnessExecution {
    /// A backend whose conversations this function begins.
    pub fn new(
        make: impl Fn(&ExecutionRequest) -> Result<Builder, HarnessError> + Send + Sync + 'static,
    ) -> Self {
        Self {
            make: Box::new(make),
            clock: Arc::new(SystemClock::new()),
            kept: Mutex::default(),
            count: AtomicU64::new(0),
        }
    }

    /// The clock of traces. Default this machine's.
    #[must_use]
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
        self
    }

    /// The conversation of the request's continuation, or a new one.
    fn conversation(&self, request: &ExecutionRequest) -> Result<Conversation, ExecutionError> {
        if let Some(continuation) = &request.continuation {
            let state = continuation.state.as_ref().and_then(|state| state.to::<State>().ok());
            return self.taken(state.as_ref().map_or("", |state| &state.conversation));
        }
        let mut builder = (self.make)(request).map_err(|error| not_begun(&error))?;
        let seen = builder.subscribe(WAITING);
        let harness = builder.build().map_err(|error| not_begun(&error))?;
        let id = format!("conversation-{}", self.count.fetch_add(1, Ordering::Relaxed));
        Ok(Conversation { id, harness, seen, left: None })
    }

    fn taken(&self, id: &str) -> Result<Conversation, ExecutionError> {
        let mut kept = self.kept.lock();
        let at = kept.iter().position(|conversation| conversation.id == id);
        at.and_then(|at| kept.remove(at)).ok_or_else(|| {
            let told = format!(
                "unknown conversation `{id}`: it is busy, was dropped, or belongs to a different process; send the \
                 request without a continuation, with the earlier messages as context"
            );
            ExecutionError::new(ExecutionErrorCode::BackendExecutionError, told).retryable(false)
        })
    }

    fn keep(&self, conversation: Conversation) {
        let mut kept = self.kept.lock();
        if kept.len() >= KEPT {
            kept.pop_front();
        }
        kept.push_back(conversation);
    }
}

impl ExecutionAdapter for HarnessExecution {
    fn backend_id(&self) -> &'static str {
        BACKEND_ID
    }

    fn capabilities(&self) -> ExecutionCapabilities {
        let mut capabilities = ExecutionCapabilities::none();
        capabilities.tool_use = ToolUse::NativeIterative;
        capabilities.continuation_support = Support::OpaqueResume;
        capabilities.approval_interrupts = Support::Native;
        capabilities.trace_depth = TraceDepth::Standard;
        capabilities
    }

    async fn execute(&self, request: ExecutionRequest, cx: ExecutionCx<'_>) -> ExecutionResult {
        let negotiated = match Negotiated::of(self, &request) {
            Ok(negotiated) => negotiated,
            Err(unsupported) => return *unsupported,
        };
        let mut attempt = negotiated.start(&*self.clock);
        let mut conversation = match self.conversation(&request) {
            Ok(conversation) => conversation,
            Err(error) => return attempt.failed(error, None),
        };
        let mut told = Progress { attempt: &mut attempt, sink: cx.sink, calls: 0 };
        let report = run(&mut conversation, &request, cx, &mut told).await;
        let calls = told.calls;
        let attempt = attempt.tool_calls(calls);
        match report {
            Ok(report) => {
                let result = finished(&report, attempt, &conversation.id);
                conversation.left.clone_from(&report.end.continuation);
                self.keep(conversation);
                result
            }
            Err(error) => {
                let result = attempt.failed(not_begun(&error), None);
                self.keep(conversation);
                result
            }
        }
    }
}

/// Runs the request's prompt to its end and reports progress.
async fn run(
    conversation: &mut Conversation,
    request: &ExecutionRequest,
    cx: ExecutionCx<'_>,
    told: &mut Progress<'_, '_>,
) -> Result<Report, RuntimeError> {
    let Conversation { harness, seen, left, .. } = conversation;
    let mut running = harness.prompt(prompt(left.take(), request).cancel_with(cx.cancel.clone()));
    let report = loop {
        tokio::select! {
            biased;
            Some(seen) = seen.next() => told.see(seen),
            report = &mut running => break report,
        }
    };
    while let Some(seen) = seen.try_next() {
        told.see(seen);
    }
    report
}

/// Prompt of a request.
fn prompt(left: Option<Box<Continuation>>, request: &ExecutionRequest) -> Prompt {
    let metadata = request.continuation.as_ref().and_then(|given| given.metadata.as_ref());
    let decided: Decided = metadata.and_then(|metadata| metadata.to().ok()).unwrap_or_default();
    if let (Some(left), Some(approved)) = (left, decided.approved)
        && !left.pending.is_empty()
    {
        let ids: Vec<_> = left.pending.iter().map(|call| call.call_id.clone()).collect();
        let decisions = ids.into_iter().map(|id| {
            if approved { CallDecision::granted(id) } else { CallDecision::denied(id, "the host denied it") }
        });
        return Prompt::resuming(ResumeFrom::continuation(*left, Resume::decided(decisions)));
    }
    let developer = request.instructions.developer_prompt.as_deref().unwrap_or_default();
    if developer.trim().is_empty() && request.context.is_none() {
        return request.message.text.clone().into();
    }
    user_text(request).into()
}

/// Progress of a run.
struct Progress<'t, 'a> {
    attempt: &'t mut Attempt<'a>,
    sink: &'t dyn ExecutionSink,
    calls: u64,
}

impl Progress<'_, '_> {
    fn see(&mut self, seen: Seen) {
        match seen {
            Seen::Delta(delta) => {
                if let Some(part) = part(delta.part) {
                    self.sink.part(part);
                }
            }
            Seen::Event(event) => self.event(&event.kind),
            Seen::Lagged { .. } | _ => {}
        }
    }

    fn event(&mut self, kind: &EventKind) {
        let named = |call: &ToolCall, failed: Option<bool>| {
            Json::of(&Named { call_id: call.id.as_str(), name: call.name.as_str(), failed }).ok()
        };
        if let EventKind::ToolStarted { call, .. } = kind {
            self.calls = self.calls.saturating_add(1);
            self.attempt.event(ExecutionEventKind::ToolRequested, named(call, None));
            let (id, name, input) = (call.id.clone(), call.name.clone(), call.arguments.clone());
            self.sink.part(ExecutionPart::ToolStarted { id, name, input });
        } else if let EventKind::ToolFinished { call, outcome, .. }
        | EventKind::ToolFailed { call, outcome, .. } = kind
        {
            let failed = outcome.is_error();
            self.attempt.event(ExecutionEventKind::ToolCompleted, named(call, Some(failed)));
            let mut output: String = outcome.content.iter().filter_map(|block| block.as_text()).collect();
            output.truncate(output.floor_char_boundary(SHOWN));
            self.sink.part(ExecutionPart::ToolFinished { id: call.id.clone(), output, failed });
        }
    }
}

/// A call in a trace.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Named<'a> {
    call_id: &'a str,
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    failed: Option<bool>,
}

fn part(delta: DeltaPart) -> Option<ExecutionPart> {
    Some(match delta {
        DeltaPart::Text(text) => ExecutionPart::Text(text),
        DeltaPart::Thinking(text) => ExecutionPart::Thinking(text),
        DeltaPart::BackendToolStarted { id, name, input } => ExecutionPart::ToolStarted { id, name, input },
        DeltaPart::BackendToolFinished { id, output, failed } => {
            ExecutionPart::ToolFinished { id, output, failed }
        }
        DeltaPart::Note(text) => ExecutionPart::Note(text),
        DeltaPart::CallStarted { .. } | DeltaPart::CallArguments { .. } | _ => return None,
    })
}

/// Metadata of a result.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Metadata {
    stop_reason: StopReason,
    usage: Usage,
}

fn used(total: &TotalUsage) -> Usage {
    let mut usage = Usage::default();
    (usage.input, usage.output) = (total.input_tokens, total.output_tokens);
    usage.latency_ms = total.latency_ms;
    usage.requests = Some(u64::from(total.model_calls));
    match total.cost {
        Some(cost) => usage.with_cost(cost),
        None => usage,
    }
}

/// The result of a run that came to its end.
fn finished(report: &Report, attempt: Attempt<'_>, conversation: &str) -> ExecutionResult {
    let status = match report.outcome() {
        Outcome::Completed => ExecutionStatus::Completed,
        Outcome::NeedsClarification => ExecutionStatus::NeedsClarification,
        Outcome::AwaitingApproval => ExecutionStatus::AwaitingApproval,
        Outcome::Deferred => ExecutionStatus::Deferred,
        Outcome::Failed => ExecutionStatus::Failed,
    };
    let mut result = if status == ExecutionStatus::Failed {
        let data = Json::of(&Facts { stop_reason: report.reason() });
        attempt.failed(failure(report), data.ok())
    } else {
        attempt.adopted(ExecutionResult::new(BACKEND_ID, status), Some(Json::empty_object()))
    };
    let answer = report.answer();
    if !answer.is_empty() {
        let mut output = ExecutionOutput::default();
        output.text = Some(answer.to_owned());
        result.output = Some(output);
    }
    if status == ExecutionStatus::AwaitingApproval {
        result.approval_request = Some(wish(&report.end.stop.evidence));
    }
    result.continuation = Some(continuation(status, conversation));
    let usage = used(&report.end.usage);
    result.metadata = Json::of(&Metadata { stop_reason: report.reason(), usage }).ok();
    result
}

/// Data of a failure event.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Facts {
    stop_reason: StopReason,
}

fn continuation(status: ExecutionStatus, conversation: &str) -> ExecutionContinuation {
    let kind = match status {
        ExecutionStatus::NeedsClarification => "clarification",
        ExecutionStatus::AwaitingApproval => "approval",
        ExecutionStatus::Deferred => "deferred",
        ExecutionStatus::Completed | ExecutionStatus::Failed | ExecutionStatus::Unsupported | _ => "session",
    };
    let mut continuation = ExecutionContinuation::default();
    continuation.kind = Some(kind.to_owned());
    continuation.state = Json::of(&State { conversation: conversation.to_owned() }).ok();
    continuation
}

fn wish(evidence: &Evidence) -> ExecutionApproval {
    let mut approval = ExecutionApproval::default();
    let asked: &[ApprovalRequest] = if let Evidence::Held(held) = evidence {
        held
    } else if let Evidence::Approval(request) = evidence {
        std::slice::from_ref(request)
    } else {
        &[]
    };
    approval.reason = Some(asked.iter().map(|ask| ask.summary.as_str()).collect::<Vec<_>>().join("; "));
    approval.approval_key = asked.first().map(|ask| ask.id.clone());
    approval.metadata = Json::of(asked).ok();
    approval
}

fn failure(report: &Report) -> ExecutionError {
    let code = if matches!(report.reason(), StopReason::ModelInvalidResponse | StopReason::InvalidOutput) {
        ExecutionErrorCode::InvalidBackendOutput
    } else if report.reason() == StopReason::Cancelled {
        ExecutionErrorCode::Other
    } else {
        ExecutionErrorCode::BackendExecutionError
    };
    let told = if let Evidence::Fault(fault) = &report.end.stop.evidence {
        fault.to_string()
    } else if let Evidence::Invalid(invalid) = &report.end.stop.evidence {
        invalid.reason.clone()
    } else {
        report.reason().meaning().to_owned()
    };
    ExecutionError::new(code, format!("{}: {told}", report.reason()))
}

fn not_begun(error: &dyn fmt::Display) -> ExecutionError {
    let told = format!("the run could not begin: {error}");
    ExecutionError::new(ExecutionErrorCode::BackendExecutionError, told).retryable(false)
}
