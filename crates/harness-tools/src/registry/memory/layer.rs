//! Reads one layer.

use std::path::{Path, PathBuf};

use harness_diagnostics::Fields;
use harness_diagnostics::document::Kind;

use super::reader::{count, filled, located};
use super::setting::{
    BudgetSetting, LayerKind, LayerScope, LayerSetting, ReminderSetting, ReminderTrigger, RuleSetting,
    RuleTarget,
};
use crate::registry::entry::json_schema;

/// Key of fixed texts, each of which is a layer.
pub(super) const TEXTS: &str = "texts";

/// Layers with their own keys and the default lifetime of their state.
pub(super) const KINDS: [(&str, &[&str], LayerScope); 14] = [
    ("facts", &["limit", "min_score"], LayerScope::Run),
    ("episodes", &["shown", "kept", "summarized"], LayerScope::Run),
    ("scratchpad", &["schema", "notes", "max_note", "max_notes"], LayerScope::Thread),
    ("task_state", &["by_child"], LayerScope::Thread),
    ("observations", &["threshold", "kept"], LayerScope::User),
    ("timeline", &["utc_offset", "clock", "learn", "shown", "threshold", "kept"], LayerScope::User),
    ("context_files", &["root", "directory"], LayerScope::Run),
    ("file_references", &["root", "max_file", "extensions", "weighed"], LayerScope::Thread),
    ("environment", &["facts", "utc_offset"], LayerScope::Run),
    ("reminders", &["reminders"], LayerScope::Run),
    ("history", &["max_items"], LayerScope::Run),
    ("plan", &["style", "allow", "instructions", "requires_approval"], LayerScope::Thread),
    ("steering", &["rules", "strict"], LayerScope::Run),
    ("tool_results", &["tools", "kept"], LayerScope::Run),
];

/// Maximum size of the notes of a scratchpad.
const MAX_NOTES: u64 = 64 * 1024 * 1024;
/// Largest file that a message may refer to.
const MAX_FILE: u64 = 64 * 1024 * 1024;

/// Settings that every layer has.
pub(super) struct LayerCommon {
    pub(super) scope: Option<LayerScope>,
    pub(super) slot: Option<i32>,
    pub(super) budget: Option<BudgetSetting>,
    pub(super) anchored: Option<bool>,
    pub(super) optional: bool,
}

impl LayerCommon {
    pub(super) fn layer(self, kind: LayerKind) -> LayerSetting {
        let Self { scope, slot, budget, anchored, optional } = self;
        LayerSetting { kind, scope, slot, budget, anchored, optional }
    }
}

/// Reads the keys of a layer's kind; `name` is a kind or the name of a text.
pub(super) fn read(name: &str, fields: &Fields<'_>, directory: &Path) -> Option<LayerKind> {
    Some(match name {
        "facts" => {
            LayerKind::Facts { limit: count(fields, "limit", 1), min_score: share(fields, "min_score") }
        }
        "episodes" => LayerKind::Episodes {
            shown: count(fields, "shown", 1),
            kept: count(fields, "kept", 1),
            summarized: fields.flag("summarized").unwrap_or(false),
        },
        "scratchpad" => LayerKind::Scratchpad {
            schema: json_schema(fields, "schema"),
            notes: fields.flag("notes").unwrap_or(false),
            max_note: fields.size("max_note", 1, MAX_NOTES),
            max_notes: fields.size("max_notes", 1, MAX_NOTES),
        },
        "task_state" => LayerKind::TaskState { by_child: fields.flag("by_child").unwrap_or(false) },
        "observations" => LayerKind::Observations {
            threshold: fields.whole("threshold", 1, u64::MAX),
            kept: count(fields, "kept", 1),
        },
        "timeline" => LayerKind::Timeline {
            utc_offset: utc_offset(fields),
            clock: fields.flag("clock").unwrap_or(true),
            learn: fields.flag("learn").unwrap_or(false),
            shown: fields.flag("shown").unwrap_or(false),
            threshold: fields.whole("threshold", 1, u64::MAX),
            kept: count(fields, "kept", 1),
        },
        "context_files" => LayerKind::ContextFiles {
            root: root(fields, directory),
            directory: fields.text("directory").unwrap_or_default(),
        },
        "file_references" => LayerKind::FileReferences {
            root: root(fields, directory),
            max_file: fields.size("max_file", 1, MAX_FILE),
            extensions: fields.node("extensions").map(|_| fields.texts("extensions")),
            weighed: fields.flag("weighed").unwrap_or(false),
        },
        "environment" => {
            LayerKind::Environment { facts: fields.pairs("facts"), utc_offset: utc_offset(fields) }
        }
        "reminders" => LayerKind::Reminders(reminders(fields)),
        "history" => LayerKind::History {
            max_items: fields.whole("max_items", 2, 10_000).and_then(|count| usize::try_from(count).ok()),
        },
        "plan" => plan(fields),
        "steering" => {
            LayerKind::Steering { rules: rules(fields), strict: fields.flag("strict").unwrap_or(false) }
        }
        "tool_results" => LayerKind::ToolResults {
            tools: required_texts(fields, "tools", "name the tools whose latest results are shown"),
            kept: fields.whole("kept", 1, 100).and_then(|count| usize::try_from(count).ok()),
        },
        _ => return text(name, fields, directory),
    })
}

