//! Connections: their number, idle time and shutdown.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::extract::{ConnectInfo, Request};
use axum::serve::Listener as _;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service as _, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::{GracefulShutdown, Watcher};
use hyper_util::service::TowerToHyperService;
use socket2::SockRef;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;

use crate::options::Bounds;

/// Size limit of the read buffer of a connection, which holds the heads of requests, in bytes.
const BUFFER: usize = 64 * 1024;

/// Size of the system's send buffer of a connection in bytes. Without a limit it grows to megabytes for a client that
/// does not read. Linux doubles the value for its own bookkeeping.
const SEND_BUFFER: usize = 64 * 1024;

/// Connections of one server. Dropping it cuts the open ones.
pub(crate) struct Connections {
    router: Router,
    http: http1::Builder,
    places: Arc<Semaphore>,
    bound: usize,
    tasks: JoinSet<()>,
    graceful: GracefulShutdown,
}

impl Connections {
    pub(crate) fn new(router: Router, bounds: &Bounds) -> Self {
        let mut http = http1::Builder::new();
        // The time of a head begins where the answer before it ends, so that it bounds idle connections, too.
        http.timer(TokioTimer::new()).header_read_timeout(bounds.head).max_buf_size(BUFFER);
        Self {
            router,
            http,
            places: Arc::new(Semaphore::new(bounds.connections.min(Semaphore::MAX_PERMITS))),
            bound: bounds.connections,
            tasks: JoinSet::new(),
            graceful: GracefulShutdown::new(),
        }
    }

    /// Accepts connections while it is polled. Beyond the limit they wait in the backlog of the system.
    pub(crate) async fn accept(&mut self, listener: &mut TcpListener) {
        loop {
            let place = self.place().await;
            // Faults of single connections are passed over, those of the system waited out.
            let (stream, address) = listener.accept().await;
            while self.tasks.try_join_next().is_some() {}
            if let Err(fault) = SockRef::from(&stream).set_send_buffer_size(SEND_BUFFER) {
                tracing::debug!(%address, %fault, "the send buffer of a connection was not bounded");
            }
            self.tasks.spawn(serve(
                self.http.clone(),
                stream,
                address,
                self.router.clone(),
                self.graceful.watcher(),
                place,
            ));
        }
    }

    async fn place(&self) -> Option<OwnedSemaphorePermit> {
        if let Ok(place) = Arc::clone(&self.places).try_acquire_owned() {
            return Some(place);
        }
        tracing::warn!(connections = self.bound, "as many connections are open as may be: further ones wait");
        Arc::clone(&self.places).acquire_owned().await.ok()
    }

    /// Closes idle connections immediately and the others after their current response; completes when all are closed.
    pub(crate) async fn end(mut self) {
        self.graceful.shutdown().await;
        while self.tasks.join_next().await.is_some() {}
    }
}

async fn serve(
    http: http1::Builder,
    stream: TcpStream,
    address: SocketAddr,
    router: Router,
    watcher: Watcher,
    _place: Option<OwnedSemaphorePermit>,
) {
    let router = TowerToHyperService::new(router);
    let service = service_fn(move |mut request: Request<Incoming>| {
        request.extensions_mut().insert(ConnectInfo(address));
        router.call(request)
    });
    if let Err(fault) = watcher.watch(http.serve_connection(TokioIo::new(stream), service)).await {
        tracing::debug!(%address, %fault, "a connection ended early");
    }
}
