//! What the tests are made of: an editor, which is the protocol's own client library over pipes in memory, and a
//! model that does what it is told.

use std::collections::{HashMap, VecDeque};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use agent_client_protocol::schema::ProtocolVersion;
use agent_client_protocol::v1::ConnectionTo;
use agent_client_protocol::v1::schema::{
    CancelNotification, ContentBlock, InitializeRequest, InitializeResponse, NewSessionRequest,
    PromptRequest, RequestPermissionOutcome, RequestPermissionRequest, RequestPermissionResponse,
    SelectedPermissionOutcome, SessionId, SessionNotification, SessionUpdate, StopReason, ToolCallContent,
    ToolCallStatus,
};
use agent_client_protocol::{Agent, ByteStreams, Client, Error, on_receive_notification, on_receive_request};
use harness::core::message::{AssistantMessage, ToolCall};
use harness::core::port::{
    DeltaPart, Deltas, DynSession, Ids, Model, ModelFault, ModelFaultCode, ModelRequest, SessionError,
};
use harness::core::testing::VirtualClock;
use harness::core::tool::{DynTool, Toolbox, tool_fn};
use harness::core::{Json, RunId, ThreadId, Time};
use harness::runtime::{ModelChoice, Runtime, RuntimeBuilder, Sessions, ThreadConfig};
use harness::session::MemorySession;
use harness_acp::{AcpServer, Host, Threads};
use parking_lot::Mutex;
use tokio::io::{BufReader, DuplexStream, duplex, split};
use tokio::sync::Notify;
use tokio_util::compat::{TokioAsyncReadCompatExt as _, TokioAsyncWriteCompatExt as _};

/// So many digits, one after another.
pub(crate) fn digits(most: usize) -> String {
    "0123456789".chars().cycle().take(most).collect()
}

/// Run ids in their order.
#[derive(Default)]
pub(crate) struct Counted(AtomicU64);

impl Ids for Counted {
    fn run_id(&self) -> RunId {
        RunId::from(format!("s{}", self.0.fetch_add(1, Ordering::Relaxed) + 1))
    }
}

