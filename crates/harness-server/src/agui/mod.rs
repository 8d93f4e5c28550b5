//! AG-UI: runs of threads as events for user interfaces.

mod events;
mod messages;
mod request;
mod resume;
mod stream;

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use harness::core::ThreadId;
use harness::runtime::Prompt;

use self::events::AgUiEvent;
use self::request::{AgUiQuery, Request, RunAgentInput};
use self::stream::AgUiRun;
use crate::app::App;
use crate::body::{Asked, Body};
use crate::drive::{self, Job};
use crate::fault::{AnyFault, Conflict, Fault};
use crate::routes::Client;

/// Runs a thread for a client of the AG-UI protocol, and streams the events of the run.
///
/// `threadId` is the id of a thread, which is created if it does not exist. The messages of a thread without messages
/// are its history, and the last ones of the user start the run. For other threads, only messages behind the last known
/// one start the run: known are messages of the assistant and of tools, and messages of the user whose `id` the thread
/// has. Messages `reasoning` and `activity` are skipped.
///
/// The server runs the tools of the agents. A call that requires approval ends the run: an event `CUSTOM` named
/// `harness.approval_requested` has the full call, and `RUN_FINISHED` has the outcome `interrupt`. `resume` must decide
/// on every pending call. Honored: `threadId`, `runId`, `messages`, `context`, `resume`, `forwardedProps`. Ignored:
/// `parentRunId`, `protocolVersion`, and unknown fields. Rejected unless empty: `tools`, `state`.
#[utoipa::path(
    post, path = "/v1/ag-ui", tag = "ag-ui", operation_id = "runAgent", params(AgUiQuery),
    request_body = RunAgentInput,
    responses(
        (status = 200, description = "The events of the run, with the schema of one event", body = AgUiEvent, content_type = "text/event-stream"),
        Conflict, AnyFault
    )
)]
pub(crate) async fn run_ag_ui(
    State(app): State<Arc<App>>,
    client: Client,
    Asked(query): Asked<AgUiQuery>,
    Body(input): Body<RunAgentInput>,
) -> Result<Response, Fault> {
    let (thread, run, request) = Request::read(&app, query, input)?;
    let place = app.begin_stream(client.address())?;
    let is_new = app.ensure(&thread).await?;
    let job = match start(&app, &thread, request).await {
        Ok(job) => job,
        Err(fault) => {
            if is_new {
                app.discard(&thread).await;
            }
            return Err(fault);
        }
    };
    let run = AgUiRun::new(thread, run, app.new_id("msg"));
    let (out, frames) = drive::outlet();
    tokio::spawn(async move { run.send(job, &out).await });
    Ok(drive::sse(&app, frames, place))
}

async fn start(app: &Arc<App>, thread: &ThreadId, request: Request) -> Result<Job, Fault> {
    let decisions = resume::decisions(app, thread, request.resume).await?;
    let known = app.threads.snapshot_boxed(thread).await?.messages;
    let context = request.context;
    let messages = if known.is_empty() {
        let said = messages::first(request.messages, context)?;
        if !said.history.is_empty() {
            app.threads.seed_boxed(thread, said.history).await?;
        }
        said.prompt
    } else {
        messages::next(request.messages, context, &known, !decisions.is_empty())?
    };
    let mut prompt = Prompt::new(messages);
    prompt.options = request.options;
    Job::start(app, thread.clone(), prompt, decisions, false).await
}
