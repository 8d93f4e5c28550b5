//! Output files of a run, which are checked before any model call.

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use harness::session::Location;

use crate::error::CliError;

/// Bytes written to check whether a new file can be written.
const TRIAL: [u8; 128] = [b'\n'; 128];

/// Fails if a file cannot be written or created. Its content does not change, and no directory is created.
pub(crate) fn check_file(path: &Path) -> Result<(), CliError> {
    let fault = |source| CliError::NotWritten { path: path.to_owned(), source };
    match fs::metadata(path) {
        // A pipe or a device is written when there is something to write.
        Ok(found) if !found.is_file() && !found.is_dir() => Ok(()),
        Ok(_) => OpenOptions::new().append(true).open(path).map(drop).map_err(fault),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            check_parent(path)?;
            // A link that leads nowhere is not followed.
            if fs::symlink_metadata(path).is_ok() {
                return OpenOptions::new().append(true).open(path).map(drop).map_err(fault);
            }
            try_out(path).map_err(fault)
        }
        Err(error) => Err(fault(error)),
    }
}

/// [`check_file`] for a path that may be a thread of a database, which is opened before any model is called.
pub(crate) fn check_session(path: &Path) -> Result<(), CliError> {
    match Location::of(path) {
        Location::File(path) => check_file(&path),
        Location::Thread { .. } | Location::Database(_) => Ok(()),
    }
}

/// Fails if no files can be created in a directory, which may be created later.
pub(crate) fn check_folder(folder: &Path) -> Result<(), CliError> {
    let there = folder.ancestors().map(or_here).find(|folder| folder.exists());
    let there = there.unwrap_or_else(|| PathBuf::from("."));
    let fault = |source| CliError::NotWritten { path: folder.to_owned(), source };
    if !there.is_dir() {
        return Err(fault(io::ErrorKind::NotADirectory.into()));
    }
    let name = format!(".harness-trial-{}", std::process::id());
    try_out(&there.join(name)).map_err(fault)
}

fn check_parent(path: &Path) -> Result<(), CliError> {
    let folder = or_here(path.parent().unwrap_or(Path::new("")));
    if folder.is_dir() { Ok(()) } else { Err(CliError::NoParent { path: path.to_owned(), folder }) }
}

fn or_here(folder: &Path) -> PathBuf {
    if folder.as_os_str().is_empty() { PathBuf::from(".") } else { folder.to_owned() }
}

/// Creates a missing file, writes a few bytes, and removes it.
fn try_out(path: &Path) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).open(path)?;
    let written = file.write_all(&TRIAL);
    drop(file);
    fs::remove_file(path)?;
    written
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fault_22_a_check_leaves_nothing_behind() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::write(at("there"), "content").unwrap();
        for name in ["there", "new"] {
            check_file(&at(name)).unwrap();
        }
        for name in ["missing/new", "there/new", "."] {
            check_file(&at(name)).unwrap_err();
        }
        check_folder(&at("a/b")).unwrap();
        check_folder(&at("there")).unwrap_err();
        let left: Vec<_> =
            fs::read_dir(folder.path()).unwrap().map(|file| file.unwrap().file_name()).collect();
        assert_eq!(left, ["there"]);
        assert_eq!(fs::read_to_string(at("there")).unwrap(), "content");
    }
}
