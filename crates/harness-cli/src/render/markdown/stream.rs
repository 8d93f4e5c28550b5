//! Streaming Markdown, split into blocks as soon as their ends are known.
//!
//! Decisions are made only at the end of a line, or when a line or a block becomes too long, and only from the text
//! before that point. The chunks of the stream therefore do not affect the result, and each byte is parsed once to
//! become final. Items of a top-level list count as separate blocks; top-level fenced code is final line by line, and
//! each of its lines is highlighted once to become final. Code inside of other blocks is highlighted when its block is
//! final.

use super::code::Code;
use super::definitions::Definitions;
use super::looks::Looks;
use super::render::{Page, render};
use super::scan::{self, Fence, HtmlEnd, Marker};
use super::{Line, Styling, code};

/// Minimum width of the layout.
const LEAST_WIDTH: usize = 12;

/// Maximum size of a block in bytes. Longer ones are split.
const LONGEST_BLOCK: usize = 16 * 1024;

/// Maximum length of a line in bytes. Longer ones are split.
const LONGEST_LINE: usize = 8 * 1024;

/// Markdown in chunks of any length. Final lines are returned once; lines that may still change can be rendered
/// repeatedly. The final lines do not depend on the chunks.
#[derive(Clone, Debug)]
pub(crate) struct MarkdownStream {
    width: usize,
    looks: Looks,
    /// The incomplete line.
    line: String,
    /// Whether the last character was a carriage return, which a line feed may follow.
    after_return: bool,
    /// Whether the start of the line was already processed because the line is too long.
    inside_line: bool,
    open: Open,
    /// Text of the open block, unless it is code.
    source: String,
    /// List of the last item: its marker, and the number of its next item.
    list: Option<(char, u64)>,
    /// Number of the open item.
    number: Option<u64>,
    /// Whether an empty line ended the open block so far.
    blank: bool,
    /// Whether the open or next block follows the previous lines without a gap.
    joined: bool,
    /// Head of the continued table in the open block.
    table_head: bool,
    /// Whether its lines may still change.
    is_partial: bool,
    has_lines: bool,
    definitions: Definitions,
    /// Bytes that went through the parser.
    #[cfg(test)]
    pub(super) parsed: usize,
}

/// Context of the next line.
#[derive(Clone, Debug)]
enum Open {
    Nothing,
    /// Fenced code, whose lines are shown immediately.
    Code(Fence, Code),
    /// A paragraph, or what starts like one: a table, a setext heading, definitions.
    Text,
    Quote,
    Item(Marker),
    Indented,
    Html(HtmlEnd),
}

/// Effect of a line on the open block.
enum Fate {
    /// It belongs to the block.
    Inside,
    /// It belongs to the block and ends it.
    Last,
    /// It ends the block and is dropped.
    Between,
    /// It starts another block.
    Next,
}

impl MarkdownStream {
    /// Creates a stream with lines of at most `width` columns, at least 12.
    pub(crate) fn new(width: usize, styling: Styling) -> Self {
        Self {
            width: width.max(LEAST_WIDTH),
            looks: Looks(styling),
            line: String::new(),
            after_return: false,
            inside_line: false,
            open: Open::Nothing,
            source: String::new(),
            list: None,
            number: None,
            blank: false,
            joined: false,
            table_head: false,
            is_partial: false,
            has_lines: false,
            definitions: Definitions::default(),
            #[cfg(test)]
            parsed: 0,
        }
    }

    /// Adds text; returns the lines that are final.
    pub(crate) fn push(&mut self, text: &str) -> Vec<Line> {
        let mut out = Vec::new();
        for piece in text.split_inclusive(['\n', '\r']) {
            let content = piece.trim_end_matches(['\n', '\r']);
            self.add(content, &mut out);
            if content.len() == piece.len() {
                continue;
            }
            let is_second = content.is_empty() && self.after_return && piece == "\n";
            self.after_return = piece.ends_with('\r');
            if !is_second {
                self.end_line(&mut out);
            }
        }
        out
    }

    /// Renders the lines that may still change, as if the text ended here. They follow the final lines.
    pub(crate) fn partial(&self) -> Vec<Line> {
        let mut now = Self { is_partial: true, ..self.clone() };
        let undecided = match &now.open {
            Open::Code(fence, _) => fence.may_be_closed_by(&now.line),
            // The first characters of an item would make a heading of the paragraph above.
            Open::Text => scan::is_underline(&now.line),
            Open::Nothing | Open::Quote | Open::Item(_) | Open::Indented | Open::Html(_) => false,
        };
        if undecided {
            now.line.clear();
        }
        now.finish()
    }

