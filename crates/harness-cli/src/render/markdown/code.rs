//! Code: shown as it is, only long lines are broken.

use super::looks::Looks;
use super::{Line, Look, Text};

/// What a line that goes on begins with.
const GOES_ON: &str = "↪ ";

/// The columns before code, and of the mark.
const INDENT: usize = 2;

/// The line above a block of code, if there is something to say.
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

/// The line below a block of code, if one is needed.
pub(super) fn closing(looks: Looks) -> Option<Line> {
    (!looks.has_colour()).then(|| {
        let mut line = Line::new();
        line.push_plain("```");
        line
    })
}

/// The lines of one line of code. `goes_on` says that its beginning was shown before.
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

/// Tabs as the spaces up to their stops.
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
