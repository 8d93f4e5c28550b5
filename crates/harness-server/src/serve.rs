//! Serving until stopped.

use std::sync::Arc;

use harness::runtime::Runtime;
use tokio::net::TcpListener;

use crate::app::App;
use crate::connections::Connections;
use crate::error::ServerError;
use crate::options::ServerOptions;

/// Serves the threads of a runtime over HTTP/1.1 until `stop` completes. Then it accepts no more
/// requests, runs are aborted within the grace period of their threads, pending calls stay parked
/// in their sessions, streams end, and connections have [`Bounds::drain`](crate::Bounds::drain) to
/// finish. The runtime is shut down afterwards.
///
/// If the future is dropped, open connections are cut, and the runtime keeps running.
///
/// # Errors
/// [`ServerError::TokenRequired`] before the first response, if the listener is not on the loopback
/// interface and there is no token; [`ServerError::Listen`].
pub async fn serve(
    mut listener: TcpListener,
    runtime: Runtime,
    options: ServerOptions,
    stop: impl Future<Output = ()> + Send + 'static,
) -> Result<(), ServerError> {
    options.check(listener.local_addr()?)?;
    let bounds = options.bounds;
    let app = App::new(runtime, options);
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
