//! Keys and values that nothing reads.

use harness_descriptor::check::{CheckOptions, Report, Severity, check_text};
use harness_descriptor::{ContextInput, DescriptorError, Graph, Map, Registry, Value, load_text};

const SOUND: &str = "\
runtime: { entry_agent: a }
x-note: a word
extensions: { editor: { color: blue }, list: [1] }
metadata: { name: n, owner: me }
context:
  fields: { user.name: { default: Ada, x-source: crm } }
  references: { user.name: true, user.vip: { type: boolean } }
agents:
  a:
    model: m
    x-team: front
    instructions_sequence:
      - { text: Hello, x-why: greeting }
      - { text: Quick, where: { context: user.vip } }
";

fn errors_of(report: &Report) -> Vec<String> {
    let errors = report.diagnostics().iter().filter(|found| found.severity == Severity::Error);
    errors.map(|found| found.message.clone()).collect()
}

fn build(yaml: &str) -> Result<Graph, DescriptorError> {
    Graph::build(&load_text(yaml).unwrap(), &Registry::new())
}

#[track_caller]
fn check_refused(from: &str, to: &str, place: (u32, u32), message: &str, hint: &str) {
    let yaml = SOUND.replace(from, to);
    assert_ne!(yaml, SOUND);
    let error = build(&yaml).unwrap_err();
    let found = error.place().unwrap();
    assert_eq!(
        (error.kind(), error.to_string().contains(message)),
        ("descriptor.unknown_key", true),
        "{error}"
    );
    assert_eq!((found.line, found.column), place, "{error}");
    assert_eq!(error.hint(), Some(hint), "{error}");
    let report = check_text(yaml, &CheckOptions::default());
    assert!(!report.is_sound());
    let errors: Vec<String> = errors_of(&report);
    assert_eq!(errors, [message], "the check tells it once");
}

#[test]
fn fault_25_a_graph_is_not_built_from_a_misspelled_key() {
    let note = "your own keys start with `x-`; data of other programs belongs in `extensions`";
    check_refused(
        "Quick, where",
        "Quick, whre",
        (14, 24),
        "unknown key `whre` in an item of instructions_sequence",
        "did you mean `where`?",
    );
    check_refused(
        "instructions_sequence:",
        "instruction_sequence:",
        (12, 5),
        "unknown key `instruction_sequence` in an agent",
        "did you mean `instructions_sequence`?",
    );
    check_refused("x-note: a word", "note: a word", (2, 1), "unknown key `note` in a descriptor", note);
    check_refused(
        "{ entry_agent: a }",
        "{ entry_agent: a, maxTurns: 3 }",
        (1, 28),
        "unknown key `maxTurns` in runtime",
        "did you mean `max_turns`?",
    );
}

#[test]
fn fault_25_notes_and_extensions_are_free() {
    build(SOUND).unwrap();
    let report = check_text(SOUND, &CheckOptions::default());
    assert!(report.is_sound(), "{report:?}");
    let error = build(&SOUND.replace("{ editor: { color: blue }, list: [1] }", "[1]")).unwrap_err();
    assert_eq!(error.kind(), "descriptor.wrong_type");
    assert!(error.to_string().contains("extensions must be a mapping"), "{error}");
}

#[test]
fn fault_25_keys_that_nothing_reads_are_loaded_and_hashed_and_refuse_the_graph() {
    let yaml = SOUND.replace("Quick, where", "Quick, whre");
    let ours = load_text(yaml.as_str()).unwrap();
    assert_ne!(ours.hash(), load_text(SOUND).unwrap().hash());
    assert_eq!(Graph::build(&ours, &Registry::new()).unwrap_err().kind(), "descriptor.unknown_key");
}

fn map(json: &str) -> Map {
    let value: Value = serde_json::from_str(json).unwrap();
    value.as_map().unwrap().clone()
}

#[test]
fn fault_25_values_of_undeclared_context_paths_are_refused() {
    let graph = build(SOUND).unwrap();
    for values in [
        "{}",
        r#"{"user":{}}"#,
        r#"{"user":{"name":"Bo","vip":true}}"#,
        r#"{"user":{"name":{"first":"Bo"}}}"#,
    ] {
        graph.check_values(&map(values)).unwrap();
    }
    for (values, path, hint) in [
        (r#"{"user":{"nme":"Bo"}}"#, "user.nme", "did you mean `user.name`?"),
        (r#"{"user":{"name":"Bo","vp":true}}"#, "user.vp", "did you mean `user.vip`?"),
        (r#"{"user":7}"#, "user", "declare it under `context.fields` or `context.references`"),
        (r#"{"shop":{"open":true}}"#, "shop", "declare it under `context.fields` or `context.references`"),
    ] {
        let error = graph.check_values(&map(values)).unwrap_err();
        assert_eq!(error.kind(), "context.undeclared");
        assert_eq!(error.to_string(), format!("context path `{path}` is not declared in the descriptor"));
        assert_eq!(error.hint(), Some(hint), "{values}");
    }
    let kept = graph.declared_values(map(r#"{"a.b":1,"user":{"name":"Bo","nme":1},"shop":{"open":true}}"#));
    assert_eq!(kept, map(r#"{"user":{"name":"Bo"}}"#));
    let context = graph.create_context(&ContextInput::new("").overrides(kept)).unwrap();
    assert_eq!(serde_json::to_string(&context).unwrap(), r#"{"user":{"name":"Bo"}}"#);
}
