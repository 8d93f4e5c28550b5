//! Code: shown unchanged, with long lines wrapped.

use std::borrow::Cow;

use super::looks::Looks;
use super::{Line, Look, Text};
use crate::render::highlight::Highlighter;

/// Prefix of a continued line.
const GOES_ON: &str = "↪ ";

/// Indentation of code, and width of the prefix.
const INDENT: usize = 2;

/// The language of a code block.
fn language(info: &str) -> &str {
    info.split([' ', ',', '{', '\t']).next().unwrap_or_default()
}

/// The line above a code block, if needed.
pub(super) fn opening(info: &str, looks: Looks, columns: usize) -> Option<Line> {
    let language = language(info);
    let mut text = Text::default();
    text.push(looks.either("  ", "```"), &Look::default());
    text.push(language, &looks.dim());
    if looks.has_colour() && language.is_empty() {
        return None;
    }
    text.chop(columns).into_iter().next()
}

/// The line below a code block, if needed.
pub(super) fn closing(looks: Looks) -> Option<Line> {
    (!looks.has_colour()).then(|| {
        let mut line = Line::new();
        line.push_plain("```");
        line
    })
}

/// Lines of a code block.
#[derive(Clone, Debug)]
pub(super) struct Code {
    looks: Looks,
    highlighter: Option<Box<Highlighter>>,
}

impl Code {
    /// A code block with this info string, which starts with the language.
    pub(super) fn of(info: &str, looks: Looks) -> Self {
        let named = Some(language(info)).filter(|language| looks.has_colour() && !language.is_empty());
        Self { highlighter: named.and_then(Highlighter::of_language).map(Box::new), ..Self::plain(looks) }
    }

    /// A code block without highlighting.
    pub(super) fn plain(looks: Looks) -> Self {
        Self { looks, highlighter: None }
    }

    /// Rows of the next line. `continues` is true if its start was shown before.
    pub(super) fn lines(&mut self, code: &str, continues: bool, columns: usize) -> Vec<Line> {
        let mut lines = self.text(code).chop(columns.saturating_sub(INDENT));
        for (number, line) in lines.iter_mut().enumerate() {
            let mut whole = Line::new();
            if continues || number > 0 {
                whole.push(GOES_ON, &self.looks.dim());
            } else if self.looks.has_colour() && !line.is_empty() {
                whole.pad(INDENT);
            }
            whole.append(std::mem::take(line));
            *line = whole;
        }
        lines
    }

    fn text(&mut self, code: &str) -> Text {
        let mut text = Text::default();
        let Some(highlighter) = &mut self.highlighter else {
            text.push(&without_tabs(code, 0), &self.looks.code(&Look::default()));
            return text;
        };
        let mut column = 0;
        for (part, style) in highlighter.line(code) {
            let part = without_tabs(part, column);
            column += super::width(&part);
            text.push(&part, &Look::of(style));
        }
        text
    }

    /// Bytes that went through the highlighter.
    #[cfg(test)]
    pub(super) fn parsed(&self) -> usize {
        self.highlighter.as_ref().map_or(0, |highlighter| highlighter.parsed())
    }
}

/// Expands tabs to their stops, in a text that starts at a column.
fn without_tabs(code: &str, column: usize) -> Cow<'_, str> {
    const STOP: usize = 4;
    if !code.contains('\t') {
        return Cow::Borrowed(code);
    }
    let mut spaced = String::new();
    for (number, part) in code.split('\t').enumerate() {
        if number > 0 {
            let used = (column + super::width(&spaced)) % STOP;
            spaced.push_str(&" ".repeat(STOP - used));
        }
        spaced.push_str(part);
    }
    Cow::Owned(spaced)
}
