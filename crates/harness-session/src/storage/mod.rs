//! A small key-value store: the [`Storage`](harness_host::Storage) port in memory, as files and in PostgreSQL.
//!
//! ```
//! use harness_core::Json;
//! use harness_host::Storage;
//! use harness_session::storage::FolderStorage;
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = tempfile::tempdir()?;
//! let storage = FolderStorage::open(folder.path().join("memory"))?;
//! storage.set("thread/t1/scratchpad", &Json::string("buy milk")).await?;
//! assert_eq!(storage.list("thread/").await?, ["thread/t1/scratchpad"]);
//! # Ok(())
//! # }
//! ```

mod files;
mod memory;

use std::path::Path;
use std::sync::Arc;

use harness_host::DynStorage;

use crate::error::Error;
use crate::postgres;
#[cfg(feature = "postgres")]
pub use crate::postgres::PostgresStorage;

pub use files::FolderStorage;
pub use memory::MemoryStorage;

/// The largest value by default, in bytes of its JSON text.
pub(crate) const VALUE_BYTES: u64 = 16 << 20;

/// Opens the storage at a path: a directory, or with a URL that begins with `postgres://` or `postgresql://` a database.
///
/// ```
/// use harness_session::storage;
///
/// # let folder = tempfile::tempdir()?;
/// let storage = storage::open(&folder.path().join("memory"))?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// The directory cannot be created or cleaned; [`Error::PostgresUrl`]; [`Error::NoPostgres`] for a URL in a build without
/// the feature `postgres`.
pub fn open(path: &Path) -> Result<Arc<dyn DynStorage>, Error> {
    match postgres::url(path) {
        Some(url) => database(url),
        None => Ok(Arc::new(FolderStorage::open(path)?)),
    }
}

#[cfg(feature = "postgres")]
fn database(url: &str) -> Result<Arc<dyn DynStorage>, Error> {
    Ok(Arc::new(PostgresStorage::open(url)?))
}

#[cfg(not(feature = "postgres"))]
fn database(_: &str) -> Result<Arc<dyn DynStorage>, Error> {
    Err(Error::NoPostgres)
}
