//! The program's metadata in run records.

use std::path::{Path, PathBuf};

use harness::core::Json;
use harness::record::{FileSink, Recording, RunRecord};
use serde::{Deserialize, Serialize};

use crate::args::RunRecordArgs;

/// The program's part of a record's metadata: the files required to repeat the run.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Files {
    /// The descriptor, as it was named.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) descriptor: Option<PathBuf>,
    /// The registry file, when one was named.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) registry: Option<PathBuf>,
}

#[derive(Serialize, Deserialize)]
struct Metadata {
    #[serde(default)]
    harness: Files,
}

/// Recording of a run with these files, written as the arguments say.
pub(crate) fn recording(args: &RunRecordArgs, descriptor: &Path, registry: Option<&Path>) -> Recording {
    let harness =
        Files { descriptor: Some(descriptor.to_owned()), registry: registry.map(Path::to_path_buf) };
    let mut recording = Recording::new();
    if let Ok(metadata) = Json::of(&Metadata { harness }) {
        recording = recording.metadata(metadata);
    }
    if args.no_prompts {
        recording = recording.without_prompts();
    }
    match &args.run_record {
        Some(path) => recording.sink(FileSink::new(path)),
        None => recording,
    }
}

/// The files that a record names.
pub(crate) fn files(record: &RunRecord) -> Files {
    let metadata = record.metadata.as_ref().and_then(|metadata| metadata.to::<Metadata>().ok());
    metadata.map(|metadata| metadata.harness).unwrap_or_default()
}