/// What the model does once.
pub(crate) enum Step {
    /// Says this, in two halves.
    Say(&'static str),
    /// Answers so, all at once.
    Give(Box<AssistantMessage>),
    /// Fails.
    Fail(&'static str),
    /// Says so many digits, one after another.
    Count(usize),
}

pub(crate) fn call(id: &str, tool: &str, arguments: &str) -> Step {
    Step::Give(Box::new(AssistantMessage::calls([ToolCall::new(id, tool, Json::parse(arguments).unwrap())])))
}

#[derive(Clone, Default)]
pub(crate) struct Scripted {
    steps: Arc<Mutex<VecDeque<Step>>>,
    pub(crate) asked: Arc<Mutex<Vec<ModelRequest>>>,
}

impl Scripted {
    pub(crate) fn new(steps: impl IntoIterator<Item = Step>) -> Self {
        Self { steps: Arc::new(Mutex::new(steps.into_iter().collect())), asked: Arc::default() }
    }
}

impl Model for Scripted {
    async fn step(&self, request: ModelRequest, deltas: &dyn Deltas) -> Result<AssistantMessage, ModelFault> {
        self.asked.lock().push(request);
        let say = |text: &str| deltas.part(DeltaPart::Text(text.to_owned()));
        let step = self.steps.lock().pop_front();
        match step {
            Some(Step::Say(text)) => {
                let (a, b) = text.split_at(text.len().div_ceil(2));
                [a, b].into_iter().for_each(say);
                Ok(AssistantMessage::text(text))
            }
            Some(Step::Count(most)) => {
                let digits = digits(most);
                for digit in digits.chars() {
                    say(&digit.to_string());
                }
                Ok(AssistantMessage::text(digits))
            }
            Some(Step::Give(answer)) => Ok(*answer),
            Some(Step::Fail(why)) => Err(ModelFault::new(ModelFaultCode::InvalidRequest, why)),
            None => Err(ModelFault::new(ModelFaultCode::Unknown, "the script is over")),
        }
    }
}

/// Sessions in memory, one for each thread.
#[derive(Clone, Default)]
pub(crate) struct Cupboard(Arc<Mutex<HashMap<ThreadId, Arc<MemorySession>>>>);

impl Sessions for Cupboard {
    async fn open(&self, thread: &ThreadId) -> Result<Arc<dyn DynSession>, SessionError> {
        let mut all = self.0.lock();
        let session = all.entry(thread.clone()).or_insert_with(|| Arc::new(MemorySession::new()));
        Ok(session.clone())
    }
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
pub(crate) struct Nothing {}

/// `echo` gives its call's arguments, `guarded` needs approval, `slow` tells how far it is and then waits until it is
/// cancelled, `broken` fails.
pub(crate) fn tools() -> Vec<Arc<dyn DynTool>> {
    #[derive(serde::Deserialize, schemars::JsonSchema)]
    struct Path {
        path: String,
    }
    let echo =
        tool_fn("read_note", "reads", |asked: Path, _| async move { format!("text of {}", asked.path) });
    let guarded =
        tool_fn("delete_note", "deletes", |_: Nothing, _| async move { "deleted" }).needs_approval();
    let slow = tool_fn("slow", "waits", |_: Nothing, cx| async move {
        cx.emit(vec![harness::core::message::Block::text("half")]);
        cx.cancel.cancelled().await;
        "stopped"
    });
    let broken = tool_fn("broken", "fails", |_: Nothing, _| async move {
        Err::<String, _>(std::io::Error::other("out of paper"))
    });
    vec![Arc::new(echo.pure()), Arc::new(guarded), Arc::new(slow), Arc::new(broken)]
}

pub(crate) fn config(model: &Scripted) -> ThreadConfig {
    let mut config = ThreadConfig::new(
        ModelChoice::new(model.clone()).named("m1"),
        Arc::new(VirtualClock::still(Time(0))),
    );
    config.ports.tools = Arc::new(Toolbox::new(tools()));
    config
}

pub(crate) fn runtime(config: ThreadConfig) -> RuntimeBuilder {
    Runtime::builder(config, Arc::new(Counted::default()))
}

pub(crate) fn threads(config: ThreadConfig) -> Threads {
    Threads::new(runtime(config).build(), Arc::new(Counted::default()))
}

/// The client's end of a served connection, and the task that serves it.
pub(crate) fn serve(server: AcpServer<impl Host>) -> (DuplexStream, tokio::task::JoinHandle<()>) {
    let (near, far) = duplex(64 * 1024);
    let (from, to) = split(far);
    (near, tokio::spawn(async move { server.serve(BufReader::new(from), to).await.unwrap() }))
}

/// What somebody answers who is asked for permission.
#[derive(Clone, Copy)]
pub(crate) enum Reply {
    Choose(&'static str),
    Cancelled,
    Error,
    Never,
}

/// An editor with a connection that was introduced.
#[derive(Clone)]
pub(crate) struct Editor {
    pub(crate) cx: ConnectionTo<Agent>,
    pub(crate) introduction: InitializeResponse,
    heard: Heard,
}

#[derive(Clone, Default)]
struct Heard {
    lines: Arc<Mutex<Vec<(SessionId, String)>>>,
    grown: Arc<Notify>,
    replies: Arc<Mutex<VecDeque<Reply>>>,
    asks: Arc<Mutex<Vec<serde_json::Value>>>,
}

impl Heard {
    fn push(&self, session: SessionId, line: String) {
        self.lines.lock().push((session, line));
        self.grown.notify_waiters();
    }
}

impl Editor {
    pub(crate) async fn session(&self) -> SessionId {
        let ask = NewSessionRequest::new("/desk");
        let session = self.cx.send_request(ask).block_task().await.unwrap().session_id;
        self.until(&session, "commands").await;
        session
    }

    pub(crate) async fn prompt(&self, session: &SessionId, text: &str) -> Result<StopReason, Error> {
        self.prompt_blocks(session, vec![ContentBlock::from(text.to_owned())]).await
    }

    pub(crate) async fn prompt_blocks(
        &self,
        session: &SessionId,
        blocks: Vec<ContentBlock>,
    ) -> Result<StopReason, Error> {
        let answered = self.cx.send_request(PromptRequest::new(session.clone(), blocks)).block_task().await;
        answered.map(|answer| answer.stop_reason)
    }

    pub(crate) fn cancel(&self, session: &SessionId) {
        self.cx.send_notification(CancelNotification::new(session.clone())).unwrap();
    }

    /// The permissions that were requested, as they came.
    pub(crate) fn asks(&self) -> Vec<serde_json::Value> {
        self.heard.asks.lock().clone()
    }

    /// What the editor was told of a session, the commands aside.
    pub(crate) fn lines(&self, session: &SessionId) -> Vec<String> {
        let lines = self.heard.lines.lock();
        let its = lines.iter().filter(|(of, line)| of == session && !line.starts_with("commands"));
        its.map(|(_, line)| line.clone()).collect()
    }

    /// Waits until the editor is told a line that begins so.
    pub(crate) async fn until(&self, session: &SessionId, begin: &str) -> String {
        loop {
            let mut grown = std::pin::pin!(self.heard.grown.notified());
            grown.as_mut().enable();
            let line = {
                let lines = self.heard.lines.lock();
                lines.iter().find(|(of, line)| of == session && line.starts_with(begin)).cloned()
            };
            if let Some((_, line)) = line {
                return line;
            }
            grown.await;
        }
    }
}

/// Lets an editor act on a server of these threads, and ends when both are done.
pub(crate) async fn with_editor(
    host: impl Host,
    replies: impl IntoIterator<Item = Reply>,
    act: impl AsyncFnOnce(Editor),
) {
    let (near, serving) = serve(AcpServer::new(host).named("test", "1"));
    let heard = Heard::default();
    *heard.replies.lock() = replies.into_iter().collect();
    edit(near, heard, Box::new(move |editor| Box::pin(async move { act(editor).await }))).await;
    serving.await.unwrap();
}

/// What an editor does. Boxed, because the connection of a client takes long to compile for each.
type Acts<'a> = Box<dyn FnOnce(Editor) -> Pin<Box<dyn Future<Output = ()> + 'a>> + 'a>;

async fn edit(stream: DuplexStream, heard: Heard, act: Acts<'_>) {
    let (from, to) = split(stream);
    let (updates, asks) = (heard.clone(), heard.clone());
    Client
        .v1()
        .on_receive_notification(
            async move |told: SessionNotification, _| {
                updates.push(told.session_id.clone(), line(&told.update));
                Ok(())
            },
            on_receive_notification!(),
        )
        .on_receive_request(
            async move |ask: RequestPermissionRequest, answer, cx: ConnectionTo<Agent>| {
                asks.asks.lock().push(serde_json::to_value(&ask).unwrap());
                let call = &ask.tool_call;
                let options: Vec<&str> = ask.options.iter().map(|option| &*option.option_id.0).collect();
                let title = call.fields.title.as_deref().unwrap_or_default();
                let what = format!("asked {} `{title}` {}", call.tool_call_id, options.join(" "));
                asks.push(ask.session_id.clone(), what);
                let reply = asks.replies.lock().pop_front().expect("a reply");
                match reply {
                    Reply::Choose(option) => answer.respond(RequestPermissionResponse::new(
                        RequestPermissionOutcome::Selected(SelectedPermissionOutcome::new(option)),
                    )),
                    Reply::Cancelled => {
                        answer.respond(RequestPermissionResponse::new(RequestPermissionOutcome::Cancelled))
                    }
                    Reply::Error => answer.respond_with_error(Error::internal_error()),
                    Reply::Never => cx.spawn(async move {
                        let _answer = answer;
                        std::future::pending().await
                    }),
                }
            },
            on_receive_request!(),
        )
        .connect_with(ByteStreams::new(to.compat_write(), from.compat()), async move |cx| {
            let ask = InitializeRequest::new(ProtocolVersion::V1);
            let introduction = cx.send_request(ask).block_task().await?;
            act(Editor { cx, introduction, heard }).await;
            Ok(())
        })
        .await
        .unwrap();
}

fn line(update: &SessionUpdate) -> String {
    match update {
        SessionUpdate::UserMessageChunk(chunk) => format!("{} user {}", id(chunk), text(&chunk.content)),
        SessionUpdate::AgentMessageChunk(chunk) => format!("{} says {}", id(chunk), text(&chunk.content)),
        SessionUpdate::AgentThoughtChunk(chunk) => format!("{} thinks {}", id(chunk), text(&chunk.content)),
        SessionUpdate::ToolCall(call) => {
            let status = status(call.status);
            let input = call.raw_input.as_ref().map(ToString::to_string).unwrap_or_default();
            format!("call {} {:?} {status} `{}` {input}", call.tool_call_id, call.kind, call.title)
        }
        SessionUpdate::ToolCallUpdate(update) => {
            let fields = &update.fields;
            let mut line =
                format!("{} {}", update.tool_call_id, fields.status.map(status).unwrap_or_default());
            for content in fields.content.iter().flatten() {
                let shown = match content {
                    ToolCallContent::Content(content) => format!(" `{}`", text(&content.content)),
                    other => format!(" {other:?}"),
                };
                line.push_str(&shown);
            }
            if let Some(output) = &fields.raw_output {
                line.push_str(" = ");
                line.push_str(&output.to_string());
            }
            line
        }
        SessionUpdate::Plan(plan) => {
            let entries = plan.entries.iter().map(|entry| format!(" {:?} {}", entry.status, entry.content));
            format!("plan{}", entries.collect::<String>())
        }
        SessionUpdate::AvailableCommandsUpdate(update) => {
            let names = update.available_commands.iter().map(|command| format!(" /{}", command.name));
            format!("commands{}", names.collect::<String>())
        }
        SessionUpdate::CurrentModeUpdate(update) => format!("mode {}", update.current_mode_id),
        other => format!("{other:?}"),
    }
}

fn id(chunk: &agent_client_protocol::v1::schema::ContentChunk) -> String {
    chunk.message_id.as_ref().map(ToString::to_string).unwrap_or_default()
}

fn status(status: ToolCallStatus) -> &'static str {
    match status {
        ToolCallStatus::Pending => "pending",
        ToolCallStatus::InProgress => "in_progress",
        ToolCallStatus::Completed => "completed",
        ToolCallStatus::Failed => "failed",
        _ => "?",
    }
}

fn text(block: &ContentBlock) -> String {
    match block {
        ContentBlock::Text(text) => text.text.clone(),
        ContentBlock::Image(image) => format!("[{} {}]", image.mime_type, image.data),
        ContentBlock::ResourceLink(link) => format!("[{}]", link.uri),
        other => format!("{other:?}"),
    }
}
