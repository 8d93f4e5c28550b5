//! Syntax highlighting of code, line by line.
//!
//! Colors are those of the terminal's own palette, so that they fit a dark and a light one.

#[cfg(feature = "highlight")]
mod colors;
#[cfg(feature = "highlight")]
mod syntax;
#[cfg(not(feature = "highlight"))]
#[path = "without.rs"]
mod syntax;

use anstyle::Style;

use syntax::Syntax;

/// Maximum length of a highlighted line in bytes.
const LONGEST_LINE: usize = 1_000;

/// Maximum size of a highlighted text in bytes.
const MOST: usize = 64 << 10;

/// Highlights the lines of one text in order. Beyond its limits, and from the first line that is too long, the text has no
/// colors.
#[derive(Clone, Debug)]
pub(crate) struct Highlighter {
    syntax: Syntax,
    /// Remaining bytes.
    left: usize,
}

impl Highlighter {
    /// Returns the highlighter of a language by its name or a file extension: `rust`, `py`.
    pub(crate) fn of_language(name: &str) -> Option<Self> {
        Syntax::of_language(name).map(Self::new)
    }

    /// Returns the highlighter of a file by its name or extension.
    pub(crate) fn of_path(path: &str) -> Option<Self> {
        let name = path.rsplit('/').next().unwrap_or(path);
        Syntax::of_file(name).map(Self::new)
    }

    fn new(syntax: Syntax) -> Self {
        Self { syntax, left: MOST }
    }

    /// Splits the next line, without its line end, into parts of one style. Together they are the line.
    pub(crate) fn line<'l>(&mut self, line: &'l str) -> Vec<(&'l str, Style)> {
        self.left = if line.len() > LONGEST_LINE { 0 } else { self.left.saturating_sub(line.len() + 1) };
        if self.left == 0 {
            return vec![(line, Style::new())];
        }
        self.syntax.line(line)
    }

    /// Bytes that went through the parser.
    #[cfg(test)]
    pub(crate) fn parsed(&self) -> usize {
        MOST - self.left
    }
}

#[cfg(test)]
mod tests;
