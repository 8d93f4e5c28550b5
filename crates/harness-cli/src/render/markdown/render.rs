//! Rendering of one Markdown block.

use std::sync::Arc;

use anstyle::Style;
use pulldown_cmark::{BrokenLink, CodeBlockKind, CowStr, Event, LinkType, Options, Parser, Tag, TagEnd};

use super::code::Code;
use super::definitions::Definitions;
use super::looks::Looks;
use super::table::Table;
use super::{Line, Look, Text, code};
use crate::render::line::openable;

/// Options of a block.
#[derive(Debug)]
pub(super) struct Page<'a> {
    pub(super) columns: usize,
    pub(super) looks: Looks,
    pub(super) definitions: &'a Definitions,
    /// Number of the item that starts the block, in a continued list.
    pub(super) number: Option<u64>,
    /// Whether the head of the table was shown before.
    pub(super) without_head: bool,
    /// Whether code is highlighted.
    pub(super) highlights: bool,
}

/// Markdown extensions in use.
fn options() -> Options {
    Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS
}

/// Lines of a text, and its definitions.
pub(super) fn render(source: &str, page: &Page<'_>) -> (Vec<Line>, Definitions) {
    let resolve = |link: BrokenLink<'_>| {
        let address = page.definitions.address(&link.reference)?;
        Some((CowStr::from(address.to_owned()), CowStr::Borrowed("")))
    };
    let mut parser = Parser::new_with_broken_link_callback(source, options(), Some(resolve));
    let mut renderer = Renderer::new(page);
    for event in parser.by_ref() {
        renderer.event(event);
    }
    renderer.flush();
    let mut definitions = page.definitions.clone();
    definitions.learn(parser.reference_definitions());
    (renderer.lines, definitions)
}

/// Container of blocks: the text itself, a quote, an item.
#[derive(Debug, Default)]
struct Container {
    /// Prefix of its first line, until that is shown.
    first: Option<Line>,
    /// Prefix of its other lines.
    rest: Line,
    is_item: bool,
    /// Whether it already has a block.
    has_block: bool,
    /// Whether its text has no paragraph, so that its blocks follow each other without a gap.
    is_tight: bool,
}

#[derive(Debug)]
struct List {
    /// Number of the next item.
    next: Option<u64>,
    has_item: bool,
    is_loose: bool,
}

#[derive(Debug)]
struct Link {
    address: String,
    /// Column of its text.
    start: usize,
}

struct Renderer<'a> {
    page: &'a Page<'a>,
    lines: Vec<Line>,
    /// Containers; the whole text is the first one.
    containers: Vec<Container>,
    lists: Vec<List>,
    links: Vec<Link>,
    /// Nested appearances of the following text; each includes the outer ones.
    looks: Vec<Look>,
    text: Text,
    /// Code or HTML.
    verbatim: Option<String>,
    code: Code,
    table: Option<Table>,
    number: Option<u64>,
}

impl<'a> Renderer<'a> {
    fn new(page: &'a Page<'a>) -> Self {
        Self {
            page,
            lines: Vec::new(),
            containers: vec![Container::default()],
            lists: Vec::new(),
            links: Vec::new(),
            looks: Vec::new(),
            text: Text::default(),
            verbatim: None,
            code: Code::plain(page.looks),
            table: None,
            number: page.number,
        }
    }

    fn event(&mut self, event: Event<'_>) {
        match event {
            Event::Start(tag) => self.start(tag),
            Event::End(tag) => self.end(tag),
            Event::Text(text) | Event::Html(text) => self.add(&text),
            Event::Code(code) => self.inline_code(&code),
            Event::InlineHtml(tag) if is_line_break(&tag) => self.text.break_line(),
            Event::InlineHtml(tag) => {
                let look = self.page.looks.dim();
                self.inline(&tag, &look);
            }
            Event::SoftBreak => self.add(" "),
            Event::HardBreak => self.text.break_line(),
            Event::Rule => {
                self.begin_block();
                let rule = "─".repeat(self.room());
                let mut line = Line::new();
                line.push(&rule, &self.page.looks.dim());
                self.emit(line);
            }
            Event::TaskListMarker(true) => self.add(self.page.looks.either("[✓] ", "[x] ")),
            Event::TaskListMarker(false) => self.add("[ ] "),
            Event::InlineMath(text) | Event::DisplayMath(text) | Event::FootnoteReference(text) => {
                self.add(&text);
            }
        }
    }

