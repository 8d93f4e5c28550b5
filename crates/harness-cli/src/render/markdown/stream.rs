//! Text that arrives in pieces, cut into blocks as soon as their ends are known.
//!
//! Every decision is made at the end of a line, or where a line or a block becomes too long, and from the
//! text up to there alone. So it does not matter how the text was cut into pieces, and each byte is parsed
//! once to become final. The items of a list at the top level count as blocks of their own; fenced code
//! there is final line by line.

use super::definitions::Definitions;
use super::looks::Looks;
use super::render::{Page, render};
use super::scan::{self, Fence, HtmlEnd, Marker};
use super::{Line, Styling, code};

/// The narrowest terminal that text is laid out for.
const LEAST_WIDTH: usize = 12;

/// The longest block, in bytes. What would be longer is shown as several.
const LONGEST_BLOCK: usize = 16 * 1024;

/// The longest line, in bytes. What would be longer is read as several.
const LONGEST_LINE: usize = 8 * 1024;

/// Markdown that arrives in pieces of any length. What is final is handed out once; what may still change can
/// be looked at again and again. However the text is cut into pieces, the final lines are the same.
#[derive(Clone, Debug)]
pub(crate) struct MarkdownStream {
    width: usize,
    looks: Looks,
    /// The line that is not whole yet.
    line: String,
    /// Whether the last character ended a line in the way that a second one may belong to.
    after_return: bool,
    /// Whether the beginning of the line was taken already, because it is too long.
    inside_line: bool,
    open: Open,
    /// The text of the open block, unless it is code.
    source: String,
    /// The list that the last block was an item of: its sign, and the number of its next item.
    list: Option<(char, u64)>,
    /// The number of the item that is open.
    number: Option<u64>,
    /// Whether an empty line ended what the open block has so far.
    blank: bool,
    /// Whether the block that is open, or the next one, follows the lines before without a gap.
    joined: bool,
    /// The head of the table that goes on, in the open block.
    table_head: bool,
    has_lines: bool,
    definitions: Definitions,
    /// The bytes that went through the parser.
    #[cfg(test)]
    pub(super) parsed: usize,
}

/// What the next line may belong to.
#[derive(Clone, Debug)]
enum Open {
    Nothing,
    /// Fenced code, whose lines are shown at once.
    Code(Fence),
    /// A paragraph, or what begins like one: a table, a heading that is underlined, definitions.
    Text,
    Quote,
    Item(Marker),
    Indented,
    Html(HtmlEnd),
}

/// What a line means to the open block.
enum Fate {
    /// It belongs to it.
    Inside,
    /// It belongs to it and ends it.
    Last,
    /// It ends it without a trace.
    Between,
    /// It begins another block.
    Next,
}

impl MarkdownStream {
    /// Lines of at most `width` columns, and of 12 where the terminal has fewer.
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
            has_lines: false,
            definitions: Definitions::default(),
            #[cfg(test)]
            parsed: 0,
        }
    }

    /// Takes more of the text; gives the lines that will not change any more.
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

    /// The lines of what may still change, as they would be if the text ended here. They follow the lines that
    /// are final.
    pub(crate) fn partial(&self) -> Vec<Line> {
        let mut now = self.clone();
        let undecided = match &now.open {
            Open::Code(fence) => fence.may_be_closed_by(&now.line),
            // The first characters of an item would make a heading of the paragraph above.
            Open::Text => scan::is_underline(&now.line),
            Open::Nothing | Open::Quote | Open::Item(_) | Open::Indented | Open::Html(_) => false,
        };
        if undecided {
            now.line.clear();
        }
        now.finish()
    }

    /// The last lines.
    pub(crate) fn finish(mut self) -> Vec<Line> {
        let mut out = Vec::new();
        if !self.line.is_empty() {
            self.end_line(&mut out);
        }
        self.close(&mut out);
        out
    }

    /// Another width for the lines that are not final yet.
    pub(crate) fn set_width(&mut self, width: usize) {
        self.width = width.max(LEAST_WIDTH);
    }

    /// Adds to the line; one that becomes too long is taken in parts.
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

    /// Takes the line so far, which no more fits into, up to its last space.
    fn take_part(&mut self, out: &mut Vec<Line>) {
        let end = self.line.rfind(' ').filter(|at| *at > LONGEST_LINE / 2).unwrap_or(self.line.len());
        let rest = self.line.split_off(end);
        let part = std::mem::replace(&mut self.line, rest);
        self.take(&part, out);
        if !matches!(self.open, Open::Code(_)) {
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

    /// Takes a line, or a part of one that is too long.
    fn take(&mut self, line: &str, out: &mut Vec<Line>) {
        match self.fate(line) {
            Fate::Inside if matches!(self.open, Open::Code(_)) => self.code(line, out),
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

    /// What a line means to the open block.
    fn fate(&self, line: &str) -> Fate {
        let is_blank = scan::is_blank(line);
        let inside_unless = |ends: bool| if ends { Fate::Next } else { Fate::Inside };
        match &self.open {
            _ if self.inside_line => Fate::Inside,
            Open::Nothing => Fate::Next,
            Open::Code(fence) if fence.is_closed_by(line) => Fate::Between,
            Open::Code(_) => Fate::Inside,
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

    /// Begins the block of a line.
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
            self.open = Open::Code(fence);
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

    /// Whether an item goes on with the list before it; keeps the place in the list.
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

    /// Adds a line to the open block, or begins another one when it would be too long.
    fn append(&mut self, line: &str, out: &mut Vec<Line>) {
        if self.source.len() + line.len() >= LONGEST_BLOCK {
            self.split(out);
        }
        self.blank = scan::is_blank(line);
        self.source.push_str(line);
        self.source.push('\n');
    }

    /// Shows a block that is too long, and goes on with it as a new one: rows of a table keep their head, what
    /// belongs to an item its marker.
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
            Open::Nothing | Open::Code(_) | Open::Text | Open::Quote | Open::Indented | Open::Html(_) => {
                String::new()
            }
        };
        self.open = open;
    }

    /// Shows a line of fenced code.
    fn code(&mut self, line: &str, out: &mut Vec<Line>) {
        let Open::Code(fence) = &self.open else { return };
        let inside = if self.inside_line { line } else { scan::outdented(line, fence.columns) };
        out.extend(code::lines(inside, self.inside_line, self.looks, self.width));
    }

    /// Shows the open block, which has ended.
    fn close(&mut self, out: &mut Vec<Line>) {
        let open = std::mem::replace(&mut self.open, Open::Nothing);
        let source = std::mem::take(&mut self.source);
        if matches!(open, Open::Code(_)) {
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
}
