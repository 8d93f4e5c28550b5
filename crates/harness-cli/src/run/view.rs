//! What shapes the view of a run: compaction.

use std::sync::Arc;

use harness::Builder;
use harness::core::port::{Clock, DynModel};
use harness::memory::compact::artifacts::{MemoryArtifacts, read_artifact_tool};
use harness::memory::compact::{CompactionPolicy, LadderCompactor, ModelSummarizer, SummaryModel};

use crate::args::{Compact, ViewArgs};

/// Compaction as the command line says. What is stored elsewhere is kept as long as the run: the session has
/// it all, and the next run begins with the view of this one.
pub(super) fn compacted(
    builder: Builder,
    args: &ViewArgs,
    model: &Arc<dyn DynModel>,
    clock: &Arc<dyn Clock>,
) -> Builder {
    let policy = match args.compact {
        Compact::Off => return builder,
        Compact::Ladder => CompactionPolicy::ladder(args.window),
        Compact::Projection => CompactionPolicy::projection(args.window),
    };
    let summarizer = ModelSummarizer::new(SummaryModel::new(Arc::clone(model), args.window));
    let artifacts = Arc::new(MemoryArtifacts::default());
    let compactor =
        LadderCompactor::new(policy).with_summarizer(summarizer).with_artifacts(Arc::clone(&artifacts) as _);
    builder.compactor(compactor).common_tool(read_artifact_tool(artifacts, Arc::clone(clock)))
}
