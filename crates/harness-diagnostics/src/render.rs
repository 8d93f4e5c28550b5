//! Human-readable diagnostics.

use std::borrow::Cow;
use std::fmt;

use unicode_width::UnicodeWidthChar as _;

use crate::diagnostic::{Diagnostic, Severity};
use crate::place::Place;

/// How diagnostics are shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Style {
    /// Text alone.
    #[default]
    Plain,
    /// With the colors of a terminal, as ANSI escape codes.
    Ansi,
}

/// Diagnostics that display as text, each followed by an empty line but the last.
///
/// ```text
/// desk.yaml:4:14: error[descriptor.unknown_tool]: agent `desk` lists undeclared tool `fnd`
///   |
/// 4 |     tools: [fnd]
///   |             ^^^
/// help: did you mean `find`?
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Rendered<'a> {
    diagnostics: &'a [Diagnostic],
    style: Style,
}

impl<'a> Rendered<'a> {
    /// Shows these diagnostics in this style.
    pub fn of(diagnostics: &'a [Diagnostic], style: Style) -> Self {
        Self { diagnostics, style }
    }
}

impl fmt::Display for Rendered<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let paint = Paint::of(self.style);
        for (at, diagnostic) in self.diagnostics.iter().enumerate() {
            if at > 0 {
                writeln!(f)?;
            }
            write_diagnostic(f, diagnostic, &paint)?;
        }
        Ok(())
    }
}

fn write_diagnostic(f: &mut fmt::Formatter<'_>, diagnostic: &Diagnostic, paint: &Paint) -> fmt::Result {
    let Diagnostic { severity, code, message, place, hint, related } = diagnostic;
    let Paint { bold, note, off, .. } = paint;
    let color = paint.severity(*severity);
    if let Some(place) = place {
        write!(f, "{bold}{}:{off} ", quiet(&place.to_string()))?;
    }
    writeln!(f, "{color}{}[{code}]{off}: {bold}{}{off}", severity.as_str(), quiet(message))?;
    if let Some(place) = place {
        write_excerpt(f, place, '^', color, paint)?;
    }
    if let Some(hint) = hint {
        writeln!(f, "{note}help:{off} {}", quiet(hint))?;
    }
    for related in related {
        let (place, message) = (related.place.to_string(), &related.message);
        writeln!(f, "{bold}{}:{off} {note}note:{off} {}", quiet(&place), quiet(message))?;
        write_excerpt(f, &related.place, '-', note, paint)?;
    }
    Ok(())
}

/// A text without control characters but line ends and tabs, so that no style but our own is among ours.
fn quiet(text: &str) -> Cow<'_, str> {
    let loud = |c: char| c.is_control() && !matches!(c, '\n' | '\t');
    if text.contains(loud) { text.replace(loud, "\u{fffd}").into() } else { text.into() }
}

/// The line of a place with its value underlined.
fn write_excerpt(
    f: &mut fmt::Formatter<'_>,
    place: &Place,
    mark: char,
    color: &str,
    paint: &Paint,
) -> fmt::Result {
    if place.excerpt.is_empty() {
        return Ok(());
    }
    let Paint { margin, off, .. } = paint;
    let number = place.line.to_string();
    let space = " ".repeat(number.len());
    let before = place.excerpt.char_indices().nth(place.before());
    let (before, value) = place.excerpt.split_at(before.map_or(place.excerpt.len(), |(at, _)| at));
    // Tabs stay tabs, so that the mark stands below the value.
    let pad: String =
        before.chars().map(|c| if c == '\t' { "\t".to_owned() } else { " ".repeat(columns(c)) }).collect();
    let width: usize = value.chars().take(place.width()).map(columns).sum();
    writeln!(f, "{margin}{space} |{off}")?;
    writeln!(f, "{margin}{number} |{off} {}", place.excerpt)?;
    writeln!(f, "{margin}{space} |{off} {pad}{color}{}{off}", mark.to_string().repeat(width.max(1)))
}

/// The columns that a terminal shows a character in.
fn columns(c: char) -> usize {
    c.width().unwrap_or(1)
}

/// The escape codes of a style, all empty without colors.
struct Paint {
    error: &'static str,
    warning: &'static str,
    note: &'static str,
    margin: &'static str,
    bold: &'static str,
    off: &'static str,
}

impl Paint {
    const PLAIN: Self = Self { error: "", warning: "", note: "", margin: "", bold: "", off: "" };
    const ANSI: Self = Self {
        error: "\u{1b}[1;31m",
        warning: "\u{1b}[1;33m",
        note: "\u{1b}[1;36m",
        margin: "\u{1b}[34m",
        bold: "\u{1b}[1m",
        off: "\u{1b}[0m",
    };

    fn of(style: Style) -> Self {
        match style {
            Style::Plain => Self::PLAIN,
            Style::Ansi => Self::ANSI,
        }
    }

    fn severity(&self, severity: Severity) -> &'static str {
        match severity {
            Severity::Error => self.error,
            Severity::Warning => self.warning,
        }
    }
}
