//! Ids of calls as a protocol allows them.

use std::collections::HashSet;
use std::sync::Arc;

/// Which ids of calls a protocol takes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct IdRule {
    /// Bytes of the longest id.
    pub(crate) longest: usize,
    /// Whether an id may hold anything but ASCII letters, digits, `_` and `-`.
    pub(crate) any_character: bool,
}

/// Gives out ids that are legal and not used twice.
#[derive(Debug)]
pub(crate) struct SentIds {
    rule: IdRule,
    taken: HashSet<Arc<str>>,
}

impl SentIds {
    pub(crate) fn new(rule: IdRule) -> Self {
        Self { rule, taken: HashSet::new() }
    }

    /// The id to send for the next call, which calls itself `own`: that very id where it can be.
    pub(crate) fn next(&mut self, own: &str) -> Arc<str> {
        let numbered = (2u64..).map(|number| {
            let suffix = format!("_{number}");
            self.rule.legalized(own, self.rule.longest.saturating_sub(suffix.len())) + &suffix
        });
        let plain = self.rule.legalized(own, self.rule.longest);
        let mut ids = std::iter::once(plain).chain(numbered);
        let id: Arc<str> = ids.find(|id| !self.taken.contains(id.as_str())).unwrap_or_default().into();
        self.taken.insert(Arc::clone(&id));
        id
    }
}

impl IdRule {
    fn legalized(self, own: &str, longest: usize) -> String {
        let mut out = String::with_capacity(own.len().min(longest));
        for character in own.chars() {
            let legal = self.any_character || character.is_ascii_alphanumeric();
            let character = if legal || matches!(character, '_' | '-') { character } else { '_' };
            if out.len().saturating_add(character.len_utf8()) > longest {
                break;
            }
            out.push(character);
        }
        if out.is_empty() {
            out.push_str("call");
        }
        out
    }
}
