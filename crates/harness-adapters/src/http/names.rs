//! Tool names as chat completions allow them: letters, digits, `_` and `-`, at most 64.

use std::borrow::Cow;
use std::collections::HashSet;

use harness_core::CallId;

const LONGEST: usize = 64;

/// The tools whose own name cannot be sent, with the name that is sent instead.
#[derive(Debug, Default)]
pub(crate) struct ToolNames(Vec<(String, String)>);

impl ToolNames {
    /// Finds a name for each tool. Legal names stay; the others are changed as little as possible, and
    /// so that no two tools are sent under one name.
    pub(crate) fn of<'a>(tools: impl Iterator<Item = &'a str> + Clone) -> Self {
        let mut taken: HashSet<String> =
            tools.clone().filter(|name| is_legal(name)).map(str::to_owned).collect();
        let mut changed: Vec<(String, String)> = Vec::new();
        for name in tools.filter(|name| !is_legal(name)) {
            if changed.iter().any(|(known, _)| known == name) {
                continue;
            }
            let plain = legalized(name, LONGEST);
            let numbered = (2u32..).map(|number| {
                let suffix = format!("_{number}");
                legalized(name, LONGEST.saturating_sub(suffix.len())) + &suffix
            });
            let free = std::iter::once(plain).chain(numbered).find(|wire| !taken.contains(wire));
            let wire = free.unwrap_or_default();
            taken.insert(wire.clone());
            changed.push((name.to_owned(), wire));
        }
        Self(changed)
    }

    /// The name to send. A tool of an earlier request that is not offered now is only made legal.
    pub(crate) fn to_wire<'a>(&'a self, name: &'a str) -> Cow<'a, str> {
        if is_legal(name) {
            return Cow::Borrowed(name);
        }
        let known = self.0.iter().find(|(own, _)| own == name);
        known.map_or_else(|| Cow::Owned(legalized(name, LONGEST)), |(_, wire)| Cow::Borrowed(wire.as_str()))
    }

    /// The tool's own name.
    pub(crate) fn own<'a>(&'a self, wire: &'a str) -> &'a str {
        self.0.iter().find(|(_, sent)| sent == wire).map_or(wire, |(own, _)| own)
    }
}

/// Whether a name can be sent as it is; the rule for tools is also that for names of users.
pub(crate) fn is_legal(name: &str) -> bool {
    (1..=LONGEST).contains(&name.len()) && name.chars().all(is_legal_character)
}

fn is_legal_character(character: char) -> bool {
    character.is_ascii_alphanumeric() || matches!(character, '_' | '-')
}

fn legalized(name: &str, longest: usize) -> String {
    let legal = |character| if is_legal_character(character) { character } else { '_' };
    let mut out: String = name.chars().map(legal).take(longest).collect();
    if out.is_empty() {
        out.push('_');
    }
    out
}

/// The id that a provider gave a call; `None` for an empty text.
pub(crate) fn call_id(given: &str) -> Option<CallId> {
    (!given.is_empty()).then(|| CallId::from(given))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(tools: &[&str], expected: &[&str]) {
        let names = ToolNames::of(tools.iter().copied());
        let sent: Vec<Cow<'_, str>> = tools.iter().map(|name| names.to_wire(name)).collect();
        assert_eq!(sent, expected);
        for (tool, wire) in tools.iter().zip(expected) {
            assert_eq!(names.own(wire), *tool, "the way back");
        }
    }

    #[test]
    fn legal_names_stay() {
        check(&["read_file", "a-1"], &["read_file", "a-1"]);
    }

    #[test]
    fn other_names_are_changed_without_a_clash() {
        check(
            &["orders.find", "orders_find", "orders find"],
            &["orders_find_2", "orders_find", "orders_find_3"],
        );
        check(&["größe"], &["gr__e"]);
    }

    #[test]
    fn long_names_are_cut_without_a_clash() {
        let long = "x".repeat(70);
        let longer = "x".repeat(71);
        let (cut, numbered) = ("x".repeat(64), "x".repeat(62) + "_2");
        check(&[&long, &longer], &[&cut, &numbered]);
    }

    #[test]
    fn a_tool_that_is_not_offered_is_still_sent_legally() {
        assert_eq!(ToolNames::default().to_wire("old.tool"), "old_tool");
    }
}
