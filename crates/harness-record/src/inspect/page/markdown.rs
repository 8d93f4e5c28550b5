//! Markdown of models and users as HTML.

use maud::{Markup, PreEscaped};
use pulldown_cmark::{CodeBlockKind, CowStr, Event, HeadingLevel, Options, Parser, Tag, TagEnd, html};

use crate::inspect::write::{SafeText, escaped, visible};

/// Maximum depth of nested lists and quotes; a deeper text is shown as it is.
const DEEPEST: usize = 24;

/// Protocols of links; others stay text.
const PROTOCOLS: [&str; 3] = ["https://", "http://", "mailto:"];

/// Renders untrusted Markdown. HTML in it stays text, images become links, and links of other protocols than web and mail
/// become text. Hidden characters are shown, and the text is cut.
pub(super) fn markdown(text: &str) -> Markup {
    let text = visible(text);
    let options = Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS;
    let mut renderer = Renderer::default();
    let mut events = Vec::new();
    for event in Parser::new_ext(&text, options) {
        if renderer.depth > DEEPEST {
            return PreEscaped(format!("<p class=\"text\">{}</p>", maud::Render::render(&SafeText(&text)).0));
        }
        renderer.push(event, &mut events);
    }
    let mut out = String::with_capacity(text.len().saturating_mul(2));
    html::push_html(&mut out, events.into_iter());
    PreEscaped(out)
}

/// Rendering of one text.
#[derive(Default)]
struct Renderer {
    depth: usize,
    /// Whether each open link is shown as one.
    links: Vec<bool>,
}

impl Renderer {
    fn push<'a>(&mut self, event: Event<'a>, out: &mut Vec<Event<'a>>) {
        match event {
            Event::Start(tag) => {
                self.depth += 1;
                self.start(tag, out);
            }
            Event::End(end) => {
                self.depth = self.depth.saturating_sub(1);
                self.end(end, out);
            }
            Event::Html(raw) | Event::InlineHtml(raw) => out.push(Event::Text(raw)),
            Event::TaskListMarker(done) => {
                out.push(Event::Text(CowStr::Borrowed(if done { "☑ " } else { "☐ " })));
            }
            Event::SoftBreak => out.push(Event::HardBreak),
            Event::FootnoteReference(name) | Event::InlineMath(name) | Event::DisplayMath(name) => {
                out.push(Event::Text(name));
            }
            event @ (Event::Text(_) | Event::Code(_) | Event::HardBreak | Event::Rule) => out.push(event),
        }
    }

    #[expect(clippy::wildcard_enum_match_arm, reason = "other tags are written as they are")]
    fn start<'a>(&mut self, tag: Tag<'a>, out: &mut Vec<Event<'a>>) {
        match tag {
            Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. } => {
                let is_safe = PROTOCOLS.iter().any(|start| dest_url.starts_with(start));
                // A link inside of a link is none.
                let is_shown = is_safe && !self.links.contains(&true);
                self.links.push(is_shown);
                if is_shown {
                    let link = format!("<a href=\"{}\" rel=\"noreferrer noopener\">", escaped(&dest_url));
                    out.push(Event::InlineHtml(link.into()));
                }
            }
            Tag::Heading { level, .. } => {
                let (id, classes, attrs) = (None, Vec::new(), Vec::new());
                out.push(Event::Start(Tag::Heading { level: lowered(level), id, classes, attrs }));
            }
            Tag::CodeBlock(_) => {
                out.push(Event::Start(Tag::CodeBlock(CodeBlockKind::Fenced(CowStr::Borrowed("")))));
            }
            Tag::HtmlBlock => out.push(Event::Start(Tag::Paragraph)),
            tag => out.push(Event::Start(tag)),
        }
    }

    #[expect(clippy::wildcard_enum_match_arm, reason = "other tags are written as they are")]
    fn end(&mut self, end: TagEnd, out: &mut Vec<Event<'_>>) {
        match end {
            TagEnd::Link | TagEnd::Image => {
                if self.links.pop() == Some(true) {
                    out.push(Event::InlineHtml(CowStr::Borrowed("</a>")));
                }
            }
            TagEnd::Heading(level) => out.push(Event::End(TagEnd::Heading(lowered(level)))),
            TagEnd::HtmlBlock => out.push(Event::End(TagEnd::Paragraph)),
            end => out.push(Event::End(end)),
        }
    }
}

/// Headings of a text are below those of the page.
fn lowered(level: HeadingLevel) -> HeadingLevel {
    match level {
        HeadingLevel::H1 => HeadingLevel::H3,
        HeadingLevel::H2 => HeadingLevel::H4,
        HeadingLevel::H3 => HeadingLevel::H5,
        HeadingLevel::H4 | HeadingLevel::H5 | HeadingLevel::H6 => HeadingLevel::H6,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &str) {
        assert_eq!(markdown(text).0.trim_end(), expected);
    }

    #[test]
    fn markdown_is_rendered() {
        check("**Yes**, `a<b`", "<p><strong>Yes</strong>, <code>a&lt;b</code></p>");
        check("# One\n\n- [x] two", "<h3>One</h3>\n<ul>\n<li>☑ two</li>\n</ul>");
        check("```js\n</script>\n```", "<pre><code>&lt;/script&gt;\n</code></pre>");
        check("one\ntwo", "<p>one<br />\ntwo</p>");
    }

    #[test]
    fn html_stays_text() {
        check("<script>alert(1)</script>", "<p>&lt;script&gt;alert(1)&lt;/script&gt;</p>");
        check("a <b onclick=x>b</b> ]]>", "<p>a &lt;b onclick=x&gt;b&lt;/b&gt; ]]&gt;</p>");
    }

    #[test]
    fn only_links_to_the_web_are_links() {
        let link = |to: &str| format!("<p><a href=\"{to}\" rel=\"noreferrer noopener\">x</a></p>");
        check("[x](https://a.example/?q=\"&r)", &link("https://a.example/?q=&quot;&amp;r"));
        check("![x](http://a.example/i.png)", &link("http://a.example/i.png"));
        for other in ["javascript:alert(1)", "JaVaScRiPt:alert(1)", "data:text/html,x", "//a.example", "#top"]
        {
            check(&format!("[x]({other})"), "<p>x</p>");
            check(&format!("![x]({other})"), "<p>x</p>");
        }
    }

    #[test]
    fn a_deep_text_is_shown_as_it_is() {
        assert!(markdown(&"> ".repeat(500)).0.starts_with("<p class=\"text\">&gt; &gt; "));
        assert!(markdown("\u{202e}evil").0.contains('\u{fffd}'));
    }
}
