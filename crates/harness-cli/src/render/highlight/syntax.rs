//! Languages, as Sublime Text describes them.

use std::ops::Range;
use std::sync::LazyLock;

use anstyle::Style;
use syntect::parsing::{ParseState, ScopeStack, SyntaxReference, SyntaxSet};

use super::colors::style;

/// All languages. They are loaded when the first one is used, and their patterns are compiled when they are needed.
static LANGUAGES: LazyLock<SyntaxSet> = LazyLock::new(two_face::syntax::extra_newlines);

/// Names that models give to languages besides those in the set.
const ALIASES: [(&str, &str); 10] = [
    ("jsx", "js"),
    ("shell", "sh"),
    ("console", "sh"),
    ("csharp", "cs"),
    ("golang", "go"),
    ("jsonc", "json"),
    ("json5", "json"),
    ("jsonl", "json"),
    ("objective-c", "m"),
    ("docker", "Dockerfile"),
];

/// The state of a language at the start of a line.
#[derive(Clone, Debug)]
pub(super) struct Syntax {
    state: ParseState,
    scopes: ScopeStack,
}

impl Syntax {
    pub(super) fn of_language(name: &str) -> Option<Self> {
        let alias = ALIASES.iter().find(|(alias, _)| name.eq_ignore_ascii_case(alias));
        let name = alias.map_or(name, |(_, name)| name);
        Self::of(LANGUAGES.find_syntax_by_token(name))
    }

    pub(super) fn of_file(name: &str) -> Option<Self> {
        let extension = name.rsplit_once('.').map(|(_, extension)| extension);
        let by_name = LANGUAGES.find_syntax_by_extension(name);
        Self::of(by_name.or_else(|| LANGUAGES.find_syntax_by_extension(extension?)))
    }

    fn of(syntax: Option<&SyntaxReference>) -> Option<Self> {
        let syntax = syntax.filter(|syntax| syntax.name != "Plain Text")?;
        Some(Self { state: ParseState::new(syntax), scopes: ScopeStack::new() })
    }

    /// Parts of the next line.
    pub(super) fn line<'l>(&mut self, line: &'l str) -> Vec<(&'l str, Style)> {
        let mut parts: Vec<(Range<usize>, Style)> = Vec::new();
        let ops = self.state.parse_line(&format!("{line}\n"), &LANGUAGES).unwrap_or_default();
        for (at, op) in ops.iter().map(|(at, op)| (*at, Some(op))).chain([(line.len(), None)]) {
            let start = parts.last().map_or(0, |(range, _)| range.end);
            let (end, style) = (at.min(line.len()), style(self.scopes.as_slice()));
            match parts.last_mut() {
                Some((range, last)) if *last == style => range.end = end.max(start),
                _ if end > start => parts.push((start..end, style)),
                _ => {}
            }
            // An operation that does not fit its scopes only costs colors.
            let _ = op.map(|op| self.scopes.apply(op));
        }
        parts.into_iter().filter_map(|(range, style)| Some((line.get(range)?, style))).collect()
    }
}