    fn start(&mut self, tag: Tag<'_>) {
        match tag {
            Tag::Paragraph => self.begin_paragraph(),
            Tag::Heading { level, .. } => self.begin_heading(level as usize),
            Tag::BlockQuote(_) => self.begin_quote(),
            Tag::CodeBlock(kind) => self.begin_code(&kind),
            Tag::HtmlBlock => {
                self.begin_block();
                self.verbatim = Some(String::new());
            }
            Tag::List(start) => {
                self.begin_block();
                let next = start.map(|start| self.number.take().unwrap_or(start));
                self.lists.push(List { next, has_item: false, is_loose: false });
            }
            Tag::Item => self.begin_item(),
            Tag::Table(aligned) => {
                self.begin_block();
                self.table = Some(Table::new(aligned));
            }
            Tag::TableHead => {
                self.begin_row();
                self.looks.push(self.page.looks.bold());
            }
            Tag::TableRow => self.begin_row(),
            Tag::Emphasis => self.begin_span("*", Style::italic),
            Tag::Strong => self.begin_span("**", Style::bold),
            Tag::Strikethrough => self.begin_span("~~", Style::strikethrough),
            Tag::Link { link_type, dest_url, .. } => self.begin_link(link_type, &dest_url),
            Tag::Image { dest_url, .. } => {
                self.begin_link(LinkType::Inline, &dest_url);
                self.add("[image: ");
            }
            Tag::TableCell
            | Tag::Superscript
            | Tag::Subscript
            | Tag::FootnoteDefinition(_)
            | Tag::DefinitionList
            | Tag::DefinitionListTitle
            | Tag::DefinitionListDefinition
            | Tag::MetadataBlock(_) => {}
        }
    }

    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Paragraph => self.flush(),
            TagEnd::Heading(_) => {
                self.looks.pop();
                self.flush();
            }
            TagEnd::BlockQuote(_) => self.leave(),
            TagEnd::Item => {
                self.leave();
            }
            TagEnd::List(_) => {
                self.flush();
                self.lists.pop();
            }
            TagEnd::CodeBlock => self.end_code(),
            TagEnd::HtmlBlock => self.end_html(),
            TagEnd::TableHead => {
                self.looks.pop();
            }
            TagEnd::TableCell => {
                let cell = std::mem::take(&mut self.text);
                if let Some(table) = &mut self.table {
                    table.add(cell);
                }
            }
            TagEnd::Table => self.end_table(),
            TagEnd::Emphasis => self.end_span("*"),
            TagEnd::Strong => self.end_span("**"),
            TagEnd::Strikethrough => self.end_span("~~"),
            TagEnd::Link => self.end_link(),
            TagEnd::Image => {
                self.add("]");
                self.end_link();
            }
            TagEnd::TableRow
            | TagEnd::Superscript
            | TagEnd::Subscript
            | TagEnd::FootnoteDefinition
            | TagEnd::DefinitionList
            | TagEnd::DefinitionListTitle
            | TagEnd::DefinitionListDefinition
            | TagEnd::MetadataBlock(_) => {}
        }
    }
}

/// Blocks.
impl Renderer<'_> {
    /// Shows the pending text, then a gap if the block needs one.
    fn begin_block(&mut self) {
        self.flush();
        let Some(container) = self.containers.last_mut() else { return };
        let gap = container.has_block && !container.is_tight;
        container.has_block = true;
        if gap {
            self.gap();
        }
    }

    fn begin_paragraph(&mut self) {
        self.begin_block();
        if self.containers.last().is_some_and(|container| container.is_item)
            && let Some(list) = self.lists.last_mut()
        {
            list.is_loose = true;
        }
    }

    fn begin_item(&mut self) {
        self.flush();
        let depth = self.lists.len();
        let looks = self.page.looks;
        let Some(list) = self.lists.last_mut() else { return };
        let gap = list.has_item && list.is_loose;
        list.has_item = true;
        let marker = match &mut list.next {
            Some(number) => {
                let marker = format!("{number}. ");
                *number = number.saturating_add(1);
                marker
            }
            None => match depth % 3 {
                1 => looks.either("• ", "- ").to_owned(),
                2 => looks.either("◦ ", "- ").to_owned(),
                _ => looks.either("▪ ", "- ").to_owned(),
            },
        };
        if gap {
            self.gap();
        }
        let mut first = Line::new();
        first.push(&marker, &looks.dim());
        let mut rest = Line::new();
        rest.pad(first.width());
        self.enter(Container { first: Some(first), rest, is_item: true, ..Container::default() });
    }

    /// Enters a container; one that would take more than half of the width takes no room.
    fn enter(&mut self, mut container: Container) {
        let indent = self.page.columns - self.room();
        if indent + container.rest.width() > self.page.columns / 2 {
            container.rest = Line::new();
            if let Some(marker) = container.first.take() {
                self.text.push(&marker.plain(), &Look::default());
            }
        }
        self.containers.push(container);
    }

    fn leave(&mut self) {
        self.flush();
        if self.containers.last().is_some_and(|container| container.first.is_some()) {
            self.emit(Line::new());
        }
        if self.containers.len() > 1 {
            self.containers.pop();
        }
    }

    fn begin_row(&mut self) {
        if let Some(table) = &mut self.table {
            table.begin_row();
        }
    }

    fn end_table(&mut self) {
        let Some(table) = self.table.take() else { return };
        for line in table.lines(self.room(), !self.page.without_head, self.page.looks) {
            self.emit(line);
        }
    }

    fn end_code(&mut self) {
        let Some(text) = self.verbatim.take() else { return };
        let room = self.room();
        for one in text.lines() {
            for line in self.code.lines(one, false, room) {
                self.emit(line);
            }
        }
        if let Some(line) = code::closing(self.page.looks) {
            self.emit(line);
        }
    }

    fn end_html(&mut self) {
        let Some(html) = self.verbatim.take() else { return };
        for one in html.lines() {
            let mut text = Text::default();
            text.push(one, &self.page.looks.dim());
            for line in text.wrap(self.room()) {
                self.emit(line);
            }
        }
    }

    /// Shows the pending text.
    fn flush(&mut self) {
        if self.text.is_empty() {
            return;
        }
        for line in std::mem::take(&mut self.text).wrap(self.room()) {
            self.emit(line);
        }
    }

    /// Width inside the containers.
    fn room(&self) -> usize {
        let taken: usize = self.containers.iter().map(|container| container.rest.width()).sum();
        self.page.columns.saturating_sub(taken)
    }

    /// A line between two blocks.
    fn gap(&mut self) {
        let mut line = Line::new();
        for container in &self.containers {
            line.append(container.rest.clone());
        }
        line.trim_end();
        self.lines.push(line);
    }

    fn emit(&mut self, content: Line) {
        let mut line = Line::new();
        for container in &mut self.containers {
            line.append(container.first.take().unwrap_or_else(|| container.rest.clone()));
        }
        line.append(content);
        line.trim_end();
        self.lines.push(line);
    }
}

