//! What the tests are made of: a model that does what its prompt says, a server, a client.

mod client;
mod desk;

pub(crate) use client::{Client, Frame};
pub(crate) use desk::{Desk, Server};

use std::time::Duration;

/// Far more than anything here takes, even on a machine that is busy with other things.
const PATIENCE: Duration = Duration::from_mins(1);

/// Does something that may hang when the server is wrong, and fails then instead.
pub(crate) async fn within<T>(what: &str, work: impl Future<Output = T>) -> T {
    let done = tokio::time::timeout(PATIENCE, work).await;
    done.unwrap_or_else(|late| panic!("{what} did not happen: {late}"))
}
