//! Reads the section, with every error at its line and column.

use std::path::{Path, PathBuf};

use harness_diagnostics::document::Kind;
use harness_diagnostics::{Fields, suggest};

use super::layer::{self, LayerCommon};
use super::setting::{BudgetSetting, LayerKind, LayerScope, LayerSetting, MemorySetting};
use crate::registry::Registry;
use crate::registry::builtin::below;
use crate::registry::entry::is_name_char;

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

impl Registry {
    /// Memory of the agents; `None` when the file has no section `memory`.
    pub fn memory(&self) -> Option<&MemorySetting> {
        self.memory.as_ref()
    }
}

/// Reads the section. Relative paths start at `directory`.
pub(crate) fn read(root: &Fields<'_>, directory: &Path) -> Option<MemorySetting> {
    let fields = root.section(SECTION, "write `storage`, `facts` and `layers` below it")?;
    fields.known(&KEYS);
    let mut setting = MemorySetting {
        storage: storage(&fields, directory),
        facts: located(&fields, "facts", directory),
        user: filled(&fields, "user"),
        workspace: filled(&fields, "workspace"),
        model: filled(&fields, "model"),
        tokens: fields.whole("tokens", 1_000, MAX_COUNT),
        reserve: fields.whole("reserve", 0, MAX_COUNT),
        messages: count(&fields, "messages", 1),
        prompt_cache: fields.flag("prompt_cache"),
        layers: Vec::new(),
    };
    if let Some(layers) = fields.section("layers", "write the layers below it, such as `scratchpad: {}`") {
        setting.layers = LayerReader { setting: &setting, directory }.layers(&layers);
    }
    if setting.facts.is_some() && !fields.has("layers") {
        setting.layers = MemorySetting::of_facts("").layers;
    }
    Some(setting)
}

struct LayerReader<'a> {
    setting: &'a MemorySetting,
    directory: &'a Path,
}

impl LayerReader<'_> {
    fn layers(&self, section: &Fields<'_>) -> Vec<LayerSetting> {
        let mut layers = Vec::new();
        for name in section.keys() {
            if name == layer::TEXTS {
                layers.extend(self.texts(section));
            } else if let Some((_, keys, scope)) = layer::KINDS.iter().find(|(kind, ..)| *kind == name) {
                layers.extend(self.layer(name, section, keys, *scope));
            } else {
                let known = layer::KINDS.iter().map(|(kind, ..)| *kind).chain([layer::TEXTS]);
                section.key_error(name, format!("unknown layer `{name}`"), suggest::hint(name, known));
            }
        }
        layers
    }

    /// Layers of fixed texts, by name.
    fn texts(&self, section: &Fields<'_>) -> Vec<LayerSetting> {
        let hint = "write `NAME: { text: … }` or `NAME: { file: … }` for each text";
        let Some(texts) = section.section(layer::TEXTS, hint) else { return Vec::new() };
        let text = |name: &str| {
            if name.is_empty() || !name.chars().all(is_name_char) {
                texts.key_error(name, format!("invalid name `{name}`"), "use letters, digits, `_` and `-`");
            }
            self.layer(name, &texts, &["text", "file"], LayerScope::Run)
        };
        texts.keys().filter_map(text).collect()
    }

    fn layer(
        &self,
        name: &str,
        section: &Fields<'_>,
        keys: &[&str],
        scope: LayerScope,
    ) -> Option<LayerSetting> {
        let hint = format!("write its settings below it, or `{name}: {{}}` for the defaults");
        let fields = section.section_or_empty(name, &hint)?;
        let known: Vec<&str> = keys.iter().copied().chain(COMMON_KEYS).collect();
        fields.known(&known);
        let common = common(&fields);
        if common.scope.unwrap_or(scope) != LayerScope::Run && self.setting.storage.is_none() {
            let problem = format!("`{name}` keeps its state beyond a run, and the memory has no `storage`");
            let hint = "add `storage: DIRECTORY` to `memory`, or write `scope: run` here";
            section.key_error(name, problem, hint);
        }
        let kind = layer::read(name, &fields, self.directory)?;
        let needs_facts = matches!(kind, LayerKind::Facts { .. } | LayerKind::Episodes { .. });
        if needs_facts && self.setting.facts.is_none() {
            let problem = format!("`{name}` reads facts, and the memory has no `facts`");
            section.key_error(name, problem, "add `facts: FILE` to `memory`");
        }
        Some(common.layer(kind))
    }
}

