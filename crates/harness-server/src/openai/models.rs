//! Models: the agent graph, and each of its agents.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use harness::core::AgentId;
use serde::Serialize;
use utoipa::ToSchema;

use super::error::AnyOpenAiFault;
use crate::app::App;
use crate::body::At;
use crate::fault::Fault;

/// Name of the whole graph.
pub(crate) const GRAPH: &str = "harness";

/// An agent, or the whole graph, as a model.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ModelView {
    /// `harness` for the graph, which starts at its entry agent; `harness:AGENT` for one agent.
    id: String,
    /// `model`.
    object: &'static str,
    /// 0: models are not dated.
    created: i64,
    /// `harness`.
    owned_by: &'static str,
}

/// Models of the server.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ModelList {
    /// `list`.
    object: &'static str,
    /// The graph, then its agents.
    data: Vec<ModelView>,
}

fn view(id: String) -> ModelView {
    ModelView { id, object: "model", created: 0, owned_by: "harness" }
}

/// Lists the models: the agent graph, and each agent that a request can start with.
#[utoipa::path(
    get, path = "/v1/models", tag = "openai", operation_id = "listModels",
    responses((status = 200, description = "The models", body = ModelList), AnyOpenAiFault)
)]
pub(crate) async fn list_models(State(app): State<Arc<App>>) -> Json<ModelList> {
    let agents = app.options.agents.iter().map(|agent| view(format!("{GRAPH}:{agent}")));
    let data = std::iter::once(view(GRAPH.to_owned())).chain(agents).collect();
    Json(ModelList { object: "list", data })
}

/// Returns a model.
#[utoipa::path(
    get, path = "/v1/models/{model}", tag = "openai", operation_id = "getModel",
    params(("model" = String, Path, description = "Model id")),
    responses((status = 200, description = "The model", body = ModelView), AnyOpenAiFault)
)]
pub(crate) async fn show_model(
    State(app): State<Arc<App>>,
    At(model): At<String>,
) -> Result<Json<ModelView>, Fault> {
    agent_of(&app, &model)?;
    Ok(Json(view(model)))
}

/// Agent that a model starts with; `None` for the graph.
pub(super) fn agent_of(app: &App, model: &str) -> Result<Option<AgentId>, Fault> {
    if model == GRAPH {
        return Ok(None);
    }
    let agent = model.strip_prefix(GRAPH).and_then(|rest| rest.strip_prefix(':'));
    let known = agent.and_then(|agent| app.options.agents.iter().find(|known| known.as_str() == agent));
    if let Some(agent) = known {
        return Ok(Some(agent.clone()));
    }
    let shown: String = model.chars().take(128).collect();
    Err(Fault::new(StatusCode::NOT_FOUND, "model_not_found", format!("the model `{shown}` was not found"))
        .at("model")
        .hint("use `harness`, or another model of GET /v1/models"))
}
