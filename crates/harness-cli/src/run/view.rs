//! What shapes the view of a run: compaction, and facts that are kept from one run to the next.

use std::path::Path;
use std::sync::Arc;

use harness::Builder;
use harness::core::port::{Clock, DynArtifactStore, DynModel};
use harness::descriptor::{CompactionPreset, CompactionSetting};
use harness::memory::builtin::notes::{LongTermMemory, SqliteNotes};
use harness::memory::builtin::{SemanticRecall, memory_tools};
use harness::memory::compact::artifacts::{LargeResults, read_artifact_tool};
use harness::memory::compact::{CompactionPolicy, LadderCompactor, ModelSummarizer, SummaryModel};
use harness::memory::layer::{LayerSetup, Pipeline, ViewBudget};
use harness::session::artifact::{FolderArtifacts, MemoryArtifacts};

use crate::args::{Preset, ViewArgs};
use crate::error::CliError;

/// Compaction as the command line says, and else the descriptor. Large results, and what a compaction stores elsewhere, lie in a
/// folder beside the session, so that a later run reads them, too; without a session they live as long as the
/// run.
pub(crate) fn compacted(
    builder: Builder,
    args: &ViewArgs,
    descriptor: Option<CompactionSetting>,
    session: Option<&Path>,
    model: &Arc<dyn DynModel>,
    clock: &Arc<dyn Clock>,
) -> Result<Builder, CliError> {
    let Some((how, window)) = compaction(args, descriptor) else { return Ok(builder) };
    let artifacts: Arc<dyn DynArtifactStore> = match session {
        Some(path) => Arc::new(FolderArtifacts::open(path.with_extension("artifacts"))?),
        None => Arc::new(MemoryArtifacts::default()),
    };
    let summarizer = ModelSummarizer::new(SummaryModel::new(Arc::clone(model), window));
    let compactor = LadderCompactor::new(policy(how, window))
        .with_summarizer(summarizer)
        .with_artifacts(Arc::clone(&artifacts));
    let read = read_artifact_tool(Arc::clone(&artifacts), Arc::clone(clock));
    let clock = Arc::clone(clock);
    let large = move |tools| LargeResults::new(tools, artifacts, clock);
    Ok(builder.compactor(compactor).common_tool(read).wrap_tools(large))
}

/// How the view is made shorter, and for which window.
fn compaction(args: &ViewArgs, descriptor: Option<CompactionSetting>) -> Option<(Preset, u64)> {
    if let Some(how) = args.compact {
        return Some((how, args.window));
    }
    let CompactionSetting { preset, window, .. } = descriptor?;
    let how = match preset {
        CompactionPreset::Projection => Preset::Projection,
        CompactionPreset::Ladder | _ => Preset::Ladder,
    };
    Some((how, window))
}

/// The policy of that name.
pub(crate) fn policy(how: Preset, window: u64) -> CompactionPolicy {
    match how {
        Preset::Ladder => CompactionPolicy::ladder(window),
        Preset::Projection => CompactionPolicy::projection(window),
    }
}

/// The user of facts in a memory file: the file belongs to one.
const OWNER: &str = "owner";

/// Tokens of the window that are for the answer.
const RESERVE: u64 = 4_000;

/// Facts in a file, as the command line says: those that fit are shown to the model, and every agent may
/// remember, recall and forget.
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
    let budget = ViewBudget::new(args.window, RESERVE.min(args.window / 4));
    let setup = LayerSetup::new()
        .with(SemanticRecall::new(memory.clone()))
        .with_model(Arc::clone(model))
        .with_budget(Some(budget));
    let pipeline = Pipeline::build(setup, Arc::clone(clock)).map_err(fault)?;
    let builder = builder.user(OWNER).workspace(name_of(path)).layers(pipeline);
    let tools = memory_tools(Some(memory), Arc::clone(clock));
    Ok(tools.into_iter().fold(builder, Builder::common_tool))
}

/// All who use one file share its workspace, whatever they call the file's folder.
fn name_of(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}
