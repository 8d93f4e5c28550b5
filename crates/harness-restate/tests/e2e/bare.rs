//! A bare service of the engine: what journal entries cost without harness.

use std::process::ExitCode;

use hyper_util::rt::{TokioExecutor, TokioIo};
use restate_sdk::hyper::HyperEndpoint;
use restate_sdk::prelude::*;
use tokio::net::TcpListener;

/// Bytes of an entry: about those of a tool's result with its record and events.
const PAYLOAD: usize = 1_000;

struct Bare;

#[restate_sdk::service]
impl Bare {
    /// So many entries, one after the other.
    #[handler]
    async fn runs(&self, ctx: Context<'_>, count: Json<u32>) -> HandlerResult<()> {
        for _ in 0..count.into_inner() {
            ctx.run(|| async { Ok("x".repeat(PAYLOAD)) }).await?;
        }
        Ok(())
    }
}

/// Serves until the process is killed.
pub(crate) fn serve(port: &str) -> ExitCode {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let endpoint = HyperEndpoint::new(Endpoint::builder().bind(Bare).build());
        let listener = TcpListener::bind(format!("127.0.0.1:{port}")).await.unwrap();
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            stream.set_nodelay(true).unwrap();
            let http = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
            tokio::spawn(http.serve_connection(TokioIo::new(stream), endpoint.clone()));
        }
    });
    ExitCode::SUCCESS
}
