//! Classification of top-level Markdown lines, which finds the end of a block before the next one is read. Ambiguous
//! lines belong to the open block.

/// Columns to the next tab stop.
const TAB: usize = 4;

/// HTML elements that can interrupt a paragraph.
const HTML_BLOCKS: &[&str] = &[
    "address",
    "article",
    "aside",
    "base",
    "basefont",
    "blockquote",
    "body",
    "caption",
    "center",
    "col",
    "colgroup",
    "dd",
    "details",
    "dialog",
    "dir",
    "div",
    "dl",
    "dt",
    "fieldset",
    "figcaption",
    "figure",
    "footer",
    "form",
    "frame",
    "frameset",
    "h1",
    "h2",
    "h3",
    "h4",
    "h5",
    "h6",
    "head",
    "header",
    "hr",
    "html",
    "iframe",
    "legend",
    "li",
    "link",
    "main",
    "menu",
    "menuitem",
    "nav",
    "noframes",
    "ol",
    "optgroup",
    "option",
    "p",
    "param",
    "search",
    "section",
    "summary",
    "table",
    "tbody",
    "td",
    "tfoot",
    "th",
    "thead",
    "title",
    "tr",
    "track",
    "ul",
];

/// Indentation of a line, and the text after it.
pub(super) fn indented(line: &str) -> (usize, &str) {
    let mut columns = 0;
    for (at, c) in line.char_indices() {
        match c {
            ' ' => columns += 1,
            '\t' => columns += TAB - columns % TAB,
            _ => return (columns, line.get(at..).unwrap_or_default()),
        }
    }
    (columns, "")
}

/// The line without its first columns, as far as they are spaces or tabs.
pub(super) fn outdented(line: &str, columns: usize) -> &str {
    let mut passed = 0;
    for (at, c) in line.char_indices() {
        let step = match c {
            ' ' => 1,
            '\t' => TAB - passed % TAB,
            _ => 0,
        };
        if step == 0 || passed + step > columns {
            return line.get(at..).unwrap_or_default();
        }
        passed += step;
    }
    ""
}

pub(super) fn is_blank(line: &str) -> bool {
    indented(line).1.is_empty()
}

/// Text of a line that may start a block other than indented code.
fn start(line: &str) -> Option<&str> {
    let (columns, rest) = indented(line);
    (columns < TAB && !rest.is_empty()).then_some(rest)
}

/// Opening line of fenced code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Fence {
    mark: char,
    length: usize,
    /// Columns removed from the start of each line inside.
    pub(super) columns: usize,
}

impl Fence {
    /// The fence and its info string, which starts with the language.
    pub(super) fn of(line: &str) -> Option<(Self, &str)> {
        let rest = start(line)?;
        let mark = rest.chars().next().filter(|c| matches!(c, '`' | '~'))?;
        let info = rest.trim_start_matches(mark);
        let length = rest.len() - info.len();
        let open = length >= 3 && !(mark == '`' && info.contains('`'));
        open.then(|| (Self { mark, length, columns: indented(line).0 }, info.trim()))
    }

    pub(super) fn is_closed_by(&self, line: &str) -> bool {
        let Some(rest) = start(line) else { return false };
        let behind = rest.trim_start_matches(self.mark);
        rest.len() - behind.len() >= self.length && is_blank(behind)
    }

    /// Whether an incomplete line may become the closing one.
    pub(super) fn may_be_closed_by(&self, line: &str) -> bool {
        start(line).is_some_and(|rest| rest.trim_end().trim_start_matches(self.mark).is_empty())
    }
}

/// A heading with `#`.
pub(super) fn is_heading(line: &str) -> bool {
    let Some(rest) = start(line) else { return false };
    let title = rest.trim_start_matches('#');
    (1..=6).contains(&(rest.len() - title.len())) && (title.is_empty() || title.starts_with([' ', '\t']))
}

/// A thematic break.
pub(super) fn is_rule(line: &str) -> bool {
    let Some(rest) = start(line) else { return false };
    let Some(mark) = rest.chars().next().filter(|c| matches!(c, '*' | '-' | '_')) else { return false };
    rest.chars().all(|c| c == mark || matches!(c, ' ' | '\t'))
        && rest.chars().filter(|c| *c == mark).count() >= 3
}

/// Underline of a setext heading.
pub(super) fn is_underline(line: &str) -> bool {
    let Some(rest) = start(line) else { return false };
    let rest = rest.trim_end_matches([' ', '\t']);
    rest.chars().all(|c| c == '=') || rest.chars().all(|c| c == '-')
}

/// Delimiter row of a table.
pub(super) fn is_table_rule(line: &str) -> bool {
    line.contains('|')
        && line.contains('-')
        && line.chars().all(|c| matches!(c, '|' | '-' | ':' | ' ' | '\t'))
}

