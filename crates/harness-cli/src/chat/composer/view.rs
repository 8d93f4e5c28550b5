//! Layout of the editor for a number of columns and rows.

use unicode_segmentation::UnicodeSegmentation as _;

use super::View;
use crate::render::line::{Line, Look, Text, clean, fitted, width};
use crate::render::{BOLD, DIM};

/// Width of tab stops in columns.
const TAB: usize = 4;

/// Rows of candidates below the text.
const CANDIDATE_ROWS: usize = 3;

/// One line of the text, wrapped into rows.
struct Rows {
    rows: Vec<Line>,
    /// Row and column of the cursor, if it is on the line.
    cursor: Option<(usize, usize)>,
}

/// Rows around the cursor.
pub(super) fn view(text: &str, cursor: usize, columns: usize, most_rows: usize) -> View {
    let columns = columns.max(2);
    let most_rows = most_rows.max(1);
    let start = text.get(..cursor).and_then(|before| before.rfind('\n')).map_or(0, |at| at + 1);
    let (above, rest) = text.split_at_checked(start).unwrap_or((text, ""));
    let mut below = rest.split('\n');
    let here = rows(below.next().unwrap_or_default(), Some(cursor - start), columns);
    let (row, column) = here.cursor.unwrap_or((0, 0));
    let mut all = here.rows;
    let mut row = row;
    for line in above.strip_suffix('\n').iter().flat_map(|above| above.rsplit('\n')) {
        if row >= most_rows {
            break;
        }
        let mut before = rows(line, None, columns).rows;
        row += before.len();
        before.append(&mut all);
        all = before;
    }
    for line in below {
        if all.len() >= row + most_rows {
            break;
        }
        all.extend(rows(line, None, columns).rows);
    }
    // As many rows before the cursor as behind it, and more where the others are few.
    let first = row.saturating_sub(most_rows / 2).min(all.len().saturating_sub(most_rows));
    let shown = all.into_iter().skip(first).take(most_rows).collect();
    View { rows: shown, cursor: (row - first, column), below: Vec::new() }
}

fn rows(line: &str, cursor: Option<usize>, columns: usize) -> Rows {
    let look = Look::default();
    let mut rows = Vec::new();
    let mut row = Line::new();
    let mut used = 0;
    let mut place = None;
    for (at, grapheme) in line.grapheme_indices(true) {
        let is_tab = grapheme == "\t";
        let shown = clean(grapheme);
        let needed = if is_tab { TAB - used % TAB } else { width(&shown) }.min(columns);
        // The cursor needs a column even before what takes none.
        let is_here = cursor == Some(at);
        if used + needed.max(usize::from(is_here)) > columns {
            rows.push(std::mem::take(&mut row));
            used = 0;
        }
        if is_here {
            place = Some((rows.len(), used));
        }
        if is_tab {
            row.pad(needed);
        } else if width(&shown) <= columns {
            row.push(&shown, &look);
        } else {
            row.push(&char::REPLACEMENT_CHARACTER.to_string(), &look);
        }
        used += needed;
    }
    if cursor.is_some() && place.is_none() {
        if used >= columns {
            rows.push(std::mem::take(&mut row));
            used = 0;
        }
        place = Some((rows.len(), used));
    }
    rows.push(row);
    Rows { rows, cursor: place }
}

/// The search line.
pub(super) fn searching(query: &str, failed: bool, columns: usize) -> Line {
    let what = if failed { "history, not found: " } else { "history: " };
    let mut text = Text::default();
    text.push(what, &Look::of(DIM));
    text.push(query, &Look::default());
    text.chop(columns).into_iter().next().unwrap_or_default()
}

/// Candidates of a completion in rows, around the selected one.
pub(super) fn candidates(all: &[String], chosen: Option<usize>, columns: usize) -> Vec<Line> {
    let mut rows: Vec<Line> = Vec::new();
    let mut row = Line::new();
    let mut chosen_row = 0;
    for (number, candidate) in all.iter().enumerate() {
        let is_chosen = chosen == Some(number);
        let (shown, style) =
            if is_chosen { (format!("[{candidate}]"), BOLD) } else { (format!(" {candidate} "), DIM) };
        let cell = fitted(&shown, columns, &Look::of(style));
        if !row.is_empty() && row.width() + cell.width() > columns {
            rows.push(std::mem::take(&mut row));
        }
        if is_chosen {
            chosen_row = rows.len();
        }
        row.append(cell);
    }
    rows.push(row);
    let first = (chosen_row + 1).saturating_sub(CANDIDATE_ROWS);
    rows.into_iter().skip(first).take(CANDIDATE_ROWS).collect()
}
