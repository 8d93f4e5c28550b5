//! The JSON Schemas of descriptors and contracts, and the description of the server's routes, under
//! `docs/reference`, written anew.

use std::fs;

use harness_descriptor::schema;

use xtask::fault::{Fault, Result};
use xtask::repo;

/// Where they stand in the tree. Tests of `harness-descriptor` and `harness-server` keep them fresh.
const DESCRIPTOR: &str = "docs/reference/descriptor.schema.json";
const CONTRACT: &str = "docs/reference/contract.schema.json";
const ROUTES: &str = "docs/reference/openapi.json";

/// Writes them.
pub(crate) fn run() -> Result<()> {
    let files = [
        (DESCRIPTOR, schema::text()),
        (CONTRACT, schema::contract_text()),
        (ROUTES, harness_server::openapi()),
    ];
    for (file, text) in files {
        let path = repo::root().join(file);
        fs::write(&path, text).map_err(|error| Fault::because(repo::shown(&path), error))?;
        println!("wrote {file}");
    }
    Ok(())
}
