//! The object `HarnessStorage`: one directory of the values that an engine keeps.

use std::time::Duration;

use harness::core::Json as CoreJson;
use harness::core::port::BoxFuture;
use harness::host::StorageError;
use restate_sdk::endpoint::{ContextInternal, Error};
use restate_sdk::errors::TerminalError;
use restate_sdk::serde::Json;

use super::call::to_object;
use super::engine::Engine;
use super::log::value;
use super::service::{HandlerSpec, Handlers, STORAGE, ServiceSpec, input, output};
use crate::durable::storage::{DirectoryContext, handle};
use crate::durable::{DirectoryAsk, DirectoryReply, DirectoryService};

impl DirectoryService for Engine {
    async fn ask_directory(
        &self,
        directory: &str,
        ask: &DirectoryAsk,
    ) -> Result<DirectoryReply, StorageError> {
        let done = self.call([STORAGE, &key(directory), handler_of(ask)], ask).await;
        done.map_err(|error| StorageError::new("storage.unreachable", error.to_string()))
    }
}

/// The key of the object: no directory has an empty one, or one that a path of a URL would resolve.
fn key(directory: &str) -> String {
    format!("/{directory}")
}

const fn handler_of(ask: &DirectoryAsk) -> &'static str {
    match ask {
        DirectoryAsk::Set { .. } => "set",
        DirectoryAsk::Delete { .. } => "delete",
        DirectoryAsk::Get { .. } => "get",
        DirectoryAsk::List => "list",
        DirectoryAsk::Adopt { .. } => "adopt",
        DirectoryAsk::Disown { .. } => "disown",
    }
}

pub(super) fn spec() -> ServiceSpec {
    let public = |name| HandlerSpec { name, ..HandlerSpec::default() };
    let private = |name| HandlerSpec { is_private: true, ..public(name) };
    let shared = |name| HandlerSpec { is_shared: true, ..public(name) };
    ServiceSpec {
        name: STORAGE,
        is_object: true,
        is_lazy: true,
        handlers: vec![
            public("set"),
            public("delete"),
            private("adopt"),
            private("disown"),
            shared("get"),
            shared("list"),
        ],
        keeps_journal: Duration::ZERO,
        inactivity: Duration::from_mins(1),
        attempts: (u64::from(u32::MAX), false),
    }
}

#[derive(Debug)]
pub(super) struct Storage;

impl Handlers for Storage {
    async fn handle(&self, ctx: &ContextInternal, handler: &str) -> Result<(), Error> {
        let (ask, metadata) = input::<DirectoryAsk>(ctx).await;
        if handler != handler_of(&ask) {
            return Err(Error::unknown_handler(STORAGE, handler));
        }
        let directory = metadata.key.strip_prefix('/').unwrap_or_default();
        output(ctx, handle(&Directory { ctx, directory }, ask).await);
        Ok(())
    }
}

/// A directory at work.
struct Directory<'c> {
    ctx: &'c ContextInternal,
    directory: &'c str,
}

impl DirectoryContext for Directory<'_> {
    type Error = TerminalError;

    fn directory(&self) -> &str {
        self.directory
    }

    async fn value(&self, entry: &str) -> Result<Option<CoreJson>, TerminalError> {
        value(self.ctx, entry).await
    }

    async fn entries(&self) -> Result<Vec<String>, TerminalError> {
        self.ctx.get_keys().await
    }

    fn write(&self, entry: &str, value: &CoreJson) {
        self.ctx.set(entry, Json(value.clone()));
    }

    fn clear(&self, entry: &str) {
        self.ctx.clear(entry);
    }

    fn tell<'c>(&'c self, directory: &'c str, ask: DirectoryAsk) -> BoxFuture<'c, Result<(), TerminalError>> {
        let handler = handler_of(&ask);
        let told = to_object::<_, DirectoryReply>(self.ctx, STORAGE, &key(directory), handler, ask);
        Box::pin(async move { told.call().await.map(drop) })
    }
}
