//! Reads the section, with every error at its line and column.

use std::path::{Path, PathBuf};

use super::layer::{self, LayerCommon};
use super::setting::{BudgetSetting, LayerKind, LayerScope, LayerSetting, MemorySetting};
use crate::registry::builtin::below;
use crate::registry::entry::{Fields, child, is_name_char, known_keys, unknown_keys};
use crate::registry::faults::Faults;
use crate::registry::yaml::{Node, Step};

/// Key of the section.
pub(crate) const SECTION: &str = "memory";
const KEYS: [&str; 10] = [
    "storage",
    "facts",
    "user",
    "workspace",
    "model",
    "tokens",
    "reserve",
    "messages",
    "prompt_cache",
    "layers",
];

/// Keys that every layer has.
const COMMON_KEYS: [&str; 5] = ["scope", "slot", "budget", "placement", "optional"];

/// Maximum of every number of tokens and messages.
const MAX_COUNT: u64 = 1_000_000_000;

/// Reads the section. Relative paths start at `directory`. Errors are added to `faults`.
pub(crate) fn read(
    keys: &[(String, Node)],
    directory: &Path,
    faults: &mut Faults<'_>,
) -> Option<MemorySetting> {
    let (_, node) = keys.iter().find(|(key, _)| key == SECTION)?;
    let path = child(&[], SECTION);
    let Some(entries) = node.as_map() else {
        let hint = "write `storage`, `facts` and `layers` below it".to_owned();
        faults.value(&path, format!("expected a mapping, found {}", node.kind()), Some(hint));
        return None;
    };
    unknown_keys(entries, &KEYS, &path, faults);
    let layers_node = entries.iter().find(|(key, _)| key == "layers").map(|(_, node)| node);
    let mut fields = Fields::new(entries, &path, faults);
    let mut setting = MemorySetting {
        storage: located(&mut fields, "storage", directory),
        facts: located(&mut fields, "facts", directory),
        user: filled(&mut fields, "user"),
        workspace: filled(&mut fields, "workspace"),
        model: filled(&mut fields, "model"),
        tokens: fields.whole("tokens", 1_000, MAX_COUNT),
        reserve: fields.whole("reserve", 0, MAX_COUNT),
        messages: count(&mut fields, "messages", 1),
        prompt_cache: fields.get("prompt_cache").map(|_| fields.flag("prompt_cache", true)),
        layers: Vec::new(),
    };
    if let Some(node) = layers_node {
        let reader = LayerReader { setting: &setting, directory };
        setting.layers = reader.layers(node, &child(&path, "layers"), faults);
    }
    if setting.layers.is_empty() && setting.facts.is_some() && layers_node.is_none() {
        setting.layers = MemorySetting::of_facts("").layers;
    }
    Some(setting)
}

struct LayerReader<'a> {
    setting: &'a MemorySetting,
    directory: &'a Path,
}

impl LayerReader<'_> {
    fn layers(&self, node: &Node, path: &[Step], faults: &mut Faults<'_>) -> Vec<LayerSetting> {
        let Some(entries) = node.as_map() else {
            let hint = "write the layers below it, such as `scratchpad: {}`".to_owned();
            faults.value(path, format!("expected a mapping of layers, found {}", node.kind()), Some(hint));
            return Vec::new();
        };
        let mut layers = Vec::new();
        for (name, node) in entries {
            let path = child(path, name);
            if name == layer::TEXTS {
                layers.extend(self.texts(node, &path, faults));
            } else if let Some((_, keys, scope)) = layer::KINDS.iter().find(|(kind, ..)| kind == name) {
                layers.extend(self.layer(name, node, (keys, *scope), &path, faults));
            } else {
                let known: Vec<&str> =
                    layer::KINDS.iter().map(|(kind, ..)| *kind).chain([layer::TEXTS]).collect();
                faults.key(&path, format!("unknown layer `{name}`"), Some(known_keys(name, &known)));
            }
        }
        layers
    }

    /// Layers of fixed texts, by name.
    fn texts(&self, node: &Node, path: &[Step], faults: &mut Faults<'_>) -> Vec<LayerSetting> {
        let Some(entries) = node.as_map() else {
            let hint = "write `NAME: { text: … }` or `NAME: { file: … }` for each text".to_owned();
            faults.value(path, format!("expected a mapping of texts, found {}", node.kind()), Some(hint));
            return Vec::new();
        };
        let text = |(name, node): &(String, Node)| {
            let path = child(path, name);
            if name.is_empty() || !name.chars().all(is_name_char) {
                let hint = "use letters, digits, `_` and `-`".to_owned();
                faults.key(&path, format!("`{name}` cannot name a text"), Some(hint));
            }
            self.layer(name, node, (&["text", "file"], LayerScope::Run), &path, faults)
        };
        entries.iter().filter_map(text).collect()
    }

    fn layer(
        &self,
        name: &str,
        node: &Node,
        (keys, scope): (&[&str], LayerScope),
        path: &[Step],
        faults: &mut Faults<'_>,
    ) -> Option<LayerSetting> {
        let entries = match node {
            Node::Map(entries) => entries.as_slice(),
            Node::Null => &[],
            Node::Bool(_) | Node::Number(..) | Node::Text(_) | Node::List(_) | Node::Other => {
                let hint = format!("write its settings below it, or `{name}: {{}}` for the defaults");
                faults.value(path, format!("expected a mapping, found {}", node.kind()), Some(hint));
                return None;
            }
        };
        let known: Vec<&str> = keys.iter().copied().chain(COMMON_KEYS).collect();
        unknown_keys(entries, &known, path, faults);
        let mut fields = Fields::new(entries, path, faults);
        let common = common(&mut fields);
        if common.scope.unwrap_or(scope) != LayerScope::Run && self.setting.storage.is_none() {
            let problem = format!("`{name}` keeps its state beyond a run, and the memory has no `storage`");
            let hint = "add `storage: DIRECTORY` to `memory`, or write `scope: run` here".to_owned();
            fields.faults().key(path, problem, Some(hint));
        }
        let kind = layer::read(name, &mut fields, self.directory)?;
        let needs_facts = matches!(kind, LayerKind::Facts { .. } | LayerKind::Episodes { .. });
        if needs_facts && self.setting.facts.is_none() {
            let problem = format!("`{name}` reads facts, and the memory has no `facts`");
            fields.faults().key(path, problem, Some("add `facts: FILE` to `memory`".to_owned()));
        }
        Some(common.layer(kind))
    }
}

