//! Threads of responses.

use std::sync::Arc;

use axum::http::StatusCode;
use harness::core::ThreadId;
use harness::core::message::{Block, Message};
use harness::core::port::{Decision, ProposedCall};
use harness::runtime::{Prompt, Status, ThreadAttributes};

use super::super::content::{self, Said};
use super::items::Approved;
use super::request::{Asked, Continued};
use super::store::StoredResponse;
use crate::app::App;
use crate::drive;
use crate::fault::Fault;

/// Thread of a response, ready for its run.
pub(super) struct Target {
    pub(super) thread: ThreadId,
    /// Whether the thread was created for responses.
    pub(super) owns_thread: bool,
    /// Whether the thread is deleted after the response.
    pub(super) is_ephemeral: bool,
    pub(super) prompt: Prompt,
    pub(super) decisions: Vec<(ProposedCall, Decision)>,
}

impl Target {
    /// Finds, forks or creates the thread, and prepares the prompt.
    pub(super) async fn of(app: &Arc<App>, asked: &mut Asked) -> Result<Self, Fault> {
        let (thread, owns_thread, is_new) = match &asked.continued {
            Continued::New => (app.new_thread("thread", ThreadAttributes::default()).await?, true, true),
            Continued::Conversation(id) => (app.thread(id).await?, false, false),
            Continued::Response(id) => {
                let previous = app.responses.get(id).ok_or_else(|| no_response(id))?;
                continued(app, previous, asked.is_stored).await?
            }
        };
        let is_ephemeral = owns_thread && !asked.is_stored;
        match prepare(app, &thread, asked, is_new).await {
            Ok((prompt, decisions)) => Ok(Self { thread, owns_thread, is_ephemeral, prompt, decisions }),
            Err(fault) => {
                if is_new {
                    app.discard(&thread).await;
                }
                Err(fault)
            }
        }
    }
}

fn no_response(id: &str) -> Fault {
    let shown: String = id.chars().take(128).collect();
    Fault::new(
        StatusCode::BAD_REQUEST,
        "previous_response_not_found",
        format!("the response `{shown}` was not found"),
    )
    .at("previous_response_id")
    .hint("the server stores the newest responses until it stops; use `conversation` for longer ones")
}

/// Thread behind a response: its own, or a copy if the thread has moved on or must not change.
async fn continued(
    app: &Arc<App>,
    previous: StoredResponse,
    is_stored: bool,
) -> Result<(ThreadId, bool, bool), Fault> {
    let thread = app.thread(previous.thread.as_str()).await?;
    let snapshot = app.threads.snapshot_boxed(&thread).await?;
    let messages = snapshot.messages;
    let is_last = messages.len() == previous.end && snapshot.status == Status::Idle;
    if is_last && (is_stored || !previous.owns_thread) {
        return Ok((thread, previous.owns_thread, false));
    }
    let history: Vec<Message> =
        messages.range(0..previous.end.min(messages.len())).map(|message| Message::clone(message)).collect();
    let copy = app.new_thread("thread", app.threads.info_boxed(&thread).await?.attributes).await?;
    if let Err(error) = app.threads.seed_boxed(&copy, history).await {
        app.discard(&copy).await;
        return Err(error.into());
    }
    Ok((copy, true, false))
}

async fn prepare(
    app: &App,
    thread: &ThreadId,
    asked: &mut Asked,
    is_new: bool,
) -> Result<(Prompt, Vec<(ProposedCall, Decision)>), Fault> {
    let mut messages = std::mem::take(&mut asked.messages);
    let decisions = decisions(app, thread, &asked.approved).await?;
    let instructions = asked.instructions.take().map(|text| content::system(vec![Block::text(text)]));
    let mut prompt = if is_new {
        messages.splice(0..0, instructions);
        let said = Said::split(messages, "input")?;
        if !said.history.is_empty() {
            app.threads.seed_boxed(thread, said.history).await?;
        }
        Prompt::new(said.prompt)
    } else {
        if let Some(at) =
            messages.iter().position(|message| !matches!(message, Message::User(_) | Message::System(_)))
        {
            return Err(Fault::unreadable("only messages of the user and the system continue a thread")
                .at(format!("input[{at}]")));
        }
        if messages.is_empty() && decisions.is_empty() {
            return Err(Fault::unreadable("`input` is empty").at("input"));
        }
        if let Some(instructions) = instructions {
            let known = app.threads.snapshot_boxed(thread).await?.messages;
            let same = |message: &Message| {
                message.role() == "system" && message.joined_text() == instructions.joined_text()
            };
            if !known.iter().any(|message| same(message)) {
                messages.insert(0, instructions);
            }
        }
        Prompt::new(messages)
    };
    prompt.options = std::mem::take(&mut asked.options);
    Ok((prompt, decisions))
}

/// Matches decisions with the pending calls of the thread.
async fn decisions(
    app: &App,
    thread: &ThreadId,
    approved: &[Approved],
) -> Result<Vec<(ProposedCall, Decision)>, Fault> {
    if approved.is_empty() {
        return Ok(Vec::new());
    }
    let parked = drive::parked(app, thread).await?;
    let decision = |given: &Approved| {
        let call = parked.iter().find(|call| call.id() == given.approval);
        let missing = || {
            let message = format!("the approval `{}` is not pending", given.approval);
            Fault::new(StatusCode::BAD_REQUEST, "approval_not_found", message)
                .at(format!("{}.approval_request_id", given.at))
                .hint("continue the response that requested the approval")
        };
        let call = call.cloned().ok_or_else(missing)?;
        let reason = || given.reason.clone().unwrap_or_else(|| "not approved".to_owned());
        Ok((call, if given.is_granted { Decision::Granted } else { Decision::Denied { reason: reason() } }))
    };
    approved.iter().map(decision).collect()
}
