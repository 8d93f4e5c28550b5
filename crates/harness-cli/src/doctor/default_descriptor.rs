//! The default descriptor of the current directory.

use harness::descriptor::check::{CheckOptions, Severity, check_file};

use super::finding::{Area, Finding, Status};
use crate::descriptor::{NAME, nearest};

pub(super) fn finding() -> Finding {
    let finding = |status, message| Finding::new(Area::Descriptor, "default", status, message);
    let path = match nearest() {
        Ok(Some(path)) => path,
        Ok(None) => {
            let message =
                format!("no {NAME} in this directory or a parent; pass a descriptor to each command");
            return finding(Status::Absent, message).fix("create one with `harness new`");
        }
        Err(error) => return finding(Status::Fault, error.to_string()),
    };
    let report = check_file(&path, &CheckOptions::default());
    let errors = report.diagnostics().iter().filter(|one| one.severity == Severity::Error).count();
    if errors == 0 {
        return finding(Status::Ok, format!("{} is the default descriptor", path.display()));
    }
    let count = if errors == 1 { "1 error".to_owned() } else { format!("{errors} errors") };
    finding(Status::Fault, format!("{} has {count}", path.display())).fix("show them with `harness check`")
}
