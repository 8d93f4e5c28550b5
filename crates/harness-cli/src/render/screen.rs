//! Drawing on a terminal: finished lines, which scroll, and below them a live area that is redrawn in place. There
//! is no alternate screen, so the conversation stays in the scrollback.

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::io::{self, Write};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::line::{Line, Styling};
use super::picture::REMOVE;

/// The live area.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Frame {
    /// Rows; none wider than the terminal.
    pub(crate) rows: Vec<Line>,
    /// Row and column of the cursor.
    pub(crate) cursor: (usize, usize),
}

/// Synchronized output: terminals that support it show everything between these two at once.
const BEGIN: &str = "\x1b[?2026h\x1b[?25l";
const END: &str = "\x1b[?25h\x1b[?2026l";

/// Maximum number of finished lines whose place is known: more than a terminal shows.
const MOST_ABOVE: usize = 1_000;

/// A row on the terminal.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Row {
    text: String,
    width: usize,
}

/// Creates a screen on a terminal whose cursor is at the start of an empty line.
#[derive(Debug)]
pub(crate) struct Screen<W> {
    out: W,
    styling: Styling,
    shown: Vec<Row>,
    cursor: (usize, usize),
    columns: usize,
    /// Whether images are among the finished lines.
    has_pictures: bool,
    /// Widths of the finished lines that are directly above the live area.
    above: VecDeque<usize>,
}

impl<W: Write> Screen<W> {
    pub(crate) fn new(out: W, styling: Styling) -> Self {
        Self {
            out,
            styling,
            shown: Vec::new(),
            cursor: (0, 0),
            columns: 0,
            has_pictures: false,
            above: VecDeque::new(),
        }
    }

    /// Adds finished lines above the live area and draws the live area.
    pub(crate) fn draw(&mut self, finished: &[Line], frame: &Frame, columns: usize) -> io::Result<()> {
        let rows: Vec<Row> = frame.rows.iter().map(|line| self.row(line)).collect();
        let same_place = finished.is_empty() && columns == self.columns && rows.len() == self.shown.len();
        if same_place && rows == self.shown && frame.cursor == self.cursor {
            return Ok(());
        }
        let mut text = String::from(BEGIN);
        if same_place {
            self.redraw(&mut text, &rows);
        } else {
            self.erase(&mut text, columns);
            self.write(&mut text, finished, &rows);
        }
        self.show(text, rows, frame, columns)
    }

    /// Replaces the finished lines on the terminal, whose width has changed, by the last of these lines that fit.
    pub(crate) fn reflow(
        &mut self,
        finished: &[Line],
        frame: &Frame,
        (columns, height): (usize, usize),
    ) -> io::Result<()> {
        let rows: Vec<Row> = frame.rows.iter().map(|line| self.row(line)).collect();
        let mut text = String::from(BEGIN);
        if std::mem::take(&mut self.has_pictures) {
            text.push_str(REMOVE);
        }
        // A terminal stops at its top.
        move_up(&mut text, self.above.iter().map(|width| height_of(*width, columns)).sum());
        self.erase(&mut text, columns);
        self.above.clear();
        let fitting = height.saturating_sub(rows.len());
        let last = finished.get(finished.len().saturating_sub(fitting)..).unwrap_or_default();
        self.write(&mut text, last, &rows);
        self.show(text, rows, frame, columns)
    }

    /// Leaves the finished lines as they are, whatever width the terminal will have.
    pub(crate) fn settle(&mut self) {
        self.above.clear();
    }

    /// Adds finished lines and the rows of the live area.
    fn write(&mut self, text: &mut String, finished: &[Line], rows: &[Row]) {
        for line in finished {
            let row = self.row(line);
            self.has_pictures |= line.is_drawing();
            text.push_str(&row.text);
            text.push_str("\r\n");
            self.above.push_back(row.width);
        }
        self.above.drain(..self.above.len().saturating_sub(MOST_ABOVE));
        for (number, row) in rows.iter().enumerate() {
            text.push_str(if number > 0 { "\r\n" } else { "" });
            text.push_str(&row.text);
        }
    }

    /// Places the cursor, which is in the last row, and writes everything.
    fn show(&mut self, mut text: String, rows: Vec<Row>, frame: &Frame, columns: usize) -> io::Result<()> {
        move_up(&mut text, rows.len().saturating_sub(1).saturating_sub(frame.cursor.0));
        text.push('\r');
        move_right(&mut text, frame.cursor.1);
        text.push_str(END);
        (self.shown, self.cursor, self.columns) = (rows, frame.cursor, columns);
        self.out.write_all(text.as_bytes())?;
        self.out.flush()
    }

    /// Removes the live area; the cursor is at its start.
    pub(crate) fn clear(&mut self, columns: usize) -> io::Result<()> {
        let mut text = String::new();
        self.erase(&mut text, columns);
        (self.shown, self.cursor) = (Vec::new(), (0, 0));
        self.out.write_all(text.as_bytes())?;
        self.out.flush()
    }

    /// Writes a text unchanged.
    pub(super) fn print(&mut self, text: &str) -> io::Result<()> {
        self.out.write_all(text.as_bytes())?;
        self.out.flush()
    }

    /// Rings the bell and sends a notification (OSC 9), which terminals that do not know it ignore. The text must be plain.
    pub(crate) fn call_user(&mut self, text: &str) -> io::Result<()> {
        self.out.write_all(format!("\x1b]9;{text}\x1b\\\x07").as_bytes())?;
        self.out.flush()
    }

