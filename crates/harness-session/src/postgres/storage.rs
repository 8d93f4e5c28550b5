//! Values under keys in a database.

use std::collections::BTreeMap;
use std::path::PathBuf;

use harness_core::Json;
use harness_host::{Storage, StorageError};

use super::server::Server;
use crate::blocking;
use crate::error::{Action, Error, Store};
use crate::folder::LONGEST_KEY;
use crate::storage::VALUE_BYTES;

/// Values in a PostgreSQL database, which several machines share (feature `postgres`).
///
/// A value has up to 16 MiB, a key up to 1,000 bytes. A write replaces the earlier value at once; of two at the same time,
/// the later one stays. The work waits on a blocking thread of the tokio runtime; in place without one.
///
/// ```no_run
/// use harness_session::storage::PostgresStorage;
///
/// let storage = PostgresStorage::open("postgres://harness@db.internal/support")?;
/// # Ok::<(), harness_session::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct PostgresStorage {
    server: Server,
    url: PathBuf,
}

impl PostgresStorage {
    /// The values in the database of a URL. Connects with the first use; the password is taken from `PGPASSWORD`.
    ///
    /// # Errors
    /// [`Error::PostgresUrl`].
    pub fn open(url: &str) -> Result<Self, Error> {
        Ok(Self { server: Server::of(url)?, url: url.into() })
    }

    /// A key as the database has it, where a text has no NUL.
    fn key(key: &str) -> Result<Vec<u8>, Error> {
        if key.len() > LONGEST_KEY {
            return Err(Error::LongKey { store: Store::Storage, bytes: key.len(), limit: LONGEST_KEY });
        }
        Ok(key.as_bytes().to_vec())
    }

    fn read(&self, keys: &[String]) -> Result<BTreeMap<String, Json>, Error> {
        let names = keys.iter().map(|key| Self::key(key)).collect::<Result<Vec<_>, _>>()?;
        let place = (Store::Storage, Action::Read, &*self.url);
        let found = self.server.with_retry(place, names, |link, names| async move {
            let select = "SELECT key, value FROM harness.storage WHERE key = ANY ($1)";
            let rows = link.0.query(select, &[&names]).await?;
            let read = rows.iter().map(|row| Ok((row.try_get(0)?, row.try_get(1)?)));
            Ok(read.collect::<Result<Vec<(Vec<u8>, String)>, tokio_postgres::Error>>()?)
        })?;
        let value = |(key, text): (Vec<u8>, String)| {
            let key = self.text(key)?;
            let damaged = || self.damaged(format!("the value of `{key}` is not JSON"));
            let value = Json::parse(&text).map_err(|_| damaged())?;
            Ok((key, value))
        };
        found.into_iter().map(value).collect()
    }

    fn write(&self, key: &str, value: &Json) -> Result<(), Error> {
        let bytes = value.text().len() as u64;
        if bytes > VALUE_BYTES {
            let (store, name) = (Store::Storage, key.to_owned());
            return Err(Error::Oversize { store, name, bytes, limit: VALUE_BYTES });
        }
        let (key, value) = (Self::key(key)?, value.text().to_owned());
        self.server.with((Store::Storage, Action::Write, &self.url), |link| async move {
            let insert = "INSERT INTO harness.storage (key, value) VALUES ($1, $2) \
                ON CONFLICT (key) DO UPDATE SET value = excluded.value";
            link.0.execute(insert, &[&key, &value]).await?;
            Ok(())
        })
    }

    fn remove(&self, key: &str) -> Result<(), Error> {
        let key = Self::key(key)?;
        self.server.with((Store::Storage, Action::Remove, &self.url), |link| async move {
            link.0.execute("DELETE FROM harness.storage WHERE key = $1", &[&key]).await?;
            Ok(())
        })
    }

    fn keys(&self, prefix: &str) -> Result<Vec<String>, Error> {
        let from = prefix.as_bytes().to_vec();
        let place = (Store::Storage, Action::List, &*self.url);
        let keys = self.server.with_retry(place, from, |link, from| async move {
            // The first key behind all those with the prefix: no byte of a text is 255.
            let mut behind = from.clone();
            let rows = if let Some(last) = behind.last_mut() {
                *last = last.saturating_add(1);
                let between = "SELECT key FROM harness.storage WHERE key >= $1 AND key < $2 ORDER BY key";
                link.0.query(between, &[&from, &behind]).await?
            } else {
                link.0.query("SELECT key FROM harness.storage ORDER BY key", &[]).await?
            };
            Ok(rows.iter().map(|row| row.try_get(0)).collect::<Result<Vec<Vec<u8>>, _>>()?)
        })?;
        keys.into_iter().map(|key| self.text(key)).collect()
    }

    fn text(&self, key: Vec<u8>) -> Result<String, Error> {
        String::from_utf8(key).map_err(|error| self.damaged(format!("a key is not text: {error}")))
    }

    fn damaged(&self, reason: String) -> Error {
        Error::Damaged { store: Store::Storage, path: self.url.clone(), reason }
    }
}

impl Storage for PostgresStorage {
    async fn get(&self, key: &str) -> Result<Option<Json>, StorageError> {
        let keys = [key.to_owned()];
        Ok(self.get_many(&keys).await?.remove(key))
    }

    async fn set(&self, key: &str, value: &Json) -> Result<(), StorageError> {
        let (store, key, value) = (self.clone(), key.to_owned(), value.clone());
        Ok(blocking::run(move || store.write(&key, &value)).await??)
    }

    async fn delete(&self, key: &str) -> Result<(), StorageError> {
        let (store, key) = (self.clone(), key.to_owned());
        Ok(blocking::run(move || store.remove(&key)).await??)
    }

    async fn list(&self, prefix: &str) -> Result<Vec<String>, StorageError> {
        let (store, prefix) = (self.clone(), prefix.to_owned());
        Ok(blocking::run(move || store.keys(&prefix)).await??)
    }

    async fn get_many(&self, keys: &[String]) -> Result<BTreeMap<String, Json>, StorageError> {
        let (store, keys) = (self.clone(), keys.to_vec());
        Ok(blocking::run(move || store.read(&keys)).await??)
    }
}
