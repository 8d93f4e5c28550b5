//! Shared state of requests.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use axum::http::StatusCode;
use harness::core::port::EntryHead;
use harness::core::{Json, ThreadId};
use harness::runtime::{DynThreadService, ThreadAttributes, ThreadService};
use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::attributes;
use crate::fault::Fault;
use crate::openai::ResponseStore;
use crate::options::ServerOptions;
use crate::stored::StoredThread;

/// Maximum length of a thread's id in characters.
const NAME: usize = 128;

/// Shared state of requests.
pub(crate) struct App {
    pub(crate) threads: Arc<dyn DynThreadService>,
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
        let mut clients = self.clients.lock();
        if let Some(open) = clients.get_mut(&client) {
            *open = open.saturating_sub(1);
            if *open == 0 {
                clients.remove(&client);
            }
        }
    }
}

impl App {
    pub(crate) fn new(threads: impl ThreadService + 'static, options: ServerOptions) -> Arc<Self> {
        let bounds = options.bounds;
        let places = |bound: usize| Arc::new(Semaphore::new(bound.min(Semaphore::MAX_PERMITS)));
        Arc::new(Self {
            threads: Arc::new(threads),
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
            let mut clients = self.clients.lock();
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

    /// Rejects new requests and stops the threads: streams end, and runs of this process are aborted within the grace
    /// period of their threads. Pending calls stay parked for a later decision.
    pub(crate) async fn stop(&self) {
        self.stopping.store(true, Ordering::Release);
        self.threads.stop_boxed().await;
    }

    /// Returns the id of a thread that the service knows, or whose session is stored.
    pub(crate) async fn thread(&self, name: &str) -> Result<ThreadId, Fault> {
        let id = thread_id(name).map_err(|_| Fault::no_thread(name))?;
        if self.threads.exists_boxed(&id).await? {
            return Ok(id);
        }
        let _alone = self.creating.lock().await;
        if self.threads.exists_boxed(&id).await? {
            return Ok(id);
        }
        let stored = self.stored(&id).await?.ok_or_else(|| Fault::no_thread(name))?;
        self.room()?;
        self.threads.create_boxed(&id, attributes::of_session(stored.meta.as_ref())).await?;
        Ok(id)
    }

    /// Creates a thread if it does not exist, and returns whether it is new.
    pub(crate) async fn ensure(&self, id: &ThreadId) -> Result<bool, Fault> {
        let _alone = self.creating.lock().await;
        if self.threads.exists_boxed(id).await? {
            return Ok(false);
        }
        let stored = self.stored(id).await?;
        self.room()?;
        let meta = stored.as_ref().and_then(|stored| stored.meta.as_ref());
        self.threads.create_boxed(id, attributes::of_session(meta)).await?;
        Ok(stored.is_none())
    }

    /// Creates a thread with a generated id.
    pub(crate) async fn new_thread(
        &self,
        prefix: &str,
        attributes: ThreadAttributes,
    ) -> Result<ThreadId, Fault> {
        let _alone = self.creating.lock().await;
        self.room()?;
        let id = self.new_id(prefix).into();
        self.create(&id, attributes).await?;
        Ok(id)
    }

    /// Creates a thread, and its session if it has attributes. The caller holds `creating`, and knows that the id is free.
    pub(crate) async fn create(&self, id: &ThreadId, attributes: ThreadAttributes) -> Result<(), Fault> {
        let meta = Json::of(&attributes).ok().filter(|_| attributes != ThreadAttributes::default());
        self.threads.create_boxed(id, attributes).await?;
        if let (Some(stored), Some(meta)) = (&self.options.stored, meta) {
            let mut head = EntryHead::new(self.threads.service_time(), None, 0, None);
            head.descriptor = self.threads.info_boxed(id).await?.descriptor;
            if let Err(error) = stored.create_boxed(id, &head, &meta).await {
                self.threads.forget_boxed(id).await?;
                return Err(error.into());
            }
        }
        Ok(())
    }

    /// Generates an id: `prefix`, a hyphen, and a unique part.
    pub(crate) fn new_id(&self, prefix: &str) -> String {
        let run = self.options.ids.run_id();
        let unique = run.as_str().strip_prefix("run-").unwrap_or(run.as_str());
        format!("{prefix}-{unique}")
    }

    /// Removes a thread and its session. A failure is logged.
    pub(crate) async fn discard(&self, thread: &ThreadId) {
        if let Err(fault) = self.remove(thread).await {
            tracing::warn!(%thread, ?fault, "a discarded thread was not removed");
        }
    }

    /// Removes a thread, its session and its runs on trace pages.
    pub(crate) async fn remove(&self, thread: &ThreadId) -> Result<(), Fault> {
        self.threads.forget_boxed(thread).await?;
        if let Some(runs) = &self.options.recent_runs {
            runs.forget(thread);
        }
        match &self.options.stored {
            Some(stored) => Ok(stored.remove_boxed(thread).await?),
            None => Ok(()),
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
        if self.threads.threads_in_memory() >= bound {
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
