//! The crate seen from outside: registry files, real programs, and what a model reads of them.

mod command;
mod guard;
mod registry;
#[cfg(feature = "schema-validation")]
mod schema;
mod stopping;
mod support;