    /// Returns the last lines.
    pub(crate) fn finish(mut self) -> Vec<Line> {
        let mut out = Vec::new();
        if !self.line.is_empty() {
            self.end_line(&mut out);
        }
        self.close(&mut out);
        out
    }

    /// Sets the width of the lines that are not final yet.
    pub(crate) fn set_width(&mut self, width: usize) {
        self.width = width.max(LEAST_WIDTH);
    }

    /// Extends the line; one that becomes too long is processed in parts.
    fn add(&mut self, mut text: &str, out: &mut Vec<Line>) {
        if !text.is_empty() {
            self.after_return = false;
        }
        while self.line.len() + text.len() > LONGEST_LINE {
            let room = text.floor_char_boundary(LONGEST_LINE - self.line.len());
            let (now, later) = text.split_at(room);
            self.line.push_str(now);
            self.take_part(out);
            text = later;
        }
        self.line.push_str(text);
    }

    /// Processes the full line up to its last space.
    fn take_part(&mut self, out: &mut Vec<Line>) {
        let end = self.line.rfind(' ').filter(|at| *at > LONGEST_LINE / 2).unwrap_or(self.line.len());
        let rest = self.line.split_off(end);
        let part = std::mem::replace(&mut self.line, rest);
        self.take(&part, out);
        if !matches!(self.open, Open::Code(..)) {
            self.close(out);
            self.open = Open::Text;
            self.joined = true;
        }
        self.inside_line = true;
    }

    fn end_line(&mut self, out: &mut Vec<Line>) {
        let line = std::mem::take(&mut self.line);
        self.take(&line, out);
        self.inside_line = false;
    }

    /// Processes a line, or a part of a long one.
    fn take(&mut self, line: &str, out: &mut Vec<Line>) {
        match self.fate(line) {
            Fate::Inside if matches!(self.open, Open::Code(..)) => self.code(line, out),
            Fate::Inside => self.append(line, out),
            Fate::Last => {
                self.append(line, out);
                self.close(out);
            }
            Fate::Between => self.close(out),
            Fate::Next => {
                self.close(out);
                self.begin(line, out);
            }
        }
    }

    /// Determines the effect of a line on the open block.
    fn fate(&self, line: &str) -> Fate {
        let is_blank = scan::is_blank(line);
        let inside_unless = |ends: bool| if ends { Fate::Next } else { Fate::Inside };
        match &self.open {
            _ if self.inside_line => Fate::Inside,
            Open::Nothing => Fate::Next,
            Open::Code(fence, _) if fence.is_closed_by(line) => Fate::Between,
            Open::Code(..) => Fate::Inside,
            Open::Text | Open::Quote if is_blank => Fate::Between,
            // Below a table it may be a row, or a line across the page.
            Open::Text if scan::is_underline(line) && self.source.lines().any(scan::is_table_rule) => {
                Fate::Inside
            }
            Open::Text if scan::is_underline(line) => Fate::Last,
            Open::Text => inside_unless(scan::interrupts(line)),
            Open::Quote => inside_unless(!scan::is_quote(line) && scan::interrupts(line)),
            Open::Indented => inside_unless(!is_blank && scan::indented(line).0 < 4),
            Open::Html(HtmlEnd::Blank) if is_blank => Fate::Between,
            Open::Html(end) if end.is_in(line) => Fate::Last,
            Open::Html(_) => Fate::Inside,
            Open::Item(marker) => {
                let belongs = is_blank || scan::indented(line).0 >= marker.content;
                let has_text = !marker.is_empty || self.source.trim_end().contains('\n');
                let begins = self.blank || !has_text || Marker::of(line).is_some() || scan::interrupts(line);
                inside_unless(!belongs && begins)
            }
        }
    }

