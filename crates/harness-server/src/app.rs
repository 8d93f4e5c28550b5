//! Shared state of requests.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use axum::http::StatusCode;
use harness::core::port::EntryHead;
use harness::core::{Json, ThreadId};
use harness::runtime::{Runtime, Thread};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::attributes::Attributes;
use crate::fault::Fault;
use crate::openai::ResponseStore;
use crate::options::ServerOptions;
use crate::stored::StoredThread;

/// Maximum length of a thread's id in characters.
const NAME: usize = 128;

/// Shared state of requests.
pub(crate) struct App {
    pub(crate) runtime: Runtime,
    pub(crate) options: ServerOptions,
    requests: Arc<Semaphore>,
    streams: Arc<Semaphore>,
    clients: Arc<Mutex<HashMap<IpAddr, usize>>>,
    stopping: AtomicBool,
    /// Responses of the OpenAI routes.
    pub(crate) responses: ResponseStore,
    /// Held while a thread is looked up and created.
    pub(crate) creating: tokio::sync::Mutex<()>,
}

/// Slot of an open stream.
#[derive(Debug)]
pub(crate) struct StreamPlace {
    _place: OwnedSemaphorePermit,
    clients: Arc<Mutex<HashMap<IpAddr, usize>>>,
    client: Option<IpAddr>,
}

impl Drop for StreamPlace {
    fn drop(&mut self) {
        let Some(client) = self.client else { return };
        let mut clients = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(open) = clients.get_mut(&client) {
            *open = open.saturating_sub(1);
            if *open == 0 {
                clients.remove(&client);
            }
        }
    }
}

impl App {
    pub(crate) fn new(runtime: Runtime, options: ServerOptions) -> Arc<Self> {
        let bounds = options.bounds;
        let places = |bound: usize| Arc::new(Semaphore::new(bound.min(Semaphore::MAX_PERMITS)));
        Arc::new(Self {
            runtime,
            requests: places(bounds.requests),
            streams: places(bounds.streams),
            clients: Arc::default(),
            stopping: AtomicBool::new(false),
            responses: ResponseStore::new(&bounds),
            creating: tokio::sync::Mutex::default(),
            options,
        })
    }

    /// Reserves a slot for a request.
    pub(crate) fn begin_request(&self) -> Result<OwnedSemaphorePermit, Fault> {
        if self.stopping.load(Ordering::Acquire) {
            return Err(Fault::stopping());
        }
        Arc::clone(&self.requests)
            .try_acquire_owned()
            .map_err(|_| Fault::full("requests are being answered", self.options.bounds.requests))
    }

    /// Reserves a slot for a stream.
    pub(crate) fn begin_stream(&self, client: Option<IpAddr>) -> Result<StreamPlace, Fault> {
        let bounds = self.options.bounds;
        let place = Arc::clone(&self.streams)
            .try_acquire_owned()
            .map_err(|_| Fault::full("streams are open", bounds.streams))?;
        if let Some(client) = client {
            let mut clients = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
            let open = clients.entry(client).or_default();
            if *open >= bounds.streams_per_client {
                let message = format!("{} streams of this client are open", bounds.streams_per_client);
                return Err(Fault::new(StatusCode::TOO_MANY_REQUESTS, "server.too_many_streams", message)
                    .hint("close one of them first"));
            }
            *open += 1;
        }
        Ok(StreamPlace { _place: place, clients: Arc::clone(&self.clients), client })
    }

    /// Rejects new requests and closes all threads: streams end, and runs are aborted within the grace period of
    /// their threads. Pending calls stay parked in their sessions for a later decision.
    pub(crate) async fn stop(&self) {
        self.stopping.store(true, Ordering::Release);
        if let Some(approvals) = &self.options.approvals {
            crate::held::park_all(&self.runtime, approvals).await;
        }
        self.runtime.shutdown().await;
    }

