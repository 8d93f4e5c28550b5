//! Styles of the program, which foreign text cannot imitate.

use std::fmt;
use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::sync::LazyLock;

use anstyle::Style;

/// Placeholder for `ESC [` until the text is written. It contains a random number of this process, so that no model,
/// file or server can produce one.
static MARK: LazyLock<String> =
    LazyLock::new(|| format!("\u{fdd0}{:016x}", RandomState::new().build_hasher().finish()));

/// A style in a text: `format!("{BAD}error{BAD:#}: {cause}")`.
///
/// It displays as a mark that only the writers of [`terminal`](crate::terminal) translate for a terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Paint(Style);

impl Paint {
    pub(crate) const fn of(style: Style) -> Self {
        Self(style)
    }

    /// The style of a [`Line`](crate::render::line::Line).
    pub(crate) const fn style(self) -> Style {
        self.0
    }
}

impl From<Paint> for Style {
    fn from(paint: Paint) -> Self {
        paint.0
    }
}

impl fmt::Display for Paint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ansi = if f.alternate() { format!("{:#}", self.0) } else { self.0.to_string() };
        f.write_str(&painted(&ansi))
    }
}

/// A text styled by a library that passes no foreign control characters.
pub(crate) fn painted(ansi: &str) -> String {
    ansi.replace("\u{1b}[", &MARK)
}

/// Moves to the start of the line and clears it.
pub(crate) fn erase_line() -> String {
    format!("{}2K", *MARK)
}

/// Part of a styled text.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Piece<'t> {
    /// Foreign text.
    Text(&'t str),
    /// Parameters of a style.
    Style(&'t str),
    EraseLine,
}

/// The parts of a text in order.
pub(super) fn pieces(text: &str) -> Vec<Piece<'_>> {
    let mut pieces = Vec::new();
    let mut parts = text.split(&**MARK);
    pieces.extend(parts.next().filter(|first| !first.is_empty()).map(Piece::Text));
    for part in parts {
        let end = part.find(|c: char| !c.is_ascii_digit() && c != ';').unwrap_or(part.len());
        let (parameters, rest) = part.split_at(end);
        let rest = match rest.chars().next() {
            Some('m') => {
                pieces.push(Piece::Style(parameters));
                rest.get(1..).unwrap_or_default()
            }
            Some('K') => {
                pieces.push(Piece::EraseLine);
                rest.get(1..).unwrap_or_default()
            }
            _ => rest,
        };
        if !rest.is_empty() {
            pieces.push(Piece::Text(rest));
        }
    }
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn styles_are_told_from_what_looks_like_one() {
        let bold = Paint::of(Style::new().bold());
        let text = format!("a{bold}b\u{1b}[31mc{bold:#}\u{fdd0}0000000000000000") + "1m" + &erase_line();
        let expected = [
            Piece::Text("a"),
            Piece::Style("1"),
            Piece::Text("b\u{1b}[31mc"),
            Piece::Style("0"),
            Piece::Text("\u{fdd0}00000000000000001m"),
            Piece::EraseLine,
        ];
        assert_eq!(pieces(&text), expected);
    }
}
