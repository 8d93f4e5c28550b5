//! Texts as layers make them.

use std::borrow::Cow;

use harness_core::message::Message;

use crate::layer::LayerCx;

/// UTF-16 units of a text: the unit of limits and positions.
pub(crate) fn units(text: &str) -> usize {
    if text.is_ascii() { text.len() } else { text.encode_utf16().count() }
}

/// The beginning of a text, at most `most` UTF-16 units; a character is never split.
pub(crate) fn cut(text: &str, most: usize) -> &str {
    let mut left = most;
    for (at, c) in text.char_indices() {
        let Some(rest) = left.checked_sub(c.len_utf16()) else {
            return text.get(..at).unwrap_or(text);
        };
        left = rest;
    }
    text
}

/// UTF-16 units that so many tokens stand for.
pub(crate) fn units_of(tokens: u64) -> usize {
    usize::try_from(tokens.saturating_mul(4)).unwrap_or(usize::MAX)
}

/// `body` between an opening and a closing tag, each on its own line. A closing tag of that name in `body`, which its
/// author may have written to leave the element, becomes `<\/tag`: the same text in JSON, but not a tag.
pub(crate) fn fenced(tag: &str, body: &str) -> String {
    format!("<{tag}>\n{}\n</{tag}>", defused(tag, body))
}

/// `body` without closing tags of the name `tag`.
pub(crate) fn defused<'a>(tag: &str, body: &'a str) -> Cow<'a, str> {
    let closing = format!("</{tag}");
    let mut out = String::new();
    let mut rest = body;
    while let Some(at) = find_ignoring_case(rest, &closing) {
        let (before, found) = rest.split_at(at);
        out.push_str(before);
        out.push_str("<\\/");
        rest = found.get(2..).unwrap_or_default();
    }
    if out.is_empty() {
        return Cow::Borrowed(body);
    }
    out.push_str(rest);
    Cow::Owned(out)
}

/// Where `wanted`, which is ASCII, begins in `text`.
fn find_ignoring_case(text: &str, wanted: &str) -> Option<usize> {
    text.as_bytes().windows(wanted.len()).position(|window| window.eq_ignore_ascii_case(wanted.as_bytes()))
}

/// Text of a model's message; `None` when it is empty.
pub(crate) fn output_of(message: &Message) -> Option<String> {
    let text = message.as_assistant()?.joined_text();
    (!text.is_empty()).then_some(text)
}

/// Text of an incoming message: of a user, an instruction or a tool's result; `None` when it is empty.
pub(crate) fn input_of(message: &Message) -> Option<String> {
    let text = message.joined_text();
    (!text.is_empty()).then_some(text)
}

/// `text` in one line, at most `most` UTF-16 units of it.
pub(crate) fn one_line(text: &str, most: usize) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let shorter = cut(&line, most);
    if shorter.len() == line.len() { line } else { format!("{shorter}…") }
}

/// `text`, cut so that it fits into `budget` tokens with `closing` at its end; whole if the budget is 0.
pub(crate) fn fitted(text: String, closing: &str, budget: u64, cx: &LayerCx) -> String {
    if budget == 0 || cx.tokenize(&text) <= budget {
        return text;
    }
    let room = units_of(budget).saturating_sub(units(closing));
    format!("{}{closing}", cut(&text, room))
}

/// An element of a heading and as many of the lines, from the first, as fit into `budget` tokens; `None` when
/// not even one does.
pub(crate) fn listed(
    tag: &str,
    heading: &str,
    lines: impl IntoIterator<Item = String>,
    budget: u64,
    cx: &LayerCx,
) -> Option<String> {
    let mut fitting = None;
    let mut body = heading.to_owned();
    for line in lines {
        body.push_str(if body.is_empty() { "- " } else { "\n- " });
        body.push_str(&line);
        let element = fenced(tag, &body);
        if cx.tokenize(&element) > budget {
            break;
        }
        fitting = Some(element);
    }
    fitting
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_cut_between_characters() {
        assert_eq!(cut("añ😀z", 2), "añ");
        assert_eq!(cut("añ😀z", 3), "añ");
        assert_eq!(cut("añ😀z", 4), "añ😀");
        assert_eq!(cut("añ😀z", 99), "añ😀z");
        assert_eq!(cut("x", 0), "");
        assert_eq!(units("añ😀z"), 5);
    }

    #[test]
    fn nothing_within_closes_the_element() {
        let hostile = "a</Notes>b </notes c< /notes></notesé";
        assert_eq!(
            fenced("notes", hostile),
            "<notes>\na<\\/Notes>b <\\/notes c< /notes><\\/notesé\n</notes>"
        );
        assert!(matches!(defused("notes", "<notes> </other>"), Cow::Borrowed(_)));
    }
}
