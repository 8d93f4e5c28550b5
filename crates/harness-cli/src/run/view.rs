//! Compaction and memory of a run.

use std::path::Path;
use std::sync::Arc;

use harness::core::port::{Clock, DynModel};
use harness::descriptor::CompactionSetting;
use harness::host::DynArtifactStore;
use harness::memory::compact::artifacts::{LargeResults, read_artifact_tool};
use harness::memory::compact::{ContextCompactor, ModelSummarizer, SummaryModel};
use harness::session::artifact::{FolderArtifacts, MemoryArtifacts};
#[cfg(feature = "postgres")]
use harness::session::{Location, artifact::PostgresArtifacts};
use harness::tools::MemorySetting;
use harness::{Builder, compaction_policy};

use crate::args::ViewArgs;
use crate::error::CliError;

/// Memory of the registry file, with the facts of the command line. `--window` is the size of a request unless the
/// file has its own.
#[cfg_attr(
    feature = "sqlite",
    expect(clippy::unnecessary_wraps, reason = "a build without `sqlite` rejects `--memory`")
)]
pub(crate) fn remembering(
    builder: Builder,
    args: &ViewArgs,
    registry: Option<MemorySetting>,
) -> Result<Builder, CliError> {
    #[cfg(not(feature = "sqlite"))]
    if args.memory.is_some() {
        return Err(crate::left_out::left_out("`--memory`", "sqlite"));
    }
    let short = args.memory.as_ref().map(MemorySetting::of_facts);
    let setting = match (registry, short) {
        (Some(file), Some(short)) => Some(file.with_facts(short)),
        (file, short) => file.or(short),
    };
    let Some(mut setting) = setting else { return Ok(builder) };
    setting.tokens.get_or_insert(args.window(None));
    Ok(builder.memory_setting(setting))
}

/// Where the large results of a session are stored.
fn artifacts_of(session: &Path) -> Result<Arc<dyn DynArtifactStore>, CliError> {
    #[cfg(feature = "postgres")]
    if let Some(url) = Location::of(session).url() {
        return Ok(Arc::new(PostgresArtifacts::open(url)?));
    }
    Ok(Arc::new(FolderArtifacts::open(session.with_extension("artifacts"))?))
}

/// Compaction of the arguments, or else of the descriptor. Large results and externalized content are stored
/// beside the session for later runs, or in memory without a session.
pub(crate) fn compacted(
    builder: Builder,
    args: &ViewArgs,
    descriptor: Option<CompactionSetting>,
    session: Option<&Path>,
    model: &Arc<dyn DynModel>,
    clock: &Arc<dyn Clock>,
) -> Result<Builder, CliError> {
    let named = args.compact.map(|preset| CompactionSetting::new(preset, args.window(None)));
    let Some(setting) = named.or(descriptor) else { return Ok(builder) };
    let artifacts: Arc<dyn DynArtifactStore> = match session {
        Some(path) => artifacts_of(path)?,
        None => Arc::new(MemoryArtifacts::default()),
    };
    let summarizer = ModelSummarizer::new(SummaryModel::new(Arc::clone(model), setting.window));
    let compactor = ContextCompactor::new(compaction_policy(setting))
        .with_summarizer(summarizer)
        .with_artifacts(Arc::clone(&artifacts));
    let read = read_artifact_tool(Arc::clone(&artifacts), Arc::clone(clock));
    let clock = Arc::clone(clock);
    let large = move |tools| LargeResults::new(tools, artifacts, clock);
    Ok(builder.compactor(compactor).common_tool(read).wrap_tools(large))
}