fn plan(fields: &Fields<'_>) -> LayerKind {
    LayerKind::Plan {
        interview: fields.one_of("style", &[("phased", false), ("interview", true)]).unwrap_or_default(),
        allow: fields.texts("allow"),
        instructions: filled(fields, "instructions"),
        requires_approval: fields.flag("requires_approval").unwrap_or(true),
    }
}

/// Fixed text, written here or in a file.
fn text(name: &str, fields: &Fields<'_>, directory: &Path) -> Option<LayerKind> {
    const FORM: &str = "write either `text` or `file`";
    let (text, file) = (filled(fields, "text"), located(fields, "file", directory));
    if text.is_some() == file.is_some() {
        fields.own_error(format!("`{name}` has no text, or two"), FORM);
        return None;
    }
    Some(LayerKind::Text { name: name.to_owned(), text: text.unwrap_or_default(), file })
}

/// Directory of files; the directory of the registry file when none is named.
fn root(fields: &Fields<'_>, directory: &Path) -> PathBuf {
    located(fields, "root", directory).unwrap_or_else(|| directory.to_owned())
}

fn reminders(fields: &Fields<'_>) -> Vec<ReminderSetting> {
    const AFTER: [(&str, ReminderTrigger); 2] =
        [("prompt", ReminderTrigger::Prompt), ("tool_result", ReminderTrigger::ToolResult)];
    let keys = ["text", "after", "every", "at_most"];
    named(fields, "reminders", &keys, |name, fields| ReminderSetting {
        name: name.to_owned(),
        text: fields.required("text", "write the reminder for the model"),
        after: fields.one_of("after", &AFTER),
        every: fields.whole("every", 1, 10_000).and_then(|views| u32::try_from(views).ok()),
        at_most: fields.whole("at_most", 1, 10_000).and_then(|times| u32::try_from(times).ok()),
    })
}

fn rules(fields: &Fields<'_>) -> Vec<RuleSetting> {
    const JUDGES: [(&str, RuleTarget); 2] = [("tools", RuleTarget::Tools), ("answers", RuleTarget::Answers)];
    let keys = ["rule", "judges", "background"];
    named(fields, "rules", &keys, |name, fields| RuleSetting {
        name: name.to_owned(),
        rule: fields.required("rule", "write the rule for the judging model"),
        judges: fields.one_of("judges", &JUDGES),
        background: fields.flag("background").unwrap_or(false),
    })
}

/// Mapping from names to entries, each read with `read`.
fn named<T>(fields: &Fields<'_>, key: &str, keys: &[&str], read: impl Fn(&str, &Fields<'_>) -> T) -> Vec<T> {
    let form = format!("write `NAME: {{ {}: … }}` for each of them", keys.first().unwrap_or(&""));
    if !fields.has(key) {
        fields.missing(key, &form);
    }
    let Some(section) = fields.section(key, &form) else { return Vec::new() };
    let entry = |name: &str| {
        let fields = section.section(name, &form)?;
        fields.known(keys);
        Some(read(name, &fields))
    };
    section.keys().filter_map(entry).collect()
}

fn required_texts(fields: &Fields<'_>, key: &str, hint: &str) -> Vec<String> {
    if !fields.has(key) {
        fields.missing(key, hint);
    }
    fields.texts(key)
}

/// Number from 0 to 1.
fn share(fields: &Fields<'_>, key: &str) -> Option<f64> {
    if let Kind::Number(value) = fields.document().kind(fields.node(key)?)
        && (0.0..=1.0).contains(value)
    {
        return Some(*value);
    }
    fields.expected(key, "a number from 0 to 1", "");
    None
}

/// Minutes that local time is ahead of UTC, from `+02:00` and the like.
fn utc_offset(fields: &Fields<'_>) -> i32 {
    const KEY: &str = "utc_offset";
    let Some(text) = fields.text(KEY) else { return 0 };
    let minutes = || {
        let (sign, rest) = text.split_at_checked(1)?;
        let (hours, minutes) = rest.split_once(':')?;
        let digits = |part: &str| {
            let plain = part.len() == 2 && part.bytes().all(|byte| byte.is_ascii_digit());
            plain.then(|| part.parse::<i32>().ok()).flatten()
        };
        let total = digits(hours)? * 60 + digits(minutes).filter(|minutes| *minutes < 60)?;
        match sign {
            "+" if total <= 14 * 60 => Some(total),
            "-" if total <= 12 * 60 => Some(-total),
            _ => None,
        }
    };
    minutes().unwrap_or_else(|| {
        fields.error(KEY, format!("invalid offset `{text}`"), "write it as `\"+02:00\"` or `\"-05:30\"`");
        0
    })
}
