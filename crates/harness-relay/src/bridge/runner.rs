//! The program behind a worker.

use std::fmt;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures_util::FutureExt as _;
use harness_adapters::execution::{
    DynExecutionAdapter, ExecutionCx, ExecutionError, ExecutionErrorCode, ExecutionResult,
};
use harness_adapters::{CliInput, CliOutcome, DynCliRunner};
use harness_core::Json;
use harness_core::{Cancel, JsonObject};

use super::config::BridgeConfig;

/// Runs the requests of a worker.
#[derive(Clone)]
#[non_exhaustive]
pub enum BridgeRunner {
    /// A command-line program, which gets the request as one prompt.
    Cli(Arc<dyn DynCliRunner>),
    /// A backend, which gets the request as it is: our own harness, for one.
    Backend(Arc<dyn DynExecutionAdapter>),
}

impl fmt::Debug for BridgeRunner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cli(runner) => f.debug_tuple("Cli").field(&runner.name()).finish(),
            Self::Backend(backend) => f.debug_tuple("Backend").field(&backend.id()).finish(),
        }
    }
}

impl BridgeRunner {
    /// Runs a request to its end. A runner that panics gives a failure like any other, so that one bad
    /// request does not end the worker.
    pub(super) async fn run(
        &self,
        request: &Json,
        prompt: String,
        config: &BridgeConfig,
        cancel: &Cancel,
    ) -> ExecutionResult {
        let (backend_id, id) = match self {
            Self::Cli(runner) => (format!("byoh-worker:{}", runner.name()), runner.name()),
            Self::Backend(backend) => (backend.id().to_owned(), backend.id()),
        };
        let run = async {
            match self {
                Self::Cli(runner) => ran(&backend_id, runner.run_boxed(input(prompt, config, cancel)).await),
                Self::Backend(backend) => executed(&**backend, request, config, cancel).await,
            }
        };
        AssertUnwindSafe(run).catch_unwind().await.unwrap_or_else(|panic| {
            let text = panic.downcast_ref::<&str>().copied();
            let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
            failed(&backend_id, format!("Runner '{id}' threw: {}", text.unwrap_or("no message")))
        })
    }
}

fn input(prompt: String, config: &BridgeConfig, cancel: &Cancel) -> CliInput {
    let mut input = CliInput::new(prompt, config.timeout);
    input.cwd.clone_from(&config.cwd);
    input.model.clone_from(&config.model);
    input.cancel = cancel.clone();
    input
}

fn ran(backend_id: &str, outcome: CliOutcome) -> ExecutionResult {
    match outcome {
        CliOutcome::Completed { text, metadata } => {
            let mut result = ExecutionResult::completed(backend_id, text);
            result.metadata = metadata;
            result
        }
        CliOutcome::Failed { error, stderr, exit_code } => {
            let mut more = JsonObject::default();
            if let Some(stderr) = stderr.filter(|stderr| !stderr.is_empty()) {
                more.set("stderr", Json::string(&stderr));
            }
            if let Some(code) = exit_code.and_then(|code| Json::of(&code).ok()) {
                more.set("exitCode", code);
            }
            let mut result = failed(backend_id, error);
            if let Some(error) = result.error.as_mut().filter(|_| !more.is_empty()) {
                error.metadata = Some(more.json());
            }
            result
        }
        _ => failed(backend_id, "the runner ended with an unknown outcome".to_owned()),
    }
}

async fn executed(
    backend: &dyn DynExecutionAdapter,
    request: &Json,
    config: &BridgeConfig,
    cancel: &Cancel,
) -> ExecutionResult {
    let request = match request.to() {
        Ok(request) => request,
        Err(fault) => return failed(backend.id(), format!("The request cannot be read: {fault}")),
    };
    // A backend stops on its signal, so that a run beyond its time ends in order.
    let cancel = cancel.child();
    let mut run = backend.execute_boxed(request, ExecutionCx::new(&(), &cancel));
    if let Ok(result) = tokio::time::timeout(config.timeout, &mut run).await {
        return result;
    }
    cancel.cancel();
    let _ = run.await;
    let message = format!("Backend '{}' timed out after {}ms", backend.id(), config.timeout.as_millis());
    ExecutionResult::failed(backend.id(), ExecutionError::new(ExecutionErrorCode::Timeout, message))
}

/// A failure that another try of the same request would most likely meet again.
pub(super) fn failed(backend_id: &str, message: String) -> ExecutionResult {
    let error = ExecutionError::new(ExecutionErrorCode::BackendExecutionError, message);
    ExecutionResult::failed(backend_id, error.retryable(false))
}
