//! A conversation that is kept in a file.

use std::path::Path;

use harness::prelude::*;
use harness::session::{FileSession, OpenOptions};

pub(super) async fn run(
    model: impl Model + 'static,
    file: &Path,
) -> Result<String, Box<dyn std::error::Error>> {
    let session = FileSession::open(file, OpenOptions::new())?;
    let harness = Harness::new(model).session(session).build()?;
    Ok(harness.prompt("Hello.").await?.answer().to_owned())
}
