//! Takes pseudo tool syntax out of texts for the user.

/// The tags that models write instead of a real call.
const TAGS: [&str; 3] = ["function_calls", "invoke", "parameter"];

/// What the user reads when nothing else is left of an answer.
const NOTHING_LEFT: &str = "I have no answer in words to this; please ask again.";

/// A text without pseudo tool syntax.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Sanitized {
    pub(super) text: String,
    /// What was removed, in the order of removal: a tag's name, or `fenced_block`.
    pub(super) classes: Vec<&'static str>,
}

/// Removes the tags `function_calls`, `invoke` and `parameter` with all that is in them, innermost first,
/// and fenced blocks that consist of them; then runs of empty lines become one. A fence around anything
/// else stays: code is part of an answer. Nothing when there is nothing to remove.
pub(super) fn sanitize(text: &str) -> Option<Sanitized> {
    let mut clean = text.to_owned();
    let mut classes = Vec::new();
    let mut note = |class| {
        if !classes.contains(&class) {
            classes.push(class);
        }
    };
    while let Some((start, end)) = fenced_tags(&clean) {
        clean.replace_range(start..end, "");
        note("fenced_block");
    }
    while let Some((start, end, tag)) = innermost(&clean) {
        clean.replace_range(start..end, "");
        note(tag);
    }
    if classes.is_empty() {
        return None;
    }
    while clean.contains("\n\n\n") {
        clean = clean.replace("\n\n\n", "\n\n");
    }
    let text = clean.trim();
    let text = if text.is_empty() { NOTHING_LEFT } else { text };
    Some(Sanitized { text: text.to_owned(), classes })
}

/// The first closing tag and the opening tag that belongs to it.
fn innermost(text: &str) -> Option<(usize, usize, &'static str)> {
    let closing = |tag: &'static str| {
        let mark = format!("</{tag}>");
        text.find(&mark).map(|at| (at, at + mark.len(), tag))
    };
    let mut closings: Vec<_> = TAGS.into_iter().filter_map(closing).collect();
    closings.sort_unstable();
    closings.into_iter().find_map(|(at, end, tag)| Some((opening(text.get(..at)?, tag)?, end, tag)))
}

/// The last opening of `tag` in a text.
fn opening(text: &str, tag: &str) -> Option<usize> {
    let mark = format!("<{tag}");
    text.rmatch_indices(&mark).map(|(at, _)| at).find(|at| {
        let after = text.get(at + mark.len()..).and_then(|rest| rest.chars().next());
        after.is_some_and(|char| char == '>' || char.is_whitespace())
    })
}

/// A fenced block whose content begins with one of the tags.
fn fenced_tags(text: &str) -> Option<(usize, usize)> {
    let mut from = 0;
    loop {
        let start = from + text.get(from..)?.find("```")?;
        let body = start + text.get(start..)?.find('\n')? + 1;
        let end = body + text.get(body..)?.find("```")? + 3;
        let content = text.get(body..end - 3)?.trim_start();
        let is_tag = |tag: &str| content.strip_prefix('<').is_some_and(|rest| rest.starts_with(tag));
        if TAGS.iter().any(|tag| is_tag(tag)) {
            return Some((start, end));
        }
        from = end;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: Option<(&str, &[&str])>) {
        let clean = sanitize(text);
        let got = clean.as_ref().map(|clean| (clean.text.as_str(), clean.classes.as_slice()));
        assert_eq!(got, expected);
    }

    #[test]
    fn pseudo_tool_syntax_is_removed_and_code_stays() {
        check("All quiet.", None);
        check("Use <b>bold</b> and\n\n\n\nspace.", None);
        check("```rust\nlet a = \"<invoke>\";\n```", None);
        let nested = "Hi.\n<function_calls><invoke name=\"x\"><parameter name=\"q\">1</parameter></invoke></function_calls>\n\n\n\nBye.";
        check(nested, Some(("Hi.\n\nBye.", &["parameter", "invoke", "function_calls"])));
        check("A ```xml\n<invoke name=\"x\"></invoke>\n``` B", Some(("A  B", &["fenced_block"])));
        check("<invoke>x</invoke>", Some((NOTHING_LEFT, &["invoke"])));
        check("an <invoke without end", None);
        check("</invoke> alone", None);
        check("```\n<invoke>", None);
    }
}
