//! What shapes the view of a run: compaction.

use std::path::Path;
use std::sync::Arc;

use harness::Builder;
use harness::core::port::{Clock, DynModel};
use harness::descriptor::{CompactionPreset, CompactionSetting};
use harness::host::DynArtifactStore;
use harness::memory::compact::artifacts::{LargeResults, read_artifact_tool};
use harness::memory::compact::{CompactionPolicy, ContextCompactor, ModelSummarizer, SummaryModel};
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
    let compactor = ContextCompactor::new(policy(how, window))
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
        Preset::Projection => CompactionPolicy::summarize(window),
    }
}
