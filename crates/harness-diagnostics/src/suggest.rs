//! "Did you mean": known names that are close to the one written.

/// Names longer than this are not compared: a slip in them is found by eye.
const MAX_LENGTH: usize = 64;

/// Returns `did you mean …?` for the closest of the known names, if one is close enough.
pub fn did_you_mean<'a>(written: &str, known: impl IntoIterator<Item = &'a str>) -> Option<String> {
    closest(written, known).map(|name| format!("did you mean `{name}`?"))
}

/// Returns the known name with the fewest slips, if it is close enough.
///
/// Case and the separators `_`, `-`, ` ` and `.` do not count. Otherwise up to a third of the letters,
/// at most four, may be inserted, omitted, replaced or swapped with their neighbor. Of equally close names
/// the first in text order is returned.
///
/// ```
/// use harness_diagnostics::suggest::closest;
///
/// assert_eq!(closest("maxTurns", ["max_turns", "model"]), Some("max_turns"));
/// assert_eq!(closest("owner", ["max_turns", "model"]), None);
/// ```
pub fn closest<'a>(written: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let folded = fold(written)?;
    let length = folded.chars().count();
    let allowed = (length / 3).clamp(1, 4);
    let near = known.into_iter().filter(|name| *name != written).filter_map(|name| {
        let other = fold(name)?;
        let slips = strsim::osa_distance(&folded, &other);
        // A name of one or two letters has too many neighbors.
        let is_near = slips == 0 || slips <= allowed && length.min(other.chars().count()) > 2;
        is_near.then_some((slips, name))
    });
    near.min().map(|(_, name)| name)
}

fn fold(name: &str) -> Option<String> {
    let letters: String =
        name.chars().filter(|c| !matches!(c, '_' | '-' | ' ' | '.')).flat_map(char::to_lowercase).collect();
    (!letters.is_empty() && letters.chars().count() <= MAX_LENGTH).then_some(letters)
}

/// Lists names in a sentence: `` `a`, `b` or `c` ``.
pub fn list<S: AsRef<str>>(names: impl IntoIterator<Item = S>, last: &str) -> String {
    let quoted: Vec<String> = names.into_iter().map(|name| format!("`{}`", name.as_ref())).collect();
    match quoted.split_last() {
        None => String::new(),
        Some((only, [])) => only.clone(),
        Some((end, rest)) => format!("{} {last} {end}", rest.join(", ")),
    }
}

/// Returns a hint for an unknown name: the closest known name, or all of them.
pub fn hint<'a, I>(written: &str, known: I) -> String
where
    I: IntoIterator<Item = &'a str>,
    I::IntoIter: Clone,
{
    let known = known.into_iter();
    did_you_mean(written, known.clone()).unwrap_or_else(|| format!("expected {}", list(known, "or")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(written: &str, known: &[&str], expected: Option<&str>) {
        assert_eq!(closest(written, known.iter().copied()), expected);
    }

    #[test]
    fn slips_of_all_kinds_are_found() {
        let keys = ["instructions", "handoffs", "max_turns", "model", "modelSettings", "tools", "name"];
        check("instruction", &keys, Some("instructions"));
        check("hand_offs", &keys, Some("handoffs"));
        check("maxTurns", &keys, Some("max_turns"));
        check("modle", &keys, Some("model"));
        check("model_settings", &keys, Some("modelSettings"));
        check("Tools", &keys, Some("tools"));
    }

    #[test]
    fn distant_names_are_not_suggested() {
        check("owner", &["name", "tools"], None);
        check("a", &["b", "c"], None);
        check("ab", &["ac"], None);
        check("x", &["X"], Some("X"));
        check("", &["a"], None);
        check("model", &["model"], None);
        check(&"m".repeat(70), &[&"m".repeat(71)], None);
    }

    #[test]
    fn closest_name_wins_and_ties_go_by_text() {
        check("billin", &["filling", "billing"], Some("billing"));
        check("beta1", &["beta3", "beta2"], Some("beta2"));
    }
}