fn common(fields: &Fields<'_>) -> LayerCommon {
    const SCOPES: [(&str, LayerScope); 4] = [
        ("run", LayerScope::Run),
        ("thread", LayerScope::Thread),
        ("user", LayerScope::User),
        ("global", LayerScope::Global),
    ];
    const PLACES: [(&str, Option<bool>); 3] =
        [("before", Some(true)), ("after", Some(false)), ("auto", None)];
    LayerCommon {
        scope: fields.one_of("scope", &SCOPES),
        slot: signed(fields, "slot", 10_000),
        budget: budget(fields),
        anchored: fields.one_of("placement", &PLACES).flatten(),
        optional: fields.flag("optional").unwrap_or(false),
    }
}

fn budget(fields: &Fields<'_>) -> Option<BudgetSetting> {
    const FORM: &str = "write a number of tokens, `{ min: 100, max: 800 }` or `auto`";
    let tokens = |fields: &Fields<'_>, key: &str| {
        fields.whole(key, 0, MAX_COUNT).and_then(|tokens| u32::try_from(tokens).ok())
    };
    let document = fields.document();
    let node = fields.node("budget")?;
    if document.string(node) == Some("auto") {
        return Some(BudgetSetting::Auto);
    }
    if let Kind::Number(_) = document.kind(node) {
        return Some(BudgetSetting::Range { min: 0, max: tokens(fields, "budget")? });
    }
    let bounds = fields.section("budget", FORM)?;
    bounds.known(&["min", "max"]);
    let (min, max) = (tokens(&bounds, "min").unwrap_or(0), tokens(&bounds, "max"));
    let Some(max) = max.filter(|max| min <= *max) else {
        fields.error("budget", "`max` is missing or smaller than `min`", FORM);
        return None;
    };
    Some(BudgetSetting::Range { min, max })
}

/// Directory below `directory`, or the URL of a database.
fn storage(fields: &Fields<'_>, directory: &Path) -> Option<PathBuf> {
    const KEY: &str = "storage";
    let text = filled(fields, KEY)?;
    let Some((scheme, _)) = text.split_once("://") else { return Some(below(directory, &text)) };
    if !matches!(scheme, "postgres" | "postgresql") {
        let problem = format!("the state of layers cannot be stored at a URL of `{scheme}`");
        fields.error(KEY, problem, "write a directory, or `postgres://HOST/DATABASE`");
    }
    Some(text.into())
}

/// Path below `directory`.
pub(super) fn located(fields: &Fields<'_>, key: &str, directory: &Path) -> Option<PathBuf> {
    filled(fields, key).map(|path| below(directory, &path))
}

/// Text that is not blank.
pub(super) fn filled(fields: &Fields<'_>, key: &str) -> Option<String> {
    let text = fields.text(key)?;
    if text.trim().is_empty() {
        fields.error(key, "the string is empty", "write a text, or remove the key");
        return None;
    }
    Some(text)
}

/// Number of things, at least `least`.
pub(super) fn count(fields: &Fields<'_>, key: &str, least: u64) -> Option<usize> {
    fields.whole(key, least, MAX_COUNT).and_then(|count| usize::try_from(count).ok())
}

/// Whole number from `-most` to `most`.
fn signed(fields: &Fields<'_>, key: &str, most: i32) -> Option<i32> {
    let node = fields.node(key)?;
    let document = fields.document();
    let is_number = matches!(document.kind(node), Kind::Number(_));
    let value = document.written(node).parse::<i32>().ok();
    let value = value.filter(|value| is_number && value.abs() <= most);
    if value.is_none() {
        fields.expected(key, &format!("a whole number from -{most} to {most}"), "");
    }
    value
}
