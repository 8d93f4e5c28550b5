//! Code: shown unchanged, with long lines wrapped.

use super::looks::Looks;
use super::{Line, Look, Text};

/// Prefix of a continued line.
const GOES_ON: &str = "↪ ";

/// Indentation of code, and width of the prefix.
const INDENT: usize = 2;

/// The line above a code block, if needed.
pub(super) fn opening(info: &str, looks: Looks, columns: usize) -> Option<Line> {
    let language = info.split([' ', ',', '{', '\t']).next().unwrap_or_default();
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

/// Rows of one line of code. `goes_on` is true if its start was shown before.
pub(super) fn lines(code: &str, continues: bool, looks: Looks, columns: usize) -> Vec<Line> {
    let mut text = Text::default();
    text.push(&without_tabs(code), &looks.code(&Look::default()));
    let mut lines = text.chop(columns.saturating_sub(INDENT));
    for (number, line) in lines.iter_mut().enumerate() {
        let mut whole = Line::new();
        if continues || number > 0 {
            whole.push(GOES_ON, &looks.dim());
        } else if looks.has_colour() && !line.is_empty() {
            whole.pad(INDENT);
        }
        whole.append(std::mem::take(line));
        *line = whole;
    }
    lines
}

/// Expands tabs to their stops.
fn without_tabs(code: &str) -> String {
    const STOP: usize = 4;
    if !code.contains('\t') {
        return code.to_owned();
    }
    let mut spaced = String::new();
    for (number, part) in code.split('\t').enumerate() {
        if number > 0 {
            let used = super::width(&spaced) % STOP;
            spaced.push_str(&" ".repeat(STOP - used));
        }
        spaced.push_str(part);
    }
    spaced
}
