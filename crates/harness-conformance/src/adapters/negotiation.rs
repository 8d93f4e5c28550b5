//! Kind `negotiation`: what a backend says to a request before anything runs.

use std::sync::Arc;

use harness::adapters::chat::ChatModel;
use harness::adapters::execution::{
    DynExecutionAdapter, ExecutionAdapter, ExecutionCapabilities, ExecutionCx, ExecutionRequest,
    ExecutionResult, ModelBackend,
};
use harness::adapters::local::{AgentBackend, LocalAgent};
use harness::host::process::Environment;
use harness::relay::RelayAdapterConfig;
use harness::system::SystemClock;
use serde_json::json;

use super::vectors;
use super::words::{NegotiationVector, Negotiator};
use crate::Done;
use crate::turn::compare::same;
use crate::vector::Vector;
use crate::verdict::Verdict;

/// Judges a vector.
pub(crate) fn run(vector: &Vector) -> Verdict {
    vector.parse().and_then(check).into()
}

fn check(vector: NegotiationVector) -> Done<()> {
    let backend = backend(vector.adapter, vector.capabilities.map(|known| known.0))?;
    let mut got = json!({
        "capabilities": serde_json::to_value(backend.describe()).map_err(|e| e.to_string())?,
        "negotiation": serde_json::to_value(backend.negotiate_dyn(&vector.input.0)).map_err(|e| e.to_string())?,
    });
    // Of the hosted one its source has words of its own; those of the rules that all others share are compared.
    if vector.adapter == Negotiator::Openrouter {
        vectors::settle_free_texts(&vector.expected, &mut got);
    }
    same("expected", &vector.expected, &got)
}

/// The backend that a vector names.
fn backend(
    name: Negotiator,
    capabilities: Option<ExecutionCapabilities>,
) -> Done<Box<dyn DynExecutionAdapter>> {
    let clock = Arc::new(SystemClock::new());
    Ok(match (name, capabilities) {
        (Negotiator::Openrouter, None) => {
            let model = ChatModel::openrouter("any", "key").build().map_err(|e| e.to_string())?;
            Box::new(ModelBackend::new("openrouter-api", model, clock))
        }
        (Negotiator::ClaudeCode, None) => {
            Box::new(AgentBackend::new(LocalAgent::ClaudeCode, &Environment::default(), clock))
        }
        (Negotiator::Relay, None) => Box::new(Able(RelayAdapterConfig::default().capabilities)),
        (Negotiator::LocalNone | Negotiator::LocalMid | Negotiator::LocalFull, Some(capabilities)) => {
            Box::new(Able(capabilities))
        }
        (_, Some(_)) => return Err("this adapter has its own capabilities".to_owned()),
        (_, None) => return Err("a local program has the capabilities of its vector".to_owned()),
    })
}

/// A backend with these capabilities and the rules that all share.
struct Able(ExecutionCapabilities);

impl ExecutionAdapter for Able {
    fn backend_id(&self) -> &'static str {
        "able"
    }

    fn capabilities(&self) -> ExecutionCapabilities {
        self.0.clone()
    }

    async fn execute(&self, _: ExecutionRequest, _: ExecutionCx<'_>) -> ExecutionResult {
        ExecutionResult::completed("able", "")
    }
}
