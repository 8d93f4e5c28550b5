//! `harness check`.

mod file;
mod human;
mod json;

use std::collections::HashSet;
use std::path::PathBuf;

use harness::control::contract::TaskContract;
use harness::descriptor::check::{Diagnostic, Severity};

use crate::args::CheckArgs;
use crate::descriptor;
use crate::error::CliError;
use crate::exit::Exit;
use crate::paths::Paths;

/// Results of one descriptor and its registry, or of one contract.
struct Checked {
    /// Path as given.
    file: PathBuf,
    /// Whether it is a contract.
    is_contract: bool,
    /// Registry that defines its targets.
    registry: Option<PathBuf>,
    /// Problems in display order, those of the registry last.
    diagnostics: Vec<Diagnostic>,
    /// Content of a valid descriptor.
    sound: Option<Sound>,
    /// Content of a valid contract.
    contract: Option<TaskContract>,
    /// Whether there are more problems than listed.
    truncated: bool,
}

/// Content of a valid descriptor.
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

/// Reports all problems of descriptors, their registries, and contracts.
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
