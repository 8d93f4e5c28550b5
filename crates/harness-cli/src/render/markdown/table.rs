//! Tables, laid out for a width.

use pulldown_cmark::Alignment;

use super::looks::Looks;
use super::{Line, Text};

/// Separator of columns.
const BETWEEN: &str = " │ ";

/// Width of [`BETWEEN`].
const GAP: usize = 3;

/// Minimum width of a readable column.
const LEAST: usize = 4;

/// Maximum number of columns; further cells of a row are joined to the last one.
const MOST_CELLS: usize = 64;

/// A table: its head and its rows.
#[derive(Debug, Default)]
pub(super) struct Table {
    aligned: Vec<Alignment>,
    /// Rows; the first one is the head.
    rows: Vec<Vec<Text>>,
}

impl Table {
    pub(super) fn new(aligned: Vec<Alignment>) -> Self {
        Self { aligned, rows: Vec::new() }
    }

    pub(super) fn begin_row(&mut self) {
        self.rows.push(Vec::new());
    }

    pub(super) fn add(&mut self, cell: Text) {
        let Some(row) = self.rows.last_mut() else { return };
        let is_full = row.len() >= MOST_CELLS;
        match row.last_mut().filter(|_| is_full) {
            Some(last) => last.join(cell),
            None => row.push(cell),
        }
    }

    /// Lines of the table: side by side if they fit, otherwise one cell below the other.
    pub(super) fn lines(&self, columns: usize, with_head: bool, looks: Looks) -> Vec<Line> {
        let Some((head, rows)) = self.rows.split_first() else { return Vec::new() };
        match shares(&self.natural(), columns) {
            Some(widths) => self.grid(head, rows, &widths, with_head, looks),
            None => stacked(head, rows, columns),
        }
    }

    /// Natural widths of the columns.
    fn natural(&self) -> Vec<usize> {
        let mut widths = Vec::new();
        for row in &self.rows {
            widths.resize(widths.len().max(row.len()), 1);
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = cell.widest().max(*width);
            }
        }
        widths
    }

    fn grid(
        &self,
        head: &[Text],
        rows: &[Vec<Text>],
        widths: &[usize],
        with_head: bool,
        looks: Looks,
    ) -> Vec<Line> {
        let rule = || {
            let parts: Vec<String> = widths.iter().map(|width| "─".repeat(*width)).collect();
            let mut line = Line::new();
            line.push(&parts.join("─┼─"), &looks.dim());
            line
        };
        let mut lines = Vec::new();
        if with_head {
            lines.extend(self.row(head, widths, looks));
            lines.push(rule());
        }
        let rows: Vec<Vec<Line>> = rows.iter().map(|row| self.row(row, widths, looks)).collect();
        // Rows of several lines would run into each other.
        let ruled = rows.iter().any(|row| row.len() > 1);
        for (number, row) in rows.into_iter().enumerate() {
            if ruled && number > 0 {
                lines.push(rule());
            }
            lines.extend(row);
        }
        lines
    }

    fn row(&self, cells: &[Text], widths: &[usize], looks: Looks) -> Vec<Line> {
        let wrapped: Vec<Vec<Line>> =
            cells.iter().zip(widths).map(|(cell, width)| cell.wrap(*width)).collect();
        let height = wrapped.iter().map(Vec::len).max().unwrap_or(1);
        let one = |number: usize| {
            let mut line = Line::new();
            for (column, width) in widths.iter().enumerate() {
                if column > 0 {
                    line.push(BETWEEN, &looks.dim());
                }
                let part =
                    wrapped.get(column).and_then(|lines| lines.get(number)).cloned().unwrap_or_default();
                let free = width.saturating_sub(part.width());
                let before = match self.aligned.get(column) {
                    Some(Alignment::Right) => free,
                    Some(Alignment::Center) => free / 2,
                    Some(Alignment::Left | Alignment::None) | None => 0,
                };
                line.pad(before);
                line.append(part);
                line.pad(free - before);
            }
            line.trim_end();
            line
        };
        (0..height).map(one).collect()
    }
}

/// Widths of the columns: the natural width if it is small, otherwise an equal share of the rest. `None` if the
/// share is too narrow to read.
fn shares(natural: &[usize], columns: usize) -> Option<Vec<usize>> {
    let room = columns.checked_sub(GAP * natural.len().saturating_sub(1))?;
    if natural.iter().map(|width| (*width).min(LEAST)).sum::<usize>() > room {
        return None;
    }
    let mut order: Vec<(usize, usize)> = natural.iter().copied().enumerate().collect();
    order.sort_by_key(|(_, width)| *width);
    let mut widths = natural.to_vec();
    let mut left = room;
    let mut waiting = order.len();
    for (column, width) in order {
        let share = width.min(left / waiting);
        if let Some(slot) = widths.get_mut(column) {
            *slot = share;
        }
        left -= share;
        waiting -= 1;
    }
    Some(widths)
}

/// Each row as lines of `name: value`.
fn stacked(head: &[Text], rows: &[Vec<Text>], columns: usize) -> Vec<Line> {
    let mut lines = Vec::new();
    for (number, row) in rows.iter().enumerate() {
        if number > 0 {
            lines.push(Line::new());
        }
        for (name, cell) in head.iter().zip(row).filter(|(name, cell)| !name.is_empty() || !cell.is_empty()) {
            let mut text = name.clone();
            text.push(": ", &super::Look::default());
            text.join(cell.clone());
            lines.extend(text.wrap(columns));
        }
    }
    if rows.is_empty() {
        lines.extend(head.iter().flat_map(|name| name.wrap(columns)));
    }
    lines
}
