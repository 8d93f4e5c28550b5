//! The session of an agent, from one request to the next.

use harness_core::message::Usage;
use harness_core::{Json, JsonObject};

use super::LocalAgent;
use crate::execution::{
    ExecutionContinuation, ExecutionError, ExecutionErrorCode, ExecutionRequest, NegotiationCode,
    NegotiationReason, Severity,
};

/// Kind of the continuation.
const KIND: &str = "session";

/// The longest id of a session that is taken.
const MOST_ID: usize = 128;

/// Session that a request continues.
#[derive(Clone, Debug, Default)]
pub(super) struct Session {
    pub(super) id: String,
    /// Usage of all its turns so far, for agents that report only sums.
    pub(super) used: Option<Usage>,
}

impl Session {
    /// Session that a request continues, if any.
    pub(super) fn of(request: &ExecutionRequest, agent: LocalAgent) -> Result<Option<Self>, ExecutionError> {
        let Some(state) = state(request) else { return Ok(None) };
        let refuse =
            |told: String| Err(ExecutionError::new(ExecutionErrorCode::Other, told).retryable(false));
        let Some(id) = state.text("session") else { return Ok(None) };
        match state.text("backend") {
            Some(backend) if backend != agent.backend_id() => {
                let (title, own) = (agent.title(), agent.backend_id());
                return refuse(format!(
                    "{title} cannot continue a session of `{backend}`: give the request to that backend, \
                     or leave its continuation out (`{own}` begins a new session then)."
                ));
            }
            _ => {}
        }
        let legal = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | ':');
        if id.is_empty() || id.len() > MOST_ID || id.starts_with('-') || !id.chars().all(legal) {
            return refuse(format!(
                "{agent} cannot continue: the session id in the continuation is invalid."
            ));
        }
        let used = state.get("used").and_then(|used| used.to().ok());
        Ok(Some(Self { id, used }))
    }

    /// Continuation for a later request.
    pub(super) fn continuation(&self, agent: LocalAgent) -> Option<ExecutionContinuation> {
        let mut state =
            vec![("backend", Json::string(agent.backend_id())), ("session", Json::string(&self.id))];
        if let Some(used) = self.used.as_ref().and_then(|used| Json::of(used).ok()) {
            state.push(("used", used));
        }
        Json::object([("kind", Json::string(KIND)), ("state", Json::object(state))]).to().ok()
    }
}

fn state(request: &ExecutionRequest) -> Option<JsonObject> {
    request.continuation.as_ref()?.state.as_ref().and_then(JsonObject::of)
}

/// Reasons why an agent does less than requested, beyond the general rules.
pub(super) fn reasons(agent: LocalAgent, request: &ExecutionRequest) -> Vec<NegotiationReason> {
    let mut reasons = Vec::new();
    let warning = |code, told| NegotiationReason::new(code, Severity::Warning, told);
    let agentic = agent != LocalAgent::Bash;
    if agentic && agent != LocalAgent::ClaudeCode && !request.tools().is_empty() {
        let told = format!("{agent} uses its own tools; those of the request are not passed on.");
        reasons.push(warning(NegotiationCode::Other, told));
    }
    let session = state(request).and_then(|state| state.text("session"));
    if agentic && request.continuation.is_some() && session.is_none() {
        let told = format!("The continuation names no session of {agent}, which begins a new one.");
        reasons.push(warning(NegotiationCode::ContinuationUnsupported, told));
    }
    reasons
}
