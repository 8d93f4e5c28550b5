//! Changes of files: what a call would write, before anything is written.

use harness_core::Origin;
use harness_core::tool::ToolOutcome;
use harness_host::{DynWorkspace, Precondition, WorkspaceFault};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use super::seen::{Memory, SeenFiles};
use super::tools::{failed, not_found};
use crate::arguments::refusal;

/// How many places of a text are named.
const PLACES: usize = 5;

const BOM: char = '\u{feff}';

/// A validated call.
pub(super) enum Ask {
    Write { path: String, content: String },
    Edit { path: String, old: String, new: String, all: bool },
}

/// Content that a call writes.
pub(super) struct Change {
    /// Path of the file, as the workspace names it.
    pub(super) path: String,
    /// Content before; `None` if the file does not exist.
    pub(super) before: Option<String>,
    pub(super) after: String,
    /// One sentence for the model.
    pub(super) what: String,
    /// The call's own fact in the structured result.
    pub(super) fact: (&'static str, Value),
}

impl Change {
    /// Computes the change of a call. Fails if the call would write nothing.
    pub(super) async fn of(
        ask: &Ask,
        files: &dyn DynWorkspace,
        seen: &SeenFiles,
        origin: &Origin,
    ) -> Result<Self, ToolOutcome> {
        let (Ask::Write { path, .. } | Ask::Edit { path, .. }) = ask;
        let file = files.read_boxed(path).await.map_err(|fault| failed(&fault))?;
        let Some(file) = file else {
            let Ask::Write { content, .. } = ask else { return Err(not_found(path)) };
            return Ok(Self::made(path, content));
        };
        let at = file.entry.path;
        let memory = seen.recall(origin, &at, &file.content);
        match (ask, memory) {
            (_, Memory::Changed) => Err(refusal("file_changed", WorkspaceFault::changed(path).message)),
            (Ask::Write { .. }, Memory::Unread) => {
                let message = format!("`{path}` exists and was not read; read it before you replace it");
                Err(refusal("file_not_read", message))
            }
            (Ask::Write { content, .. }, Memory::Same) => Ok(Self {
                path: at,
                after: Style::of(&file.content).apply(content),
                before: Some(file.content),
                what: format!("replaced {path}"),
                fact: ("created", false.into()),
            }),
            (Ask::Edit { old, new, all, .. }, Memory::Same | Memory::Unread) => {
                Self::edited((path, at), file.content, (old, new, *all))
            }
        }
    }

    fn made(path: &str, content: &str) -> Self {
        Self {
            path: harness_host::normal_path(path),
            before: None,
            after: content.to_owned(),
            what: format!("made {path}"),
            fact: ("created", true.into()),
        }
    }

    fn edited(
        (path, at): (&str, String),
        text: String,
        (old, new, all): (&str, &str, bool),
    ) -> Result<Self, ToolOutcome> {
        let style = Style::of(&text);
        let (old, new) = (style.lines(old), style.lines(new));
        let places: Vec<usize> = text.match_indices(&*old).map(|(at, _)| line_of(&text, at)).collect();
        let after = match (places.len(), all) {
            (0, _) => return Err(refusal("no_match", no_match(path, &text, &old))),
            (1, _) | (_, true) => text.replace(&*old, &new),
            (_, false) => return Err(refusal("several_matches", several(path, &places))),
        };
        let (count, lines) = (places.len(), lines(&places));
        let times = if count == 1 { "once".to_owned() } else { format!("{count} times") };
        let what = format!("edited {path} {times}, at {lines}");
        Ok(Self { path: at, before: Some(text), after, what, fact: ("replacements", count.into()) })
    }

    /// Condition under which it may be written.
    pub(super) fn precondition(&self) -> Precondition {
        self.before.clone().map_or(Precondition::Absent, Precondition::Content)
    }

    /// Digest of the path and both contents.
    pub(super) fn digest(&self) -> [u8; 32] {
        let mut digest = Sha256::new();
        for part in [Some(&self.path), self.before.as_ref(), Some(&self.after)] {
            digest.update([u8::from(part.is_some())]);
            let text = part.map_or("", String::as_str);
            digest.update(text.len().to_le_bytes());
            digest.update(text);
        }
        digest.finalize().into()
    }
}

/// Properties of a file that an edit keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Style {
    /// It begins with a byte order mark.
    bom: bool,
    /// All its lines end with CR LF.
    crlf: bool,
}

impl Style {
    fn of(text: &str) -> Self {
        let ends = text.matches('\n').count();
        Self { bom: text.starts_with(BOM), crlf: ends > 0 && text.matches("\r\n").count() == ends }
    }

    /// The text with the file's line ends.
    fn lines(self, text: &str) -> String {
        if self.crlf { text.replace("\r\n", "\n").replace('\n', "\r\n") } else { text.to_owned() }
    }

    /// The text with the file's line ends and byte order mark.
    fn apply(self, text: &str) -> String {
        let text = self.lines(text);
        if self.bom && !text.starts_with(BOM) { format!("{BOM}{text}") } else { text }
    }
}

/// The line of a byte, from 1.
fn line_of(text: &str, at: usize) -> usize {
    text.split_at(at).0.matches('\n').count() + 1
}

/// `line 3`, `lines 3, 7 and 2 more`.
fn lines(places: &[usize]) -> String {
    let shown: Vec<String> = places.iter().take(PLACES).map(usize::to_string).collect();
    let more = places.len() - shown.len();
    let more = if more == 0 { String::new() } else { format!(" and {more} more") };
    let word = if places.len() == 1 { "line" } else { "lines" };
    format!("{word} {}{more}", shown.join(", "))
}

fn several(path: &str, places: &[usize]) -> String {
    let (count, lines) = (places.len(), lines(places));
    format!(
        "old_string occurs {count} times in `{path}`, at {lines}; \
         take more of its surroundings into it, or set replace_all"
    )
}

/// Explains why nothing matches; often only white space differs.
fn no_match(path: &str, text: &str, old: &str) -> String {
    let wanted: Vec<&str> = old.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let near = wanted.first().and_then(|first| {
        let lines: Vec<&str> = text.lines().map(str::trim).collect();
        (0..lines.len()).find(|at| {
            lines.get(*at) == Some(first) && {
                let below = lines.iter().skip(*at).filter(|line| !line.is_empty());
                below.take(wanted.len()).eq(wanted.iter())
            }
        })
    });
    match near {
        Some(at) => format!(
            "old_string does not occur in `{path}`; from line {} on the text differs from it only in white space",
            at + 1
        ),
        None => {
            format!("old_string does not occur in `{path}`; read the file again and copy the text from it")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(file: &str, written: &str, expected: &str) {
        assert_eq!(Style::of(file).apply(written), expected);
    }

    #[test]
    fn line_ends_and_byte_order_mark_stay() {
        check("a\nb\n", "x\ny\n", "x\ny\n");
        check("a\r\nb\r\n", "x\ny\r\n", "x\r\ny\r\n");
        check("a\r\nb\n", "x\ny\n", "x\ny\n");
        check("\u{feff}a", "x", "\u{feff}x");
        check("\u{feff}a\r\n", "\u{feff}x\n", "\u{feff}x\r\n");
        check("", "x\n", "x\n");
    }
}
