//! The JSON Schemas of descriptors and contracts under `docs/reference`, written anew.

use std::fs;

use harness_descriptor::schema;

use crate::fault::{Fault, Result};
use crate::repo;

/// Where the schemas stand in the tree. A test of `harness-descriptor` keeps them fresh.
const DESCRIPTOR: &str = "docs/reference/descriptor.schema.json";
const CONTRACT: &str = "docs/reference/contract.schema.json";

/// Writes the schemas.
pub(crate) fn run() -> Result<()> {
    for (file, text) in [(DESCRIPTOR, schema::text()), (CONTRACT, schema::contract_text())] {
        let path = repo::root().join(file);
        fs::write(&path, text).map_err(|error| Fault::because(repo::shown(&path), error))?;
        println!("wrote {file}");
    }
    Ok(())
}
