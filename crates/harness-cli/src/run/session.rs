//! The session file of a run.

use std::path::Path;

use harness::BoundGraph;
use harness::core::{Json, Time};
use harness::session::{JsonlSession, OpenOptions};
use serde::{Deserialize, Serialize};

use crate::args::RunArgs;
use crate::error::CliError;

/// What the header of a session says about who wrote it.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Meta {
    descriptor_hash: String,
}

/// Opens the session file and becomes its owner. A new session is named after its file and `now`, so that it
/// has its name before anything is stored.
///
/// A session that another descriptor began is taken up only when the caller says so: what its agents were
/// told and could do may have been something else (law 9).
pub(super) fn open(
    path: &Path,
    graph: &BoundGraph,
    args: &RunArgs,
    now: Time,
) -> Result<JsonlSession, CliError> {
    let hash = graph.hash();
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let meta = Json::of(&Meta { descriptor_hash: hash.clone() });
    let mut options = OpenOptions::new()
        .create(!args.resume)
        .id(format!("{stem}-{:x}", now.0))
        .program("harness", env!("CARGO_PKG_VERSION"));
    if let Ok(meta) = meta {
        options = options.meta(meta);
    }
    let session = JsonlSession::open(path, options)?;
    let began = session.header().and_then(|header| header.meta?.to::<Meta>().ok());
    match began {
        Some(began) if began.descriptor_hash != hash && !args.allow_changed => {
            Err(CliError::OtherDescriptor {
                session: path.to_owned(),
                began: began.descriptor_hash,
                now: hash,
            })
        }
        Some(_) | None => Ok(session),
    }
}
