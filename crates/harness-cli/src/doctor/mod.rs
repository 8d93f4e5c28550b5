//! `harness doctor`: checks the requirements of a run.
//!
//! Each area is a module that returns [`Finding`]s; [`report`] shows them.

mod agents;
mod default_descriptor;
#[cfg(feature = "http")]
mod endpoints;
#[cfg(feature = "restate")]
mod engine;
mod files;
mod finding;
mod keys;
mod machine;
#[cfg(feature = "relay")]
mod relay;
mod report;

use std::sync::Arc;

use harness::core::port::Clock;
use harness::system::SystemClock;

use crate::args::DoctorArgs;
use crate::error::CliError;
use crate::exit::Exit;
use crate::model::keys::Keys;
use crate::run::block_on;
use finding::{Finding, Status};

/// Checks everything and reports the findings; a failure sets the exit code.
pub(crate) fn doctor(args: &DoctorArgs) -> Result<Exit, CliError> {
    let findings = block_on(async { Ok(look(args).await) })?;
    let sound = findings.iter().all(|finding| finding.status != Status::Fault);
    report::report(&findings, args.json, if sound { Exit::Completed } else { Exit::Failed })
}

async fn look(args: &DoctorArgs) -> Vec<Finding> {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
    let (descriptor, report) = default_descriptor::finding();
    let mut findings = vec![descriptor];
    match Keys::load(args.keys.as_deref()) {
        Ok(keys) => {
            findings.extend(keys::findings(&keys));
            findings.extend(report.iter().flat_map(|report| default_descriptor::models(report, &keys)));
            #[cfg(feature = "http")]
            findings.extend(endpoints::findings(&keys, args, args.timeout.duration(), &clock).await);
        }
        Err(fault) => findings.push(keys::unreadable(&fault)),
    }
    findings.extend(agents::findings().await);
    #[cfg(feature = "relay")]
    findings.push(relay::finding(args.timeout.duration()).await);
    #[cfg(feature = "restate")]
    findings.extend(engine::findings(args, clock.as_ref()).await);
    findings.extend(files::findings(&args.folder, &clock).await);
    findings.extend(machine::findings(clock.now()));
    findings
}
