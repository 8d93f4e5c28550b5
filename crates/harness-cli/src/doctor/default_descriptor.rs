//! The default descriptor of the current directory, and the models that it and its registry file name.

use std::path::Path;

use harness::descriptor::check::{CheckOptions, Diagnostic, Report, Severity, check_file};
use harness::tools::Registry;

use super::finding::{Area, Finding, Status};
use crate::bind;
use crate::descriptor::{NAME, nearest};
use crate::model::keys::Keys;
use crate::model::{Unusable, unusable};
use crate::paths::Paths;
use crate::render::counted;

/// The default descriptor, and the check of it; `None` without a descriptor.
pub(super) fn finding() -> (Finding, Option<Report>) {
    let finding = |status, message| Finding::new(Area::Descriptor, "default", status, message);
    let path = match nearest() {
        Ok(Some(path)) => path,
        Ok(None) => {
            let message =
                format!("no {NAME} in this directory or a parent; pass a descriptor to each command");
            return (finding(Status::Absent, message).fix("create one with `harness new`"), None);
        }
        Err(error) => return (finding(Status::Fault, error.to_string()), None),
    };
    let report = check_file(&path, &CheckOptions::default());
    let errors = report.diagnostics().iter().filter(|one| one.severity == Severity::Error).count();
    let finding = if errors == 0 {
        finding(Status::Ok, format!("{} is the default descriptor", path.display()))
    } else {
        invalid("default", &path, errors)
    };
    (finding, Some(report))
}

/// The registry file next to the default descriptor, if it is invalid; otherwise the models of both that a run could not
/// call.
pub(super) fn models(report: &Report, keys: &Keys) -> Vec<Finding> {
    let Ok(Some(path)) = nearest() else { return Vec::new() };
    let file = bind::beside(&path);
    let registry = match file.exists().then(|| Registry::load(&file)).transpose() {
        Ok(registry) => registry,
        Err(error) => return vec![invalid("registry", &file, error.diagnostics().len())],
    };
    let paths = Paths::here();
    unusable(report.graph(), registry.as_ref(), keys)
        .into_iter()
        .map(|model| of_model(model, &paths))
        .collect()
}

/// A file with errors, which `harness check` shows.
fn invalid(name: &str, path: &Path, errors: usize) -> Finding {
    let message = format!("{} has {}", path.display(), counted(errors, "error"));
    Finding::new(Area::Descriptor, name, Status::Fault, message).fix("show them with `harness check`")
}

fn of_model(model: Unusable, paths: &Paths) -> Finding {
    let Unusable { name, mut warning, .. } = model;
    paths.shorten(&mut warning);
    let Diagnostic { message, place, hint, .. } = warning;
    let place = place.map(|place| format!(" ({place})")).unwrap_or_default();
    let finding = Finding::new(Area::Keys, &name, Status::Fault, format!("{message}{place}"));
    hint.into_iter().fold(finding, Finding::fix)
}
