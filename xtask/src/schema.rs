//! The JSON Schema of descriptors under `docs/reference`, written anew.

use std::fs;

use harness_descriptor::schema;

use crate::fault::{Fault, Result};
use crate::repo;

/// Where the schema stands in the tree. A test of `harness-descriptor` keeps it fresh.
const FILE: &str = "docs/reference/descriptor.schema.json";

/// Writes the schema.
pub(crate) fn run() -> Result<()> {
    let path = repo::root().join(FILE);
    fs::write(&path, schema::text()).map_err(|error| Fault::because(repo::shown(&path), error))?;
    println!("wrote {FILE}");
    Ok(())
}
