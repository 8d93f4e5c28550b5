//! One pass over a template.

/// `content` with its places filled.
pub(super) fn expand<T: AsRef<str>>(content: &str, arguments: &[T]) -> String {
    let mut out = String::with_capacity(content.len());
    let mut rest = content;
    while let Some((before, after)) = rest.split_once('$') {
        out.push_str(before);
        if let Some((place, length)) = place(after) {
            place.fill(&mut out, arguments);
            rest = after.get(length..).unwrap_or_default();
        } else {
            out.push('$');
            rest = after;
        }
    }
    out.push_str(rest);
    out
}

/// Value of a placeholder, arguments counted from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    One(usize),
    From(usize),
    Some(usize, usize),
}

impl Place {
    fn fill<T: AsRef<str>>(self, out: &mut String, arguments: &[T]) {
        let (from, count) = match self {
            Self::One(0) => return,
            Self::One(at) => (at, 1),
            Self::From(from) => (from, usize::MAX),
            Self::Some(from, count) => (from, count),
        };
        let wanted = arguments.iter().skip(from.saturating_sub(1)).take(count);
        for (at, argument) in wanted.enumerate() {
            if at > 0 {
                out.push(' ');
            }
            out.push_str(argument.as_ref());
        }
    }
}

/// The place that begins after a `$`, and its length.
fn place(text: &str) -> Option<(Place, usize)> {
    let digits = leading_digits(text);
    if digits > 0 {
        // A number that is too large is that of an argument that is not there.
        let at = text.get(..digits)?.parse().unwrap_or(0);
        return Some((Place::One(at), digits));
    }
    if text.starts_with("ARGUMENTS") {
        return Some((Place::From(1), "ARGUMENTS".len()));
    }
    if text.starts_with('@') {
        return Some((Place::From(1), 1));
    }
    slice(text)
}

/// `{@:N}` or `{@:N:L}`, and its length.
fn slice(text: &str) -> Option<(Place, usize)> {
    let inner = text.strip_prefix("{@:")?;
    let (inner, _) = inner.split_once('}')?;
    let length = "{@:".len() + inner.len() + 1;
    let (from, count) = match inner.split_once(':') {
        Some((from, count)) => (from, Some(number(count)?)),
        None => (inner, None),
    };
    let from = number(from)?.max(1);
    Some((count.map_or(Place::From(from), |count| Place::Some(from, count)), length))
}

fn number(text: &str) -> Option<usize> {
    (leading_digits(text) == text.len() && !text.is_empty()).then(|| text.parse().unwrap_or(usize::MAX))
}

fn leading_digits(text: &str) -> usize {
    text.bytes().take_while(u8::is_ascii_digit).count()
}
