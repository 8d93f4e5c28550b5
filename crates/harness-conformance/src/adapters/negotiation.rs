//! Kind `negotiation`: what a backend says to a request before anything runs.

use std::sync::Arc;

use harness::adapters::chat::ChatModel;
use harness::adapters::execution::{
    DynExecutionAdapter, ExecutionAdapter, ExecutionCapabilities, ExecutionCx, ExecutionRequest,
    ExecutionResult, ModelBackend,
};
use harness::adapters::local::{AgentBackend, LocalAgent};
use harness::adapters::relay::RelayAdapterConfig;
use harness::host::process::Environment;
use harness::system::SystemClock;
use serde_json::{Value, json};

use super::vectors;
use crate::turn::compare::same;
use crate::turn::convert::{Done, at, text};
use crate::vector::Vector;
use crate::verdict::Verdict;

/// The adapter whose source has words of its own; those of the rules that all others share are compared.
const HOSTED: &str = "openrouter";

/// Runs all vectors of the file.
pub(crate) fn run(vector: &Vector) -> Verdict {
    vectors::each(vector, check)
}

fn check(vector: &Value) -> Done<()> {
    let adapter = adapter(vector)?;
    let request: ExecutionRequest =
        serde_json::from_value(at(vector, "input").clone()).map_err(|e| e.to_string())?;
    let expected = at(vector, "expected");
    let mut got = json!({
        "capabilities": serde_json::to_value(adapter.describe()).map_err(|e| e.to_string())?,
        "negotiation": serde_json::to_value(adapter.negotiate_dyn(&request)).map_err(|e| e.to_string())?,
    });
    if text(vector, "adapter") == HOSTED {
        vectors::settle_free_texts(expected, &mut got);
    }
    same("expected", expected, &got)
}

/// The adapter that a vector names.
fn adapter(vector: &Value) -> Done<Box<dyn DynExecutionAdapter>> {
    match text(vector, "adapter") {
        HOSTED => {
            let model = ChatModel::openrouter("any", "key").build().map_err(|e| e.to_string())?;
            Ok(Box::new(ModelBackend::new("openrouter-api", model, Arc::new(SystemClock::new()))))
        }
        "claude-code" => {
            let nothing = Environment::default();
            Ok(Box::new(AgentBackend::new(LocalAgent::ClaudeCode, &nothing, Arc::new(SystemClock::new()))))
        }
        "relay" => Ok(Box::new(Able(RelayAdapterConfig::default().capabilities))),
        name if name.starts_with("local-") => {
            let capabilities = at(vector, "capabilities").clone();
            Ok(Box::new(Able(serde_json::from_value(capabilities).map_err(|e| e.to_string())?)))
        }
        other => Err(format!("no code plays the adapter `{other}`")),
    }
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
