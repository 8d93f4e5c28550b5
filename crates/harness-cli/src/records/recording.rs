//! The program's metadata in run records.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use harness::core::Json;
use harness::record::{FileSink, FolderSink, RecordError, RecordSink, Recording, RunRecord};
use serde::{Deserialize, Serialize};

use crate::args::{RunRecordArgs, ThreadArgs, ThreadRecordArgs};
use crate::error::CliError;
use crate::outputs;
use crate::terminal;

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
    let recording = of_files(Some(descriptor), registry, args.no_prompts);
    match &args.run_record {
        Some(folder) if folder.is_dir() => recording.sink(FolderSink::new(folder)),
        Some(path) => recording.sink(FileSink::new(path)),
        None => recording,
    }
}

/// Recording of the runs of threads; `None` if they are not recorded.
pub(crate) fn thread_recording(
    args: &ThreadArgs,
    descriptor: Option<&Path>,
) -> Result<Option<Recording>, CliError> {
    let sink = folder_sink(&args.recorded)?;
    Ok(sink.map(|sink| of_threads(args, descriptor).sink(sink)))
}

/// Recording of the runs of a service, which prints errors of its records: no report of a run reaches the user.
pub(crate) fn service_recording(args: &ThreadArgs, descriptor: Option<&Path>) -> Result<Recording, CliError> {
    let recording = of_threads(args, descriptor);
    Ok(match folder_sink(&args.recorded)? {
        Some(sink) => recording.sink(ServiceSink(sink)),
        None => recording,
    })
}

fn folder_sink(args: &ThreadRecordArgs) -> Result<Option<FolderSink>, CliError> {
    let Some(folder) = &args.run_record else { return Ok(None) };
    outputs::check_folder(folder)?;
    Ok(Some(FolderSink::new(folder)))
}

fn of_threads(args: &ThreadArgs, descriptor: Option<&Path>) -> Recording {
    of_files(descriptor, args.agents.registry.as_deref(), args.recorded.no_prompts)
}

fn of_files(descriptor: Option<&Path>, registry: Option<&Path>, no_prompts: bool) -> Recording {
    let harness =
        Files { descriptor: descriptor.map(Path::to_path_buf), registry: registry.map(Path::to_path_buf) };
    let mut recording = Recording::new();
    if let Ok(metadata) = Json::of(&Metadata { harness }) {
        recording = recording.metadata(metadata);
    }
    if no_prompts { recording.without_prompts() } else { recording }
}

/// Sink that prints its errors.
struct ServiceSink(FolderSink);

impl RecordSink for ServiceSink {
    async fn write(&self, record: Arc<RunRecord>) -> Result<(), RecordError> {
        let written = self.0.write(record).await;
        if let Err(error) = &written {
            let _ = writeln!(terminal::messages(), "run record not written: {error}; {}", error.hint());
        }
        written
    }
}

/// The files that a record names.
pub(crate) fn files(record: &RunRecord) -> Files {
    let metadata = record.metadata.as_ref().and_then(|metadata| metadata.to::<Metadata>().ok());
    metadata.map(|metadata| metadata.harness).unwrap_or_default()
}
