//! Texts that upstream reads and the parser refuses, made readable without moving a byte.
//!
//! Byte order marks inside a text are content upstream; they get a stand-in. Lines of a quoted
//! scalar may begin anywhere upstream, also at the margin or with a tab; the content of such a
//! scalar is hidden from the parser and decoded from the original text. All offsets stay right.

use std::borrow::Cow;

use granit_parser::{ErrorKind, Options, ScanError, Scanner, StrInput};

use super::quoted;
use crate::document::Bytes;

/// Scalars are hidden one at a time, each at the cost of reading the text again.
const MAX_HIDDEN: usize = 64;
const MAX_HIDDEN_BYTES: usize = 32 << 20;

/// A text as the parser gets it.
pub(super) struct Mask<'a> {
    original: &'a str,
    masked: Cow<'a, str>,
    /// Stands for a byte order mark.
    stand_in: Option<char>,
    /// Quoted scalars with hidden content, their quotes included.
    hidden: Vec<Bytes>,
}

impl<'a> Mask<'a> {
    /// The text as it is.
    fn unmasked(original: &'a str) -> Self {
        Self { original, masked: original.into(), stand_in: None, hidden: Vec::new() }
    }

    pub(super) fn new(original: &'a str) -> Self {
        let unmasked = Self::unmasked(original);
        if !original.contains('\u{feff}') {
            return unmasked;
        }
        // Escapes must not make the stand-in either. With every private-use character taken, the
        // parser gets the text as it is.
        let lower = original.to_ascii_lowercase();
        let is_free = |c: &char| !original.contains(*c) && !lower.contains(&format!("{:x}", u32::from(*c)));
        let Some(stand_in) = ('\u{e000}'..='\u{f8ff}').find(is_free) else { return unmasked };
        let masked = original.replace('\u{feff}', stand_in.encode_utf8(&mut [0; 4]));
        Self { masked: masked.into(), stand_in: Some(stand_in), ..unmasked }
    }

    /// Input of the parser.
    pub(super) fn text(&self) -> &str {
        &self.masked
    }

    pub(super) fn original(&self) -> &'a str {
        self.original
    }

    pub(super) fn hidden(&self) -> &[Bytes] {
        &self.hidden
    }

    pub(super) fn is_hidden(&self, scalar: Bytes) -> bool {
        self.hidden.contains(&scalar)
    }

    pub(super) fn unmask<'t>(&self, text: Cow<'t, str>) -> Cow<'t, str> {
        match self.stand_in {
            Some(stand_in) if text.contains(stand_in) => text.replace(stand_in, "\u{feff}").into(),
            _ => text,
        }
    }

    /// Hides the quoted scalar in which the parser stopped. Says whether it is worth another try.
    pub(super) fn hide(&mut self, error: &ScanError, options: &Options) -> bool {
        let lines_only =
            matches!(error.kind(), ErrorKind::InvalidQuotedScalarIndent | ErrorKind::TabInIndentation);
        let count = self.hidden.len() + 1;
        if !lines_only || count > MAX_HIDDEN || self.masked.len().saturating_mul(count) > MAX_HIDDEN_BYTES {
            return false;
        }
        let Some(at) = error.marker().byte_offset() else { return false };
        let Some(scalar) = open_quote(&self.masked, at, options.clone()) else { return false };
        let (Ok(start), Ok(end)) = (u32::try_from(scalar.start), u32::try_from(scalar.end)) else {
            return false;
        };
        let Some(content) = self.masked.get(scalar.start + 1..scalar.end - 1) else { return false };
        let blind = "x".repeat(content.len());
        self.masked.to_mut().replace_range(scalar.start + 1..scalar.end - 1, &blind);
        self.hidden.push(Bytes { start, end });
        true
    }
}

/// The quoted scalar that begins before `at` and ends after it.
fn open_quote(text: &str, at: usize, options: Options) -> Option<std::ops::Range<usize>> {
    let mut from = 0;
    for token in Scanner::with_options(StrInput::new(text), options) {
        let Ok(token) = token else { break };
        let (span, _) = token.into_parts();
        from = from.max(span.end.byte_offset()?);
    }
    // Tokens that may turn out to be keys are held back, so a few may still stand before the quote.
    let mut starts_token = true;
    while from < at {
        let rest = text.get(from..)?;
        let c = rest.chars().next()?;
        from += match c {
            '"' | '\'' if starts_token => {
                let length = quoted::length(rest)?;
                if from + length > at {
                    return Some(from..from + length);
                }
                length
            }
            '#' if text.get(..from)?.ends_with([' ', '\t', '\n', '\r']) => rest.find(['\n', '\r'])?,
            '&' | '!' if starts_token => {
                rest.find(|c: char| c.is_ascii_whitespace() || ",[]{}".contains(c))?
            }
            c => {
                starts_token = match c {
                    ' ' | '\t' | '\n' | '\r' => starts_token || text.get(..from)?.ends_with([':', '-', '?']),
                    _ => ",[{".contains(c) || c == ':' && text.get(..from)?.ends_with(['"', '\'']),
                };
                c.len_utf8()
            }
        };
    }
    None
}
