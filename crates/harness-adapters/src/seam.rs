//! Texts that arrive in fragments, where a character may be split.
//!
//! JSON writes a character outside of the basic plane as two escapes (`\ud83d\ude80`), and some
//! endpoints split their fragments between them. A half is not valid Rust text, so it is buffered
//! until the other half arrives.

/// In place of half a character whose other half never came.
const MARK: char = '\u{fffd}';

/// Fragment of a text.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct Piece {
    /// Second half of a character that started in the previous fragment.
    low: Option<u16>,
    text: String,
    /// First half of a character that ends in the next fragment.
    high: Option<u16>,
}

impl Piece {
    /// Whether nothing is in it.
    pub(crate) fn is_empty(&self) -> bool {
        self.low.is_none() && self.text.is_empty() && self.high.is_none()
    }

    /// The text alone, with a mark in place of each half.
    #[cfg(feature = "http")]
    pub(crate) fn into_text(self) -> String {
        let mut seam = Seam::default();
        let text = seam.join(self);
        text + seam.end()
    }
}

impl From<String> for Piece {
    fn from(text: String) -> Self {
        Self { text, ..Self::default() }
    }
}

/// Text of a key as a fragment of a longer one; empty if absent.
#[cfg(feature = "local-command")]
pub(crate) fn piece_at(object: &harness_core::JsonObject, key: &str) -> Piece {
    object.get(key).and_then(|value| piece_of(value.text())).unwrap_or_default()
}

/// Content of a valid JSON string; `None` for any other value. Unpaired halves of characters inside
/// it become replacement characters.
pub(crate) fn piece_of(json: &str) -> Option<Piece> {
    let inner = json.strip_prefix('"')?.strip_suffix('"')?;
    if !inner.contains('\\') {
        return Some(inner.to_owned().into());
    }
    if let Ok(text) = serde_json::from_str::<String>(json) {
        return Some(text.into());
    }
    let units = units(inner);
    let is_low = |unit: &&u16| (0xdc00..0xe000).contains(*unit);
    let is_high = |unit: &&u16| (0xd800..0xdc00).contains(*unit);
    let low = units.first().filter(is_low).copied();
    let high = units.last().filter(is_high).copied();
    let end = units.len().saturating_sub(usize::from(high.is_some()));
    let middle = units.get(usize::from(low.is_some())..end).unwrap_or_default();
    Some(Piece { low, text: String::from_utf16_lossy(middle), high })
}

/// The code units of the inside of a valid string literal.
fn units(inner: &str) -> Vec<u16> {
    let mut units = Vec::with_capacity(inner.len());
    let mut characters = inner.chars();
    while let Some(character) = characters.next() {
        if character != '\\' {
            units.extend_from_slice(character.encode_utf16(&mut [0; 2]));
            continue;
        }
        units.push(match characters.next() {
            Some('b') => 0x08,
            Some('f') => 0x0c,
            Some('n') => 0x0a,
            Some('r') => 0x0d,
            Some('t') => 0x09,
            Some('u') => {
                let digits: String = characters.by_ref().take(4).collect();
                u16::from_str_radix(&digits, 16).unwrap_or(0xfffd)
            }
            Some('/') => u16::from(b'/'),
            Some('"') => u16::from(b'"'),
            Some(_) | None => u16::from(b'\\'),
        });
    }
    units
}

/// The end of a text that grows: half a character, perhaps.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Seam(Option<u16>);

impl Seam {
    /// Appends a fragment and returns the new text.
    pub(crate) fn join(&mut self, piece: Piece) -> String {
        if piece.is_empty() {
            return String::new();
        }
        let whole = match (self.0.take(), piece.low) {
            (None, None) => None,
            (Some(high), Some(low)) => {
                char::decode_utf16([high, low]).next().and_then(Result::ok).or(Some(MARK))
            }
            (Some(_), None) | (None, Some(_)) => Some(MARK),
        };
        self.0 = piece.high;
        match whole {
            None => piece.text,
            Some(whole) => format!("{whole}{}", piece.text),
        }
    }

    /// The mark of a half that was left over, when the text is over.
    pub(crate) fn end(self) -> &'static str {
        if self.0.is_some() { "\u{fffd}" } else { "" }
    }
}

#[cfg(test)]
#[cfg(feature = "http")]
mod tests {
    use super::*;

    fn read(literal: &str) -> Piece {
        piece_of(literal).unwrap()
    }

    #[track_caller]
    fn check(literals: &[&str], expected: &str) {
        let mut seam = Seam::default();
        let mut text: String = literals.iter().map(|literal| seam.join(read(literal))).collect();
        text.push_str(seam.end());
        assert_eq!(text, expected, "{literals:?}");
    }

    #[test]
    fn fault_26_halves_of_a_character_are_joined() {
        check(&[r#""go \ud83d""#, r#""\ude80!""#], "go \u{1f680}!");
        check(&[r#""\ud83d""#, r#""\ude80""#], "\u{1f680}");
        check(&[r#""\ud83d""#, r#""""#, r#""\ude80\ud83d""#, r#""\ude80""#], "\u{1f680}\u{1f680}");
        check(&[r#""a\n\"\\\/\u0041\ud83d""#, r#""\ude80""#], "a\n\"\\/A\u{1f680}");
    }

    #[test]
    fn fault_26_a_half_without_the_other_is_marked() {
        check(&[r#""a\ud83d""#], "a\u{fffd}");
        check(&[r#""\ud83d""#, r#""b""#], "\u{fffd}b");
        check(&[r#""a""#, r#""\ude80b""#], "a\u{fffd}b");
        check(&[r#""\ud83d""#, r#""\ud83d""#, r#""\ude80""#], "\u{fffd}\u{1f680}");
        check(&[r#""a\ud83db\ude80c""#], "a\u{fffd}b\u{fffd}c");
        assert_eq!(read(r#""a\ud83d""#).into_text(), "a\u{fffd}");
    }
}
