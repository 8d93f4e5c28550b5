//! Which descriptor a command uses: the one that is named, or `harness.yaml` of the current or a parent directory.

use std::ffi::OsStr;
use std::io::Write as _;
use std::path::{MAIN_SEPARATOR, Path, PathBuf};

use crate::args::{MessageArg, RunArgs};
use crate::error::CliError;
use crate::terminal;

/// The name of a directory's descriptor.
pub(crate) const NAME: &str = "harness.yaml";

/// The descriptor of a command: the named one, or the default.
pub(crate) fn find(named: Option<&Path>) -> Result<PathBuf, CliError> {
    match named {
        Some(path) => at(path),
        None => {
            search()?.map_or_else(|| Err(CliError::NoHarnessYaml { directory: here()?, parents: true }), Ok)
        }
    }
}

/// The file of a named descriptor. A directory has a `harness.yaml`.
pub(crate) fn at(named: &Path) -> Result<PathBuf, CliError> {
    let file = file(named);
    if named.is_dir() && !file.exists() {
        return Err(CliError::NoHarnessYaml { directory: named.to_owned(), parents: false });
    }
    Ok(file)
}

/// The file of a named descriptor, whether it exists or not.
pub(crate) fn file(named: &Path) -> PathBuf {
    if named.is_dir() { named.join(NAME) } else { named.to_owned() }
}

/// The default descriptor. One from a parent directory is reported on standard error.
pub(crate) fn search() -> Result<Option<PathBuf>, CliError> {
    let found = nearest()?;
    if let Some(file) = found.as_deref().filter(|file| *file != Path::new(NAME)) {
        let _ = writeln!(terminal::messages(), "using {}", file.display());
    }
    Ok(found)
}

/// The `harness.yaml` of the current directory or of the nearest parent that has one.
pub(crate) fn nearest() -> Result<Option<PathBuf>, CliError> {
    if Path::new(NAME).is_file() {
        return Ok(Some(PathBuf::from(NAME)));
    }
    Ok(here()?.ancestors().skip(1).map(|parent| parent.join(NAME)).find(|file| file.is_file()))
}

fn here() -> Result<PathBuf, CliError> {
    std::env::current_dir().map_err(|source| CliError::Io { action: "read the current directory", source })
}

/// The descriptor and the message of `harness run`. A single argument that is not a path is a message for the default
/// descriptor. With `--resume` there is no message.
pub(crate) fn of_run(args: &RunArgs) -> Result<(PathBuf, Option<MessageArg>), CliError> {
    if let (Some(only), None, false) = (&args.descriptor, &args.message, args.resume)
        && !only.exists()
    {
        let message = only.to_str().filter(|_| !looks_like_path(only.as_os_str()));
        let message = message.ok_or_else(|| CliError::NoSuchDescriptor { path: only.clone() })?;
        return Ok((find(None)?, Some(MessageArg::of(message))));
    }
    Ok((find(args.descriptor.as_deref())?, args.message.clone()))
}

/// Whether an argument that names no file is meant as one.
fn looks_like_path(argument: &OsStr) -> bool {
    let text = argument.to_string_lossy();
    let is_file_name = [".yaml", ".yml", ".json"].iter().any(|ending| text.ends_with(ending));
    is_file_name || text.contains(['/', MAIN_SEPARATOR]) && !text.contains(char::is_whitespace)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(argument: &str, expected: bool) {
        assert_eq!(looks_like_path(OsStr::new(argument)), expected, "{argument}");
    }

    #[test]
    fn paths_have_an_ending_or_a_separator_without_spaces() {
        for path in ["desk.yaml", "my desk.yml", "a.json", "desk/", "../desk", "/srv/desk"] {
            check(path, true);
        }
        for message in
            ["hello", "What does the tent cost?", "tea and/or coffee?", "-", "what is harness.yaml?"]
        {
            check(message, false);
        }
    }
}
