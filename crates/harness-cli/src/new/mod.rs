//! `harness new`.

mod starter;

use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use crate::args::NewArgs;
use crate::bind;
use crate::error::CliError;
use crate::exit::Exit;
use crate::output;

/// Writes a starter descriptor, and a registry if it is asked for.
pub(crate) fn new(args: &NewArgs) -> Result<Exit, CliError> {
    let registry = args.with_registry.then(|| bind::beside(&args.file));
    let name = args.file.file_name().unwrap_or_default().to_string_lossy();
    let mut files: Vec<(&Path, String)> = vec![(&args.file, starter::descriptor(&name, args.with_registry))];
    files.extend(registry.as_deref().map(|path| (path, starter::registry(&name))));
    if !args.force {
        // Nothing is written when one of them is there already.
        if let Some((path, _)) = files.iter().find(|(path, _)| path.exists()) {
            return Err(CliError::Exists { path: path.to_path_buf() });
        }
    }
    for (path, text) in &files {
        write(path, text, args.force).map_err(|source| not_written(path, source))?;
    }
    let names: Vec<String> = files.iter().map(|(path, _)| path.display().to_string()).collect();
    let file = args.file.display();
    output::print(
        &format!(
            "wrote {}\ncheck it with: harness check {file}\nrun it with: harness run {file} \"Good morning!\"\n",
            names.join(" and ")
        ),
        Exit::Completed,
    )
}

fn write(path: &Path, text: &str, replace: bool) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true);
    if replace {
        options.create(true).truncate(true);
    } else {
        // Also a file that has appeared since we looked stays as it is.
        options.create_new(true);
    }
    options.open(path)?.write_all(text.as_bytes())
}

fn not_written(path: &Path, source: io::Error) -> CliError {
    let path = PathBuf::from(path);
    if source.kind() == io::ErrorKind::AlreadyExists {
        CliError::Exists { path }
    } else {
        CliError::NotWritten { path, source }
    }
}
