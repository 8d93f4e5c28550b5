//! Facts in a SQLite file.

use std::path::Path;
use std::sync::Arc;

use harness::Builder;
use harness::core::port::{Clock, DynModel};
use harness::memory::builtin::notes::{LongTermMemory, SqliteNotes};
use harness::memory::builtin::{SemanticRecall, memory_tools};
use harness::memory::layer::{LayerSetup, Pipeline, ViewBudget};

use crate::args::ViewArgs;
use crate::error::CliError;

/// User of all facts in a memory file: each file belongs to one user.
const OWNER: &str = "owner";

/// Tokens of the window reserved for the answer.
const RESERVE: u64 = 4_000;

/// Facts in the file of the command line: the model sees relevant ones, and every agent may remember, recall and
/// forget.
pub(crate) fn remembering(
    builder: Builder,
    args: &ViewArgs,
    model: &Arc<dyn DynModel>,
    clock: &Arc<dyn Clock>,
) -> Result<Builder, CliError> {
    let Some(path) = &args.memory else { return Ok(builder) };
    let fault = |source| CliError::Memory { path: path.clone(), source };
    let notes = SqliteNotes::open(path).map_err(|source| fault(source.into()))?;
    let memory = LongTermMemory::new(Arc::new(notes));
    let window = args.window(None);
    let budget = ViewBudget::new(window, RESERVE.min(window / 4));
    let setup = LayerSetup::new()
        .with(SemanticRecall::new(memory.clone()))
        .with_model(Arc::clone(model))
        .with_budget(Some(budget));
    let pipeline = Pipeline::build(setup, Arc::clone(clock)).map_err(fault)?;
    let builder = builder.user(OWNER).workspace(name_of(path)).layers(pipeline);
    let tools = memory_tools(Some(memory), Arc::clone(clock));
    Ok(tools.into_iter().fold(builder, Builder::common_tool))
}

/// All users of one file share its workspace, whatever the path of the file.
fn name_of(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}
