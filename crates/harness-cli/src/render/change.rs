//! Changes of files as unified diffs, with hidden characters made visible. Added lines have the colors of their language;
//! the sign says that they are added.

use std::borrow::Cow;

use similar::{Algorithm, DiffOp, DiffTag, capture_diff_slices, group_diff_ops};

use super::highlight::Highlighter;
use super::line::{Line, Look, Text};
use super::proposed::visible;
use super::style::{BAD, BOLD, DIM, GOOD, NOTE};
use crate::terminal::Paint;

/// Unchanged lines around a change.
const CONTEXT: usize = 3;

/// Maximum number of lines that are compared; a larger change is shown as one replacement.
const MOST_COMPARED: usize = 4_000;

/// How a tab is shown.
const TAB: &str = "⇥   ";

/// Mark of the rows that continue a line. No other row starts with it.
const CONTINUED: &str = "↳";

/// Rows of a change: the call and the path with the numbers of added and removed lines, and the unified diff. All
/// changed lines are shown in full.
pub(crate) fn change_rows(
    name: &str,
    path: &str,
    (before, after): (Option<&str>, &str),
    width: usize,
) -> Vec<Line> {
    let old: Vec<&str> = before.unwrap_or_default().split_inclusive('\n').collect();
    let new: Vec<&str> = after.split_inclusive('\n').collect();
    let ops = compared(&old, &new);
    let (removed, added) = counts(&ops);
    let mut head = Text::default();
    head.push(&visible(name).replace('\n', "\\n"), &Look::of(BOLD));
    head.push(&format!(" {}", visible(path).replace('\n', "\\n")), &Look::default());
    head.push(if before.is_none() { " (new file)" } else { "" }, &Look::of(NOTE));
    head.push(&format!(" +{added}"), &Look::of(GOOD));
    head.push(&format!(" -{removed}"), &Look::of(BAD));
    let mut rows = head.chop(width);
    for group in group_diff_ops(ops, CONTEXT) {
        rows.extend(hunk(&group, (&old, &new), Layout { path, is_file: true, width }));
    }
    if after.is_empty() {
        rows.push(Line::of(DIM, "(an empty file)"));
    }
    rows
}

/// Rows of a change of a part of a file: removed and added lines with their surroundings, without a heading.
pub(crate) fn part_rows(path: &str, before: &str, after: &str, width: usize) -> Vec<Line> {
    let old: Vec<&str> = before.lines().collect();
    let new: Vec<&str> = after.lines().collect();
    let groups = group_diff_ops(compared(&old, &new), CONTEXT);
    let layout = Layout { path, is_file: false, width };
    groups.iter().flat_map(|group| body(group, (&old, &new), layout)).collect()
}

/// Properties that rows of changes share.
#[derive(Clone, Copy, Debug)]
struct Layout<'a> {
    path: &'a str,
    /// Whether the rows say that the last line has no end.
    is_file: bool,
    width: usize,
}

fn compared(old: &[&str], new: &[&str]) -> Vec<DiffOp> {
    let start = old.iter().zip(new).take_while(|(one, other)| one == other).count();
    let rest = |lines: &[&str]| lines.len() - start;
    let ends = old.iter().rev().zip(new.iter().rev()).take_while(|(one, other)| one == other).count();
    let end = ends.min(rest(old)).min(rest(new));
    let (old_len, new_len) = (rest(old) - end, rest(new) - end);
    if old_len + new_len <= MOST_COMPARED {
        return capture_diff_slices(Algorithm::Myers, old, new);
    }
    let mut ops = Vec::new();
    if start > 0 {
        ops.push(DiffOp::Equal { old_index: 0, new_index: 0, len: start });
    }
    ops.push(DiffOp::Replace { old_index: start, old_len, new_index: start, new_len });
    if end > 0 {
        ops.push(DiffOp::Equal { old_index: start + old_len, new_index: start + new_len, len: end });
    }
    ops
}

/// Removed and added lines.
fn counts(ops: &[DiffOp]) -> (usize, usize) {
    let changed = ops.iter().filter(|op| op.tag() != DiffTag::Equal);
    changed
        .fold((0, 0), |(removed, added), op| (removed + op.old_range().len(), added + op.new_range().len()))
}

fn hunk(ops: &[DiffOp], (old, new): (&[&str], &[&str]), layout: Layout<'_>) -> Vec<Line> {
    let Some((first, last)) = ops.first().zip(ops.last()) else { return Vec::new() };
    let span = |start: usize, end: usize| match end - start {
        0 => format!("{start},0"),
        1 => (start + 1).to_string(),
        len => format!("{},{len}", start + 1),
    };
    let of_old = span(first.old_range().start, last.old_range().end);
    let of_new = span(first.new_range().start, last.new_range().end);
    let mut head = Text::default();
    head.push(&format!("@@ -{of_old} +{of_new} @@"), &Look::of(DIM));
    let mut rows = head.chop(layout.width);
    rows.extend(body(ops, (old, new), layout));
    rows
}

