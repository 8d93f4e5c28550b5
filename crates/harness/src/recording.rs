//! Graph and limits of a harness in its records.

use harness_core::run::RunSpec;
use harness_core::{Json, Redactor};
use harness_descriptor::{Graph, Value};
use harness_record::Recording;
use serde::Serialize;

/// A recording of runs of this graph under these limits, without the secrets that the driver knows.
pub(crate) fn completed(
    mut recording: Recording,
    graph: Option<&Graph>,
    spec: &RunSpec,
    secrets: Option<&Redactor>,
) -> Recording {
    let options = &mut recording.options;
    if let Some(secrets) = secrets {
        options.redaction = std::mem::take(&mut options.redaction).secrets(secrets.clone());
    }
    if let Some(graph) = graph {
        options.redaction = std::mem::take(&mut options.redaction).paths(marked_paths(graph));
        let known = &mut options.candidate.registry_version;
        *known = known.take().or_else(|| graph.metadata().registry_version.clone());
    }
    let package = &mut options.candidate.package_version;
    package.get_or_insert_with(|| concat!("harness ", env!("CARGO_PKG_VERSION")).to_owned());
    options.limits = Json::of(&InForce { turn: &spec.turn.limits, run: &spec.limits }).ok();
    recording
}

#[derive(Serialize)]
struct InForce<'a> {
    turn: &'a harness_core::limits::Limits,
    run: &'a harness_core::run::RunLimits,
}

/// The paths of the context fields that are marked with `redact: true`.
fn marked_paths(graph: &Graph) -> Vec<String> {
    let descriptor = graph.descriptor().to_value();
    let fields = descriptor.get("context").and_then(|context| context.get("fields")).and_then(Value::as_map);
    let marked = |field: &Value| field.get("redact").and_then(Value::as_bool) == Some(true);
    fields
        .into_iter()
        .flat_map(harness_descriptor::Map::iter)
        .filter(|(_, field)| marked(field))
        .map(|(path, _)| path.to_owned())
        .collect()
}
