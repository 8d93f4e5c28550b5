//! Ports with crash points around them.

use std::sync::Arc;

use harness_core::message::{AssistantMessage, Message, ToolCall};
use harness_core::port::{
    Checkpoint, CheckpointStore, Deltas, Durability, DynCheckpointStore, DynModel, DynSession, Entry,
    EntryHead, Loaded, Model, ModelFault, ModelRequest, PreparedAgent, Session, SessionError,
};
use harness_core::tool::{
    ArgumentFault, DynToolRegistry, ToolCx, ToolDef, ToolOutcome, ToolRegistry, ToolScope,
};
use harness_core::{Fault, RunId, SessionId};

use super::CrashPoints;

/// A port, and the points around its operations.
pub(super) struct Crashing<P: ?Sized> {
    inner: Arc<P>,
    points: CrashPoints,
}

impl<P: ?Sized> Crashing<P> {
    pub(super) fn new(inner: Arc<P>, points: &CrashPoints) -> Self {
        Self { inner, points: points.clone() }
    }

    async fn around<T>(&self, name: &str, operation: impl Future<Output = T> + Send) -> T {
        self.points.pass(format!("before {name}")).await;
        let result = operation.await;
        self.points.pass(format!("after {name}")).await;
        result
    }
}

impl Session for Crashing<dyn DynSession> {
    fn id(&self) -> Option<SessionId> {
        self.inner.session_id()
    }

    async fn append(
        &self,
        head: &EntryHead,
        entries: &[Entry<'_>],
        durability: Durability,
    ) -> Result<(), SessionError> {
        let names: Vec<String> = entries.iter().map(entry_name).collect();
        for stored in 1..entries.len() {
            let (before, after) = names.split_at_checked(stored).unwrap_or_default();
            let name = format!("between append of {} and {}", before.join(", "), after.join(", "));
            if self.points.strikes(name) {
                let part = entries.get(..stored).unwrap_or_default();
                drop(self.inner.append_boxed(head, part, durability).await);
                self.points.die().await;
            }
        }
        let append = self.inner.append_boxed(head, entries, durability);
        self.around(&format!("append of {}", names.join(", ")), append).await
    }

    fn notice(&self) -> Option<SessionError> {
        self.inner.take_notice()
    }

    async fn replace(&self, head: &EntryHead, messages: &[Arc<Message>]) -> Result<bool, SessionError> {
        self.around("replacement of the session", self.inner.replace_boxed(head, messages)).await
    }

    async fn load(&self) -> Result<Loaded, SessionError> {
        self.inner.load_boxed().await
    }
}

fn entry_name(entry: &Entry<'_>) -> String {
    match entry {
        Entry::Message(message) => message_name(message),
        Entry::CallStarted { call, .. } => format!("start of #{call}"),
        Entry::CallFinished { call, .. } => format!("finish of #{call}"),
        Entry::Compaction { .. } => "compaction".to_owned(),
        Entry::State { name, .. } => format!("state of `{name}`"),
        Entry::RunEnd { .. } => "end of run".to_owned(),
        _ => "entry".to_owned(),
    }
}

fn message_name(message: &Message) -> String {
    match message {
        Message::Assistant(answer) => {
            let calls = answer.tool_calls().map(|call| format!(" #{} {}", call.id, call.name));
            format!("answer{}", calls.collect::<String>())
        }
        Message::ToolResult(result) => format!("result of #{}", result.tool_call_id),
        Message::System(_) | Message::User(_) | Message::Custom(_) => format!("{} message", message.role()),
        _ => "message".to_owned(),
    }
}

impl CheckpointStore for Crashing<dyn DynCheckpointStore> {
    async fn save(&self, checkpoint: Checkpoint) -> Result<u64, SessionError> {
        let name = format!("checkpoint at message {}", checkpoint.messages);
        self.around(&name, self.inner.save_boxed(checkpoint)).await
    }

    async fn latest(&self, run: &RunId) -> Result<Option<Checkpoint>, SessionError> {
        self.inner.latest_boxed(run).await
    }

    async fn runs(&self) -> Result<Vec<RunId>, SessionError> {
        self.inner.runs_boxed().await
    }

    async fn clear(&self, run: &RunId) -> Result<(), SessionError> {
        self.around("removal of checkpoints", self.inner.clear_boxed(run)).await
    }
}

impl Model for Crashing<dyn DynModel> {
    async fn step(&self, request: ModelRequest, deltas: &dyn Deltas) -> Result<AssistantMessage, ModelFault> {
        self.around("model call", self.inner.step_boxed(request, deltas)).await
    }

    fn has_structured_output(&self, agent: &PreparedAgent) -> bool {
        self.inner.has_structured_output_dyn(agent)
    }
}

impl ToolRegistry for Crashing<dyn DynToolRegistry> {
    async fn list(&self, scope: &ToolScope) -> Result<Arc<[ToolDef]>, Fault> {
        let defs = self.inner.list_boxed(scope).await?;
        self.points.learn(&defs);
        Ok(defs)
    }

    fn check(&self, call: &ToolCall) -> Result<(), ArgumentFault> {
        self.inner.check_dyn(call)
    }

    async fn call(&self, cx: ToolCx) -> Result<ToolOutcome, Fault> {
        let name = format!("tool call #{} {}", cx.call.id, cx.call.name);
        self.points.pass(format!("before {name}")).await;
        self.points.execute(&cx);
        let result = self.inner.call_boxed(cx).await;
        self.points.pass(format!("after {name}")).await;
        result
    }
}
