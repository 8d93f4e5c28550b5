//! The routes, and the description of them.

mod approvals;
mod events;
mod queue;
mod runs;
pub(crate) mod service;
mod threads;
mod trace;

pub(crate) use events::Client;

use std::sync::Arc;

use utoipa::openapi::security::{Http, HttpAuthScheme, SecurityScheme};
use utoipa::openapi::{OpenApi, SecurityRequirement};
use utoipa::{Modify, OpenApi as _};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::app::App;
use crate::openai::routes as openai;

/// OpenAPI description without routes.
#[derive(utoipa::OpenApi)]
#[openapi(
    info(
        title = "harness",
        description = "Threads of agents over HTTP. Every error response is \
            `{\"error\": {kind, message, hint?, path?}}` with a stable `kind`. New keys, kinds and types of events may \
            be added at any time.",
    ),
    modifiers(&Common),
    components(schemas(
        crate::fault::ErrorBody, crate::fault::ErrorDetail, crate::openai::OpenAiError,
    )),
)]
struct Description;

/// Common responses of routes: errors, and authentication if required.
struct Common;

impl Modify for Common {
    fn modify(&self, api: &mut OpenApi) {
        let components = api.components.get_or_insert_default();
        let scheme = SecurityScheme::Http(Http::new(HttpAuthScheme::Bearer));
        components.add_security_scheme("token", scheme);
        let faults = crate::fault::all().map(|(name, response)| (name.to_owned(), response.into()));
        components.responses.extend(faults);
        let (none, token) = (SecurityRequirement::default(), SecurityRequirement::new("token", [""; 0]));
        api.security = Some(vec![none, token]);
    }
}

/// All routes with their OpenAPI description.
pub(crate) fn all() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::with_openapi(Description::openapi())
        .routes(routes!(threads::list, threads::create))
        .routes(routes!(threads::show, threads::remove))
        .routes(routes!(threads::status))
        .routes(routes!(threads::messages, queue::send))
        .routes(routes!(threads::compact))
        .routes(routes!(trace::trace))
        .routes(routes!(runs::prompt))
        .routes(routes!(runs::continue_run))
        .routes(routes!(runs::response))
        .routes(routes!(runs::abort))
        .routes(routes!(queue::steer))
        .routes(routes!(queue::follow_up))
        .routes(routes!(queue::interrupt))
        .routes(routes!(queue::list))
        .routes(routes!(queue::edit, queue::cancel))
        .routes(routes!(events::events))
        .routes(routes!(approvals::of_all))
        .routes(routes!(approvals::of_one))
        .routes(routes!(approvals::answer))
        .routes(routes!(openai::list_models))
        .routes(routes!(openai::show_model))
        .routes(routes!(openai::create_chat_completion))
        .routes(routes!(openai::create_response))
        .routes(routes!(openai::show_response, openai::delete_response))
        .routes(routes!(openai::create_conversation))
        .routes(routes!(openai::show_conversation, openai::delete_conversation))
        .routes(routes!(crate::agui::run_ag_ui))
        .routes(routes!(service::health))
        .routes(routes!(service::openapi))
        .routes(routes!(service::event_schema))
}
