//! Session file of a run.

use std::path::{Path, PathBuf};

use harness::BoundGraph;
use harness::core::{Json, Time};
use harness::session::{FileSession, Location, Tree};
use serde::{Deserialize, Serialize};

use crate::args::{ModeArg, RunArgs};
use crate::bind::beside;
use crate::error::CliError;
use crate::session::{options, stem};

/// Origin in the header of a session.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Meta {
    #[serde(default)]
    run: RunStart,
}

/// Options of the run that created a session, from which `harness resume` continues. Paths are absolute.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct RunStart {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) descriptor: Option<PathBuf>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) registry: Option<PathBuf>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(super) until_done: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) mode: Option<ModeArg>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) contract: Option<PathBuf>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) workspace: Option<PathBuf>,
}

impl RunStart {
    fn of(args: &RunArgs, descriptor: &Path) -> Self {
        let whole = |path: &Path| std::path::absolute(path).ok();
        Self {
            descriptor: whole(descriptor),
            registry: args.registry.as_deref().and_then(whole),
            until_done: args.options.until.until_done,
            mode: args.options.until.mode,
            contract: args.options.until.contract.as_deref().and_then(whole),
            workspace: args.options.until.workspace.as_deref().and_then(whole),
        }
    }
}

/// Options of the run that created a session.
pub(super) fn begun(path: &Path) -> Result<RunStart, CliError> {
    if !Location::of(path).exists()? {
        return Err(CliError::NoSession { path: path.to_owned() });
    }
    let tree = Tree::read(path, &options())?;
    let meta = tree.header().and_then(|header| header.meta.as_ref()?.to::<Meta>().ok());
    Ok(meta.map(|meta| meta.run).unwrap_or_default())
}

/// Registry file of the run that created a session: the one that it was given, or that next to its descriptor. `None` if
/// no such file exists.
pub(crate) fn registry_of(session: &Path) -> Result<Option<PathBuf>, CliError> {
    let RunStart { descriptor, registry, .. } = begun(session)?;
    let registry = registry.or_else(|| descriptor.as_deref().map(beside));
    Ok(registry.filter(|path| path.exists()))
}

/// Opens and locks the session file. A new session is named after its file and `now`, so that it has an id before
/// anything is stored.
///
/// A session of a different descriptor is resumed only on request, because its agents may have had other
/// instructions and tools (law 9).
pub(super) fn open(
    path: &Path,
    graph: &BoundGraph,
    descriptor: &Path,
    args: &RunArgs,
    now: Time,
) -> Result<FileSession, CliError> {
    let meta = Json::of(&Meta { run: RunStart::of(args, descriptor) });
    let mut options = options().create(!args.resume).id(format!("{}-{:x}", stem(path), now.0));
    if let Ok(meta) = meta {
        options = options.meta(meta);
    }
    let session = FileSession::open(path, options)?;
    if !args.allow_changed {
        same_descriptor(&session, path, Some(&graph.hash()))?;
    }
    Ok(session)
}

/// Rejects a session of a different descriptor before any model call.
pub(crate) fn same_descriptor(session: &FileSession, path: &Path, now: Option<&str>) -> Result<(), CliError> {
    match session.header().and_then(|header| header.descriptor_hash()) {
        Some(began) if Some(began.as_str()) != now => Err(CliError::OtherDescriptor {
            session: path.to_owned(),
            began,
            now: now.map_or_else(|| "no descriptor".to_owned(), |hash| format!("descriptor {hash}")),
        }),
        Some(_) | None => Ok(()),
    }
}
