//! Text that is safe to show, and readable JSON.

use harness_core::{Json, display};
use maud::Render;

use crate::scrub::{Token, tokens};

/// Maximum characters shown of a text.
pub(super) const MOST_SHOWN: usize = 20_000;

/// Cuts a text.
pub(super) fn cut(text: &str) -> String {
    match text.char_indices().nth(MOST_SHOWN) {
        None => text.to_owned(),
        Some((at, _)) => {
            let (shown, rest) = text.split_at_checked(at).unwrap_or((text, ""));
            format!("{shown}\n… {} more characters", rest.chars().count())
        }
    }
}

/// Untrusted text in HTML: escaped, cut, and without hidden characters.
pub(super) struct SafeText<'a>(pub(super) &'a str);

impl Render for SafeText<'_> {
    fn render_to(&self, buffer: &mut String) {
        buffer.push_str(&escaped(self.0));
    }
}

/// Text for an element or an attribute.
pub(super) fn escaped(text: &str) -> String {
    let text = visible(text);
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c => out.push(c),
        }
    }
    out
}

/// Text that is cut and has no hidden characters. Not escaped.
pub(super) fn visible(text: &str) -> String {
    let shown = |c: char| match c {
        '\n' | '\t' => Some(c),
        '\r' => None,
        c if is_hidden(c) => Some('\u{fffd}'),
        c => Some(c),
    };
    cut(text).chars().filter_map(shown).collect()
}

/// Text for a terminal, without control characters.
pub(super) fn harmless(text: &str) -> String {
    cut(text).chars().map(|c| if c != '\n' && is_hidden(c) { '\u{fffd}' } else { c }).collect()
}

/// One line for a terminal.
pub(super) fn line(text: &str) -> String {
    harmless(text).split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Whether a character is invisible. Joiners are not: some scripts need them.
fn is_hidden(c: char) -> bool {
    display::is_hidden(c) && !display::is_joiner(c)
}

/// Maximum length of a value on one line.
const ONE_LINE: usize = 88;

/// Formats JSON, on one line if it is short, with numbers and strings unchanged.
pub(super) fn pretty(value: &Json) -> String {
    if value.text().len() > ONE_LINE {
        return value.indented_verbatim();
    }
    tokens(value.text()).fold(String::new(), |mut out, token| {
        match token {
            Token::Mark(mark @ (',' | ':')) => out.extend([mark, ' ']),
            Token::Mark(mark) => out.push(mark),
            Token::String(text) | Token::Plain(text) => out.push_str(text),
        }
        out
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markup_is_text() {
        assert_eq!(
            escaped("<a href='x'>\"&\u{202e}\u{1b}\r\n"),
            "&lt;a href=&#39;x&#39;&gt;&quot;&amp;\u{fffd}\u{fffd}\n"
        );
    }

    #[test]
    fn long_texts_are_cut_and_say_so() {
        let shown = cut(&"é".repeat(MOST_SHOWN + 7));
        assert!(shown.ends_with("é\n… 7 more characters"));
    }

    #[test]
    fn json_is_indented_and_stays_exact() {
        let value = Json::parse(r#"{"a":[1.10,{}],"b":"x,{y}","c":[]}"#).unwrap();
        let expected = "{\n  \"a\": [\n    1.10,\n    {}\n  ],\n  \"b\": \"x,{y}\",\n  \"c\": []\n}";
        assert_eq!(value.indented_verbatim(), expected);
        assert_eq!(pretty(&value), r#"{"a": [1.10, {}], "b": "x,{y}", "c": []}"#);
    }
}
