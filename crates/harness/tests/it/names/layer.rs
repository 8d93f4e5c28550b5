//! A memory layer: the model keeps a task list, which it always sees.

use std::sync::Arc;

use harness::memory::builtin::Scratchpad;
use harness::memory::layer::{LayerSetup, Pipeline};
use harness::prelude::*;
use harness::session::storage::MemoryStorage;
use harness::system::SystemClock;

pub(super) async fn run(model: impl Model + 'static) -> Result<String, Box<dyn std::error::Error>> {
    let setup = LayerSetup::new().with(Scratchpad::new()).with_storage(Arc::new(MemoryStorage::new()));
    let memory = Pipeline::build(setup, Arc::new(SystemClock::new()))?;
    let harness = Harness::new(model).memory(memory).build()?;
    Ok(harness.prompt("Hello.").await?.answer().to_owned())
}
