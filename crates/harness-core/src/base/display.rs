//! Safe display of foreign text: invisible characters and secrets.
//!
//! [`mask_secrets`] finds credentials in URLs, and API keys in unexpected places, such as a file named by mistake. Values
//! of known keys are removed by their owner.

use std::borrow::Cow;
use std::ops::Range;

/// Replacement of a secret.
const MASK: &str = "***";

/// Minimum length of an API key after its prefix.
const SHORTEST_KEY: usize = 12;

/// Minimum length of a value after a word such as `token`.
const SHORTEST_VALUE: usize = 16;

/// Prefixes of the API keys of well-known services.
const PREFIXES: [&str; 19] = [
    "sk-",
    "sk_live_",
    "sk_test_",
    "rk_live_",
    "ghp_",
    "gho_",
    "ghu_",
    "ghs_",
    "ghr_",
    "github_pat_",
    "glpat-",
    "xoxb-",
    "xoxp-",
    "xoxa-",
    "xoxs-",
    "AKIA",
    "AIza",
    "hf_",
    "eyJ",
];

/// Names whose values are always secrets.
const SECRET_NAMES: [&str; 6] = ["api_key", "apikey", "api-key", "password", "passwd", "_secret"];

/// Names whose values are secrets if they look random.
const LIKELY_NAMES: [&str; 6] = ["key", "token", "secret", "password", "credential", "authorization"];

/// Returns the first `most` characters of a text, with `…` behind them if there are more.
///
/// ```
/// use harness_core::display::shortened;
///
/// assert_eq!((shortened("größer", 3), shortened("groß", 4)), ("grö…".to_owned(), "groß".to_owned()));
/// ```
pub fn shortened(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}

/// Whether a character is invisible, controls a terminal or changes the order of text. Includes line ends, tabs and
/// joiners, which some scripts and emoji need.
pub fn is_hidden(c: char) -> bool {
    c.is_control()
        || is_joiner(c)
        || matches!(c,
            // Bidirectional marks, embeddings, overrides and isolates.
            '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
            // Line ends that terminals do not show as such.
            | '\u{2028}' | '\u{2029}'
            // Characters without width.
            | '\u{ad}' | '\u{34f}' | '\u{180e}' | '\u{200b}' | '\u{2060}'..='\u{2065}' | '\u{206a}'..='\u{206f}'
            | '\u{feff}' | '\u{fff9}'..='\u{fffb}'
            // Tags and rare variation selectors, in which whole texts can be hidden.
            | '\u{e0000}'..='\u{e0fff}')
}

/// Whether a character joins or separates its neighbors.
pub fn is_joiner(c: char) -> bool {
    matches!(c, '\u{200c}' | '\u{200d}')
}

/// Replaces each secret by `***`: `https://***@host`, `sk-***`, `MY_API_KEY=***`, `Bearer ***`.
///
/// ```
/// use harness_core::display::mask_secrets;
///
/// assert_eq!(mask_secrets("https://me:pw@example.com/v1"), "https://***@example.com/v1");
/// assert_eq!(mask_secrets("OPENAI_API_KEY=abc123"), "OPENAI_API_KEY=***");
/// assert_eq!(mask_secrets("the limit is 30 tokens"), "the limit is 30 tokens");
/// ```
pub fn mask_secrets(text: &str) -> Cow<'_, str> {
    masked(text, |_| MASK.to_owned())
}

/// Masks secrets in a quoted line: each character becomes `*`, so that columns are unchanged. A line that consists of an
/// API key is masked, too.
pub fn mask_line(line: &str) -> Cow<'_, str> {
    let stars = |secret: &str| "*".repeat(secret.chars().count());
    let word = line.trim();
    if word.len() > SHORTEST_VALUE && looks_random(word) {
        return Cow::Owned(line.replace(word, &stars(word)));
    }
    masked(line, stars)
}

fn masked(text: &str, mask: impl Fn(&str) -> String) -> Cow<'_, str> {
    let secrets = secrets(text);
    if secrets.is_empty() {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    let mut done = 0;
    for Range { start, end } in secrets {
        out.push_str(text.get(done..start).unwrap_or_default());
        out.push_str(&mask(text.get(start..end).unwrap_or_default()));
        done = end;
    }
    out.push_str(text.get(done..).unwrap_or_default());
    Cow::Owned(out)
}

/// Positions of the secrets, in order and disjoint.
fn secrets(text: &str) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut before = Before::default();
    for word in words(text) {
        let secret = userinfo(text, &word)
            .or_else(|| after_name(text, &word, &before))
            .or_else(|| with_prefix(text, &word));
        before.see(text.get(word).unwrap_or_default());
        found.extend(secret);
    }
    found
}

