//! The lines of one thread of a database.

use std::io;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use futures_util::TryStreamExt as _;
use tokio_postgres::error::SqlState;
use tokio_postgres::types::ToSql;

use super::claim::Claim;
use super::server::{Failure, Server};
use crate::error::{Action, Error, Store};
use crate::location::thread_path;

/// The lines of one thread.
#[derive(Clone, Debug)]
pub(crate) struct Rows {
    server: Server,
    name: String,
    /// The thread as the caller named it, for messages.
    path: PathBuf,
    /// Token of this owner for writes.
    token: Arc<str>,
    /// Whether this owner had the thread before: it takes it again only if no other had it meanwhile.
    was_owner: Arc<AtomicBool>,
}

impl Rows {
    pub(crate) fn open(database: &Path, name: &str) -> Result<Self, Error> {
        if name.is_empty() {
            return Err(Error::NoThread { path: database.into() });
        }
        let path = thread_path(database, name);
        if name.contains('\0') {
            let reason = "PostgreSQL has no names with a zero byte".to_owned();
            return Err(Error::Unstorable { path, reason });
        }
        let server = Server::of(super::url(database).unwrap_or_default())?;
        let token = token().map_err(|source| {
            let (store, action) = (Store::Sessions, Action::Open);
            Error::Io { store, action, path: path.clone(), source }
        })?;
        Ok(Self { server, name: name.to_owned(), path, token, was_owner: Arc::default() })
    }

    /// The names of all threads of a database, sorted.
    pub(crate) fn threads(database: &Path) -> Result<Vec<String>, Error> {
        let server = Server::of(super::url(database).unwrap_or_default())?;
        server.with_retry((Store::Sessions, Action::Read, database), (), |link, ()| async move {
            let names = "SELECT name FROM harness.threads WHERE lines > 0 ORDER BY name";
            let names = link.0.query(names, &[]).await?;
            Ok(names.iter().map(|row| row.try_get(0)).collect::<Result<_, _>>()?)
        })
    }

    /// Becomes the owner of the thread.
    pub(crate) fn claim(&self) -> Result<Claim, Error> {
        let first = !self.was_owner.load(Ordering::Relaxed);
        let claim = Claim::take(&self.server, (&self.name, &self.path), &self.token, first)?;
        self.was_owner.store(true, Ordering::Relaxed);
        Ok(claim)
    }

    /// Whether the thread has lines.
    pub(crate) fn exists(&self) -> Result<bool, Error> {
        let name = self.name.clone();
        self.server.with_retry((Store::Sessions, Action::Read, &self.path), name, |link, name| async move {
            let lines = "SELECT 1 FROM harness.threads WHERE name = $1 AND lines > 0";
            Ok(link.0.query_opt(lines, &[&name]).await?.is_some())
        })
    }

    /// The first `most` lines, or all, each ended by a line feed, as in a session file. A line that is missing is
    /// blank.
    pub(crate) fn content(&self, limit: u64, most: Option<u32>) -> Result<Vec<u8>, Error> {
        let place = (Store::Sessions, Action::Read, &*self.path);
        let wanted = (self.name.clone(), most.map(i64::from));
        let read = self.server.with_retry(place, wanted, move |link, (name, most)| async move {
            let lines = "SELECT number, line FROM harness.lines \
                JOIN harness.threads ON threads.id = lines.thread WHERE name = $1 ORDER BY number LIMIT $2";
            let parameters: [&(dyn ToSql + Sync); 2] = [&name, &most];
            let mut rows = pin!(link.0.query_raw(lines, parameters).await?);
            let (mut bytes, mut content, mut next) = (0_u64, Vec::new(), 1_i64);
            while let Some(row) = rows.try_next().await? {
                let (number, line): (i64, &str) = (row.try_get(0)?, row.try_get(1)?);
                let missing = number.saturating_sub(next).unsigned_abs();
                bytes = bytes.saturating_add(missing).saturating_add(line.len() as u64).saturating_add(1);
                if bytes > limit {
                    break;
                }
                content.extend((next..number).map(|_| b'\n'));
                next = number.saturating_add(1);
                content.extend_from_slice(line.as_bytes());
                content.push(b'\n');
            }
            Ok((bytes, content))
        });
        let (bytes, content) = read?;
        if bytes > limit {
            return Err(Error::TooLarge { path: self.path.clone(), bytes, limit });
        }
        Ok(content)
    }

