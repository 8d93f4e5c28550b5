//! A server with a model that does what its prompt says.

use std::path::Path;
use std::sync::Arc;

use harness::core::message::{AssistantMessage, Message, ToolCall};
use harness::core::port::DeltaPart;
use harness::prelude::*;
use harness::runtime::{Approvals, Runtime};
use harness::{Harness, SessionStore};
use harness_server::ServerOptions;
use tokio::net::TcpListener;
use tokio::sync::{Notify, Semaphore, oneshot};
use tokio::task::JoinHandle;

use super::Client;

/// `call TOOL` calls the tool, `pay AMOUNT…` pays each amount in a call with the id `c1`, `think TEXT` thinks it and says `thought`, `hang` waits until it is cancelled, and
/// everything else is said again, in two pieces.
pub(crate) struct Echo;

impl Model for Echo {
    async fn step(&self, request: ModelRequest, deltas: &dyn Deltas) -> Result<AssistantMessage, ModelFault> {
        let last = request.view.last().map(|message| message.joined_text()).unwrap_or_default();
        if matches!(request.view.last().map(|message| &**message), Some(Message::User(_))) {
            if let Some(tool) = last.strip_prefix("call ") {
                let arguments = harness::core::Json::parse(r#"{"amount":5}"#).unwrap();
                let id = format!("call-{}", request.view.len());
                return Ok(AssistantMessage::calls([ToolCall::new(id, tool, arguments)]));
            }
            if let Some(amounts) = last.strip_prefix("pay ") {
                let arguments = amounts.split(' ').map(|amount| format!(r#"{{"amount":{amount}}}"#));
                let calls = arguments
                    .map(|text| ToolCall::new("c1", "pay", harness::core::Json::parse(&text).unwrap()));
                return Ok(AssistantMessage::calls(calls));
            }
            if let Some(thought) = last.strip_prefix("think ") {
                deltas.part(DeltaPart::Thinking(thought.to_owned()));
                return Ok(said("thought", deltas));
            }
            if last == "hang" {
                request.cancel.cancelled().await;
            }
        }
        Ok(said(&last, deltas))
    }
}

fn said(text: &str, deltas: &dyn Deltas) -> AssistantMessage {
    let middle = text.char_indices().nth(text.chars().count().div_ceil(2)).map_or(text.len(), |(at, _)| at);
    let (a, b) = text.split_at(middle);
    for part in [a, b].into_iter().filter(|part| !part.is_empty()) {
        deltas.part(DeltaPart::Text(part.to_owned()));
    }
    AssistantMessage::text(text)
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Amount {
    amount: u64,
}

/// What a server is made of.
pub(crate) struct Desk {
    pub(crate) approvals: Approvals,
    /// Told when the tool `slow` begins.
    pub(crate) began: Arc<Notify>,
    /// Lets the tool `slow` end.
    pub(crate) go: Arc<Semaphore>,
    pub(crate) runtime: Runtime,
    sessions: Option<SessionStore>,
}

impl Desk {
    pub(crate) fn new() -> Self {
        Self::build(Echo, None, |builder| builder)
    }

    /// With another model.
    pub(crate) fn of(model: impl Model + 'static) -> Self {
        Self::build(model, None, |builder| builder)
    }

    pub(crate) fn with(change: impl FnOnce(harness::Builder) -> harness::Builder) -> Self {
        Self::build(Echo, None, change)
    }

    /// With sessions in a folder.
    pub(crate) fn with_sessions(folder: &Path) -> Self {
        Self::with_sessions_and(folder, |builder| builder)
    }

    /// With sessions in a folder, and more.
    pub(crate) fn with_sessions_and(
        folder: &Path,
        change: impl FnOnce(harness::Builder) -> harness::Builder,
    ) -> Self {
        Self::build(Echo, Some(SessionStore::new(folder)), change)
    }

    fn build(
        model: impl Model + 'static,
        sessions: Option<SessionStore>,
        change: impl FnOnce(harness::Builder) -> harness::Builder,
    ) -> Self {
        let (approvals, began, go) =
            (Approvals::new(), Arc::<Notify>::default(), Arc::new(Semaphore::new(0)));
        let (begins, gate) = (Arc::clone(&began), Arc::clone(&go));
        let slow = tool_fn("slow", "Takes its time", move |_: Amount, cx: ToolCx| {
            let (begins, gate) = (Arc::clone(&begins), Arc::clone(&gate));
            async move {
                begins.notify_one();
                tokio::select! {
                    _ = gate.acquire() => {}
                    () = cx.cancel.cancelled() => {}
                }
                Ok::<_, std::io::Error>("slowly done")
            }
        });
        let pay = tool_fn("pay", "Pays", |paid: Amount, _| async move {
            Ok::<_, std::io::Error>(format!("paid {}", paid.amount))
        });
        let builder = Harness::new(model).tool(slow).tool(pay.needs_approval()).approver(approvals.clone());
        let builder = sessions.iter().cloned().fold(builder, harness::Builder::sessions);
        let runtime = change(builder).build_runtime().unwrap();
        Self { approvals, began, go, runtime, sessions }
    }

    pub(crate) async fn serve(self) -> Server {
        self.serve_with(|options| options).await
    }

    pub(crate) async fn serve_with(self, change: impl FnOnce(ServerOptions) -> ServerOptions) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let mut options = ServerOptions::new();
        if let Some(sessions) = self.sessions.clone() {
            options = options.stored(sessions);
        }
        let runtime = self.runtime.clone().with_approvals(self.approvals.clone());
        let (stop, stopped) = oneshot::channel::<()>();
        let stopped = async {
            let _ = stopped.await;
        };
        let served = tokio::spawn(harness_server::serve(listener, runtime, change(options), stopped));
        Server { client: Client::new(&url), url, desk: self, stop: Some(stop), served }
    }
}

/// A server, and a client of it.
pub(crate) struct Server {
    pub(crate) client: Client,
    pub(crate) url: String,
    pub(crate) desk: Desk,
    stop: Option<oneshot::Sender<()>>,
    served: JoinHandle<Result<(), harness_server::ServerError>>,
}

impl Server {
    /// Begins to stop it.
    pub(crate) fn stop(&mut self) {
        drop(self.stop.take());
    }

    /// Stops it, and waits until it has ended.
    pub(crate) async fn end(mut self) {
        self.stop();
        super::within("the end of the server", self.served).await.unwrap().unwrap();
    }
}