pub(super) fn is_quote(line: &str) -> bool {
    start(line).is_some_and(|rest| rest.starts_with('>'))
}

/// Start of a list item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Marker {
    /// Marker of the list; a different one starts a new list.
    pub(super) sign: char,
    /// Number of an ordered item.
    pub(super) number: Option<u64>,
    /// Column from which lines belong to the item.
    pub(super) content: usize,
    /// Whether the item is empty.
    pub(super) is_empty: bool,
}

impl Marker {
    pub(super) fn of(line: &str) -> Option<Self> {
        let (columns, _) = indented(line);
        let rest = start(line)?;
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let number = match digits {
            0 => None,
            1..=9 => Some(rest.get(..digits)?.parse().ok()?),
            _ => return None,
        };
        let sign = rest.get(digits..)?.chars().next()?;
        let known =
            if number.is_some() { matches!(sign, '.' | ')') } else { matches!(sign, '-' | '+' | '*') };
        let behind = rest.get(digits + 1..).filter(|_| known)?;
        let end = columns + digits + 1;
        // Tabs count from the beginning of the line.
        let (content, text) = indented_from(behind, end);
        let spaces = content - end;
        let is_empty = text.is_empty();
        if spaces == 0 && !is_empty {
            return None;
        }
        let content = if is_empty || spaces > TAB { end + 1 } else { content };
        Some(Self { sign, number, content, is_empty })
    }

    /// Whether it can start a list inside a paragraph.
    fn interrupts(&self) -> bool {
        !self.is_empty && self.number.is_none_or(|number| number == 1)
    }
}

fn indented_from(text: &str, mut columns: usize) -> (usize, &str) {
    for (at, c) in text.char_indices() {
        match c {
            ' ' => columns += 1,
            '\t' => columns += TAB - columns % TAB,
            _ => return (columns, text.get(at..).unwrap_or_default()),
        }
    }
    (columns, "")
}

/// End of an HTML block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HtmlEnd {
    /// With the line that contains one of these.
    Holding(&'static [&'static str]),
    /// Before an empty line.
    Blank,
}

impl HtmlEnd {
    /// End condition of the HTML block that the line starts, inside or outside of a paragraph.
    fn inside_paragraph(line: &str) -> Option<Self> {
        let tag = start(line)?.strip_prefix('<')?;
        for (open, end) in [("!--", "-->"), ("?", "?>"), ("![CDATA[", "]]>")] {
            if tag.starts_with(open) {
                return Some(Self::Holding(match end {
                    "-->" => &["-->"],
                    "?>" => &["?>"],
                    _ => &["]]>"],
                }));
            }
        }
        if tag.strip_prefix('!').is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_alphabetic())) {
            return Some(Self::Holding(&[">"]));
        }
        let name = name_of(tag);
        let behind = tag.get(name.len()..)?;
        let ended = behind.is_empty() || behind.starts_with([' ', '\t', '>']);
        if ended && ["pre", "script", "style", "textarea"].iter().any(|raw| name.eq_ignore_ascii_case(raw)) {
            return Some(Self::Holding(&["</pre>", "</script>", "</style>", "</textarea>"]));
        }
        let tag = tag.strip_prefix('/').unwrap_or(tag);
        let name = name_of(tag);
        let behind = tag.get(name.len()..)?;
        let ended = behind.is_empty() || behind.starts_with([' ', '\t', '>']) || behind.starts_with("/>");
        let known = HTML_BLOCKS.iter().any(|block| name.eq_ignore_ascii_case(block));
        (ended && known).then_some(Self::Blank)
    }

    pub(super) fn of(line: &str) -> Option<Self> {
        Self::inside_paragraph(line).or_else(|| {
            let tag = start(line)?.trim_end().strip_prefix('<')?.strip_suffix('>')?;
            let named = tag.trim_start_matches('/').starts_with(|c: char| c.is_ascii_alphabetic());
            (named && !tag.contains(['<', '>'])).then_some(Self::Blank)
        })
    }

    /// Whether the block ends with this line.
    pub(super) fn is_in(self, line: &str) -> bool {
        match self {
            Self::Holding(ends) => {
                let line = line.to_ascii_lowercase();
                ends.iter().any(|end| line.contains(&end.to_ascii_lowercase()))
            }
            Self::Blank => false,
        }
    }
}

fn name_of(tag: &str) -> &str {
    let end = tag.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(tag.len());
    tag.get(..end).unwrap_or_default()
}

/// Whether a line after a paragraph starts another block.
pub(super) fn interrupts(line: &str) -> bool {
    is_heading(line)
        || is_rule(line)
        || is_quote(line)
        || Fence::of(line).is_some()
        || HtmlEnd::inside_paragraph(line).is_some()
        || !is_table_rule(line) && Marker::of(line).is_some_and(|marker| marker.interrupts())
}
