//! What several topics need.

mod protocol;
mod scripted;
mod server;

use std::sync::Arc;

use harness_adapters::chat::ChatModel;
use harness_core::Time;
use harness_core::message::{AssistantMessage, Message};
use harness_core::port::{
    BoxFuture, Clock, DeltaPart, Deltas, Model, ModelFault, ModelRequest, PreparedAgent,
};
use harness_core::tool::ToolDef;
use harness_core::transcript::{Transcript, View};
use parking_lot::Mutex;

pub(crate) use protocol::{PROTOCOLS, Protocol, Recorded};
pub(crate) use scripted::{Scripted, Step};
pub(crate) use server::{Reply, Seen, Server};

/// The key of every test; no test may find it anywhere but in the authorization header.
pub(crate) const KEY: &str = "sk-or-v1-do-not-show-me";

/// Keeps the pieces that it is handed.
#[derive(Debug, Default)]
pub(crate) struct Pieces(Mutex<Vec<DeltaPart>>);

impl Pieces {
    pub(crate) fn all(&self) -> Vec<DeltaPart> {
        self.0.lock().clone()
    }

    pub(crate) fn text(&self) -> String {
        let texts = self.all().into_iter();
        texts.filter_map(|part| if let DeltaPart::Text(text) = part { Some(text) } else { None }).collect()
    }
}

impl Deltas for Pieces {
    fn part(&self, part: DeltaPart) {
        self.0.lock().push(part);
    }
}

/// A request of these messages, without tools.
pub(crate) fn request(messages: impl IntoIterator<Item = Message>) -> ModelRequest {
    request_with(messages, [])
}

pub(crate) fn request_with<const N: usize>(
    messages: impl IntoIterator<Item = Message>,
    tools: [ToolDef; N],
) -> ModelRequest {
    let log: Transcript = messages.into_iter().map(Arc::new).collect();
    ModelRequest::new(View::whole(log.prefix()), Arc::new(PreparedAgent::new("main", "Be brief.", tools)))
}

pub(crate) fn hello() -> ModelRequest {
    request([Message::user("hello")])
}

/// A model of the server, set up as for OpenRouter.
pub(crate) fn model(server: &Server) -> ChatModel {
    ChatModel::openrouter("example/model", KEY).base_url(server.url()).build().unwrap()
}

pub(crate) async fn step(model: &impl Model, request: ModelRequest) -> Result<AssistantMessage, ModelFault> {
    model.step(request, &Pieces::default()).await
}

/// Polls `answer` until text has arrived; the server of the test holds the rest back.
pub(crate) async fn until_text<F: Future + Unpin>(answer: &mut F, pieces: &Pieces) {
    while pieces.text().is_empty() {
        tokio::select! {
            biased;
            _ = &mut *answer => panic!("the answer ended before the server let it"),
            () = tokio::task::yield_now() => {}
        }
    }
}

/// A clock that shows one time.
pub(crate) struct Stopped(pub(crate) Time);

impl Clock for Stopped {
    fn now(&self) -> Time {
        self.0
    }

    fn sleep_until(&self, _: Time) -> BoxFuture<'static, ()> {
        Box::pin(std::future::pending())
    }
}

/// A clock that goes with tokio's, paused or not.
pub(crate) struct Flowing(tokio::time::Instant);

impl Flowing {
    pub(crate) fn start() -> Self {
        Self(tokio::time::Instant::now())
    }
}

impl Clock for Flowing {
    fn now(&self) -> Time {
        Time(1_000).after(self.0.elapsed().into())
    }

    fn sleep_until(&self, time: Time) -> BoxFuture<'static, ()> {
        Box::pin(tokio::time::sleep(time.since(self.now()).duration()))
    }
}

/// Waits for an answer, for so long that only a hang takes longer.
pub(crate) async fn bounded<T>(context: &str, answer: impl Future<Output = T>) -> T {
    let waited = tokio::time::timeout(std::time::Duration::from_mins(2), answer).await;
    waited.unwrap_or_else(|_| panic!("{context}: no end"))
}
