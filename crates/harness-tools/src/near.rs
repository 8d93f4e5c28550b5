//! Names that a misspelt name may stand for.

/// How many names are suggested at most.
const MOST: usize = 3;

/// The names of `known` that are nearly `word`, nearest first.
pub(crate) fn near<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
    let reach = (word.chars().count() / 3).clamp(1, 4);
    let mut found: Vec<(usize, &str)> = known
        .into_iter()
        .filter_map(|name| {
            let far = distance(&word.to_lowercase(), &name.to_lowercase(), reach)?;
            Some((far, name))
        })
        .collect();
    found.sort_unstable();
    found.into_iter().take(MOST).map(|(_, name)| name).collect()
}

/// `did you mean …?`, if a known name is near.
pub(crate) fn did_you_mean<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<String> {
    let names = near(word, known);
    (!names.is_empty()).then(|| format!("did you mean {}?", list(&names, "or")))
}

/// `` `a`, `b` or `c` ``.
pub(crate) fn list<S: AsRef<str>>(names: &[S], last: &str) -> String {
    let quoted: Vec<String> = names.iter().map(|name| format!("`{}`", name.as_ref())).collect();
    match quoted.split_last() {
        None => String::new(),
        Some((only, [])) => only.clone(),
        Some((end, rest)) => format!("{} {last} {end}", rest.join(", ")),
    }
}

/// The number of edits between two words, if it is at most `reach`.
fn distance(a: &str, b: &str, reach: usize) -> Option<usize> {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    if a.len().abs_diff(b.len()) > reach {
        return None;
    }
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let mut left = i + 1;
        let mut corner = i;
        for (cell, y) in row.iter_mut().skip(1).zip(&b) {
            let above = *cell;
            let here = (corner + usize::from(x != y)).min(above + 1).min(left + 1);
            (*cell, left, corner) = (here, here, above);
        }
        if let Some(first) = row.first_mut() {
            *first = i + 1;
        }
    }
    row.last().copied().filter(|far| *far <= reach)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(word: &str, expected: Option<&str>) {
        let known = ["timeout", "max_output", "command", "args", "env", "env_pass"];
        assert_eq!(did_you_mean(word, known).as_deref(), expected);
    }

    #[test]
    fn near_names_are_suggested_nearest_first() {
        check("timout", Some("did you mean `timeout`?"));
        check("Command", Some("did you mean `command`?"));
        check("maxOutput", Some("did you mean `max_output`?"));
        check("arg", Some("did you mean `args`?"));
        check("retries", None);
    }
}
