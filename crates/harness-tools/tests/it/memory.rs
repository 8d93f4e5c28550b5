//! The section `memory` of a registry file.

use std::path::Path;

use harness_tools::{BudgetSetting, LayerKind, LayerScope, MemorySetting, Registry, ToolsError};

use crate::support::environment;

fn parse(memory: &str) -> Result<MemorySetting, ToolsError> {
    let text = format!("version: 1\nmemory:\n{memory}");
    let registry = Registry::parse(&text, Path::new("/srv/shop/registry.yaml"), &environment())?;
    Ok(registry.memory().cloned().expect("a memory"))
}

/// Errors of a section that starts on line 3.
#[track_caller]
fn check(memory: &str, expected: &[&str]) {
    let error = parse(memory).expect_err("an error");
    assert_eq!(error.to_string().replace("/srv/shop/registry.yaml", "F"), expected.join("\n"));
}

#[test]
fn settings_default_to_those_of_layers() {
    let memory = parse("  storage: memory\n  layers:\n    scratchpad:\n    history: {}\n").unwrap();
    assert_eq!(memory.storage.as_deref(), Some(Path::new("/srv/shop/memory")));
    assert_eq!((memory.facts, memory.user, memory.tokens, memory.prompt_cache), (None, None, None, None));
    let scratchpad = LayerKind::Scratchpad { schema: None, notes: false, max_note: None, max_notes: None };
    let kinds: Vec<&LayerKind> = memory.layers.iter().map(|layer| &layer.kind).collect();
    assert_eq!(kinds, [&scratchpad, &LayerKind::History { max_items: None }]);
    let layer = &memory.layers[0];
    assert_eq!((layer.scope, layer.slot, layer.budget, layer.anchored), (None, None, None, None));
    assert!(!layer.optional);
}

#[test]
fn common_keys_reach_every_layer() {
    let text = "  layers:\n    environment: { scope: run, slot: -5, budget: 90, placement: after, optional: true }\n";
    let layer = parse(text).unwrap().layers.remove(0);
    assert_eq!((layer.scope, layer.slot), (Some(LayerScope::Run), Some(-5)));
    assert_eq!(layer.budget, Some(BudgetSetting::Range { min: 0, max: 90 }));
    assert_eq!((layer.anchored, layer.optional), (Some(false), true));
}

#[test]
fn storage_is_a_directory_or_a_database() {
    let stored = |text: &str| parse(&format!("  storage: {text}\n")).unwrap().storage.unwrap();
    assert_eq!(stored("state"), Path::new("/srv/shop/state"));
    let url = "postgres://harness@db.internal/support";
    assert_eq!(stored(url), Path::new(url));
    check(
        "  storage: mysql://db.internal/support\n  layers:\n    scratchpad: {}\n",
        &[
            "F:3:12: memory.storage: the state of layers cannot be stored at a URL of `mysql`; write a directory, or \
           `postgres://HOST/DATABASE`",
        ],
    );
}

#[test]
fn facts_alone_show_the_facts_that_fit() {
    let memory = parse("  facts: facts.db\n").unwrap();
    assert_eq!(memory, MemorySetting::of_facts("/srv/shop/facts.db"));
    let none = parse("  facts: facts.db\n  layers: {}\n").unwrap();
    assert!(none.layers.is_empty());
}

#[test]
fn unknown_names_are_suggested_with_their_place() {
    check(
        "  storge: m\n  layers:\n    scratchpd: {}\n    history: { maxitems: 3 }\n",
        &[
            "F:3:3: unknown key `storge` in memory; did you mean `storage`?",
            "F:5:5: unknown layer `scratchpd`; did you mean `scratchpad`?",
            "F:6:16: unknown key `maxitems` in memory.layers.history; did you mean `max_items`?",
        ],
    );
}

#[test]
fn state_beyond_a_run_requires_storage() {
    check(
        "  layers:\n    scratchpad: {}\n    task_state: { scope: run }\n",
        &["F:4:5: `scratchpad` keeps its state beyond a run, and the memory has no \
           `storage`; add `storage: DIRECTORY` to `memory`, or write `scope: run` here"],
    );
}

#[test]
fn layers_over_facts_require_a_file() {
    check(
        "  layers:\n    facts: {}\n",
        &["F:4:5: `facts` reads facts, and the memory has no `facts`; add `facts: FILE` to \
           `memory`"],
    );
}

#[test]
fn wrong_values_are_reported_together() {
    check(
        "  tokens: 10\n  facts: f.db\n  layers:\n    facts: { min_score: 2 }\n    timeline: { scope: run, utc_offset: 2h }\n    \
         texts:\n      rules: { text: a, file: b }\n    environment: { budget: { min: 9, max: 3 }, scope: forever }\n    \
         reminders: { reminders: { tests: { every: 0 } } }\n",
        &[
            "F:3:11: memory.tokens must be a whole number from 1000 to 1000000000, not `10`",
            "F:6:25: memory.layers.facts.min_score must be a number from 0 to 1, not `2`",
            "F:7:41: memory.layers.timeline.utc_offset: invalid offset `2h`; write it as `\"+02:00\"` or `\"-05:30\"`",
            "F:9:7: `rules` has no text, or two; write either `text` or `file`",
            "F:10:28: memory.layers.environment.budget: `max` is missing or smaller than `min`; write a number of \
             tokens, `{ min: 100, max: 800 }` or `auto`",
            "F:10:55: memory.layers.environment.scope must be `run`, `thread`, `user` or `global`, not `forever`",
            "F:11:31: missing `text` in memory.layers.reminders.reminders.tests; write the reminder for the model",
            "F:11:47: memory.layers.reminders.reminders.tests.every must be a whole number from 1 to 10000, not `0`",
        ],
    );
}
