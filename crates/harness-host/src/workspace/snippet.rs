//! The surroundings of a match.

/// How much of a text is shown around a match, in UTF-16 units. Default 80 and 160.
///
/// ```
/// use harness_host::Snippet;
///
/// let snippet = Snippet { before: 3, after: 5 };
/// assert_eq!(snippet.of("0123456789", "5").as_deref(), Some("23456789"));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Snippet {
    /// Units before the match.
    pub before: usize,
    /// Units from the match's beginning on.
    pub after: usize,
}

impl Default for Snippet {
    fn default() -> Self {
        Self { before: 80, after: 160 }
    }
}

impl Snippet {
    /// The surroundings of the first match of `query`, which is in lower case, whatever the text's case; `None`
    /// when there is no match.
    pub fn of(self, text: &str, query: &str) -> Option<String> {
        let at = find(text, query)?;
        let (before, after) = text.split_at(at);
        let begin = before.len() - last_units(before, self.before).len();
        let end = at + first_units(after, self.after).len();
        text.get(begin..end).map(str::to_owned)
    }
}

/// Where `query`, in lower case, begins in `text`.
fn find(text: &str, query: &str) -> Option<usize> {
    let lower = text.to_lowercase();
    let found = lower.find(query)?;
    if lower.len() == text.len() && text.is_char_boundary(found) && text.is_ascii() {
        return Some(found);
    }
    // Lowering may change lengths: count again, character by character.
    let mut lowered = 0;
    for (at, c) in text.char_indices() {
        if lowered >= found {
            return Some(at);
        }
        lowered += c.to_lowercase().map(char::len_utf8).sum::<usize>();
    }
    Some(text.len())
}

/// The longest beginning of a text of at most so many UTF-16 units.
pub fn first_units(text: &str, most: usize) -> &str {
    let mut units = 0;
    for (at, c) in text.char_indices() {
        units += c.len_utf16();
        if units > most {
            return text.split_at(at).0;
        }
    }
    text
}

/// The longest end of at most so many UTF-16 units.
fn last_units(text: &str, most: usize) -> &str {
    let mut units = 0;
    for (at, c) in text.char_indices().rev() {
        units += c.len_utf16();
        if units > most {
            return text.split_at(at + c.len_utf8()).1;
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, query: &str, expected: Option<&str>) {
        assert_eq!(Snippet { before: 3, after: 5 }.of(text, query).as_deref(), expected);
    }

    #[test]
    fn a_match_is_shown_with_its_surroundings() {
        check("0123456789", "5", Some("23456789"));
        check("abc", "b", Some("abc"));
        check("ABC", "b", Some("ABC"));
        check("abc", "x", None);
        check("", "x", None);
        check("🚢🚢🚢x🚢🚢🚢", "x", Some("🚢x🚢🚢"));
        check("İİİİ needle", "needle", Some("İİ needl"));
    }
}
