//! Serving until told to stop.

use std::net::SocketAddr;
use std::sync::Arc;

use harness::runtime::Runtime;
use tokio::net::TcpListener;
use tokio::sync::Notify;

use crate::app::App;
use crate::error::ServerError;
use crate::options::ServerOptions;

/// Serves the threads of a runtime until `stop` completes. Then it takes no more requests, runs are aborted within
/// the grace of their threads, calls that wait for decisions stay parked in their sessions, streams end, and
/// connections have [`Bounds::drain`](crate::Bounds::drain) to go. The runtime is shut down afterwards.
///
/// # Errors
/// [`ServerError::TokenRequired`] before anything is answered, when the listener is not on the loopback interface
/// and there is no token; [`ServerError::Listen`].
pub async fn serve(
    listener: TcpListener,
    runtime: Runtime,
    options: ServerOptions,
    stop: impl Future<Output = ()> + Send + 'static,
) -> Result<(), ServerError> {
    options.check(listener.local_addr()?)?;
    let drain = options.bounds.drain;
    let app = App::new(runtime, options);
    let service = crate::router_of(Arc::clone(&app)).into_make_service_with_connect_info::<SocketAddr>();
    let stopped = Arc::new(Notify::new());
    let stopping = {
        let stopped = Arc::clone(&stopped);
        async move {
            stop.await;
            app.stop().await;
            stopped.notify_one();
        }
    };
    let late = async {
        stopped.notified().await;
        tokio::time::sleep(drain).await;
    };
    tokio::select! {
        served = async { axum::serve(listener, service).with_graceful_shutdown(stopping).await } => served?,
        () = late => tracing::warn!("connections that did not end in time were cut"),
    }
    Ok(())
}