    /// Copies a text to the clipboard (OSC 52), which terminals that do not know it ignore.
    pub(crate) fn copy(&mut self, text: &str) -> io::Result<()> {
        self.out.write_all(format!("\x1b]52;c;{}\x1b\\", STANDARD.encode(text)).as_bytes())?;
        self.out.flush()
    }

    /// Clears the terminal; the next draw starts at its top.
    pub(crate) fn wipe(&mut self) -> io::Result<()> {
        (self.shown, self.cursor) = (Vec::new(), (0, 0));
        self.settle();
        self.out.write_all(b"\x1b[2J\x1b[H")
    }

    fn row(&self, line: &Line) -> Row {
        let text = match self.styling {
            Styling::Plain => line.plain(),
            Styling::Colour => line.to_ansi(),
        };
        Row { text, width: line.width() }
    }

    /// Moves to the start of the live area and clears everything below. A narrower terminal has wrapped rows, so the area
    /// is higher than before.
    fn erase(&self, text: &mut String, columns: usize) {
        let above = self.shown.iter().take(self.cursor.0).map(|row| height_of(row.width, columns));
        let columns = columns.max(1);
        move_up(text, above.sum::<usize>() + self.cursor.1.min(columns * 8) / columns);
        text.push_str("\r\x1b[J");
    }

    /// Draws the changed rows and ends in the last one.
    fn redraw(&self, text: &mut String, rows: &[Row]) {
        let mut at = self.cursor.0;
        for (number, (row, shown)) in rows.iter().zip(&self.shown).enumerate() {
            if row == shown {
                continue;
            }
            go(text, at, number);
            text.push_str("\r\x1b[2K");
            text.push_str(&row.text);
            at = number;
        }
        go(text, at, rows.len().saturating_sub(1));
    }
}

/// Rows of a line that a terminal has wrapped.
fn height_of(width: usize, columns: usize) -> usize {
    width.div_ceil(columns.max(1)).max(1)
}

fn go(text: &mut String, from: usize, to: usize) {
    if to < from {
        move_up(text, from - to);
    } else if to > from {
        let _ = write!(text, "\x1b[{}B", to - from);
    }
}

fn move_up(text: &mut String, rows: usize) {
    if rows > 0 {
        let _ = write!(text, "\x1b[{rows}A");
    }
}

fn move_right(text: &mut String, columns: usize) {
    if columns > 0 {
        let _ = write!(text, "\x1b[{columns}C");
    }
}

#[cfg(test)]
impl Screen<Vec<u8>> {
    /// Output since the last call.
    pub(crate) fn take_bytes(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Draws steps of finished lines and live rows, and shows the screen with the cursor as `▏`.
    #[track_caller]
    fn check(steps: &[(&[&str], &[&str])], expected: &str) {
        let line = |text: &&str| {
            let mut line = Line::new();
            line.push_plain(text);
            line
        };
        let mut terminal = vt100::Parser::new(6, 12, 20);
        let mut screen = Screen::new(Vec::new(), Styling::Plain);
        for (finished, rows) in steps {
            let finished: Vec<Line> = finished.iter().map(line).collect();
            let rows: Vec<Line> = rows.iter().map(line).collect();
            let cursor = (rows.len().saturating_sub(1), rows.last().map_or(0, Line::width));
            screen.draw(&finished, &Frame { rows, cursor }, 12).unwrap();
            terminal.process(&std::mem::take(&mut screen.out));
        }
        let (row, column) = terminal.screen().cursor_position();
        let mut rows: Vec<String> = terminal.screen().rows(0, 12).collect();
        let under: &mut String = &mut rows[usize::from(row)];
        let padded = format!("{under:<width$}", width = usize::from(column));
        *under = format!("{padded}▏");
        assert_eq!(rows.join("\n").trim_end(), expected);
    }

    #[test]
    fn finished_lines_stand_above_the_live_area() {
        check(&[(&["one"], &["live", "> a"])], "one\nlive\n> a▏");
        check(&[(&["one"], &["live", "> a"]), (&["two"], &["> ab"])], "one\ntwo\n> ab▏");
    }

    #[test]
    fn rows_that_change_are_drawn_in_their_place() {
        check(&[(&[], &["spin /", "> "]), (&[], &["spin -", "> x"])], "spin -\n> x▏");
        check(&[(&[], &["a", "b", "c"]), (&[], &["a", "B", "c"])], "a\nB\nc▏");
    }

    #[test]
    fn the_live_area_stays_at_the_bottom_of_a_full_terminal() {
        let many = ["1", "2", "3", "4", "5", "6", "7"];
        check(&[(&many, &["live", "> "]), (&["8"], &["> y"])], "4\n5\n6\n7\n8\n> y▏");
    }

    #[test]
    fn copied_text_cannot_end_its_sequence() {
        let mut screen = Screen::new(Vec::new(), Styling::Plain);
        screen.copy("é\u{1b}\\").unwrap();
        assert_eq!(screen.out, b"\x1b]52;c;w6kbXA==\x1b\\");
    }

    #[test]
    fn what_is_cleared_leaves_nothing() {
        let mut terminal = vt100::Parser::new(4, 12, 0);
        let mut screen = Screen::new(Vec::new(), Styling::Plain);
        let row = |text: &str| Line::of(anstyle::Style::new(), text);
        let frame = Frame { rows: vec![row("a"), row("b")], cursor: (0, 1) };
        screen.draw(&[row("kept")], &frame, 12).unwrap();
        screen.clear(12).unwrap();
        terminal.process(&screen.out);
        assert_eq!(terminal.screen().contents(), "kept");
        assert_eq!(terminal.screen().cursor_position(), (1, 0));
    }
}