    /// Starts the block of a line.
    fn begin(&mut self, line: &str, out: &mut Vec<Line>) {
        if scan::is_blank(line) {
            return;
        }
        let single = scan::is_heading(line) || scan::is_rule(line);
        let marker = if single { None } else { Marker::of(line) };
        let continues = self.list_goes_on(marker.as_ref());
        if let Some((fence, info)) = Fence::of(line) {
            self.gap(out);
            self.has_lines = true;
            out.extend(code::opening(info, self.looks, self.width));
            self.open = Open::Code(fence, Code::of(info, self.looks));
            return;
        }
        self.open = match (marker, HtmlEnd::of(line)) {
            (Some(marker), _) => {
                self.joined |= continues && !self.blank;
                Open::Item(marker)
            }
            (None, Some(end)) => Open::Html(end),
            (None, None) if scan::is_quote(line) => Open::Quote,
            (None, None) if !single && scan::indented(line).0 >= 4 => Open::Indented,
            (None, None) => Open::Text,
        };
        self.append(line, out);
        let ended = matches!(self.open, Open::Html(end) if end.is_in(line));
        if single || ended {
            self.close(out);
        }
    }

    /// Whether an item continues the previous list; updates the position in the list.
    fn list_goes_on(&mut self, marker: Option<&Marker>) -> bool {
        let Some(marker) = marker else {
            self.list = None;
            self.number = None;
            return false;
        };
        let next = self.list.filter(|(sign, _)| *sign == marker.sign).map(|(_, next)| next);
        self.number = marker.number.map(|number| next.unwrap_or(number));
        self.list = Some((marker.sign, self.number.unwrap_or(0).saturating_add(1)));
        next.is_some()
    }

    /// Adds a line to the open block, which is split first if it would become too long.
    fn append(&mut self, line: &str, out: &mut Vec<Line>) {
        if self.source.len() + line.len() >= LONGEST_BLOCK {
            self.split(out);
        }
        self.blank = scan::is_blank(line);
        self.source.push_str(line);
        self.source.push('\n');
    }

    /// Shows a block that is too long and continues it as a new one: tables repeat their head, items keep their
    /// indentation.
    fn split(&mut self, out: &mut Vec<Line>) {
        let head: String = self.source.split_inclusive('\n').take(2).collect();
        let is_table = matches!(self.open, Open::Text)
            && head.lines().nth(1).is_some_and(scan::is_table_rule)
            && head.len() < LONGEST_BLOCK / 2;
        let number = self.number;
        let open = std::mem::replace(&mut self.open, Open::Text);
        self.close(out);
        self.joined = true;
        self.table_head = is_table;
        self.number = number;
        self.source = match &open {
            Open::Text if is_table => head,
            Open::Item(Marker { sign, number, .. }) => {
                number.map(|number| number.to_string()).unwrap_or_default() + &format!("{sign}\n")
            }
            Open::Nothing | Open::Code(..) | Open::Text | Open::Quote | Open::Indented | Open::Html(_) => {
                String::new()
            }
        };
        self.open = open;
    }

    /// Shows a line of fenced code.
    fn code(&mut self, line: &str, out: &mut Vec<Line>) {
        let Open::Code(fence, code) = &mut self.open else { return };
        let inside = if self.inside_line { line } else { scan::outdented(line, fence.columns) };
        out.extend(code.lines(inside, self.inside_line, self.width));
    }

    /// Shows the finished block.
    fn close(&mut self, out: &mut Vec<Line>) {
        let open = std::mem::replace(&mut self.open, Open::Nothing);
        let source = std::mem::take(&mut self.source);
        if matches!(open, Open::Code(..)) {
            out.extend(code::closing(self.looks));
            self.joined = false;
            return;
        }
        if source.is_empty() {
            self.joined = false;
            return;
        }
        #[cfg(test)]
        {
            self.parsed += source.len();
        }
        let page = Page {
            columns: self.width,
            looks: self.looks,
            definitions: &self.definitions,
            number: self.number.take(),
            without_head: std::mem::take(&mut self.table_head),
            highlights: !self.is_partial,
        };
        let (lines, definitions) = render(&source, &page);
        self.definitions = definitions;
        if !lines.is_empty() {
            self.gap(out);
            self.has_lines = true;
            out.extend(lines);
        }
        self.joined = false;
    }

    /// The line between two blocks.
    fn gap(&mut self, out: &mut Vec<Line>) {
        if self.has_lines && !self.joined {
            out.push(Line::new());
        }
        self.joined = false;
    }

    /// Bytes of the open code block that went through the highlighter.
    #[cfg(test)]
    pub(super) fn highlighted(&self) -> usize {
        if let Open::Code(_, code) = &self.open { code.parsed() } else { 0 }
    }
}
