//! Definitions of services, and the way of a request into its handler.

use std::future::ready;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use restate_sdk::discovery::{
    Handler, HandlerName, HandlerType, InputPayload, OutputPayload, RetryPolicyOnMaxAttempts, Service,
    ServiceName, ServiceType,
};
use restate_sdk::endpoint::{ContextInternal, Error, InputMetadata};
use restate_sdk::errors::{HandlerError, TerminalError};
use restate_sdk::serde::Json;
use restate_sdk::service::{ServiceDefinition, macro_support};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::worker::WorkerError;
use crate::durable::Stopped;

pub(super) const THREAD: &str = "HarnessThread";
pub(super) const RUN: &str = "HarnessRun";
pub(super) const STEP: &str = "HarnessStep";
pub(super) const LOG: &str = "HarnessLog";
pub(super) const QUOTA: &str = "HarnessQuota";
pub(super) const BUDGET: &str = "HarnessBudget";
pub(super) const STORAGE: &str = "HarnessStorage";

/// How long the engine keeps the reply to a request with an idempotency key.
const KEEP_REPLIES: Duration = Duration::from_mins(5);
/// First and longest pause between attempts.
const PAUSES: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(10));

/// The handlers of a service.
pub(super) trait Handlers: Send + Sync + 'static {
    /// Handles one request: reads its input, and writes its result.
    fn handle<'c>(
        &'c self,
        ctx: &'c ContextInternal,
        handler: &'c str,
    ) -> impl Future<Output = Result<(), Error>> + Send + 'c;
}

struct Dispatch<H>(Arc<H>);

impl<H: Handlers> restate_sdk::service::Service for Dispatch<H> {
    type Future = BoxFuture<'static, Result<(), Error>>;

    fn handle(&self, ctx: ContextInternal) -> Self::Future {
        let handlers = Arc::clone(&self.0);
        Box::pin(async move {
            handlers.handle(&ctx, ctx.handler_name()).await?;
            ctx.end();
            Ok(())
        })
    }
}

/// Reads the input of a request.
pub(super) async fn input<T: DeserializeOwned + 'static>(ctx: &ContextInternal) -> (T, InputMetadata) {
    let (Json(input), metadata) = ctx.input().await;
    (input, metadata)
}

/// Writes the result of a request.
pub(super) fn output<T: Serialize + 'static>(
    ctx: &ContextInternal,
    result: Result<T, impl Into<HandlerError>>,
) {
    ctx.handle_handler_result(result.map(Json).map_err(Into::into));
}

/// The result of an attempt that ends without one. The engine makes another, unless it was refused.
pub(super) fn unfinished(stopped: Stopped) -> HandlerError {
    match stopped {
        Stopped::Over => stopped.into(),
        Stopped::Refused(_) => TerminalError::new(stopped.to_string()).into(),
    }
}

/// Journals a value that a replay must not make again.
pub(super) async fn journaled<T: Serialize + DeserializeOwned + Send + 'static>(
    ctx: &ContextInternal,
    value: impl FnOnce() -> T + Send,
) -> Result<T, TerminalError> {
    let Json(value) = ctx.run(|| ready(Ok(Json(value())))).await?;
    Ok(value)
}

/// How a handler is run.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct HandlerSpec {
    pub(super) name: &'static str,
    /// Runs beside others of its key, and cannot write.
    pub(super) is_shared: bool,
    /// Only other services call it.
    pub(super) is_private: bool,
}

/// How a service is run.
#[derive(Debug)]
pub(super) struct ServiceSpec {
    pub(super) name: &'static str,
    pub(super) is_object: bool,
    /// Reads state when it needs it.
    pub(super) is_lazy: bool,
    pub(super) handlers: Vec<HandlerSpec>,
    /// How long the journal is kept after the end.
    pub(super) keeps_journal: Duration,
    /// Silence after which the engine suspends an attempt.
    pub(super) inactivity: Duration,
    /// Attempts without progress, and whether the engine then ends the invocation rather than to pause it.
    pub(super) attempts: (u64, bool),
}

pub(super) fn define(spec: &ServiceSpec, handlers: impl Handlers) -> Result<ServiceDefinition, WorkerError> {
    let on_last_attempt =
        if spec.attempts.1 { RetryPolicyOnMaxAttempts::Kill } else { RetryPolicyOnMaxAttempts::Pause };
    let service = Service {
        ty: if spec.is_object { ServiceType::VirtualObject } else { ServiceType::Service },
        name: ServiceName::try_from(spec.name).map_err(WorkerError::definition)?,
        handlers: spec.handlers.iter().map(handler).collect::<Result<_, _>>()?,
        documentation: None,
        metadata: std::collections::HashMap::default(),
        abort_timeout: Some(millis(Duration::from_mins(10))),
        inactivity_timeout: Some(millis(spec.inactivity)),
        journal_retention: Some(millis(spec.keeps_journal)),
        idempotency_retention: Some(millis(KEEP_REPLIES)),
        enable_lazy_state: Some(spec.is_lazy),
        ingress_private: None,
        retry_policy_initial_interval: Some(millis(PAUSES.0)),
        retry_policy_max_interval: Some(millis(PAUSES.1)),
        retry_policy_max_attempts: Some(spec.attempts.0),
        retry_policy_exponentiation_factor: Some(2.0),
        retry_policy_on_max_attempts: Some(on_last_attempt),
    };
    Ok(macro_support::service_definition(Dispatch(Arc::new(handlers)), service))
}

fn handler(spec: &HandlerSpec) -> Result<Handler, WorkerError> {
    let json = || Some("application/json".to_owned());
    let input = InputPayload { content_type: json(), json_schema: None, required: Some(true) };
    let output =
        OutputPayload { content_type: json(), json_schema: None, set_content_type_if_empty: Some(false) };
    Ok(Handler {
        name: HandlerName::try_from(spec.name).map_err(WorkerError::definition)?,
        input: Some(input),
        output: Some(output),
        ty: spec.is_shared.then_some(HandlerType::Shared),
        documentation: None,
        metadata: std::collections::HashMap::default(),
        abort_timeout: None,
        inactivity_timeout: None,
        journal_retention: None,
        idempotency_retention: None,
        workflow_completion_retention: None,
        enable_lazy_state: None,
        ingress_private: spec.is_private.then_some(true),
        retry_policy_initial_interval: None,
        retry_policy_max_interval: None,
        retry_policy_max_attempts: None,
        retry_policy_exponentiation_factor: None,
        retry_policy_on_max_attempts: None,
    })
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
