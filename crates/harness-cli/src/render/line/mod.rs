//! Terminal lines: styled text that cannot control the terminal.

mod clean;
#[cfg(test)]
mod tests;
mod text;

use std::fmt::Write as _;
use std::sync::Arc;

use anstyle::Style;
use unicode_segmentation::UnicodeSegmentation as _;
use unicode_width::UnicodeWidthStr;

pub(crate) use clean::clean;
pub(crate) use text::Text;

/// Whether a terminal shows styles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Styling {
    /// Text alone; marks replace styles.
    Plain,
    /// Styles and clickable links.
    Colour,
}

/// Appearance of text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Look {
    pub(crate) style: Style,
    /// Link target. It is dropped unless [`openable`] accepts it.
    pub(crate) link: Option<Arc<str>>,
}

impl Look {
    /// A style without a link.
    pub(crate) fn of(style: impl Into<Style>) -> Self {
        Self { style: style.into(), link: None }
    }
}

/// Text of one appearance.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Span {
    text: String,
    look: Look,
}

/// One line: styled text without control characters and without a line end.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Line {
    spans: Vec<Span>,
    /// Sequence of a [`Picture`](crate::render::picture::Picture), which ends a line without text.
    drawing: Option<Arc<str>>,
}

impl Line {
    /// An empty line.
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// A line that draws an image over itself and the lines above.
    pub(crate) fn drawing(sequence: Arc<str>) -> Self {
        Self { spans: Vec::new(), drawing: Some(sequence) }
    }

    /// Whether the line draws an image.
    pub(crate) fn is_drawing(&self) -> bool {
        self.drawing.is_some()
    }

    /// A line of one style.
    pub(crate) fn of(style: impl Into<Style>, text: &str) -> Self {
        let mut line = Self::new();
        line.push(text, &Look::of(style));
        line
    }

    /// Adds text; control characters are replaced.
    pub(crate) fn push(&mut self, text: &str, look: &Look) {
        if text.is_empty() {
            return;
        }
        let text = clean(text);
        match self.spans.last_mut() {
            Some(last) if last.look == *look => last.text.push_str(&text),
            _ => self.spans.push(Span { text: text.into_owned(), look: look.clone() }),
        }
    }

    /// Adds text without a style.
    pub(crate) fn push_plain(&mut self, text: &str) {
        self.push(text, &Look::default());
    }

    /// Adds another line.
    pub(crate) fn append(&mut self, other: Self) {
        for span in other.spans {
            self.push(&span.text, &span.look);
        }
    }

    /// Adds spaces.
    pub(crate) fn pad(&mut self, columns: usize) {
        self.push_plain(&" ".repeat(columns));
    }

    /// Removes trailing spaces.
    pub(crate) fn trim_end(&mut self) {
        while let Some(last) = self.spans.last_mut() {
            last.text.truncate(last.text.trim_end_matches(' ').len());
            if !last.text.is_empty() {
                return;
            }
            self.spans.pop();
        }
    }

    /// Whether it is empty.
    pub(crate) fn is_empty(&self) -> bool {
        self.spans.is_empty()
    }

    /// Width in columns.
    pub(crate) fn width(&self) -> usize {
        match self.spans.as_slice() {
            [] => 0,
            [only] => width(&only.text),
            _ => width(&self.plain()),
        }
    }

    /// The text without styles.
    pub(crate) fn plain(&self) -> String {
        self.spans.iter().map(|span| span.text.as_str()).collect()
    }

    /// The text with terminal sequences for styles and links, all of them closed at its end.
    pub(crate) fn to_ansi(&self) -> String {
        let mut ansi = self.drawing.as_deref().map(str::to_owned).unwrap_or_default();
        for Span { text, look } in &self.spans {
            if let Some(link) = &look.link {
                ansi.push_str("\x1b]8;;");
                ansi.push_str(link);
                ansi.push_str("\x1b\\");
            }
            let _ = write!(ansi, "{style}{text}{style:#}", style = look.style);
            if look.link.is_some() {
                ansi.push_str("\x1b]8;;\x1b\\");
            }
        }
        ansi
    }
}

/// Width of a text in columns, by grapheme cluster.
pub(crate) fn width(text: &str) -> usize {
    if text.bytes().all(|byte| (0x20..0x7f).contains(&byte)) {
        return text.len();
    }
    text.graphemes(true).map(UnicodeWidthStr::width).sum()
}

/// A text on one line, cut if it is too long.
pub(crate) fn fitted(text: &str, columns: usize, look: &Look) -> Line {
    let mut line = Line::new();
    let text = &clean(text);
    if width(text) <= columns {
        line.push(text, look);
        return line;
    }
    let mut used = 0;
    for grapheme in text.graphemes(true) {
        used += width(grapheme);
        if used >= columns {
            break;
        }
        line.push(grapheme, look);
    }
    line.push("…", look);
    line
}

/// The address as a terminal link, if it is a web or mail address of a bounded length without characters that could
/// end the sequence.
pub(crate) fn openable(address: &str) -> Option<Arc<str>> {
    /// Maximum length that terminals accept.
    const LONGEST: usize = 2_000;
    let known = ["http://", "https://", "mailto:"].iter().any(|scheme| address.starts_with(scheme));
    let safe = address.bytes().all(|byte| (0x21..0x7f).contains(&byte));
    (known && safe && address.len() <= LONGEST).then(|| Arc::from(address))
}
