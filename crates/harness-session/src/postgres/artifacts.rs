//! Large contents in a database.

use std::ops::Range;
use std::path::PathBuf;

use harness_core::{ArtifactId, SessionId, Time, canonical};
use harness_host::{ArtifactMeta, ArtifactPart, ArtifactStore, StorageError};

use super::server::Server;
use crate::artifact::{Holders, MOST_BYTES, digits, name, part};
use crate::blocking;
use crate::error::{Action, Error, Store};

/// How often holders are written that another process has changed meanwhile.
const ATTEMPTS: usize = 8;

/// Artifacts in a PostgreSQL database, beside the sessions that refer to them (feature `postgres`).
///
/// An artifact has at most 64 MiB. What has expired is not given out. The work waits on a blocking thread of the tokio runtime; in place without one.
///
/// ```no_run
/// use harness_session::artifact::PostgresArtifacts;
///
/// let artifacts = PostgresArtifacts::open("postgres://harness@db.internal/support")?;
/// # Ok::<(), harness_session::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct PostgresArtifacts {
    server: Server,
    url: PathBuf,
}

impl PostgresArtifacts {
    /// The artifacts in the database of a URL. Connects with the first use; the password is taken from `PGPASSWORD`.
    ///
    /// # Errors
    /// [`Error::PostgresUrl`].
    pub fn open(url: &str) -> Result<Self, Error> {
        Ok(Self { server: Server::of(url)?, url: url.into() })
    }

    fn damaged(&self, reason: impl Into<String>) -> Error {
        Error::Damaged { store: Store::Artifacts, path: self.url.clone(), reason: reason.into() }
    }

    fn put_now(&self, bytes: Vec<u8>, meta: &ArtifactMeta) -> Result<ArtifactId, Error> {
        let (id, size) = (name(&bytes), bytes.len() as u64);
        if size > MOST_BYTES {
            let (name, limit) = (id.as_str().to_owned(), MOST_BYTES);
            return Err(Error::Oversize { store: Store::Artifacts, name, bytes: size, limit });
        }
        if self.holders(&id)?.is_none() {
            self.insert(&id, bytes)?;
        }
        for _ in 0..ATTEMPTS {
            // Another process may have removed it meanwhile.
            let Some((text, mut holders)) = self.holders(&id)? else { break };
            holders.add(&id, size, meta.clone())?;
            if self.hold(&id, text, &holders)? {
                return Ok(id);
            }
        }
        Err(self.damaged("other processes change who holds this artifact"))
    }

    /// Holders of an artifact, as stored and as read; `None` if it is not there.
    fn holders(&self, id: &ArtifactId) -> Result<Option<(String, Holders)>, Error> {
        let digits = digits(id).unwrap_or_default().to_owned();
        let place = (Store::Artifacts, Action::Read, &*self.url);
        let text = self.server.with_retry(place, digits, |link, digits| async move {
            let holders = "SELECT holders FROM harness.artifacts WHERE sha256 = $1";
            let row = link.0.query_opt(holders, &[&digits]).await?;
            Ok(row.map(|row| row.try_get::<_, String>(0)).transpose()?)
        })?;
        let Some(text) = text else { return Ok(None) };
        let holders = serde_json::from_str(&text).map_err(|_| self.damaged("its holders are none"))?;
        Ok(Some((text, holders)))
    }

    /// Adds an artifact without a holder.
    fn insert(&self, id: &ArtifactId, bytes: Vec<u8>) -> Result<(), Error> {
        let digits = digits(id).unwrap_or_default().to_owned();
        self.server.with((Store::Artifacts, Action::Write, &self.url), move |link| async move {
            let insert = "INSERT INTO harness.artifacts VALUES ($1, '[]', $2) ON CONFLICT DO NOTHING";
            link.0.execute(insert, &[&digits, &bytes]).await?;
            Ok(())
        })
    }

    /// Notes who holds an artifact, if no other process has done so since; returns whether it did.
    fn hold(&self, id: &ArtifactId, before: String, holders: &Holders) -> Result<bool, Error> {
        let digits = digits(id).unwrap_or_default().to_owned();
        let text = serde_json::to_string(holders).map_err(|error| self.damaged(error.to_string()))?;
        self.server.with((Store::Artifacts, Action::Write, &self.url), move |link| async move {
            let hold = "UPDATE harness.artifacts SET holders = $3 WHERE sha256 = $1 AND holders = $2";
            Ok(link.0.execute(hold, &[&digits, &before, &text]).await? > 0)
        })
    }

    fn read_now(
        &self,
        id: &ArtifactId,
        range: Range<u64>,
        requester: Option<&SessionId>,
        now: Time,
    ) -> Result<Option<ArtifactPart>, Error> {
        let Some((_, holders)) = self.holders(id)? else { return Ok(None) };
        let Some(meta) = holders.seen_by(requester, now) else { return Ok(None) };
        let wanted = digits(id).unwrap_or_default().to_owned();
        let place = (Store::Artifacts, Action::Read, &*self.url);
        let bytes = self.server.with_retry(place, wanted, |link, wanted| async move {
            let content = "SELECT content FROM harness.artifacts WHERE sha256 = $1";
            let row = link.0.query_opt(content, &[&wanted]).await?;
            Ok(row.map(|row| row.try_get::<_, Vec<u8>>(0)).transpose()?)
        })?;
        let Some(bytes) = bytes else { return Ok(None) };
        if digits(id) != Some(&*canonical::sha256_hex(&bytes)) {
            return Err(self.damaged("it does not have the hash that names it"));
        }
        Ok(Some(part(&bytes, range, meta)))
    }

    fn delete_now(&self, id: &ArtifactId) -> Result<bool, Error> {
        let digits = digits(id).unwrap_or_default().to_owned();
        self.server.with((Store::Artifacts, Action::Remove, &self.url), |link| async move {
            let delete = "DELETE FROM harness.artifacts WHERE sha256 = $1";
            Ok(link.0.execute(delete, &[&digits]).await? > 0)
        })
    }
}

impl ArtifactStore for PostgresArtifacts {
    async fn put(&self, bytes: &[u8], meta: ArtifactMeta) -> Result<ArtifactId, StorageError> {
        let (store, bytes) = (self.clone(), bytes.to_vec());
        Ok(blocking::run(move || store.put_now(bytes, &meta)).await??)
    }

    async fn read(
        &self,
        id: &ArtifactId,
        range: Range<u64>,
        requester: Option<&SessionId>,
        now: Time,
    ) -> Result<Option<ArtifactPart>, StorageError> {
        let (store, id, requester) = (self.clone(), id.clone(), requester.cloned());
        Ok(blocking::run(move || store.read_now(&id, range, requester.as_ref(), now)).await??)
    }

    async fn delete(&self, id: &ArtifactId) -> Result<bool, StorageError> {
        let (store, id) = (self.clone(), id.clone());
        Ok(blocking::run(move || store.delete_now(&id)).await??)
    }
}