fn body(ops: &[DiffOp], (old, new): (&[&str], &[&str]), layout: Layout<'_>) -> Vec<Line> {
    let mut rows = Vec::new();
    let mut highlighter = Highlighter::of_path(layout.path);
    for op in ops {
        let removed = old.get(op.old_range()).unwrap_or_default();
        let added = new.get(op.new_range()).unwrap_or_default();
        if op.tag() == DiffTag::Equal {
            for line in added {
                // The language of the lines below depends on it.
                let _ = highlighter.as_mut().map(|highlighter| highlighter.line(&shown(line)).len());
                rows.extend(row(" ", DIM, line, None, layout));
            }
            continue;
        }
        rows.extend(removed.iter().flat_map(|line| row("-", BAD, line, None, layout)));
        rows.extend(added.iter().flat_map(|line| row("+", GOOD, line, highlighter.as_mut(), layout)));
    }
    rows
}

/// A line without hidden characters and without its end.
fn shown(line: &str) -> Cow<'_, str> {
    visible(line.strip_suffix('\n').unwrap_or(line))
}

/// Rows of a line. Those of a file say that its last line has no end.
fn row(
    sign: &str,
    style: Paint,
    line: &str,
    highlighter: Option<&mut Highlighter>,
    layout: Layout<'_>,
) -> Vec<Line> {
    let mut rows = Vec::new();
    let mut text = Text::default();
    let shown = shown(line);
    let parts =
        highlighter.map_or_else(|| vec![(&*shown, style.style())], |highlighter| highlighter.line(&shown));
    for (part, style) in parts {
        text.push(&part.replace('\t', TAB), &Look::of(style));
    }
    for (number, part) in text.chop(layout.width.saturating_sub(1)).into_iter().enumerate() {
        let mut row = Line::of(style, if number == 0 { sign } else { CONTINUED });
        row.append(part);
        rows.push(row);
    }
    if layout.is_file && !line.ends_with('\n') {
        rows.push(Line::of(DIM, "\\ no line end at the end of the file"));
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(before: Option<&str>, after: &str, width: usize) -> String {
        let rows = change_rows("file_edit", "/a.rs", (before, after), width);
        rows.iter().map(|row| row.plain() + "\n").collect()
    }

    #[test]
    fn change_is_a_unified_diff() {
        let before = "1\n2\n3\n4\n5\n6\n7\n8\n9\n";
        insta::assert_snapshot!(rows(Some(before), &before.replace('5', "five\nsix"), 40), @r"
        file_edit /a.rs +2 -1
        @@ -2,7 +2,8 @@
         2
         3
         4
        -5
        +five
        +six
         6
         7
         8
        ");
        insta::assert_snapshot!(rows(None, "new\nfile", 40), @r"
        file_edit /a.rs (new file) +2 -0
        @@ -0,0 +1,2 @@
        +new
        +file
        \ no line end at the end of the file
        ");
        insta::assert_snapshot!(rows(Some("a\n"), "", 40), @r"
        file_edit /a.rs +0 -1
        @@ -1 +0,0 @@
        -a
        (an empty file)
        ");
    }

    #[cfg(feature = "highlight")]
    #[test]
    fn added_lines_have_the_colors_of_their_language() {
        let check = |path: &str, expected: &str| {
            let rows = part_rows(path, "/*\nb\n", "/*\nlet\n*/ let\n", 40);
            let ansi = rows.iter().map(|row| row.to_ansi().replace('\u{1b}', "⎋"));
            assert_eq!(ansi.collect::<Vec<_>>().join("\n"), expected);
        };
        let (same, removed) = ("⎋[2m /*⎋[0m", "⎋[31m-b⎋[0m");
        let added = "⎋[32m+⎋[0m⎋[2mlet⎋[0m\n⎋[32m+⎋[0m⎋[2m*/⎋[0m ⎋[35mlet⎋[0m";
        check("a.rs", &format!("{same}\n{removed}\n{added}"));
        check("notes.txt", &format!("{same}\n{removed}\n⎋[32m+let⎋[0m\n⎋[32m+*/ let⎋[0m"));
    }

    #[test]
    fn no_character_of_a_change_is_hidden() {
        let long = "x".repeat(30) + "+fake";
        let shown = rows(Some("a\n"), &format!("\u{202e}{long}\r\n"), 20);
        assert!(shown.contains("+\\u{202e}xxxxxxxxxxx\n↳xxxxxxxxxxxxxxxxxxx\n↳+fake\\u{d}\n"), "{shown}");
        let trailing = rows(Some("a\n"), "a \n", 20);
        assert!(trailing.contains("-a\n+a \n"), "{trailing}");
    }

    #[test]
    fn large_change_is_shown_as_one_replacement() {
        let text = |word: &str| {
            let lines = (0..3_000).map(|number| format!("{word} {number}\n"));
            lines.collect::<Vec<_>>().concat()
        };
        let shown =
            rows(Some(&("same\n".to_owned() + &text("old"))), &("same\n".to_owned() + &text("new")), 40);
        assert!(
            shown.starts_with("file_edit /a.rs +3000 -3000\n@@ -1,3001 +1,3001 @@\n same\n-old 0\n"),
            "{shown}"
        );
        assert_eq!(shown.lines().count(), 6_003);
    }
}