/// Context before a word.
#[derive(Default)]
struct Before<'t> {
    word: &'t str,
    /// Name whose value the next word may be.
    name: Option<&'t str>,
}

impl<'t> Before<'t> {
    fn see(&mut self, word: &'t str) {
        let name = if matches!(word, ":" | "=") { Some(self.word) } else { word.strip_suffix([':', '=']) };
        *self = Self { word, name };
    }
}

/// Splits at white space and quotes.
fn words(text: &str) -> impl Iterator<Item = Range<usize>> {
    let ends = |c: char| {
        c.is_whitespace() || c.is_control() || matches!(c, '"' | '\'' | '`' | '<' | '>' | ',' | ';')
    };
    let mut at = 0;
    text.split(ends).filter_map(move |word| {
        let start = at + text.get(at..).and_then(|rest| rest.find(word)).unwrap_or_default();
        let range = start..start + word.len();
        at = range.end;
        (!word.is_empty()).then_some(range)
    })
}

/// Credentials before the `@` of a URL, or of `user:password@host`.
fn userinfo(text: &str, word: &Range<usize>) -> Option<Range<usize>> {
    let whole = text.get(word.clone())?;
    let scheme = whole.find(":/").filter(|at| whole.get(..*at).is_some_and(is_scheme));
    let start = match scheme {
        Some(at) => at + 1 + whole.get(at + 1..)?.bytes().take_while(|byte| *byte == b'/').count(),
        None => 0,
    };
    let rest = whole.get(start..)?;
    let authority = rest.get(..rest.find(['/', '?', '#']).unwrap_or(rest.len()))?;
    let at = match (authority.rfind('@'), authority.split_once(':')) {
        (Some(at), _) if scheme.is_some() => at,
        (Some(at), Some((user, _))) if user.len() < at => at,
        // A password with a slash in it.
        (None, Some((_, port))) if scheme.is_some() && !port.bytes().all(|byte| byte.is_ascii_digit()) => {
            rest.rfind('@')?
        }
        (None | Some(_), _) => return None,
    };
    let is_mail = rest.starts_with("mailto:");
    (at > 0 && !is_mail).then(|| word.start + start..word.start + start + at)
}

fn is_scheme(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.'))
}

/// Value of `name=value` and `name: value`, and the word after `Bearer`.
fn after_name(text: &str, word: &Range<usize>, before: &Before<'_>) -> Option<Range<usize>> {
    let whole = text.get(word.clone())?;
    if matches!(before.word.to_ascii_lowercase().as_str(), "bearer" | "basic") {
        return (whole.len() >= 8 && looks_random(whole)).then(|| word.clone());
    }
    // serde's form of an unexpected text.
    if before.word == "string" && whole.len() > SHORTEST_VALUE && looks_random(whole) {
        return Some(word.clone());
    }
    let inside = whole.find(['=', ':']).filter(|at| at + 1 < whole.len());
    let (name, start) = match inside {
        Some(at) => (whole.get(..at)?, at + 1),
        None => (before.name?, 0),
    };
    let value = whole.get(start..)?;
    let name = name.to_ascii_lowercase();
    let surely = SECRET_NAMES.iter().any(|one| name.ends_with(one)) && value.len() >= 6;
    let likely = || {
        LIKELY_NAMES.iter().any(|one| name.contains(one))
            && value.len() >= SHORTEST_VALUE
            && looks_random(value)
    };
    (surely || likely()).then(|| word.start + start..word.end)
}

/// Key after a well-known prefix.
fn with_prefix(text: &str, word: &Range<usize>) -> Option<Range<usize>> {
    let whole = text.get(word.clone())?;
    let starts_word =
        |at: usize| !whole.get(..at).unwrap_or_default().ends_with(|c: char| c.is_alphanumeric());
    PREFIXES.iter().find_map(|prefix| {
        let (at, _) = whole.match_indices(prefix).find(|(at, _)| starts_word(*at))?;
        let start = at + prefix.len();
        let key = whole.get(start..)?;
        let length = key.bytes().take_while(|byte| is_token_byte(*byte)).count();
        (length >= SHORTEST_KEY).then(|| word.start + start..word.start + start + length)
    })
}

fn is_token(text: &str) -> bool {
    text.bytes().all(is_token_byte)
}

fn is_token_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'+' | b'/' | b'=' | b'~')
}

/// Whether a text is one token of letters and digits.
fn looks_random(text: &str) -> bool {
    is_token(text)
        && text.bytes().any(|byte| byte.is_ascii_digit())
        && text.bytes().any(|byte| byte.is_ascii_alphabetic())
}