    /// Adds lines behind the first `before` ones in one transaction, as safe as the server makes it.
    pub(crate) fn append(&self, lines: &[u8], before: u64) -> Result<(), Error> {
        let lines = self.split(lines)?;
        if lines.is_empty() {
            // Each transaction is on stable storage when the server has answered.
            return Ok(());
        }
        self.put(Action::Write, before, lines)
    }

    fn put(&self, action: Action, before: u64, lines: Vec<String>) -> Result<(), Error> {
        let (name, token) = (self.name.clone(), Arc::clone(&self.token));
        let before = i64::try_from(before).unwrap_or(i64::MAX);
        self.server.with((Store::Sessions, action, &self.path), move |link| async move {
            let parameters: [&(dyn ToSql + Sync); 4] = [&name, &&*token, &before, &lines];
            let put = link.0.query_one("SELECT harness.append($1, $2, $3, $4)", &parameters).await;
            match put {
                Ok(row) if row.try_get(0)? => Ok(()),
                Ok(_) => Err(Failure::Disturbed),
                // Lines of another program are there.
                Err(error) if error.code() == Some(&SqlState::UNIQUE_VIOLATION) => Err(Failure::Disturbed),
                Err(error) => Err(error.into()),
            }
        })
    }

    /// Keeps lines of the thread that cannot be read, in a separate table.
    pub(crate) fn set_aside(&self, lines: &[u8]) -> Result<(), Error> {
        let (name, lines) = (self.name.clone(), self.split(lines)?);
        self.server.with((Store::Sessions, Action::Write, &self.path), move |link| async move {
            let aside = "INSERT INTO harness.quarantine (thread, line) SELECT $1, unnest($2::text[])";
            link.0.execute(aside, &[&name, &lines]).await?;
            Ok(())
        })
    }

    /// Puts lines in the place of the thread's; of a `new` thread, only if it has none yet.
    pub(crate) fn replace(&self, lines: &[u8], new: bool) -> Result<(), Error> {
        // The writer of an existing thread owns it already.
        let _claim = if new { Some(self.claim()?) } else { None };
        if new && self.exists()? {
            return Err(Error::Exists { path: self.path.clone() });
        }
        self.put(Action::Replace, 0, self.split(lines)?)
    }

    /// Removes the thread and all its lines. The caller owns it.
    pub(crate) fn remove(&self) -> Result<(), Error> {
        let (name, token) = (self.name.clone(), Arc::clone(&self.token));
        self.server.with((Store::Sessions, Action::Remove, &self.path), move |link| async move {
            let removed = "DELETE FROM harness.threads WHERE name = $1 AND writer = $2";
            match link.0.execute(removed, &[&name, &&*token]).await? {
                0 => Err(Failure::Disturbed),
                _ => Ok(()),
            }
        })
    }

    /// The lines of an append, without blank ones.
    fn split(&self, lines: &[u8]) -> Result<Vec<String>, Error> {
        let unstorable = |_| {
            let reason = "it is not UTF-8 text".to_owned();
            Error::Unstorable { path: self.path.clone(), reason }
        };
        let text = str::from_utf8(lines).map_err(unstorable)?;
        Ok(text.split('\n').filter(|line| !line.is_empty()).map(str::to_owned).collect())
    }
}

/// New token, which no other owner has.
fn token() -> io::Result<Arc<str>> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(io::Error::from)?;
    Ok(format!("{:032x}", u128::from_ne_bytes(bytes)).into())
}
