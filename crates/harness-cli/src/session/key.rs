//! `harness session key`, and the key that all commands use.

use std::path::Path;
use std::sync::OnceLock;

use harness::session::{Key, OpenOptions};
use serde_json::json;

use crate::args::KeyArgs;
use crate::error::CliError;
use crate::exit::Exit;
use crate::output;
use crate::secrets;

/// The key of this process.
static KEY: OnceLock<Key> = OnceLock::new();

/// Uses the key in a file for every session that this process opens.
pub(crate) fn use_key(file: Option<&Path>) -> Result<(), CliError> {
    if let Some(file) = file {
        secrets::protect(file);
        let key = Key::read(file)?;
        KEY.get_or_init(|| key);
    }
    Ok(())
}

pub(super) fn with_key(options: OpenOptions) -> OpenOptions {
    options.key(KEY.get().cloned())
}

/// Makes a key file.
pub(super) fn create(args: &KeyArgs) -> Result<Exit, CliError> {
    let key = Key::create(&args.file)?;
    if args.json {
        return output::print_value(json!({"file": args.file, "key": key.id()}), Exit::Completed);
    }
    let text =
        format!("{}: key {}; keep a copy of it apart from the sessions\n", args.file.display(), key.id());
    output::print(&text, Exit::Completed)
}
