//! `harness check`.

mod file;
mod human;
mod json;
mod registry;

use std::collections::HashSet;
use std::path::PathBuf;

use harness::control::contract::TaskContract;
use harness::descriptor::check::{Diagnostic, Severity};

use crate::args::CheckArgs;
use crate::descriptor;
use crate::error::CliError;
use crate::exit::Exit;
use crate::paths::Paths;

/// What was found about one descriptor and its registry, or about one contract.
struct Checked {
    /// The file as it was named.
    file: PathBuf,
    /// Whether it is a contract.
    is_contract: bool,
    /// The registry that its targets were looked up in.
    registry: Option<PathBuf>,
    /// In the order in which they are shown, those of the registry last.
    diagnostics: Vec<Diagnostic>,
    /// What a descriptor holds, when nothing is wrong with it.
    sound: Option<Sound>,
    /// What a contract holds, when nothing is wrong with it.
    contract: Option<TaskContract>,
    /// Whether there is more to find than is listed.
    truncated: bool,
}

/// What a descriptor without faults holds.
struct Sound {
    hash: String,
    entry: String,
    agents: usize,
    tools: usize,
}

impl Checked {
    fn count(&self, severity: Severity) -> usize {
        self.diagnostics.iter().filter(|diagnostic| diagnostic.severity == severity).count()
    }

    fn errors(&self) -> usize {
        self.count(Severity::Error)
    }

    fn warnings(&self) -> usize {
        self.count(Severity::Warning)
    }
}

/// Says everything that is wrong with descriptors, their registries, and contracts.
pub(crate) fn check(args: &CheckArgs) -> Result<Exit, CliError> {
    let paths = Paths::here();
    let named = match args.descriptors.as_slice() {
        [] => vec![descriptor::find(None)?],
        named => named.iter().map(|path| descriptor::file(path)).collect(),
    };
    let mut told = HashSet::new();
    let checked: Vec<Checked> = named.iter().map(|path| file::check(path, args, &paths, &mut told)).collect();
    let exit =
        if checked.iter().all(|checked| checked.errors() == 0) { Exit::Completed } else { Exit::Refused };
    if args.json { json::print(&checked, exit) } else { human::print(&checked, exit) }
}
