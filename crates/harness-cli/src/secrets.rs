//! The secrets that the program has read: nothing that it stores or emits holds them, and no tool writes the
//! files that they were read from.

use std::path::Path;
use std::sync::LazyLock;

use harness::adapters::ApiKey;
use harness::core::Redactor;
use harness::core::port::Secret;
use harness::tools::ProtectedFiles;
use parking_lot::Mutex;

use crate::error::CliError;
use crate::model::keys::read_private;
use crate::terminal;

/// Secrets that the program has read so far, and their files.
#[derive(Default)]
struct Known {
    redactor: Redactor,
    files: ProtectedFiles,
    values: Mutex<Vec<ApiKey>>,
}

static KNOWN: LazyLock<Known> = LazyLock::new(Known::default);

/// The redactor of everything that the program runs; it learns of later secrets, too.
pub(crate) fn redactor() -> Redactor {
    KNOWN.redactor.clone()
}

/// The files with secrets that the program has read.
pub(crate) fn files() -> ProtectedFiles {
    KNOWN.files.clone()
}

/// Notes a value that must not be stored or emitted.
pub(crate) fn learn(value: &str) {
    terminal::conceal(value);
    KNOWN.redactor.add(&Secret::new(value));
    KNOWN.values.lock().push(ApiKey::new(value));
}

/// Reads a bearer token from a private file.
pub(crate) fn token(path: &Path) -> Result<String, CliError> {
    let text = read_private(path);
    let text = text.map_err(|fault| CliError::TokenFile { path: path.to_owned(), fault })?;
    learn(&text);
    Ok(text.trim().to_owned())
}

/// The values that were read so far, for what redacts in its own way.
pub(crate) fn values() -> Vec<ApiKey> {
    KNOWN.values.lock().clone()
}

/// Notes a file that holds secrets.
pub(crate) fn protect(file: &Path) {
    KNOWN.files.add(file);
}
