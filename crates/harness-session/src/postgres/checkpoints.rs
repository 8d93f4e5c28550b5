//! Checkpoints of runs in a database.

use std::path::PathBuf;

use harness_core::RunId;
use harness_core::port::{Checkpoint, CheckpointStore, SessionError};
use tokio_postgres::error::SqlState;

use super::server::Server;
use crate::blocking;
use crate::checkpoint::{self, KEPT, MOST_BYTES, SUPPORTED, Stored, recover};
use crate::error::{Action, Error, Store};

/// How often a number is tried that another process has taken meanwhile.
const ATTEMPTS: usize = 8;

/// Checkpoints in a PostgreSQL database, so that a run can continue on another machine (feature `postgres`).
///
/// The last four of a run are kept; a damaged one costs one turn. The work waits on a blocking thread of the tokio
/// runtime; in place without one.
///
/// ```no_run
/// use harness_session::checkpoint::PostgresCheckpoints;
///
/// let checkpoints = PostgresCheckpoints::open("postgres://harness@db.internal/support")?;
/// # Ok::<(), harness_session::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct PostgresCheckpoints {
    server: Server,
    url: PathBuf,
}

impl PostgresCheckpoints {
    /// The checkpoints in the database of a URL. Connects with the first use; the password is taken from `PGPASSWORD`.
    ///
    /// # Errors
    /// [`Error::PostgresUrl`].
    pub fn open(url: &str) -> Result<Self, Error> {
        Ok(Self { server: Server::of(url)?, url: url.into() })
    }

    fn damaged(&self, reason: String) -> Error {
        Error::Damaged { store: Store::Checkpoints, path: self.url.clone(), reason }
    }

    fn save_now(&self, mut checkpoint: Checkpoint) -> Result<u64, Error> {
        let mut tried = 0;
        loop {
            checkpoint.number = self.last(&checkpoint.run)?.saturating_add(1);
            let content = checkpoint::encode(&checkpoint).map_err(|error| self.damaged(error.to_string()))?;
            let bytes = content.len() as u64;
            if bytes > MOST_BYTES {
                let name = format!("{} of run {}", checkpoint.number, checkpoint.run);
                return Err(Error::Oversize { store: Store::Checkpoints, name, bytes, limit: MOST_BYTES });
            }
            if self.insert(&checkpoint, content)? {
                return Ok(checkpoint.number);
            }
            tried += 1;
            if tried == ATTEMPTS {
                return Err(self.damaged("other processes save checkpoints of this run".to_owned()));
            }
        }
    }

    /// The number of the last checkpoint of a run; 0 if it has none.
    fn last(&self, run: &RunId) -> Result<u64, Error> {
        let run = run.as_str().as_bytes().to_vec();
        let place = (Store::Checkpoints, Action::Read, &*self.url);
        let last = self.server.with_retry(place, run, |link, run| async move {
            let last = "SELECT coalesce(max(number), 0) FROM harness.checkpoints WHERE run = $1";
            Ok(link.0.query_one(last, &[&run]).await?.try_get::<_, i64>(0)?)
        });
        last.map(i64::unsigned_abs)
    }

    /// Adds a checkpoint and removes the oldest ones; false if its number is taken.
    fn insert(&self, checkpoint: &Checkpoint, content: Vec<u8>) -> Result<bool, Error> {
        let run = checkpoint.run.as_str().as_bytes().to_vec();
        let number = i64::try_from(checkpoint.number).unwrap_or(i64::MAX);
        let oldest = number.saturating_sub(i64::try_from(KEPT).unwrap_or(i64::MAX));
        let content = String::from_utf8(content).map_err(|error| self.damaged(error.to_string()))?;
        self.server.with((Store::Checkpoints, Action::Write, &self.url), move |link| async move {
            let insert = "WITH old AS (DELETE FROM harness.checkpoints WHERE run = $1 AND number <= $4) \
                INSERT INTO harness.checkpoints (run, number, content) VALUES ($1, $2, $3)";
            match link.0.execute(insert, &[&run, &number, &content, &oldest]).await {
                Ok(_) => Ok(true),
                Err(error) if error.code() == Some(&SqlState::UNIQUE_VIOLATION) => Ok(false),
                Err(error) => Err(error.into()),
            }
        })
    }

    fn latest_now(&self, run: &RunId) -> Result<Option<Checkpoint>, Error> {
        let name = run.as_str().as_bytes().to_vec();
        let place = (Store::Checkpoints, Action::Read, &*self.url);
        let found = self.server.with_retry(place, name, |link, name| async move {
            let all = "SELECT number, content FROM harness.checkpoints WHERE run = $1 ORDER BY number DESC";
            let rows = link.0.query(all, &[&name]).await?;
            let read = rows.iter().map(|row| Ok((row.try_get(0)?, row.try_get(1)?)));
            Ok(read.collect::<Result<Vec<(i64, String)>, tokio_postgres::Error>>()?)
        })?;
        let stored = found.into_iter().map(|(number, content)| {
            let (number, path) = (number.unsigned_abs(), self.url.clone());
            Ok(Stored { number, path, bytes: content.into_bytes() })
        });
        Ok(recover(run, SUPPORTED, stored)?.map(|recovered| recovered.logged(run)))
    }

    fn runs_now(&self) -> Result<Vec<RunId>, Error> {
        let runs = self.server.with_retry(
            (Store::Checkpoints, Action::List, &self.url),
            (),
            |link, ()| async move {
                let rows =
                    link.0.query("SELECT DISTINCT run FROM harness.checkpoints ORDER BY run", &[]).await?;
                Ok(rows.iter().map(|row| row.try_get(0)).collect::<Result<Vec<Vec<u8>>, _>>()?)
            },
        )?;
        runs.into_iter()
            .map(|run| {
                String::from_utf8(run).map(RunId::from).map_err(|error| self.damaged(error.to_string()))
            })
            .collect()
    }

    fn clear_now(&self, run: &RunId) -> Result<(), Error> {
        let run = run.as_str().as_bytes().to_vec();
        self.server.with((Store::Checkpoints, Action::Remove, &self.url), |link| async move {
            link.0.execute("DELETE FROM harness.checkpoints WHERE run = $1", &[&run]).await?;
            Ok(())
        })
    }
}

impl CheckpointStore for PostgresCheckpoints {
    async fn save(&self, checkpoint: Checkpoint) -> Result<u64, SessionError> {
        let store = self.clone();
        Ok(blocking::run(move || store.save_now(checkpoint)).await??)
    }

    async fn latest(&self, run: &RunId) -> Result<Option<Checkpoint>, SessionError> {
        let (store, run) = (self.clone(), run.clone());
        Ok(blocking::run(move || store.latest_now(&run)).await??)
    }

    async fn runs(&self) -> Result<Vec<RunId>, SessionError> {
        let store = self.clone();
        Ok(blocking::run(move || store.runs_now()).await??)
    }

    async fn clear(&self, run: &RunId) -> Result<(), SessionError> {
        let (store, run) = (self.clone(), run.clone());
        Ok(blocking::run(move || store.clear_now(&run)).await??)
    }
}
