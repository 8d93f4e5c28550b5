//! A key-value store over an engine: directories of values, each of which is an object.
//!
//! The part of a key up to its last `/` names a directory. A directory knows its own values and the directories in it, so that keys are
//! listed without a search through everything that the engine keeps.

use std::collections::BTreeMap;

use harness::core::Json;
use harness::core::port::BoxFuture;
use harness::host::{Storage, StorageError};
use serde::{Deserialize, Serialize};

/// Bytes of a value, at most: an engine rejects large entries. 1 MiB.
const VALUE_BYTES: usize = 1 << 20;
/// Bytes of a key, at most.
const KEY_BYTES: usize = 1_000;
/// Values of one reply, at most.
const BATCH: usize = 8;

/// Says that the directory above knows of this one.
const KNOWN: &str = "known";
/// Before the names of values.
const VALUE: &str = "value/";
/// Before the names of directories.
const DIRECTORY: &str = "directory/";

/// A request to a directory. Each may be delivered twice.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum DirectoryAsk {
    /// Writes a value.
    Set {
        /// The part of the key behind the directory.
        name: String,
        /// Value to write.
        value: Json,
    },
    /// Removes a value.
    Delete {
        /// The part of the key behind the directory.
        name: String,
    },
    /// Reads values.
    Get {
        /// The parts of their keys behind the directory.
        names: Vec<String>,
    },
    /// Lists values and directories.
    List,
    /// Takes note of a directory in this one.
    Adopt {
        /// Its name, with a `/` at the end.
        name: String,
    },
    /// Forgets a directory in this one, which is empty.
    Disown {
        /// Its name, with a `/` at the end.
        name: String,
    },
}

/// The reply to a [`DirectoryAsk`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DirectoryReply {
    /// Values by name, of [`DirectoryAsk::Get`].
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub values: BTreeMap<String, Json>,
    /// Names of values, of [`DirectoryAsk::List`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub names: Vec<String>,
    /// Names of the directories in it, of [`DirectoryAsk::List`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub directories: Vec<String>,
}

/// The way of requests to directories: [`SimClient`](super::sim::SimClient), and the client of a real engine.
pub trait DirectoryService: Send + Sync {
    /// Sends a request to a directory and waits for its reply. The requests to one directory take turns, but for those that only
    /// read.
    ///
    /// # Errors
    /// When the engine does not answer; then the request may have been fulfilled.
    fn ask_directory(
        &self,
        directory: &str,
        ask: &DirectoryAsk,
    ) -> impl Future<Output = Result<DirectoryReply, StorageError>> + Send;
}

/// A [`Storage`] that an engine keeps, for all processes that use the engine. It outlasts them all.
///
/// Checkpoints of flows are an example: one process starts a flow, and any other can restore it. Values have up to 1 MiB
/// (`storage.too_large`), keys up to 1,000 bytes (`storage.long_key`). Without the engine, requests fail with
/// `storage.unreachable`; a write may have happened then, and may be repeated.
///
/// ```
/// use harness::core::Json;
/// use harness::host::Storage as _;
/// use harness_restate::durable::sim::SimFaults;
/// use harness_restate::durable::{EngineStorage, SimEngine};
///
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// let engine = SimEngine::new(SimFaults::default());
/// let storage = EngineStorage::new(engine.client());
/// storage.set("orders/17/state", &Json::string("paid")).await?;
/// assert_eq!(storage.list("orders/").await?, ["orders/17/state"]);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct EngineStorage<F>(F);

impl<F: DirectoryService> EngineStorage<F> {
    /// The storage of an engine.
    pub const fn new(engine: F) -> Self {
        Self(engine)
    }
}

impl<F: DirectoryService> Storage for EngineStorage<F> {
    async fn get(&self, key: &str) -> Result<Option<Json>, StorageError> {
        let (directory, name) = parts(key)?;
        let ask = DirectoryAsk::Get { names: vec![name.to_owned()] };
        Ok(self.0.ask_directory(directory, &ask).await?.values.remove(name))
    }

    async fn set(&self, key: &str, value: &Json) -> Result<(), StorageError> {
        let (directory, name) = parts(key)?;
        let bytes = value.text().len();
        if bytes > VALUE_BYTES {
            let text = format!(
                "stored value `{key}` has {bytes} bytes, the limit is {VALUE_BYTES} bytes (store less)"
            );
            return Err(StorageError::new("storage.too_large", text));
        }
        let ask = DirectoryAsk::Set { name: name.to_owned(), value: value.clone() };
        self.0.ask_directory(directory, &ask).await.map(drop)
    }

    async fn delete(&self, key: &str) -> Result<(), StorageError> {
        let (directory, name) = parts(key)?;
        self.0.ask_directory(directory, &DirectoryAsk::Delete { name: name.to_owned() }).await.map(drop)
    }

