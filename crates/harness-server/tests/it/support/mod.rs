//! What the tests are made of: a model that does what its prompt says, a server, a client.

mod client;
mod desk;

pub(crate) use client::{Client, Frame};
pub(crate) use desk::{Desk, Server};

use std::time::Duration;

/// Far more than anything here takes, even on a machine that is busy with other things.
const PATIENCE: Duration = Duration::from_mins(1);

/// Does something that may hang when the server is wrong, and fails then instead.
#[track_caller]
pub(crate) fn within<T>(what: &'static str, work: impl Future<Output = T>) -> impl Future<Output = T> {
    async move {
        match tokio::time::timeout(PATIENCE, work).await {
            Ok(done) => done,
            Err(_) => panic!("{what} did not happen"),
        }
    }
}