/// Text inside blocks.
impl Renderer<'_> {
    fn look(&self) -> Look {
        self.looks.last().cloned().unwrap_or_default()
    }

    /// Adds to the open element.
    fn add(&mut self, text: &str) {
        if let Some(verbatim) = &mut self.verbatim {
            verbatim.push_str(text);
        } else {
            let look = self.look();
            self.inline(text, &look);
        }
    }

    fn inline(&mut self, text: &str, look: &Look) {
        if self.table.is_none()
            && let Some(item) = self.containers.last_mut().filter(|container| container.is_item)
            && !item.has_block
        {
            item.has_block = true;
            item.is_tight = true;
        }
        self.text.push(text, look);
    }

    fn inline_code(&mut self, code: &str) {
        let looks = self.page.looks;
        let look = looks.code(&self.look());
        let mark = looks.either("", "`");
        self.inline(&format!("{mark}{code}{mark}"), &look);
    }

    fn begin_heading(&mut self, level: usize) {
        self.begin_block();
        let looks = self.page.looks;
        self.looks.push(looks.heading(level));
        self.text.push(looks.either("", &format!("{} ", "#".repeat(level))), &Look::default());
    }

    fn begin_quote(&mut self) {
        self.begin_block();
        let looks = self.page.looks;
        let mut bar = Line::new();
        bar.push(looks.either("│ ", "> "), &looks.dim());
        self.enter(Container { rest: bar, ..Container::default() });
    }

    fn begin_code(&mut self, kind: &CodeBlockKind<'_>) {
        self.begin_block();
        let info = match kind {
            CodeBlockKind::Fenced(info) => info,
            CodeBlockKind::Indented => "",
        };
        let looks = self.page.looks;
        if let Some(line) = code::opening(info, looks, self.room()) {
            self.emit(line);
        }
        self.code = if self.page.highlights { Code::of(info, looks) } else { Code::plain(looks) };
        self.verbatim = Some(String::new());
    }

    fn begin_span(&mut self, mark: &str, styled: fn(Style) -> Style) {
        let around = self.look();
        self.inline(self.page.looks.either("", mark), &around);
        let style = if self.page.looks.has_colour() { styled(around.style) } else { around.style };
        self.looks.push(Look { style, link: around.link });
    }

    fn end_span(&mut self, mark: &str) {
        self.looks.pop();
        let around = self.look();
        self.inline(self.page.looks.either("", mark), &around);
    }

    fn begin_link(&mut self, kind: LinkType, address: &str) {
        let scheme = if kind == LinkType::Email { "mailto:" } else { "" };
        let address = format!("{scheme}{address}");
        let around = self.look();
        let looks = self.page.looks;
        let style = if looks.has_colour() { around.style.underline() } else { around.style };
        let link: Option<Arc<str>> = openable(&address).filter(|_| looks.has_colour());
        self.looks.push(Look { style, link });
        // An item's own text begins here, even if the link has none.
        self.inline("", &around);
        self.links.push(Link { address, start: self.text.len() });
    }

    /// Shows the target of a link, unless its text contains it.
    fn end_link(&mut self) {
        self.looks.pop();
        let Some(link) = self.links.pop() else { return };
        let shown = self.text.since(link.start);
        let said = shown == link.address || link.address.strip_prefix("mailto:") == Some(shown);
        if !said && !link.address.is_empty() {
            let look = self.page.looks.dim();
            self.inline(&format!(" ({})", link.address), &look);
        }
    }
}

fn is_line_break(tag: &str) -> bool {
    tag.strip_prefix("<br").is_some_and(|rest| matches!(rest.trim_start(), ">" | "/>"))
}