    async fn list(&self, prefix: &str) -> Result<Vec<String>, StorageError> {
        let (directory, _) = parts(prefix)?;
        let (mut keys, mut open) = (Vec::new(), vec![directory.to_owned()]);
        while let Some(directory) = open.pop() {
            let DirectoryReply { names, directories, .. } =
                self.0.ask_directory(&directory, &DirectoryAsk::List).await?;
            let within =
                |name: String| Some(format!("{directory}{name}")).filter(|key| key.starts_with(prefix));
            keys.extend(names.into_iter().filter_map(within));
            open.extend(directories.into_iter().filter_map(within));
        }
        keys.sort_unstable();
        Ok(keys)
    }

    async fn get_many(&self, keys: &[String]) -> Result<BTreeMap<String, Json>, StorageError> {
        let mut directories: BTreeMap<&str, Vec<String>> = BTreeMap::new();
        for key in keys {
            let (directory, name) = parts(key)?;
            directories.entry(directory).or_default().push(name.to_owned());
        }
        let mut found = BTreeMap::new();
        for (directory, names) in directories {
            for names in names.chunks(BATCH) {
                let ask = DirectoryAsk::Get { names: names.to_vec() };
                let values = self.0.ask_directory(directory, &ask).await?.values;
                found.extend(values.into_iter().map(|(name, value)| (format!("{directory}{name}"), value)));
            }
        }
        Ok(found)
    }
}

/// The directory of a key, with a `/` at its end unless it is the first one, and the name in it.
fn parts(key: &str) -> Result<(&str, &str), StorageError> {
    if key.len() > KEY_BYTES {
        let text =
            format!("a key has {} bytes, the limit is {KEY_BYTES} bytes (use a shorter one)", key.len());
        return Err(StorageError::new("storage.long_key", text));
    }
    Ok(key.split_at(key.rfind('/').map_or(0, |slash| slash + 1)))
}

/// The state of a directory on an engine, and the way to the directory above.
pub(crate) trait DirectoryContext: Sync {
    /// Error of the engine.
    type Error: Send;

    /// The name of the directory; it is empty for the first one.
    fn directory(&self) -> &str;

    fn value(&self, entry: &str) -> impl Future<Output = Result<Option<Json>, Self::Error>> + Send;

    /// The names of all entries.
    fn entries(&self) -> impl Future<Output = Result<Vec<String>, Self::Error>> + Send;

    fn write(&self, entry: &str, value: &Json);

    fn clear(&self, entry: &str);

    /// Asks another directory, and waits for it.
    fn tell<'c>(&'c self, directory: &'c str, ask: DirectoryAsk) -> BoxFuture<'c, Result<(), Self::Error>>;
}

/// Handles a request to a directory.
pub(crate) async fn handle<C: DirectoryContext>(
    ctx: &C,
    ask: DirectoryAsk,
) -> Result<DirectoryReply, C::Error> {
    let mut reply = DirectoryReply::default();
    match ask {
        DirectoryAsk::Set { name, value } => add(ctx, &format!("{VALUE}{name}"), &value).await?,
        DirectoryAsk::Adopt { name } => add(ctx, &format!("{DIRECTORY}{name}"), &Json::null()).await?,
        DirectoryAsk::Delete { name } => remove(ctx, &format!("{VALUE}{name}")).await?,
        DirectoryAsk::Disown { name } => remove(ctx, &format!("{DIRECTORY}{name}")).await?,
        DirectoryAsk::Get { names } => {
            for name in names {
                if let Some(value) = ctx.value(&format!("{VALUE}{name}")).await? {
                    reply.values.insert(name, value);
                }
            }
        }
        DirectoryAsk::List => {
            let entries = ctx.entries().await?;
            let behind = |start| entries.iter().filter_map(move |entry| entry.strip_prefix(start));
            reply.names = behind(VALUE).map(str::to_owned).collect();
            reply.directories = behind(DIRECTORY).map(str::to_owned).collect();
        }
    }
    Ok(reply)
}

/// Adds an entry. The directory above knows of this one before there is anything in it.
async fn add<C: DirectoryContext>(ctx: &C, entry: &str, value: &Json) -> Result<(), C::Error> {
    if let Some((above, name)) = place(ctx.directory())
        && ctx.value(KNOWN).await?.is_none()
    {
        ctx.tell(above, DirectoryAsk::Adopt { name: name.to_owned() }).await?;
        ctx.write(KNOWN, &Json::null());
    }
    ctx.write(entry, value);
    Ok(())
}

/// Removes an entry. The directory above forgets this one after the last.
async fn remove<C: DirectoryContext>(ctx: &C, entry: &str) -> Result<(), C::Error> {
    let entries = ctx.entries().await?;
    ctx.clear(entry);
    let is_empty = !entries.iter().any(|other| other != entry && other != KNOWN);
    if let Some((above, name)) = place(ctx.directory())
        && is_empty
        && entries.iter().any(|entry| entry == KNOWN)
    {
        ctx.tell(above, DirectoryAsk::Disown { name: name.to_owned() }).await?;
        ctx.clear(KNOWN);
    }
    Ok(())
}

/// The directory above, and the name of this one in it; none for the first one.
fn place(directory: &str) -> Option<(&str, &str)> {
    let path = directory.strip_suffix('/')?;
    Some(directory.split_at(path.rfind('/').map_or(0, |slash| slash + 1)))
}
