//! Sessions in a PostgreSQL database that several machines share: a row for each thread, and one for each of its
//! lines.

#[cfg(not(feature = "postgres"))]
mod absent;
#[cfg(feature = "postgres")]
mod artifacts;
#[cfg(feature = "postgres")]
mod checkpoints;
#[cfg(feature = "postgres")]
mod claim;
#[cfg(feature = "postgres")]
mod rows;
#[cfg(feature = "postgres")]
mod schema;
#[cfg(feature = "postgres")]
mod search;
#[cfg(feature = "postgres")]
mod server;
#[cfg(feature = "postgres")]
mod storage;

#[cfg(not(feature = "postgres"))]
pub(crate) use absent::{Claim, Rows};
#[cfg(feature = "postgres")]
pub use artifacts::PostgresArtifacts;
#[cfg(feature = "postgres")]
pub use checkpoints::PostgresCheckpoints;
#[cfg(feature = "postgres")]
pub(crate) use claim::Claim;
#[cfg(feature = "postgres")]
pub(crate) use rows::Rows;
#[cfg(feature = "postgres")]
pub use storage::PostgresStorage;

use std::path::Path;

/// How the URL of a database begins.
const SCHEMES: [&str; 2] = ["postgres://", "postgresql://"];

/// The URL of a database that a path is.
pub(crate) fn url(path: &Path) -> Option<&str> {
    path.to_str().filter(|text| SCHEMES.iter().any(|scheme| text.starts_with(scheme)))
}
