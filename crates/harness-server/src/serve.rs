//! Serving until stopped.

use std::sync::Arc;

use harness::runtime::ThreadService;
use tokio::net::TcpListener;

use crate::app::App;
use crate::connections::Connections;
use crate::error::ServerError;
use crate::options::ServerOptions;

/// Serves threads over HTTP/1.1 until `stop` completes. Then it accepts no more requests, the threads are
/// [stopped](ThreadService::stop), streams end, and connections have [`Bounds::drain`](crate::Bounds::drain) to
/// finish. Runs of a runtime of this process are aborted within the grace period of their threads, and pending calls
/// stay parked in their sessions.
///
/// If the future is dropped, open connections are cut, and the threads keep running.
///
/// # Errors
/// [`ServerError::TokenRequired`] before the first response, if the listener is not on the loopback
/// interface and there is no token; [`ServerError::Listen`].
pub async fn serve(
    mut listener: TcpListener,
    threads: impl ThreadService + 'static,
    options: ServerOptions,
    stop: impl Future<Output = ()> + Send + 'static,
) -> Result<(), ServerError> {
    options.check(listener.local_addr()?)?;
    let bounds = options.bounds;
    let app = App::new(threads, options);
    let mut connections = Connections::new(crate::router_of(Arc::clone(&app)), &bounds);
    let stopping = async {
        stop.await;
        app.stop().await;
    };
    tokio::select! {
        () = connections.accept(&mut listener) => {}
        () = stopping => {}
    }
    drop(listener);
    if tokio::time::timeout(bounds.drain, connections.end()).await.is_err() {
        tracing::warn!("connections that did not end in time were cut");
    }
    Ok(())
}
