//! Reads one layer.

use std::path::{Path, PathBuf};

use super::reader::{count, filled, located};
use super::setting::{
    BudgetSetting, LayerKind, LayerScope, LayerSetting, ReminderSetting, ReminderTrigger, RuleSetting,
    RuleTarget,
};
use crate::registry::entry::{Fields, child, unknown_keys};
use crate::registry::yaml::{Node, Step};

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
pub(super) fn read(name: &str, fields: &mut Fields<'_, '_, '_>, directory: &Path) -> Option<LayerKind> {
    Some(match name {
        "facts" => {
            LayerKind::Facts { limit: count(fields, "limit", 1), min_score: share(fields, "min_score") }
        }
        "episodes" => LayerKind::Episodes {
            shown: count(fields, "shown", 1),
            kept: count(fields, "kept", 1),
            summarized: fields.flag("summarized", false),
        },
        "scratchpad" => LayerKind::Scratchpad {
            schema: fields.json_schema("schema"),
            notes: fields.flag("notes", false),
            max_note: fields.bytes("max_note", 1, MAX_NOTES),
            max_notes: fields.bytes("max_notes", 1, MAX_NOTES),
        },
        "task_state" => LayerKind::TaskState { by_child: fields.flag("by_child", false) },
        "observations" => LayerKind::Observations {
            threshold: fields.whole("threshold", 1, u64::MAX),
            kept: count(fields, "kept", 1),
        },
        "timeline" => LayerKind::Timeline {
            utc_offset: utc_offset(fields),
            clock: fields.flag("clock", true),
            learn: fields.flag("learn", false),
            shown: fields.flag("shown", false),
            threshold: fields.whole("threshold", 1, u64::MAX),
            kept: count(fields, "kept", 1),
        },
        "context_files" => LayerKind::ContextFiles {
            root: root(fields, directory),
            directory: fields.text("directory").unwrap_or_default(),
        },
        "file_references" => LayerKind::FileReferences {
            root: root(fields, directory),
            max_file: fields.bytes("max_file", 1, MAX_FILE),
            extensions: fields.get("extensions").map(|_| fields.texts("extensions")),
            weighed: fields.flag("weighed", false),
        },
        "environment" => {
            LayerKind::Environment { facts: fields.pairs("facts"), utc_offset: utc_offset(fields) }
        }
        "reminders" => LayerKind::Reminders(reminders(fields)),
        "history" => LayerKind::History {
            max_items: fields.whole("max_items", 2, 10_000).and_then(|count| usize::try_from(count).ok()),
        },
        "plan" => LayerKind::Plan {
            interview: fields.one_of("style", &[("phased", false), ("interview", true)]),
            allow: fields.texts("allow"),
            instructions: filled(fields, "instructions"),
            requires_approval: fields.flag("requires_approval", true),
        },
        "steering" => LayerKind::Steering { rules: rules(fields), strict: fields.flag("strict", false) },
        "tool_results" => LayerKind::ToolResults {
            tools: required_texts(fields, "tools", "name the tools whose latest results are shown"),
            kept: fields.whole("kept", 1, 100).and_then(|count| usize::try_from(count).ok()),
        },
        _ => return text(name, fields, directory),
    })
}

/// Fixed text, written here or in a file.
fn text(name: &str, fields: &mut Fields<'_, '_, '_>, directory: &Path) -> Option<LayerKind> {
    const FORM: &str = "write either `text` or `file`";
    let (text, file) = (filled(fields, "text"), located(fields, "file", directory));
    if text.is_some() == file.is_some() {
        let path = fields.path();
        fields.faults().key(path, format!("`{name}` has no text, or two"), Some(FORM.to_owned()));
        return None;
    }
    Some(LayerKind::Text { name: name.to_owned(), text: text.unwrap_or_default(), file })
}

/// Directory of files; the directory of the registry file when none is named.
fn root(fields: &mut Fields<'_, '_, '_>, directory: &Path) -> PathBuf {
    located(fields, "root", directory).unwrap_or_else(|| directory.to_owned())
}

fn reminders(fields: &mut Fields<'_, '_, '_>) -> Vec<ReminderSetting> {
    const AFTER: [(&str, ReminderTrigger); 2] =
        [("prompt", ReminderTrigger::Prompt), ("tool_result", ReminderTrigger::ToolResult)];
    let keys = ["text", "after", "every", "at_most"];
    named(fields, "reminders", &keys, |name, fields| ReminderSetting {
        name: name.to_owned(),
        text: fields.required("text", "write the reminder for the model"),
        after: fields.get("after").map(|_| fields.one_of("after", &AFTER)),
        every: fields.whole("every", 1, 10_000).and_then(|views| u32::try_from(views).ok()),
        at_most: fields.whole("at_most", 1, 10_000).and_then(|times| u32::try_from(times).ok()),
    })
}

fn rules(fields: &mut Fields<'_, '_, '_>) -> Vec<RuleSetting> {
    const JUDGES: [(&str, RuleTarget); 2] = [("tools", RuleTarget::Tools), ("answers", RuleTarget::Answers)];
    let keys = ["rule", "judges", "background"];
    named(fields, "rules", &keys, |name, fields| RuleSetting {
        name: name.to_owned(),
        rule: fields.required("rule", "write the rule for the judging model"),
        judges: fields.get("judges").map(|_| fields.one_of("judges", &JUDGES)),
        background: fields.flag("background", false),
    })
}

/// Mapping from names to entries, each read with `read`; at least one is required.
fn named<T>(
    fields: &mut Fields<'_, '_, '_>,
    key: &str,
    keys: &[&str],
    mut read: impl FnMut(&str, &mut Fields<'_, '_, '_>) -> T,
) -> Vec<T> {
    let form = format!("write `NAME: {{ {}: … }}` for each of them", keys.first().unwrap_or(&""));
    let Some(node) = fields.get(key) else {
        fields.missing(key, &form);
        return Vec::new();
    };
    let Some(entries) = node.as_map() else {
        fields.fault(key, format!("expected a mapping, found {}", node.kind()), form);
        return Vec::new();
    };
    let path = child(fields.path(), key);
    let mut all = Vec::new();
    for (name, node) in entries {
        let path: Vec<Step> = child(&path, name);
        let Some(entries) = node.as_map() else {
            let problem = format!("expected a mapping, found {}", node.kind());
            fields.faults().value(&path, problem, Some(form.clone()));
            continue;
        };
        unknown_keys(entries, keys, &path, fields.faults());
        all.push(read(name, &mut Fields::new(entries, &path, fields.faults())));
    }
    all
}

fn required_texts(fields: &mut Fields<'_, '_, '_>, key: &str, hint: &str) -> Vec<String> {
    if fields.get(key).is_none() {
        fields.missing(key, hint);
    }
    fields.texts(key)
}

/// Number from 0 to 1.
fn share(fields: &mut Fields<'_, '_, '_>, key: &str) -> Option<f64> {
    let node = fields.get(key)?;
    let value = if let Node::Number(text, _) = node { text.parse::<f64>().ok() } else { None };
    let value = value.filter(|value| (0.0..=1.0).contains(value));
    if value.is_none() {
        fields.fault(key, format!("expected a share, found {}", node.kind()), "write a number from 0 to 1");
    }
    value
}

/// Minutes that local time is ahead of UTC, from `+02:00` and the like.
fn utc_offset(fields: &mut Fields<'_, '_, '_>) -> i32 {
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
        fields.fault(KEY, format!("invalid offset `{text}`"), "write it as `\"+02:00\"` or `\"-05:30\"`");
        0
    })
}
