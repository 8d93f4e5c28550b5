//! The frame of a page: one document, nothing from outside, nothing that runs.

use std::fmt::Write as _;

use super::story::Tone;
use super::write::escaped;

/// A page that is being written. Everything that is not a literal of this crate goes through
/// [`escaped`]; attributes hold literals and numbers alone.
pub(super) struct Page {
    out: String,
}

/// Even if something slipped through: the page may load nothing and run nothing.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'";

impl Page {
    pub(super) fn new(title: &str) -> Self {
        let mut page = Self { out: String::with_capacity(32 << 10) };
        let _ = write!(
            page.out,
            "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta http-equiv=\"Content-Security-Policy\" content=\"{POLICY}\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<meta name=\"referrer\" \
             content=\"no-referrer\">\n<title>{}</title>\n<style>\n{}</style>\n</head>\n<body>\n<main>\n",
            escaped(title),
            include_str!("page.css"),
        );
        page
    }

    pub(super) fn finish(mut self) -> String {
        self.out.push_str("</main>\n</body>\n</html>\n");
        self.out
    }

    /// Markup of this crate's own.
    pub(super) fn raw(&mut self, markup: &'static str) {
        self.out.push_str(markup);
    }

    /// Text of anybody's.
    pub(super) fn text(&mut self, text: &str) {
        self.out.push_str(&escaped(text));
    }

    /// An element with text in it.
    pub(super) fn element(&mut self, name: &'static str, class: &'static str, text: &str) {
        let _ = writeln!(self.out, "<{name} class=\"{class}\">{}</{name}>", escaped(text));
    }

    /// A word in a coloured pill.
    pub(super) fn badge(&mut self, tone: Tone, text: &str) {
        let class = match tone {
            Tone::Plain => "badge",
            Tone::Good => "badge good",
            Tone::Warn => "badge warn",
            Tone::Bad => "badge bad",
        };
        self.element("span", class, text);
    }

    /// Something to open.
    pub(super) fn details(&mut self, open: bool, summary: &str, text: &str) {
        let open = if open { " open" } else { "" };
        let (summary, text) = (escaped(summary), escaped(text));
        let _ = writeln!(self.out, "<details{open}><summary>{summary}</summary><pre>{text}</pre></details>");
    }

    /// A number with its name.
    pub(super) fn fact(&mut self, name: &'static str, value: &str) {
        let _ = writeln!(self.out, "<div class=\"fact\"><b>{}</b><span>{name}</span></div>", escaped(value));
    }

    /// When, within the whole, something happened: both in thousandths.
    pub(super) fn bar(&mut self, from: u32, length: u32) {
        let (from, length) = (f64::from(from) / 10.0, f64::from(length) / 10.0);
        let _ = writeln!(
            self.out,
            "<div class=\"bar\"><i style=\"left:{from:.1}%;width:{length:.1}%\"></i></div>"
        );
    }

    /// A row of a table with a name and a value.
    pub(super) fn pair(&mut self, name: &'static str, value: &str) {
        let _ = writeln!(self.out, "<tr><th>{name}</th><td class=\"text\">{}</td></tr>", escaped(value));
    }

    /// A number in a circle.
    pub(super) fn dot(&mut self, class: &'static str, text: &str) {
        self.element("span", class, text);
    }
}
