//! Sessions in SQLite databases: a row for each thread, and one for each of its lines.

#[cfg(not(feature = "sqlite"))]
mod absent;
#[cfg(feature = "sqlite")]
mod database;
#[cfg(feature = "sqlite")]
mod rows;
#[cfg(feature = "sqlite")]
mod schema;
#[cfg(feature = "sqlite")]
mod search;

#[cfg(not(feature = "sqlite"))]
pub(crate) use absent::Rows;
#[cfg(feature = "sqlite")]
pub use database::Database;
#[cfg(feature = "sqlite")]
pub(crate) use rows::Rows;
