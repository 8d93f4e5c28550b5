//! Asking the person in front of the editor about one call.

use std::sync::Weak;

use agent_client_protocol::v1::schema::{
    Meta, PermissionOption, PermissionOptionKind, RequestPermissionOutcome, RequestPermissionRequest,
    RequestPermissionResponse, SessionId, ToolCallContent, ToolCallStatus, ToolCallUpdate,
};
use harness::core::Json;
use harness::core::port::{ApprovalAsk, Decision, ProposedCall};
use harness::tools::{ApprovalAnswer, ApprovalRule, Asker, Remember};
use parking_lot::Mutex;
use tokio::sync::{mpsc, oneshot};

use super::pump::Job;
use super::update_mapper::UpdateMapper;
use super::{Line, Session};
use crate::{call, content};

/// Maximum tools that can be denied permanently; beyond that a denial counts once.
const MOST_REFUSED: usize = 1_000;

/// Asks through the session's pump, so that the client knows the call before it is asked about it.
pub(super) struct EditorAsker {
    jobs: mpsc::Sender<Job>,
    /// Tools that the person refuses for the rest of the session.
    refused: Mutex<Vec<ApprovalRule>>,
}

impl EditorAsker {
    pub(super) fn new(jobs: mpsc::Sender<Job>) -> Self {
        Self { jobs, refused: Mutex::default() }
    }

    fn refuses(&self, ask: &ApprovalAsk) -> bool {
        let refused = self.refused.lock();
        refused.iter().any(|rule| rule.covers(&ask.proposed.call))
    }

    fn refuse(&self, ask: &ApprovalAsk) {
        let mut refused = self.refused.lock();
        if refused.len() < MOST_REFUSED {
            refused.push(ApprovalRule::of_tool(ask.proposed.call.name.clone()));
        }
    }
}

impl Asker for EditorAsker {
    async fn ask(&self, ask: ApprovalAsk) -> ApprovalAnswer {
        if self.refuses(&ask) {
            return denied("the user refuses every call of this tool").into();
        }
        let (answer, answered) = oneshot::channel();
        if self.jobs.send(Job::Ask { ask: ask.clone(), answer }).await.is_err() {
            return denied("the client disconnected before approving").into();
        }
        let chosen = tokio::select! {
            chosen = answered => chosen,
            () = ask.cancel.cancelled() => return Decision::Later.into(),
        };
        match chosen {
            Ok(Choice::Allow(remember)) => ApprovalAnswer::granted(remember),
            Ok(Choice::RefuseAlways) => {
                self.refuse(&ask);
                denied("the user refuses every call of this tool").into()
            }
            Ok(Choice::Refuse(why)) => denied(&why).into(),
            Err(_) => denied("the client disconnected before approving").into(),
        }
    }
}

fn denied(why: &str) -> Decision {
    Decision::Denied { reason: why.to_owned() }
}

/// Choice of the user.
pub(super) enum Choice {
    Allow(Remember),
    Refuse(String),
    RefuseAlways,
}

const OPTIONS: [(&str, &str, PermissionOptionKind); 4] = [
    ("allow_once", "Allow once", PermissionOptionKind::AllowOnce),
    ("allow_always", "Always allow", PermissionOptionKind::AllowAlways),
    ("reject_once", "Reject", PermissionOptionKind::RejectOnce),
    ("reject_always", "Always reject", PermissionOptionKind::RejectAlways),
];

/// Requests permission; completes when the client has answered, or when the request is cancelled.
pub(super) fn request(
    line: &Line,
    session: &Weak<Session>,
    id: &SessionId,
    mapper: &UpdateMapper,
    ask: ApprovalAsk,
    answer: oneshot::Sender<Choice>,
) {
    let name = ask.proposed.call.name.as_str();
    let options = OPTIONS.map(|(id, label, kind)| {
        let always = matches!(kind, PermissionOptionKind::AllowAlways | PermissionOptionKind::RejectAlways);
        let label = if always { format!("{label} `{name}`") } else { label.to_owned() };
        PermissionOption::new(id, label, kind)
    });
    let mut fields = call::fields(&ask.proposed.call, mapper.cwd()).status(ToolCallStatus::Pending);
    let mut content = fields.content.take().unwrap_or_default();
    content.extend(about(&ask.proposed).into_iter().map(ToolCallContent::from));
    fields = fields.content(content);
    let call = ToolCallUpdate::new(mapper.id_of(&ask.proposed.call.id), fields);
    let request = RequestPermissionRequest::new(id.clone(), call, options.into()).meta(meta(&ask.proposed));
    let asked = line.connection.send_request(request);
    let session = Weak::clone(session);
    tokio::spawn(async move {
        let response = tokio::select! {
            response = asked.block_task() => response,
            () = ask.cancel.cancelled() => return,
        };
        let choice = match response {
            Ok(response) => choice(&response),
            Err(error) => Some(Choice::Refuse(format!("the editor could not ask the user: {error}"))),
        };
        if choice.is_none()
            && let Some(session) = session.upgrade()
        {
            session.cancel();
        }
        let _ = answer.send(choice.unwrap_or_else(|| Choice::Refuse("the user stopped the work".to_owned())));
    });
}

/// Information for the user besides the call: the reason, the agent, and the exact arguments if the
/// protocol's JSON changes them.
fn about(proposed: &ProposedCall) -> Vec<String> {
    let call = &proposed.call;
    let reason = Some(proposed.reason.clone()).filter(|reason| !reason.is_empty());
    let parent = proposed.origin.parent.as_ref();
    let parent = parent.map(|parent| {
        format!("Sub-agent `{}`, for the call `{}` of `{}`", proposed.agent, parent.call, parent.agent)
    });
    let shown = content::value(&call.arguments).and_then(|value| Json::of(&value).ok());
    let is_exact = shown.is_some_and(|shown| shown.text() == call.arguments.text());
    let exact = (!is_exact).then(|| format!("Arguments: {}", call.arguments.text()));
    [reason, parent, exact].into_iter().flatten().collect()
}

/// Machine-readable id of the request.
fn meta(proposed: &ProposedCall) -> Meta {
    let mut approval = Meta::new();
    let mut put = |key: &str, value: &str| approval.insert(key.to_owned(), value.into());
    put("approvalId", proposed.id().as_str());
    put("digest", proposed.digest().as_str());
    put("agent", proposed.agent.as_str());
    put("callId", proposed.call.id.as_str());
    if let Some(parent) = &proposed.origin.parent {
        put("parentCallId", parent.call.as_str());
    }
    Meta::from_iter([("harness".to_owned(), approval.into())])
}

/// Choice of the client; `None` when the run is stopped.
fn choice(response: &RequestPermissionResponse) -> Option<Choice> {
    let RequestPermissionOutcome::Selected(selected) = &response.outcome else { return None };
    Some(match &*selected.option_id.0 {
        "allow_once" => Choice::Allow(Remember::Once),
        "allow_always" => Choice::Allow(Remember::Tool),
        "reject_once" => Choice::Refuse("the user refuses this call".to_owned()),
        "reject_always" => Choice::RefuseAlways,
        other => Choice::Refuse(format!("the editor chose `{other}`, which was not offered")),
    })
}
