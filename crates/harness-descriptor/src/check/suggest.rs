//! "Did you mean": the known name that is closest to the one written.

/// Names longer than this are not compared: a typing slip in them is found by eye.
const MAX_LENGTH: usize = 64;

/// `did you mean …?` for the closest of the known names, if one is close enough.
pub(crate) fn did_you_mean<'a>(written: &str, known: impl IntoIterator<Item = &'a str>) -> Option<String> {
    closest(written, known).map(|name| format!("did you mean `{name}`?"))
}

/// The known name with the fewest slips, if it is close enough to be meant.
///
/// Case and the separators `_`, `-`, ` ` and `.` do not count; otherwise a third of the letters may
/// be inserted, left out, replaced or swapped with their neighbour. Of equally close names the
/// first by text is taken, so the answer does not depend on the order of the names.
pub(crate) fn closest<'a>(written: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let folded = fold(written)?;
    let allowed = (folded.len() / 3).clamp(1, 4);
    let near = known.into_iter().filter(|name| *name != written).filter_map(|name| {
        let other = fold(name)?;
        // A letter or two have too many neighbours.
        let least = folded.len().min(other.len());
        let count = slips(&folded, &other, allowed)?;
        (count == 0 || least > 2).then_some((count, name))
    });
    near.min().map(|(_, name)| name)
}

fn fold(name: &str) -> Option<Vec<char>> {
    let letters: Vec<char> =
        name.chars().filter(|c| !matches!(c, '_' | '-' | ' ' | '.')).flat_map(char::to_lowercase).collect();
    (!letters.is_empty() && letters.len() <= MAX_LENGTH).then_some(letters)
}

/// The number of slips between two words, if there are at most `most`: an edit distance that counts
/// two swapped neighbours once.
fn slips(left: &[char], right: &[char], most: usize) -> Option<usize> {
    if left.len().abs_diff(right.len()) > most {
        return None;
    }
    let mut before: Vec<usize> = Vec::new();
    let mut previous: Vec<usize> = (0..=right.len()).collect();
    for (row, a) in left.iter().enumerate() {
        let mut current = Vec::with_capacity(previous.len());
        current.push(row + 1);
        for (column, b) in right.iter().enumerate() {
            let cell = |cells: &[usize], at: usize| cells.get(at).copied().unwrap_or(usize::MAX - 1);
            let replaced = cell(&previous, column) + usize::from(a != b);
            let mut least = replaced.min(cell(&previous, column + 1) + 1).min(cell(&current, column) + 1);
            let swapped =
                row > 0 && column > 0 && left.get(row - 1) == Some(b) && right.get(column - 1) == Some(a);
            if swapped {
                least = least.min(cell(&before, column - 1) + 1);
            }
            current.push(least);
        }
        before = std::mem::replace(&mut previous, current);
    }
    previous.last().copied().filter(|slips| *slips <= most)
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
    fn what_is_far_is_not_meant() {
        check("owner", &["name", "tools"], None);
        check("a", &["b", "c"], None);
        check("ab", &["ac"], None);
        check("x", &["X"], Some("X"));
        check("", &["a"], None);
        check("model", &["model"], None);
        check(&"m".repeat(70), &[&"m".repeat(71)], None);
    }

    #[test]
    fn the_closest_wins_and_ties_go_by_text() {
        check("billin", &["filling", "billing"], Some("billing"));
        check("beta1", &["beta3", "beta2"], Some("beta2"));
    }
}
