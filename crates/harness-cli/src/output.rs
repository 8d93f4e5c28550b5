//! Standard output of commands that print one result and exit.

use std::io::{self, Write as _};

use serde::Serialize;
use serde_json::Value;

use crate::error::CliError;
use crate::exit::Exit;
use crate::pager;
use crate::terminal;

/// Prints a human-readable text with styles and exits with `exit`.
pub(crate) fn print(text: &str, exit: Exit) -> Result<Exit, CliError> {
    ended(terminal::text().write_all(text.as_bytes()), exit)
}

/// Prints as [`print`], in the user's pager if the text is longer than the terminal. Must not be called inside a runtime.
pub(crate) fn print_long(text: &str, exit: Exit) -> Result<Exit, CliError> {
    if pager::is_wanted(text) && pager::print(&terminal::shown_text(text))? {
        return Ok(exit);
    }
    print(text, exit)
}

/// Prints the content of a file, unchanged for a pipe, and exits with `exit`.
pub(crate) fn print_payload(text: &str, exit: Exit) -> Result<Exit, CliError> {
    ended(terminal::payload().write_all(text.as_bytes()), exit)
}

/// Prints a value as JSON and exits with `exit`.
pub(crate) fn print_json<T: Serialize + ?Sized>(value: &T, exit: Exit) -> Result<Exit, CliError> {
    let text = serde_json::to_string_pretty(value)
        .map_err(|fault| CliError::Io { action: "write JSON", source: fault.into() })?;
    ended(terminal::json().write_all((text + "\n").as_bytes()), exit)
}

/// Prints a value as JSON with sorted keys and exits with `exit`.
pub(crate) fn print_value(mut value: Value, exit: Exit) -> Result<Exit, CliError> {
    value.sort_all_objects();
    print_json(&value, exit)
}

/// Prints values as JSON Lines and exits with `exit`.
pub(crate) fn print_lines<T: Serialize>(values: &[T], exit: Exit) -> Result<Exit, CliError> {
    let mut text = String::new();
    for value in values {
        let line = serde_json::to_string(value)
            .map_err(|fault| CliError::Io { action: "write JSON", source: fault.into() })?;
        text.push_str(&line);
        text.push('\n');
    }
    ended(terminal::json().write_all(text.as_bytes()), exit)
}

/// Exit of a command whose output was written, or not.
pub(crate) fn ended(written: io::Result<()>, exit: Exit) -> Result<Exit, CliError> {
    match written {
        Err(fault) if fault.kind() == io::ErrorKind::BrokenPipe => Ok(Exit::OutputClosed),
        Err(source) => Err(CliError::NoOutput { source }),
        Ok(()) => Ok(exit),
    }
}
