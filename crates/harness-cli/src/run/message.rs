//! Messages to the agents.

use std::io::{IsTerminal as _, Read, stdin};

use crate::args::MessageArg;
use crate::error::CliError;

/// Maximum size of a message from standard input in bytes.
const LONGEST: u64 = 1 << 20;

/// Reads the message; `None` continues without one.
pub(super) fn message(message: Option<&MessageArg>, resume: bool) -> Result<Option<String>, CliError> {
    match message {
        None if resume => Ok(None),
        Some(MessageArg::Text(text)) if text.trim().is_empty() => Err(CliError::NoMessage),
        Some(MessageArg::Text(text)) => Ok(Some(text.clone())),
        None if stdin().is_terminal() => Err(CliError::NoMessage),
        Some(MessageArg::Stdin) | None => read(stdin().lock()).map(Some),
    }
}

fn read(input: impl Read) -> Result<String, CliError> {
    let wrong = |problem: String| CliError::Message { problem };
    let mut bytes = Vec::new();
    let read = input.take(LONGEST + 1).read_to_end(&mut bytes);
    read.map_err(|fault| wrong(format!("cannot be read: {fault}")))?;
    if bytes.len() as u64 > LONGEST {
        return Err(wrong(format!("larger than {LONGEST} bytes")));
    }
    let text = String::from_utf8(bytes)
        .map_err(|fault| wrong(format!("invalid UTF-8 at byte {}", fault.utf8_error().valid_up_to())))?;
    let text = text.trim_end_matches(['\n', '\r']);
    if text.trim().is_empty() { Err(CliError::NoMessage) } else { Ok(text.to_owned()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(input: &[u8], expected: Result<&str, &str>) {
        let got = read(input).map_err(|error| error.to_string());
        assert_eq!(got.as_deref().map_err(String::as_str), expected);
    }

    #[test]
    fn standard_input_is_text_without_its_last_line_end() {
        check(b"hello\nworld\r\n", Ok("hello\nworld"));
        check(b"\n \n", Err("no message given"));
        check(b"ab\xff", Err("invalid message on standard input: invalid UTF-8 at byte 2"));
    }

    #[test]
    fn standard_input_has_a_bound() {
        check(&vec![b'x'; 1 << 20], Ok(&"x".repeat(1 << 20)));
        let long = vec![b'x'; (1 << 20) + 1];
        check(&long, Err("invalid message on standard input: larger than 1048576 bytes"));
    }
}