    /// Returns the thread with that id, from this process or from a stored session.
    pub(crate) async fn thread(&self, name: &str) -> Result<Thread, Fault> {
        let id = thread_id(name).map_err(|_| Fault::no_thread(name))?;
        if let Some(thread) = self.runtime.existing(&id) {
            return Ok(thread);
        }
        let _alone = self.creating.lock().await;
        if let Some(thread) = self.runtime.existing(&id) {
            return Ok(thread);
        }
        let stored = self.stored(&id).await?.ok_or_else(|| Fault::no_thread(name))?;
        self.room()?;
        let thread = self.runtime.thread(id);
        Attributes::of_session(stored.meta.as_ref()).apply(&thread);
        Ok(thread)
    }

    /// Returns the thread with that id, and whether it is new.
    pub(crate) async fn thread_or_new(&self, id: ThreadId) -> Result<(Thread, bool), Fault> {
        let _alone = self.creating.lock().await;
        if let Some(thread) = self.runtime.existing(&id) {
            return Ok((thread, false));
        }
        let stored = self.stored(&id).await?;
        self.room()?;
        let thread = self.runtime.thread(id);
        let meta = stored.as_ref().and_then(|stored| stored.meta.as_ref());
        Attributes::of_session(meta).apply(&thread);
        Ok((thread, stored.is_none()))
    }

    /// Creates a thread with a generated id.
    pub(crate) async fn new_thread(&self, prefix: &str, attributes: Attributes) -> Result<Thread, Fault> {
        let _alone = self.creating.lock().await;
        self.room()?;
        self.create(self.new_id(prefix).into(), attributes).await
    }

    /// Creates a thread, and its session if it has attributes. The caller holds `creating`, and knows that the id is free.
    pub(crate) async fn create(&self, id: ThreadId, attributes: Attributes) -> Result<Thread, Fault> {
        let thread = self.runtime.thread(id);
        let meta = Json::of(&attributes).ok().filter(|_| attributes != Attributes::default());
        if let (Some(stored), Some(meta)) = (&self.options.stored, meta) {
            let config = thread.config();
            let mut head = EntryHead::new(config.ports.clock.now(), None, 0, None);
            head.descriptor.clone_from(&config.origin.descriptor_hash);
            if let Err(error) = stored.create_boxed(thread.id(), &head, &meta).await {
                thread.close().await;
                return Err(error.into());
            }
        }
        attributes.apply(&thread);
        Ok(thread)
    }

    /// Generates an id: `prefix`, a hyphen, and a unique part.
    pub(crate) fn new_id(&self, prefix: &str) -> String {
        let run = self.options.ids.run_id();
        let unique = run.as_str().strip_prefix("run-").unwrap_or(run.as_str());
        format!("{prefix}-{unique}")
    }

    /// Closes a thread and removes its session. A session that cannot be removed is logged.
    pub(crate) async fn discard(&self, thread: &Thread) {
        thread.close().await;
        self.forget_runs(thread);
        let Some(stored) = &self.options.stored else { return };
        if let Err(fault) = stored.remove_boxed(thread.id()).await {
            tracing::warn!(thread = %thread.id(), %fault, "the session of a discarded thread was not removed");
        }
    }

    /// Drops the runs of a closed thread from trace pages.
    pub(crate) fn forget_runs(&self, thread: &Thread) {
        if let Some(runs) = &self.options.recent_runs {
            runs.forget(thread.id());
        }
    }

    /// The stored session of a thread; `None` if there is none.
    pub(crate) async fn stored(&self, id: &ThreadId) -> Result<Option<StoredThread>, Fault> {
        match &self.options.stored {
            Some(stored) => Ok(stored.find_boxed(id).await?),
            None => Ok(None),
        }
    }

    /// Checks the limit of threads.
    pub(crate) fn room(&self) -> Result<(), Fault> {
        let bound = self.options.bounds.threads;
        if self.runtime.ids().len() >= bound {
            return Err(Fault::full("threads are open", bound));
        }
        Ok(())
    }
}

/// Parses a name that is valid in paths and file names.
pub(crate) fn thread_id(name: &str) -> Result<ThreadId, Fault> {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    if !name.is_empty() && name.len() <= NAME && name.chars().all(plain) && !name.starts_with('.') {
        return Ok(name.into());
    }
    Err(Fault::unreadable(format!(
        "`{}` is not a valid thread id",
        name.chars().take(NAME).collect::<String>()
    ))
    .at("id")
    .hint("use up to 128 letters, digits, `-`, `_` and `.`; the first must not be `.`"))
}
