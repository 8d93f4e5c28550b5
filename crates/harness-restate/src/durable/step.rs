//! The step service: performs one slow operation, on any worker.

use std::sync::Arc;

use harness::core::driver::{OpScope, Performed, perform as perform_op};
use harness::core::machine::{Op, Reply};
use harness::core::outcome::{Purpose, PurposeUsage, TotalUsage};
use harness::core::port::{ModelFault, ModelFaultCode};
use harness::core::tool::{RetryClass, ToolOutcome};
use harness::core::transcript::Prefix;
use harness::core::{Cancel, Json, Time};
use serde::{Deserialize, Serialize};

use super::answer::{AnswerId, DeltaSink};
use super::child::parts;
use super::context::{StepAsk, StepReply, Stopped};
use super::host::{Agent, AgentHost, ThreadStore};
use super::reader::Reader;
use super::sealed::HasAgent as _;
use super::states::{self, States};

/// Bytes of a reply, at most: an engine rejects large entries. 1 MiB.
const REPLY_LIMIT: usize = 1 << 20;

/// The name of one attempt at a step: unique over all processes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Nonce(pub String);

/// One invocation of a step, on an engine with a journal.
pub trait StepContext: Send {
    /// The name of this attempt.
    fn nonce(&self) -> Nonce;

    /// Journals the name of this attempt, unless an earlier one did: the name of the first attempt.
    ///
    /// # Errors
    /// [`Stopped`].
    fn intent(&mut self) -> impl Future<Output = Result<Nonce, Stopped>> + Send;

    /// Does the effect inside of one journal entry, at least once. On a replay it returns what the entry holds.
    ///
    /// # Errors
    /// [`Stopped`].
    fn effect(
        &mut self,
        work: impl Future<Output = StepReply> + Send + 'static,
    ) -> impl Future<Output = Result<StepReply, Stopped>> + Send;
}

/// Performs a step. `cancel` asks its operation to reply with what it has, and `deltas` receives those of a model.
///
/// The journal of a step that must know of lost attempts begins with the name of its first attempt. Whether the attempt
/// at hand is that one is decided inside of the second entry: a decision outside would change the shape of the journal.
///
/// # Errors
/// [`Stopped`] when the attempt is over.
pub async fn perform(
    mut ctx: impl StepContext,
    host: Arc<impl AgentHost + 'static>,
    reader: &Reader<impl ThreadStore>,
    mut ask: StepAsk,
    deltas: Option<DeltaSink>,
    cancel: Cancel,
) -> Result<StepReply, Stopped> {
    let own = ctx.nonce();
    let thread = ask.origin.thread.clone().unwrap_or_default();
    if let Some(agent) = ask.agent.take() {
        ask.what.open(reader.agent(&thread, &agent).await?);
    }
    // A tool sees its call alone.
    let sees = if let Op::Tool { .. } = ask.what { ask.first } else { ask.log };
    let log = reader.transcript(&thread, ask.first..sees).await?;
    let counts = matches!(ask.what, Op::Model { .. } | Op::Tool { class: RetryClass::Unsafe, .. });
    let first = if counts { Some(ctx.intent().await?) } else { None };
    let was_lost = first.is_some_and(|first| first != own);
    ctx.effect(async move { effect(&*host, &log, ask, was_lost, deltas, &cancel).await }).await
}

/// The reply in place of that of a step whose attempts were all lost. Its effect may have happened.
#[cfg(feature = "restate")]
pub(crate) fn lost_reply(what: &Op, why: &str) -> StepReply {
    let is_tool = matches!(what, Op::Tool { .. });
    let reply = if is_tool { Reply::Interrupted { partial: None } } else { what.failed(why) };
    stepped(Time::default(), what, reply, lost_usage(what))
}

async fn effect(
    host: &impl AgentHost,
    log: &Prefix,
    ask: StepAsk,
    was_lost: bool,
    deltas: Option<DeltaSink>,
    cancel: &Cancel,
) -> StepReply {
    let id = AnswerId::of(&ask);
    let updates = deltas.as_ref().and_then(|sink| sink.progress_of(&ask));
    let StepAsk { origin, op, what, turn, deadline, left, agents, delegation, child, states: saved, .. } =
        ask;
    let failed = |why: &str| stepped(Time::default(), &what, what.failed(why), None);
    let agent = match parts(host, &origin, &agents, delegation.as_ref()).await {
        Ok(agent) => agent,
        Err(fault) => return failed(&fault.message),
    };
    let Agent { mut ports, .. } = agent;
    // The effects of a call that delegates are those of its child.
    let is_over = child.is_some();
    ports.children = child.map(|child| Arc::new(*child) as _);
    ports.updates = updates.or(ports.updates);
    if was_lost && !is_over && matches!(what, Op::Tool { .. }) {
        return stepped(ports.clock.now(), &what, Reply::Interrupted { partial: None }, None);
    }
    let lost = lost_usage(&what).filter(|_| was_lost);
    let origin = Arc::new(origin);
    let scope = OpScope { log, origin: &origin, turn, deadline, left };
    let attempt = if was_lost { ports.clock.now().0.unsigned_abs() } else { 0 };
    let streamed = deltas.zip(id).map(|(sink, id)| sink.stream(AnswerId { attempt, ..id }, &mut ports.hub));
    let asks = states::asks(&what);
    let states = asks.then(|| States::restored(&ports, &origin, saved.as_ref()));
    let Performed { reply, mut spent, .. } = perform_op(&ports, op, what.clone(), scope, cancel).await;
    drop(streamed);
    let changed = states.and_then(States::changed);
    if let Some(lost) = lost {
        spent.get_or_insert_default().merge(&lost);
    }
    StepReply { states: changed, ..stepped(ports.clock.now(), &what, reply, spent) }
}

/// Usage of a lost attempt at a model call: all that was reserved for it.
fn lost_usage(op: &Op) -> Option<TotalUsage> {
    let Op::Model { grant, .. } = op else { return None };
    let mut call = PurposeUsage::default();
    (call.model_calls, call.failed_calls) = (1, 1);
    call.total_tokens = Some(grant.0.tokens);
    call.estimated_tokens = call.total_tokens;
    call.cost = Some(grant.0.cost);
    let mut usage = TotalUsage::default();
    usage.add(Purpose::Answer, &call);
    Some(usage)
}

/// The reply of a step, or an error in its place when it is too large for the journal.
fn stepped(at: Time, op: &Op, reply: Reply, spent: Option<TotalUsage>) -> StepReply {
    let bytes = Json::size_of(&reply);
    let reply = if bytes > REPLY_LIMIT { too_large(op, &reply, bytes) } else { reply };
    let bytes = bytes.min(REPLY_LIMIT) as u64;
    StepReply { at, reply, bytes, spent, states: None }
}

fn too_large(op: &Op, reply: &Reply, bytes: usize) -> Reply {
    let text = format!("the result has {bytes} bytes, {REPLY_LIMIT} are permitted; ask for a smaller part");
    if let Op::Tool { .. } = op {
        return Reply::Tool(Ok(Arc::new(ToolOutcome::error("result_too_large", text))));
    }
    if let Reply::Model(_) = reply {
        return Reply::Model(Err(Box::new(ModelFault::new(ModelFaultCode::Unknown, text))));
    }
    op.failed(&text)
}
