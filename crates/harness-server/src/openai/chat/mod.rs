//! Chat completions: stateless, with the messages of the request as the history of a new thread.

mod request;
mod stream;
mod view;

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use harness::runtime::ThreadAttributes;
use serde_json::{Map, Value};

use self::request::{Chat, ChatRequest};
use self::stream::Chunks;
pub(super) use self::view::ChatUsage;
use self::view::{ChatCompletion, Head};
use super::error::{AnyOpenAiFault, without_retry};
use super::events::ChatEvent;
use super::verdict::{self, Verdict};
use crate::app::App;
use crate::body::Body;
use crate::drive::{self, Ended, Job, Whole};
use crate::fault::Fault;
use crate::routes::Client;

/// Answers a conversation with the agent graph, in the form of OpenAI's chat completions.
///
/// The messages are the history of a new thread, which is deleted at the end. The server runs the tools of the
/// agents. Honored: `model`, `messages`, `stream`, `stream_options.include_usage`, `response_format`, `user`,
/// `safety_identifier`, `metadata`. Ignored: sampling, token limits, caching and storage. Rejected: `tools`, `n`
/// above 1, `stop`, `logprobs`, audio, and unknown fields.
#[utoipa::path(
    post, path = "/v1/chat/completions", tag = "openai", operation_id = "createChatCompletion",
    request_body = ChatRequest,
    responses(
        (status = 200, description = "The answer; with `stream`, chunks as server-sent events that end with `data: [DONE]`, with the schema of one event", content(
            (ChatCompletion = "application/json"), (ChatEvent = "text/event-stream")
        )),
        AnyOpenAiFault
    )
)]
pub(crate) async fn create_chat_completion(
    State(app): State<Arc<App>>,
    client: Client,
    Body(body): Body<Map<String, Value>>,
) -> Result<Response, Fault> {
    let chat = Chat::read(&app, body)?;
    let place = chat.stream.then(|| app.begin_stream(client.address())).transpose()?;
    let thread = app.new_thread("chat", ThreadAttributes::default()).await?;
    if !chat.said.history.is_empty()
        && let Err(error) = app.threads.seed_boxed(&thread, chat.said.history).await
    {
        app.discard(&thread).await;
        return Err(error.into());
    }
    let head = Head::new(&app, chat.model);
    let job = Job::start(&app, thread, chat.prompt, Vec::new(), true).await?;
    let (out, frames) = drive::outlet();
    if let Some(place) = place {
        let chunks = Chunks::new(head, chat.has_usage, chat.is_json);
        tokio::spawn(async move { chunks.send(job, &out).await });
        return Ok(drive::sse(&app, frames, place));
    }
    let run = tokio::spawn(async move { job.run(&mut Whole, &out).await });
    let ended = run.await.unwrap_or_else(|_| Ended::Failed(Fault::stopping()));
    drop(frames);
    Ok(match completion(head, ended) {
        Ok(completion) => Json(completion).into_response(),
        Err(fault) => without_retry(fault),
    })
}

fn completion(head: Head, ended: Ended) -> Result<ChatCompletion, Fault> {
    match ended {
        Ended::Report { report, pending } => match Verdict::of(&report, pending.len()) {
            verdict @ (Verdict::Pending | Verdict::OverBudget | Verdict::Cancelled | Verdict::Failed) => {
                Err(problem(verdict, &report, &pending))
            }
            verdict @ (Verdict::Answered | Verdict::Limited | Verdict::Filtered | Verdict::Refused) => {
                Ok(head.completion(verdict, &report))
            }
        },
        Ended::Failed(fault) => Err(fault),
        Ended::Gone => Err(Fault::stopping()),
    }
}

/// Error for a run without an answer.
fn problem(
    verdict: Verdict,
    report: &harness::runtime::Report,
    pending: &[harness::core::port::ProposedCall],
) -> Fault {
    if verdict == Verdict::Pending {
        let tools: Vec<String> = pending.iter().map(|call| format!("`{}`", call.call.name)).collect();
        let message = format!("the call of {} requires approval", tools.join(", "));
        return Fault::new(StatusCode::FORBIDDEN, "approval_required", message)
            .hint("chat completions cannot ask for it: use POST /v1/responses or a thread");
    }
    verdict::failed(verdict, report)
}
