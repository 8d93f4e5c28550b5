//! Quoted scalars of several lines.
//!
//! Upstream keeps blanks at the end of a line where YAML 1.2 drops them, and an escaped line end
//! takes all blank lines after it along. The hash depends on it, so such scalars are decoded here.

use std::str::Chars;

/// Decodes the text between the quotes; `None` for an invalid escape.
pub(super) fn fold(written: &str, quote: char) -> Option<String> {
    let mut out = String::with_capacity(written.len());
    let mut rest = written.chars();
    while let Some(c) = rest.next() {
        match c {
            '\n' | '\r' => match skip_lines(c, &mut rest) {
                1 => out.push(' '),
                several => (1..several).for_each(|_| out.push('\n')),
            },
            '\'' if quote == '\'' => {
                rest.next();
                out.push('\'');
            }
            '\\' if quote == '"' => match rest.next()? {
                end @ ('\n' | '\r') => {
                    skip_lines(end, &mut rest);
                }
                escape => out.push(unescape(escape, &mut rest)?),
            },
            c => out.push(c),
        }
    }
    Some(out)
}

/// The bytes of a quoted scalar at the start of `text`, both quotes included; `None` if it does not
/// end, or holds what upstream refuses in quotes: control characters and document markers.
pub(super) fn length(text: &str) -> Option<usize> {
    let quote = text.chars().next()?;
    let mut chars = text.char_indices().skip(1).peekable();
    while let Some((at, c)) = chars.next() {
        match c {
            '\\' if quote == '"' => {
                // An escaped line end is looked at as a line end below.
                chars.next_if(|(_, c)| !matches!(c, '\n' | '\r'));
            }
            '\'' if quote == '\'' && chars.next_if(|(_, c)| *c == '\'').is_some() => {}
            c if c == quote => return Some(at + 1),
            '\n' | '\r' if is_marker(text.get(at + 1..)?) => return None,
            '\t' | '\n' | '\r' => {}
            c if c < ' ' => return None,
            _ => {}
        }
    }
    None
}

/// `---` or `...` as the first word of a line.
fn is_marker(line: &str) -> bool {
    let rest = line.strip_prefix("---").or_else(|| line.strip_prefix("..."));
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with([' ', '\t', '\n', '\r']))
}

/// Skips line ends with the blanks around them and counts them; `first` is taken already.
fn skip_lines(first: char, rest: &mut Chars<'_>) -> usize {
    let mut count = 0;
    let mut end = Some(first);
    while let Some(c) = end {
        count += 1;
        let text = rest.as_str();
        let text = if c == '\r' { text.strip_prefix('\n').unwrap_or(text) } else { text };
        *rest = text.trim_start_matches([' ', '\t']).chars();
        end = rest.as_str().chars().next().filter(|c| matches!(c, '\n' | '\r'));
        if end.is_some() {
            rest.next();
        }
    }
    count
}

fn unescape(escape: char, rest: &mut Chars<'_>) -> Option<char> {
    Some(match escape {
        '0' => '\0',
        'a' => '\u{7}',
        'b' => '\u{8}',
        't' | '\t' => '\t',
        'n' => '\n',
        'v' => '\u{b}',
        'f' => '\u{c}',
        'r' => '\r',
        'e' => '\u{1b}',
        'N' => '\u{85}',
        '_' => '\u{a0}',
        'L' => '\u{2028}',
        'P' => '\u{2029}',
        ' ' | '"' | '/' | '\\' => escape,
        'x' => char::from_u32(hex(rest, 2)?)?,
        'U' => char::from_u32(hex(rest, 8)?)?,
        'u' => match hex(rest, 4)? {
            high @ 0xd800..0xdc00 => {
                *rest = rest.as_str().strip_prefix("\\u")?.chars();
                let low = hex(rest, 4)?;
                char::from_u32(0x1_0000 + ((high - 0xd800) << 10) + low.checked_sub(0xdc00)?)?
            }
            code => char::from_u32(code)?,
        },
        _ => return None,
    })
}

fn hex(rest: &mut Chars<'_>, digits: usize) -> Option<u32> {
    let (number, tail) = rest.as_str().split_at_checked(digits)?;
    if !number.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    *rest = tail.chars();
    u32::from_str_radix(number, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(written: &str, quote: char, expected: &str) {
        assert_eq!(fold(written, quote).as_deref(), Some(expected), "{written:?}");
    }

    #[test]
    fn line_ends_fold() {
        check("a\n  b", '"', "a b");
        check("a\r\n\r\n  b", '"', "a\nb");
        check("a\n\n \t\n b", '\'', "a\n\nb");
        check("it''s\n x", '\'', "it's x");
    }

    #[test]
    fn blanks_before_a_line_end_stay() {
        check("a \t\n b", '"', "a \t b");
        check(" \n ", '\'', "  ");
    }

    #[test]
    fn escapes() {
        check("a\\\n\n  b\\n\n c", '"', "ab\n c");
        check("\\x41\\u00e9\\ud83d\\ude00\\U0001F6A2\n\\\"", '"', "A\u{e9}\u{1f600}\u{1f6a2} \"");
        assert_eq!(fold("\\ud83d\n", '"'), None);
        assert_eq!(fold("\\ud83d\\u0041\n", '"'), None);
    }
}