fn common(fields: &mut Fields<'_, '_, '_>) -> LayerCommon {
    const SCOPES: [(&str, LayerScope); 4] = [
        ("run", LayerScope::Run),
        ("thread", LayerScope::Thread),
        ("user", LayerScope::User),
        ("global", LayerScope::Global),
    ];
    const PLACES: [(&str, Option<bool>); 3] =
        [("before", Some(true)), ("after", Some(false)), ("auto", None)];
    LayerCommon {
        scope: fields.get("scope").map(|_| fields.one_of("scope", &SCOPES)),
        slot: signed(fields, "slot", 10_000),
        budget: budget(fields),
        anchored: fields.one_of("placement", &PLACES),
        optional: fields.flag("optional", false),
    }
}

fn budget(fields: &mut Fields<'_, '_, '_>) -> Option<BudgetSetting> {
    const FORM: &str = "write a number of tokens, `{ min: 100, max: 800 }` or `auto`";
    match fields.get("budget")? {
        Node::Text(text) if text == "auto" => Some(BudgetSetting::Auto),
        Node::Number(..) => {
            let max = fields.whole("budget", 0, MAX_COUNT).and_then(|max| u32::try_from(max).ok())?;
            Some(BudgetSetting::Range { min: 0, max })
        }
        Node::Map(entries) => {
            let path = child(fields.path(), "budget");
            unknown_keys(entries, &["min", "max"], &path, fields.faults());
            let mut bounds = Fields::new(entries, &path, fields.faults());
            let mut bound = |key| bounds.whole(key, 0, MAX_COUNT).and_then(|bound| u32::try_from(bound).ok());
            let (min, max) = (bound("min").unwrap_or(0), bound("max"));
            let Some(max) = max.filter(|max| min <= *max) else {
                fields.fault("budget", "`max` is missing or smaller than `min`", FORM);
                return None;
            };
            Some(BudgetSetting::Range { min, max })
        }
        node @ (Node::Null | Node::Bool(_) | Node::Text(_) | Node::List(_) | Node::Other) => {
            let problem = format!("expected a budget, found {}", node.kind());
            fields.fault("budget", problem, FORM);
            None
        }
    }
}

/// Path below `directory`.
pub(super) fn located(fields: &mut Fields<'_, '_, '_>, key: &str, directory: &Path) -> Option<PathBuf> {
    filled(fields, key).map(|path| below(directory, &path))
}

/// Text that is not blank.
pub(super) fn filled(fields: &mut Fields<'_, '_, '_>, key: &str) -> Option<String> {
    let text = fields.text(key)?;
    if text.trim().is_empty() {
        fields.fault(key, "the text is empty", "write a text, or remove the key");
        return None;
    }
    Some(text)
}

/// Number of things, at least `least`.
pub(super) fn count(fields: &mut Fields<'_, '_, '_>, key: &str, least: u64) -> Option<usize> {
    fields.whole(key, least, MAX_COUNT).and_then(|count| usize::try_from(count).ok())
}

/// Whole number from `-most` to `most`.
fn signed(fields: &mut Fields<'_, '_, '_>, key: &str, most: i32) -> Option<i32> {
    let node = fields.get(key)?;
    let value = match node {
        Node::Number(text, _) => text.parse::<i32>().ok().filter(|value| value.abs() <= most),
        Node::Null | Node::Bool(_) | Node::Text(_) | Node::List(_) | Node::Map(_) | Node::Other => None,
    };
    if value.is_none() {
        let hint = format!("write a whole number from -{most} to {most}");
        fields.fault(key, format!("expected a whole number, found {}", node.kind()), hint);
    }
    value
}
