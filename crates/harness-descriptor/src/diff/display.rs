//! Human-readable changes.

use std::fmt;

use similar::{Algorithm, ChangeTag, DiffOp, capture_diff_slices};

use super::change::{Aspect, Change, DescriptorDiff, Difference, Subject};
use crate::value::Value;

/// Characters of a value that are shown.
const MAX_VALUE: usize = 72;
/// Characters of a line of text that are shown.
const MAX_LINE: usize = 100;
/// Lines of a changed text that are shown.
const MAX_LINES: usize = 16;
/// Lines of two texts, multiplied, that are compared.
const MAX_TEXT_WORK: usize = 16_000_000;
/// Unchanged lines before and behind a change.
const CONTEXT: usize = 1;

impl fmt::Display for DescriptorDiff {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for change in &self.changes {
            match self.part_behind(change) {
                Some(part) => {
                    let Change { subject, aspect, .. } = change;
                    writeln!(f, "~ {subject}{aspect}: as instruction part `{}`", visible(part))?;
                }
                None => write!(f, "{change}")?,
            }
        }
        Ok(())
    }
}

impl DescriptorDiff {
    /// The part whose changed text an agent uses, so that the text need not be shown once for each agent.
    fn part_behind(&self, change: &Change) -> Option<&str> {
        let is_text = matches!(change.aspect, Aspect::Instructions | Aspect::Part(_));
        if !is_text || !matches!(change.difference, Difference::Changed { .. }) {
            return None;
        }
        self.changes.iter().find_map(|other| {
            let Subject::InstructionPart(name) = &other.subject else { return None };
            (other.difference == change.difference).then_some(name.as_str())
        })
    }
}

/// One line, with its end; changed texts have more.
impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { subject, aspect, difference } = self;
        let mark = match difference {
            Difference::Added { .. } => '+',
            Difference::Removed { .. } => '-',
            Difference::Changed { .. } => '~',
        };
        write!(f, "{mark} {subject}{aspect}")?;
        match difference {
            // The aspect says it all.
            Difference::Added { after: value } | Difference::Removed { before: value }
                if value.as_str().is_some() && matches!(aspect, Aspect::Tool(_) | Aspect::Handoff(_)) =>
            {
                writeln!(f)
            }
            Difference::Added { after: value } | Difference::Removed { before: value } => {
                writeln!(f, ": {}", shown(value))
            }
            Difference::Changed { before: Value::String(before), after: Value::String(after) }
                if is_text(before) || is_text(after) =>
            {
                writeln!(f, ":")?;
                write_text(f, before, after)
            }
            Difference::Changed { before, after } => writeln!(f, ": {} → {}", shown(before), shown(after)),
        }
    }
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Section(path) if path.is_empty() => f.write_str("the descriptor"),
            Self::Section(path) => f.write_str(&visible(path)),
            Self::Version => f.write_str("descriptor_version"),
            Self::Metadata => f.write_str("metadata"),
            Self::Runtime => f.write_str("runtime"),
            Self::Field(key) => write!(f, "context field `{}`", visible(key)),
            Self::Reference(key) => write!(f, "context reference `{}`", visible(key)),
            Self::InstructionPart(name) => write!(f, "instruction part `{}`", visible(name)),
            Self::Tool(id) => write!(f, "tool `{}`", visible(id)),
            Self::Defaults => f.write_str("agent_defaults"),
            Self::Agent(id) => write!(f, "agent `{}`", visible(id)),
        }
    }
}

/// Continues a [`Subject`]: nothing for the whole, otherwise a comma and its name.
impl fmt::Display for Aspect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Whole => Ok(()),
            Self::Name => f.write_str(", name"),
            Self::HandoffDescription => f.write_str(", handoffDescription"),
            Self::Model => f.write_str(", model"),
            Self::ModelSettings => f.write_str(", modelSettings"),
            Self::Setting(key) => write!(f, ", setting `{}`", visible(key)),
            Self::Instructions => f.write_str(", instructions"),
            Self::Part(index) => write!(f, ", instructions[{index}]"),
            Self::PartCondition(index) => write!(f, ", condition of instructions[{index}]"),
            Self::Tools => f.write_str(", tools"),
            Self::Tool(id) => write!(f, ", tool `{}`", visible(id)),
            Self::Handoffs => f.write_str(", handoffs"),
            Self::Handoff(to) => write!(f, ", handoff to `{}`", visible(to)),
            Self::HandoffCondition(to) => write!(f, ", condition of the handoff to `{}`", visible(to)),
            Self::Target => f.write_str(", target"),
            Self::Key(path) => write!(f, ", `{}`", visible(path)),
        }
    }
}

/// Whether a string is shown line by line.
fn is_text(text: &str) -> bool {
    text.contains('\n') || text.chars().nth(MAX_VALUE).is_some()
}

fn shown(value: &Value) -> String {
    cut(&value.to_string(), 0, MAX_VALUE)
}

/// A terminal must not obey what a descriptor says.
fn visible(text: &str) -> String {
    text.chars().map(|c| if c.is_control() && c != '\t' { '\u{fffd}' } else { c }).collect()
}

/// At most `room` characters from a position on, with `…` where something is left out.
fn cut(text: &str, from: usize, room: usize) -> String {
    let mut out = String::from(if from > 0 { "…" } else { "" });
    let mut rest = text.chars().skip(from);
    out.extend(rest.by_ref().take(room));
    if rest.next().is_some() {
        out.push('…');
    }
    visible(&out)
}

/// The lines that changed, with the lines around them.
fn write_text(f: &mut fmt::Formatter<'_>, before: &str, after: &str) -> fmt::Result {
    let (old, new): (Vec<&str>, Vec<&str>) = (before.split('\n').collect(), after.split('\n').collect());
    if old.len().saturating_mul(new.len()) > MAX_TEXT_WORK {
        return writeln!(f, "    {} lines → {} lines", old.len(), new.len());
    }
    let ops = capture_diff_slices(Algorithm::Myers, &old, &new);
    let groups = similar::group_diff_ops(ops, CONTEXT);
    let mut lines = groups.iter().flat_map(|group| {
        let line = group.first().map_or(0, |op| op.new_range().start);
        let head = format!("@@ line {} @@", line + 1);
        std::iter::once(head).chain(group.iter().flat_map(|op| op_lines(op, &old, &new)))
    });
    for line in lines.by_ref().take(MAX_LINES) {
        writeln!(f, "    {line}")?;
    }
    if lines.next().is_some() { writeln!(f, "    …") } else { Ok(()) }
}

/// The lines of one step, each with its mark.
fn op_lines(op: &DiffOp, old: &[&str], new: &[&str]) -> Vec<String> {
    // A long line that is replaced by one line is shown from shortly before they part.
    let from = match (old.get(op.old_range()), new.get(op.new_range())) {
        (Some([old]), Some([new])) if old.len().max(new.len()) > MAX_LINE => {
            let common = old.chars().zip(new.chars()).take_while(|(old, new)| old == new).count();
            common.saturating_sub(MAX_LINE / 3)
        }
        _ => 0,
    };
    let line = |change: similar::Change<&str>| {
        let mark = match change.tag() {
            ChangeTag::Equal => ' ',
            ChangeTag::Delete => '-',
            ChangeTag::Insert => '+',
        };
        format!("{mark} {}", cut(change.value(), from, MAX_LINE))
    };
    op.iter_changes(old, new).map(line).collect()
}
