//! Conversion of texts for output.

use std::borrow::Cow;
use std::fmt::Write as _;

use harness::core::display::is_hidden;

use super::paint::{Piece, pieces};
use super::secrets::{without_known, without_secrets};
use crate::render::harmless;

/// Maximum length of a message line in characters.
const LONGEST_LINE: usize = 4_000;

/// A message: with styles if they are shown, otherwise harmless, with bounded lines.
pub(super) fn message(text: &str, styles: bool) -> String {
    let mut out = String::with_capacity(text.len());
    let mut length = 0_usize;
    for piece in pieces(text) {
        let Piece::Text(text) = piece else {
            style(&piece, styles, &mut out);
            continue;
        };
        let text = without_secrets(text);
        for line in harmless(&text).split_inclusive('\n') {
            let (line, end) = line.strip_suffix('\n').map_or((line, ""), |line| (line, "\n"));
            let room = LONGEST_LINE.saturating_sub(length);
            let cut = line.char_indices().nth(room).map(|(at, _)| at);
            match cut {
                None => {
                    out.push_str(line);
                    length += line.chars().count();
                }
                Some(at) => {
                    let (shown, hidden) = line.split_at(at);
                    out.push_str(shown);
                    let _ = write!(out, "… ({} more characters)", hidden.chars().count());
                    length = LONGEST_LINE;
                }
            }
            if !end.is_empty() {
                out.push('\n');
                length = 0;
            }
        }
    }
    out
}

/// A human-readable text with unbounded lines.
pub(super) fn text(text: &str, styles: bool) -> String {
    unbounded(text, styles, without_secrets)
}

/// Content of an approval, in which likely secrets stay visible.
pub(super) fn question(text: &str, styles: bool) -> String {
    unbounded(text, styles, without_known)
}

fn unbounded(text: &str, styles: bool, mask: fn(&str) -> Cow<'_, str>) -> String {
    let mut out = String::with_capacity(text.len());
    for piece in pieces(text) {
        match piece {
            Piece::Text(text) => out.push_str(&harmless(&mask(text))),
            Piece::Style(_) | Piece::EraseLine => style(&piece, styles, &mut out),
        }
    }
    out
}

fn style(piece: &Piece<'_>, styles: bool, out: &mut String) {
    match piece {
        Piece::Style(parameters) if styles => {
            let _ = write!(out, "\u{1b}[{parameters}m");
        }
        Piece::EraseLine => out.push_str("\r\u{1b}[2K"),
        Piece::Style(_) | Piece::Text(_) => {}
    }
}

/// Foreign text on a terminal; known API keys are redacted.
pub(super) fn plain(text: &str) -> String {
    harmless(&without_known(text)).into_owned()
}

/// JSON in which unsafe characters are escaped. Outside of its strings JSON has no such characters.
///
/// Known API keys become `***`.
pub(super) fn json(text: &str) -> Cow<'_, str> {
    match without_known(text) {
        Cow::Borrowed(text) => escaped(text),
        Cow::Owned(text) => Cow::Owned(escaped(&text).into_owned()),
    }
}

fn escaped(text: &str) -> Cow<'_, str> {
    let hidden = |c: char| !matches!(c, '\n' | '\t' | '\r') && is_hidden(c);
    if !text.chars().any(hidden) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if hidden(c) {
            for unit in c.encode_utf16(&mut [0; 2]) {
                let _ = write!(out, "\\u{unit:04x}");
            }
        } else {
            out.push(c);
        }
    }
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::BAD;

    #[test]
    fn fault_12_styles_are_ours_and_all_else_is_harmless() {
        let hostile = "\u{1b}[31m\u{1b}]52;c;aGk=\u{7}\u{9b}2J\u{202e}\u{fdd0}0000000000000000";
        let shown = text(&format!("{BAD}error{BAD:#}: {hostile}"), true);
        assert!(shown.starts_with("\u{1b}[31merror\u{1b}[0m: "), "{shown:?}");
        assert_eq!(shown.matches('\u{1b}').count(), 2, "{shown:?}");
        assert!(!shown.chars().skip(15).any(|c| c != '\u{1b}' && is_hidden(c)), "{shown:?}");
        assert!(!text(hostile, false).contains('\u{1b}'));
    }

    #[test]
    fn fault_12_lines_of_messages_have_a_bound() {
        let long = "x".repeat(5_000);
        let shown = message(&format!("{long}\n{BAD}b{BAD:#}\n"), false);
        assert_eq!(shown, format!("{}… (1000 more characters)\nb\n", "x".repeat(4_000)));
        assert_eq!(text(&long, false), long);
    }

    #[test]
    fn fault_12_json_keeps_its_value() {
        let value = serde_json::json!({ "a": "\u{1b}]0;\u{7}\u{9b}\u{202e}\u{e0041}\u{7f}é🙂" });
        let shown = json(&value.to_string()).into_owned();
        assert!(!shown.chars().any(is_hidden), "{shown}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&shown).unwrap(), value);
    }

    #[test]
    fn fault_13_messages_hold_no_secret() {
        let shown = message("no URL: htp:/user:PASSWORD@h\nOPENAI_API_KEY=abcdefgh\n", false);
        assert_eq!(shown, "no URL: htp:/***@h\nOPENAI_API_KEY=***\n");
    }
}
