//! A small key-value store: the [`Storage`](harness_host::Storage) port in memory and as files.
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

pub use files::FolderStorage;
pub use memory::MemoryStorage;
