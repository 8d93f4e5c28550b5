//! Ownership of a thread: an advisory lock of the connection, which the server frees when the connection ends, and a
//! token in the thread's row, without which nothing is written.

use std::path::PathBuf;
use std::time::Duration;

use harness_core::Time;
use tokio_postgres::Client;

use super::server::{Failure, Link, Server};
use crate::error::{Action, Error, Store};
use crate::jsonl::Owner;

/// The pauses, in milliseconds, between attempts to take a lock whose owner's process may just have ended: the server
/// notices that in a few milliseconds.
const PAUSES: [u64; 6] = [5, 20, 50, 100, 300, 500];

/// The lock of a thread: the first eight bytes of the hash of its name, as a number.
const KEY: &str = "('x' || substr(md5('harness ' || $1), 1, 16))::bit(64)::bigint";

/// Ownership of a thread. Dropping it frees the lock.
#[derive(Debug)]
pub(crate) struct Claim {
    server: Server,
    link: Link,
    name: String,
    path: PathBuf,
}

impl Claim {
    /// Becomes the owner, with a token; `first`: without asking who was it before.
    pub(super) fn take(
        server: &Server,
        (name, path): (&str, &PathBuf),
        token: &str,
        first: bool,
    ) -> Result<Self, Error> {
        if !server.own(name) {
            return Err(Error::Locked { path: path.clone(), owner: Some(Owner::this()) });
        }
        let claim = Self::lock(server, (name, path), token, first);
        if claim.is_err() {
            server.disown(name);
        }
        claim
    }

    fn lock(
        server: &Server,
        (name, path): (&str, &PathBuf),
        token: &str,
        first: bool,
    ) -> Result<Self, Error> {
        let (place, wanted) = ((Store::Sessions, Action::Lock, &**path), (name.to_owned(), token.to_owned()));
        let link = server.with_retry(place, wanted, move |link, (owned, token)| async move {
            lock(&link.0, &owned).await?;
            // A connection that broke has lost the lock: somebody else may have been the owner since.
            let written = if first {
                "INSERT INTO harness.threads (name, writer) VALUES ($1, $2) \
                 ON CONFLICT (name) DO UPDATE SET writer = $2"
            } else {
                "UPDATE harness.threads SET writer = $2 WHERE name = $1 AND writer = $2"
            };
            if link.0.execute(written, &[&owned, &token]).await? == 0 {
                unlock(&link.0, &owned).await?;
                return Err(Failure::Disturbed);
            }
            Ok(link)
        })?;
        Ok(Self { server: server.clone(), link, name: name.to_owned(), path: path.clone() })
    }

    /// The owner before, if it ended without giving the lock back: a server does not tell.
    #[expect(clippy::unused_self, reason = "a build without databases has the same methods")]
    pub(crate) fn left_by(&self) -> Option<&Owner> {
        None
    }

    /// Whether the connection that has the lock still works.
    pub(crate) fn holds(&self) -> bool {
        !self.link.is_closed()
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        if self.holds() {
            self.free();
        }
        self.server.disown(&self.name);
    }
}

impl Claim {
    fn free(&self) {
        let (held, name) = (self.link.clone(), self.name.clone());
        let freed = self.server.with((Store::Sessions, Action::Lock, &self.path), move |link| async move {
            if link.is(&held) {
                // A thread without lines is none.
                let unused = "DELETE FROM harness.threads WHERE name = $1 AND lines = 0";
                link.0.execute(unused, &[&name]).await?;
                unlock(&link.0, &name).await?;
            }
            Ok(())
        });
        if let Err(error) = freed {
            tracing::warn!(path = %self.path.display(), %error, "the lock stays until the connection ends");
        }
    }
}

async fn lock(client: &Client, name: &str) -> Result<(), Failure> {
    let mut pauses = PAUSES.into_iter();
    let take = format!("SELECT pg_try_advisory_lock({KEY})");
    while !client.query_one(&take, &[&name]).await?.try_get::<_, bool>(0)? {
        let Some(pause) = pauses.next() else { return Err(Failure::Held(owner(client, name).await?)) };
        tokio::time::sleep(Duration::from_millis(pause)).await;
    }
    Ok(())
}

async fn unlock(client: &Client, name: &str) -> Result<(), Failure> {
    client.query_one(&format!("SELECT pg_advisory_unlock({KEY})"), &[&name]).await?;
    Ok(())
}

/// The owner of a lock, as its connection names it.
async fn owner(client: &Client, name: &str) -> Result<Option<Owner>, Failure> {
    let select = format!(
        "SELECT application_name, floor(extract(epoch FROM backend_start) * 1000)::bigint \
         FROM pg_stat_activity JOIN pg_locks USING (pid), (SELECT {KEY} AS key) AS wanted \
         WHERE locktype = 'advisory' AND granted AND objsubid = 1 \
         AND classid::bigint = (key >> 32) & 4294967295 AND objid::bigint = key & 4294967295"
    );
    let Some(row) = client.query_opt(&select, &[&name]).await? else { return Ok(None) };
    let (program, since): (String, Option<i64>) = (row.try_get(0)?, row.try_get(1)?);
    let process = program.strip_prefix("harness ").and_then(|process| process.split_once('@'));
    Ok(process.and_then(|(pid, host)| {
        Some(Owner { pid: pid.parse().ok()?, host: host.to_owned(), since: since.map(Time) })
    }))
}
