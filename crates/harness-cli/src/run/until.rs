//! Control of a run: the arguments, merged over the descriptor's `run` section.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use harness::Builder;
use harness::control::ControlSpec;
use harness::control::contract::TaskContract;
use harness::core::outcome::StopMode;
use harness::descriptor::{RunSection, load_contract};
use harness::runtime::Report;
use harness::tools::FolderWorkspace;

use super::deliverables;
use crate::args::UntilArgs;
use crate::error::CliError;
use crate::report::{ReportContext, RunReport};

/// Control settings of a run.
#[derive(Debug)]
pub(super) struct Until {
    mode: StopMode,
    control: Option<ControlSpec>,
    workspace: Option<FolderWorkspace>,
}

impl Until {
    /// Merges the arguments over the descriptor. It reads the contract and opens the workspace, so that errors in either
    /// are reported before the run.
    pub(super) fn of(
        args: &UntilArgs,
        section: Option<&RunSection>,
        descriptor: &Path,
    ) -> Result<Self, CliError> {
        let mode = args.mode.map(StopMode::from).or(section.and_then(|section| section.mode));
        let mode = mode.unwrap_or_default();
        let mut control = section.and_then(|section| section.control(mode));
        if args.until_done || args.mode.is_some() || args.contract.is_some() {
            control.get_or_insert_with(|| ControlSpec::for_mode(mode));
        }
        if let (Some(path), Some(control)) = (&args.contract, &mut control) {
            control.contract = Some(load_contract(path)?);
        }
        let workspace =
            control.as_ref().map(|_| FolderWorkspace::open(folder(args, descriptor))).transpose()?;
        Ok(Self { mode, control, workspace })
    }

    /// Whether the run is controlled.
    pub(super) fn is_on(&self) -> bool {
        self.control.is_some()
    }

    /// Control of the run.
    pub(super) fn control(&self) -> Option<&ControlSpec> {
        self.control.as_ref()
    }

    /// Adds it to a builder.
    pub(super) fn build(self, builder: Builder) -> Builder {
        let Self { mode, control, workspace } = self;
        let builder = builder.stop_mode(mode);
        let builder = match control {
            Some(control) => builder.control(control),
            None => builder,
        };
        match workspace {
            Some(workspace) => builder.contract_files(Arc::new(workspace)),
            None => builder,
        }
    }
}

/// Directory of the contract's files.
fn folder(args: &UntilArgs, descriptor: &Path) -> PathBuf {
    let beside = || descriptor.parent().filter(|folder| !folder.as_os_str().is_empty());
    let given = args.workspace.as_deref();
    given.or_else(beside).unwrap_or(Path::new(".")).to_path_buf()
}

/// Outputs of a run beyond its own report.
pub(super) struct RunDetails<'a> {
    pub(super) descriptor: &'a Path,
    pub(super) descriptor_hash: &'a str,
    pub(super) session: Option<&'a Path>,
    pub(super) contract: Option<&'a TaskContract>,
    pub(super) next: Option<&'a str>,
}

/// Writes the deliverables and the report, if requested; returns the summary for the user.
pub(super) fn leave_behind(
    args: &UntilArgs,
    report: &Report,
    details: &RunDetails<'_>,
) -> Result<Vec<String>, CliError> {
    let files = match &args.deliverables {
        Some(folder) => deliverables::write(folder, report.deliverables())?,
        None => Vec::new(),
    };
    let context = ReportContext {
        descriptor: details.descriptor,
        descriptor_hash: details.descriptor_hash,
        session: details.session,
        contract: details.contract,
        files: &files,
        next: details.next,
    };
    let page = RunReport::of(report, &context);
    if let Some(path) = &args.report {
        page.write(path)?;
    }
    Ok(page.lines())
}
