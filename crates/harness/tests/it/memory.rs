//! Memory as a registry file configures it.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use harness::HarnessError;
use harness::core::StopReason;
use harness::host::Storage as _;
use harness::host::process::Environment;
use harness::prelude::*;
use harness::session::storage::MemoryStorage;
use harness::tools::{MemorySetting, Mode, Modes, Registry};

use crate::support::{Script, call};

fn setting(directory: &Path, memory: &str) -> MemorySetting {
    let text = format!("version: 1\nmemory:\n{memory}");
    let registry = Registry::parse(&text, &directory.join("registry.yaml"), &Environment::default()).unwrap();
    registry.memory().cloned().unwrap()
}

/// Prompts a harness of this memory; returns what each request shows.
async fn requests(directory: &Path, memory: &str, answers: Vec<AssistantMessage>) -> Vec<String> {
    let model = Script::new(answers);
    let harness = Harness::new(model.clone()).memory_setting(setting(directory, memory)).build().unwrap();
    harness.prompt("hello").await.unwrap();
    model.seen()
}

#[tokio::test]
async fn a_scratchpad_is_kept_for_the_next_run() {
    let directory = tempfile::tempdir().unwrap();
    let memory = "  storage: memory\n  layers:\n    scratchpad: { scope: user }\n";
    let note = call("c1", "scratchpad_update", r#"{"goal":"ship"}"#);
    requests(directory.path(), memory, vec![note, AssistantMessage::text("Noted.")]).await;
    let seen = requests(directory.path(), memory, vec![AssistantMessage::text("Hi.")]).await;
    assert!(seen[0].contains("<working_memory>") && seen[0].contains("\"goal\": \"ship\""), "{seen:?}");
}

#[tokio::test]
async fn a_storage_of_the_program_replaces_the_directory() {
    let directory = tempfile::tempdir().unwrap();
    let setting =
        setting(directory.path(), "  storage: memory\n  layers:\n    scratchpad: { scope: user }\n");
    let storage = Arc::new(MemoryStorage::new());
    let note = call("c1", "scratchpad_update", r#"{"goal":"ship"}"#);
    let model = Script::new([note, AssistantMessage::text("Noted.")]);
    let builder = Harness::new(model).memory_setting(setting).memory_storage(storage.clone());
    builder.build().unwrap().prompt("hello").await.unwrap();
    assert_eq!(storage.list("").await.unwrap(), ["layers/scratchpad/resource/owner/state"]);
    assert!(!directory.path().join("memory").exists());
}

#[cfg(feature = "schema-validation")]
#[tokio::test]
async fn a_scratchpad_follows_its_schema() {
    let directory = tempfile::tempdir().unwrap();
    let memory = "  layers:\n    scratchpad:\n      scope: run\n      schema: { type: object, properties: { goal: { type: string } } }\n";
    let note = call("c1", "scratchpad_update", r#"{"goal":1}"#);
    let seen = requests(directory.path(), memory, vec![note, AssistantMessage::text("Hi.")]).await;
    assert!(seen[1].contains("rejected by schema"), "{seen:?}");
}

#[tokio::test]
async fn texts_environment_and_reminders_are_shown() {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("style.md"), "Write short sentences.").unwrap();
    let memory = "  layers:\n    texts:\n      rules: { text: Be kind. }\n      style: { file: style.md }\n    \
                  environment: { facts: { Shop: Oslo } }\n    reminders: { reminders: { tests: { text: Run the tests. } } }\n";
    let seen = requests(directory.path(), memory, vec![AssistantMessage::text("Hi.")]).await;
    for part in
        ["<rules>\nBe kind.\n</rules>", "<style>\nWrite short sentences.", "Shop: Oslo", "Run the tests."]
    {
        assert!(seen[0].contains(part), "{part}: {seen:?}");
    }
}

#[tokio::test]
async fn context_files_are_shown_with_their_imports() {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("AGENTS.md"), "Use tabs. See @more.md").unwrap();
    fs::write(directory.path().join("more.md"), "Never force-push.").unwrap();
    let memory = "  layers:\n    context_files: {}\n";
    let seen = requests(directory.path(), memory, vec![AssistantMessage::text("Hi.")]).await;
    assert!(seen[0].contains("Use tabs.") && seen[0].contains("Never force-push."), "{seen:?}");
}

#[tokio::test]
async fn observations_call_the_model_of_the_agent() {
    let directory = tempfile::tempdir().unwrap();
    let memory = "  layers:\n    observations: { scope: run, threshold: 1 }\n";
    let answers = ["The user says hello.", "Hi.", "The agent greets."];
    let seen = requests(directory.path(), memory, answers.map(AssistantMessage::text).to_vec()).await;
    assert!(seen[0].contains("You keep notes about a conversation"), "{seen:?}");
    assert!(seen[1].contains("- The user says hello."), "{seen:?}");
}

#[tokio::test]
async fn leaving_plan_mode_requires_approval() {
    let directory = tempfile::tempdir().unwrap();
    let memory = "  layers:\n    plan: { scope: run }\n";
    let model = Script::new([
        call("c1", "plan_enterPlanMode", "{}"),
        call("c2", "plan_exitPlanMode", r#"{"action":"cancel"}"#),
    ]);
    let builder = Harness::new(model.clone()).memory_setting(setting(directory.path(), memory));
    let report = builder.build().unwrap().prompt("plan it").await.unwrap();
    assert_eq!(report.reason(), StopReason::ApprovalRequired, "{report:?}");
}

#[tokio::test]
async fn plan_mode_is_the_mode_of_the_agents() {
    let directory = tempfile::tempdir().unwrap();
    let memory = "  layers:\n    plan: { scope: run, requires_approval: false }\n";
    let switch = Modes::new(Mode::execute(), [Mode::plan()]);
    let model = Script::new([
        call("c1", "plan_enterPlanMode", "{}"),
        call("c2", "mode_get", "{}"),
        call("c3", "plan_exitPlanMode", r#"{"action":"cancel"}"#),
        AssistantMessage::text("Done."),
    ]);
    let builder = Harness::new(model.clone()).modes(switch.clone());
    let harness = builder.memory_setting(setting(directory.path(), memory)).build().unwrap();
    harness.prompt("plan it").await.unwrap();
    let seen = model.seen();
    assert!(seen[2].contains(r#""mode":"plan""#), "{seen:?}");
    assert_eq!(&*switch.of(harness.thread().id()).current().name, "execute");
}

#[cfg(all(feature = "sqlite", feature = "schema-validation"))]
#[tokio::test]
async fn the_example_of_the_reference_builds() {
    const PAGE: &str = include_str!("../../../../docs/reference/registry.md");
    let directory = tempfile::tempdir().unwrap();
    let examples = PAGE.split("```yaml\n").skip(1).filter_map(|rest| Some(rest.split_once("```")?.0));
    let example = examples.filter(|text| text.contains("\nmemory:")).last().unwrap();
    let file = directory.path().join("registry.yaml");
    let registry = Registry::parse(example, &file, &Environment::default()).unwrap();
    let setting = registry.memory().cloned().unwrap();
    assert_eq!(setting.layers.len(), 15, "every kind of layer is in the example");
    let model = Script::new([]);
    Harness::new(model).memory_setting(setting).build().unwrap();
    assert!(directory.path().join("facts.db").exists() && directory.path().join("memory").exists());
}

#[test]
fn an_unusable_file_is_reported_at_build() {
    let directory = tempfile::tempdir().unwrap();
    let memory = "  layers:\n    texts: { rules: { file: none.md } }\n";
    let built = Harness::new(Script::new([])).memory_setting(setting(directory.path(), memory)).build();
    let Err(HarnessError::Memory(error)) = built else { panic!("{built:?}") };
    assert_eq!(error.kind(), "memory.unreadable");
    assert!(error.to_string().contains("none.md"), "{error}");
}
