//! Standard output of the commands that print one thing and end.

use std::io::{self, Write as _, stdout};

use serde::Serialize;
use serde_json::Value;

use crate::error::CliError;
use crate::exit::Exit;

/// Prints a text as it is, and ends with `exit`.
pub(crate) fn print(text: &str, exit: Exit) -> Result<Exit, CliError> {
    ended(stdout().write_all(text.as_bytes()), exit)
}

/// Prints a text with styles, which only a terminal gets to see, and ends with `exit`.
pub(crate) fn print_styled(text: &str, exit: Exit) -> Result<Exit, CliError> {
    ended(anstream::stdout().write_all(text.as_bytes()), exit)
}

/// Prints a value as JSON for people and programs, and ends with `exit`.
pub(crate) fn print_json<T: Serialize + ?Sized>(value: &T, exit: Exit) -> Result<Exit, CliError> {
    let text = serde_json::to_string_pretty(value)
        .map_err(|fault| CliError::Io { action: "write JSON", source: fault.into() })?;
    print(&(text + "\n"), exit)
}

/// Prints a value that was put together here as JSON with sorted keys, and ends with `exit`.
pub(crate) fn print_value(mut value: Value, exit: Exit) -> Result<Exit, CliError> {
    value.sort_all_objects();
    print_json(&value, exit)
}

/// Prints values as JSON, one a line, and ends with `exit`.
pub(crate) fn print_lines<T: Serialize>(values: &[T], exit: Exit) -> Result<Exit, CliError> {
    let mut text = String::new();
    for value in values {
        let line = serde_json::to_string(value)
            .map_err(|fault| CliError::Io { action: "write JSON", source: fault.into() })?;
        text.push_str(&line);
        text.push('\n');
    }
    print(&text, exit)
}

fn ended(written: io::Result<()>, exit: Exit) -> Result<Exit, CliError> {
    match written {
        Err(fault) if fault.kind() == io::ErrorKind::BrokenPipe => Ok(Exit::OutputClosed),
        Err(source) => Err(CliError::Io { action: "write to standard output", source }),
        Ok(()) => Ok(exit),
    }
}
