//! Command entries as tools.

use std::path::{Path, PathBuf};

use harness_core::tool::ToolDef;
use harness_host::process::{Environment, ProgramSpec, is_path};

use super::builtin::below;
use super::entry::Entry;
use crate::command::{CommandSpec, CommandTool};
use crate::error::ToolsError;
/// Creates the tool of an entry of `file`.
pub(super) fn tool_of(
    entry: Entry,
    file: &Path,
    environment: &Environment,
) -> Result<CommandTool, ToolsError> {
    let mut def = ToolDef::new(entry.name, entry.description).with_class(entry.class);
    def.requires_approval = entry.requires_approval;
    def.sequential = entry.sequential;
    def.input_schema = entry.parameters;
    let folder = folder_of(file);
    let program = program_of(&entry.command, folder);
    let cwd = rooted(&folder.join(entry.cwd.unwrap_or_default()));
    let mut program = ProgramSpec::new(program).args(entry.args).cwd(&cwd).pass(environment, []);
    program.env = environment.share(entry.env_pass.iter().map(String::as_str));
    for (name, value) in entry.env {
        program.env.set(name, value);
    }
    let mut spec = CommandSpec::new(program).input(entry.input);
    spec.sandbox = entry.sandbox.and_then(|entry| entry.of(&cwd, &|path| below(folder, path)));
    spec.limit(entry.timeout, entry.max_output);
    CommandTool::new(def, spec)
}

/// Directory that relative paths of a file start from.
pub(super) fn folder_of(file: &Path) -> &Path {
    file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// A program by its path, or by a name that is looked up in `PATH`.
pub(super) fn program_of(command: &str, folder: &Path) -> PathBuf {
    if is_path(command.as_ref()) { rooted(&folder.join(command)) } else { PathBuf::from(command) }
}

/// An absolute path: a program is searched from its own `cwd`.
pub(super) fn rooted(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}
