//! How a reference is found in a text, and which file it means.

/// Characters of one reference; what is longer is none.
const MAX_LENGTH: usize = 1_024;

/// The references in a text with the byte positions of their `#`, in order.
pub(super) fn references(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.match_indices('#').filter_map(|(at, _)| {
        // `[#a.md](#a-md)` was rewritten before.
        if text.get(..at)?.ends_with('[') {
            return None;
        }
        let rest = text.get(at + 1..)?;
        let run = rest.find(|c: char| !(c.is_ascii_alphanumeric() || "_.-/".contains(c)));
        let run = rest.get(..run.unwrap_or(rest.len()))?;
        (run.len() <= MAX_LENGTH).then(|| longest(run)).flatten().map(|reference| (at, reference))
    })
}

/// Longest prefix of `run` that consists of directories and a name with an extension.
fn longest(run: &str) -> Option<&str> {
    let mut best = None;
    let mut start = 0;
    for part in run.split('/') {
        if part.is_empty() {
            break;
        }
        if let Some(length) = name_length(part) {
            best = Some(start + length);
        }
        start += part.len() + 1;
    }
    run.get(..best?)
}

/// The length of the longest beginning of `part` that is a name, a dot and an extension of letters and digits.
fn name_length(part: &str) -> Option<usize> {
    part.match_indices('.').rev().find_map(|(dot, _)| {
        let after = part.get(dot + 1..)?;
        let length = after.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(after.len());
        (dot > 0 && length > 0).then_some(dot + 1 + length)
    })
}

/// `text` with each reference as a link to its section: `#a.md` becomes `[#a.md](#a-md)`.
pub(super) fn linked(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut copied = 0;
    for (at, reference) in references(text) {
        let end = at + 1 + reference.len();
        out.push_str(text.get(copied..at).unwrap_or_default());
        out.extend(["[#", reference, "](#", &anchor(reference), ")"]);
        copied = end;
    }
    out.push_str(text.get(copied..).unwrap_or_default());
    out
}

fn anchor(reference: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == '-' { c.to_ascii_lowercase() } else { '-' };
    reference.chars().map(plain).collect()
}

/// The extension of a reference, lower-case.
pub(super) fn extension(reference: &str) -> String {
    reference.rsplit_once('.').map_or_else(String::new, |(_, extension)| extension.to_ascii_lowercase())
}

/// The path that a reference means, below `base`; whether it stays there.
pub(super) fn resolved(base: &str, reference: &str) -> (String, bool) {
    let base: Vec<&str> = parts(base).collect();
    let mut path = base.clone();
    let mut inside = true;
    for part in parts(reference) {
        if part == ".." {
            path.pop();
        } else {
            path.push(part);
        }
        // A way that leaves the folder and comes back is one that somebody meant to leave by.
        inside &= path.len() >= base.len();
    }
    (format!("/{}", path.join("/")), inside)
}

fn parts(path: &str) -> impl Iterator<Item = &str> {
    path.split('/').filter(|part| !part.is_empty() && *part != ".")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &[&str]) {
        let found: Vec<&str> = references(text).map(|(_, reference)| reference).collect();
        assert_eq!(found, expected, "{text}");
    }

    #[test]
    fn a_reference_has_an_extension() {
        check("see #src/main.rs and #./notes.md, not #hashtag or #123", &["src/main.rs", "./notes.md"]);
        check("(#a.rs) #b.tar.gz. #c_d-e.x_y", &["a.rs", "b.tar.gz", "c_d-e.x"]);
        check("#dir.d/file #dir//x.md #/x.md #.env #a..b", &["dir.d", "a..b"]);
        check("#../x.md ##y.md #é.md #a.é", &["../x.md", "y.md"]);
        check("[#x.md](#x-md) and #", &[]);
        check(&format!("#{}.md", "a".repeat(2_000)), &[]);
    }

    #[test]
    fn references_become_links() {
        assert_eq!(linked("é #A/b_c.rs; #./x.md!"), "é [#A/b_c.rs](#a-b-c-rs); [#./x.md](#--x-md)!");
        assert_eq!(linked("nothing #here"), "nothing #here");
    }

    #[test]
    fn a_reference_stays_below_its_base() {
        assert_eq!(resolved("/w", "./a/../b.md"), ("/w/b.md".into(), true));
        assert_eq!(resolved("w/", "../x.md"), ("/x.md".into(), false));
        assert_eq!(resolved("/w", "../w/x.md"), ("/w/x.md".into(), false));
        assert_eq!(resolved("", "a.md"), ("/a.md".into(), true));
        assert_eq!(resolved("", "../../a.md"), ("/a.md".into(), true));
    }
}
