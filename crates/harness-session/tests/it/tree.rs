//! Whole sessions: branches, labels, forks, export, and trees of pi.

use harness_core::{EntryId, Time};
use harness_session::{Body, Error, ForkOptions, Leaf, Note, OpenOptions, Source, Tree};

use crate::support::{Place, append, bare, load, say, texts};

/// A session of two branches with labels, settings and lines of other programs.
const BRANCHED: &str = r#"{"type":"session","format":"harness.session","version":1,"id":"s","created_at":"2026-01-01T00:00:00.000Z","x":1.10}
{"type":"message","id":"a","parent_id":null,"at":"t1","message":{"role":"user","content":[{"type":"text","text":"root"}]},"vendor":{"z":1,"a":2}}
{"type":"label","id":"l1","parent_id":"a","at":"t2","target_id":"a","label":"start"}
{"type":"message","id":"b","parent_id":"l1","at":"t3","message":{"role":"user","content":[{"type":"text","text":"left"}]}}
{"type":"label","id":"l2","parent_id":"b","at":"t4","target_id":"b","label":"tried"}
{"type":"vendor:note","text":["no id"]}
{"type":"config_change","id":"m","parent_id":"l1","at":"t5","model":{"provider":"p","id":"m1"},"thinking_level":"high"}
{"type":"branch_summary","id":"d","parent_id":"m","at":"t6","from_id":"b","summary":"left was wrong"}
{"type":"message","id":"e","parent_id":"d","at":"t7","message":{"role":"user","content":[{"type":"text","text":"right"}]}}
{"type":"session_info","id":"i","parent_id":"e","at":"t8","name":"The order"}
{"type":"label","id":"l3","parent_id":"i","at":"t9","target_id":"b"}
"#;

fn branched() -> Tree {
    parse(BRANCHED)
}

#[track_caller]
fn parse(text: &str) -> Tree {
    Tree::parse(text.as_bytes(), "chat.jsonl", &OpenOptions::new()).unwrap()
}

#[track_caller]
fn check_context(tree: &Tree, leaf: Leaf<'_>, expected: &[&str]) {
    let shown = tree.context(leaf).shown;
    let shown: Vec<_> = shown.iter().map(|s| format!("{}: {}", s.entry, s.message.joined_text())).collect();
    assert_eq!(shown, expected);
}

fn jsonl(tree: &Tree) -> String {
    let mut out = Vec::new();
    tree.write_jsonl(&mut out).unwrap();
    String::from_utf8(out).unwrap()
}

const SUMMARY: &str =
    "d: What was tried on another branch, in short:\n\n<summary>\nleft was wrong\n</summary>";

#[test]
fn a_leaf_selects_its_branch() {
    let tree = branched();
    check_context(&tree, Leaf::Last, &["a: root", SUMMARY, "e: right"]);
    check_context(&tree, Leaf::At(&"b".into()), &["a: root", "b: left"]);
    check_context(&tree, Leaf::At(&"nobody".into()), &["a: root", SUMMARY, "e: right"]);
    check_context(&tree, Leaf::Start, &[]);
    let leaves: Vec<_> = tree.leaves().map(|node| node.id.as_str()).collect();
    assert_eq!(leaves, ["l2", "l3"]);
}

#[test]
fn labels_name_and_settings_are_the_last_ones() {
    let tree = branched();
    assert_eq!(tree.labels(), [(&EntryId::from("a"), "start")]);
    assert_eq!(tree.name(), Some("The order"));
    let context = tree.context(Leaf::Last);
    assert_eq!((&*context.thinking_level, context.model.unwrap().id), ("high", "m1".to_owned()));
    let left = tree.context(Leaf::At(&"b".into()));
    assert_eq!((&*left.thinking_level, left.model), ("off", None));
}

#[test]
fn an_export_is_the_session_byte_for_byte() {
    assert_eq!(jsonl(&branched()), BRANCHED);
    let torn = format!("{BRANCHED}{{\"type\":\"mess");
    assert_eq!(jsonl(&parse(&torn)), BRANCHED);
}

#[test]
fn a_fork_is_one_path_with_its_labels() {
    let mut options = ForkOptions::new("s2", Time(1_767_225_600_000));
    options.parent_session = Some("s.jsonl".to_owned());
    let fork = branched().fork(Leaf::At(&"b".into()), options).unwrap();
    let text = jsonl(&fork);
    let (header, rest) = text.split_once('\n').unwrap();
    assert!(
        header.contains(r#""id":"s2","created_at":"2026-01-01T00:00:00.000Z","parent_session":"s.jsonl""#)
    );
    insta::assert_snapshot!(rest, @r##"
    {"type":"message","id":"a","parent_id":null,"at":"t1","message":{"role":"user","content":[{"type":"text","text":"root"}]},"vendor":{"z":1,"a":2}}
    {"type":"message","id":"b","parent_id":"a","at":"t3","message":{"role":"user","content":[{"type":"text","text":"left"}]}}
    {"type":"label","id":"e1","parent_id":"b","at":"2026-01-01T00:00:00.000Z","target_id":"a","label":"start"}
    "##);
}

#[test]
fn a_saved_tree_is_a_session_that_goes_on() {
    let place = Place::new();
    branched().save(place.path(), &OpenOptions::new()).unwrap();
    assert!(matches!(branched().save(place.path(), &OpenOptions::new()), Err(Error::Exists { .. })));
    assert_eq!(place.files(), ["chat.jsonl"]);
    say(&place.open(), "on").unwrap();
    assert_eq!(texts(&place.read().loaded).last().unwrap(), "on");
    assert_eq!(place.text().lines().count(), BRANCHED.lines().count() + 1);
}

#[test]
fn bare_messages_become_lines_of_ours() {
    let tree = parse(&format!("{}\n{}", bare("one"), bare("two")));
    assert_eq!(tree.source(), Source::Bare);
    let place = Place::new();
    tree.save(place.path(), &OpenOptions::new()).unwrap();
    assert_eq!(texts(&place.read().loaded), ["one", "two"]);
    assert!(place.text().contains(r#""id":"line3","parent_id":"line1""#), "{}", place.text());
    assert_eq!(place.read().header.unwrap().id.as_str(), "chat");
}

/// Every kind of line that pi writes, and one that it might write some day.
const PI: &str = r#"{"type":"session","version":3,"id":"p","timestamp":"2030-01-01T00:00:00.000Z","cwd":"/w","parentSession":"/w/old.jsonl"}
{"type":"message","id":"0a0b0c01","parentId":null,"timestamp":"t1","message":{"role":"user","content":"plain","timestamp":1}}
{"type":"message","id":"0a0b0c02","parentId":"0a0b0c01","timestamp":"t2","message":{"role":"assistant","content":[{"type":"toolCall","id":"c","name":"bash","arguments":{"n":9007199254740993}}],"api":"x","provider":"p","model":"m","stopReason":"toolUse","timestamp":2}}
{"type":"message","id":"0a0b0c03","parentId":"0a0b0c02","timestamp":"t3","message":{"role":"toolResult","toolCallId":"c","toolName":"bash","content":[],"isError":false,"details":{"k":[1.10]},"timestamp":3}}
{"type":"message","id":"0a0b0c04","parentId":"0a0b0c03","timestamp":"t4","message":{"role":"bashExecution","command":"ls","output":"a","exitCode":0,"cancelled":false,"truncated":false,"excludeFromContext":true,"timestamp":4}}
{"type":"custom","id":"0a0b0c05","parentId":"0a0b0c04","timestamp":"t5","customType":"ext","data":{"n":1}}
{"type":"compaction","id":"0a0b0c06","parentId":"0a0b0c05","timestamp":"t6","summary":"S","firstKeptEntryId":"0a0b0c05","tokensBefore":7,"details":{"d":1},"fromHook":true}
{"type":"label","id":"0a0b0c07","parentId":"0a0b0c06","timestamp":"t7","targetId":"0a0b0c01","label":"start"}
{"type":"hologram","id":"0a0b0c08","parentId":"0a0b0c07","timestamp":"t8","size":1e400}
{"type":"thinking_level_change","id":"0a0b0c09","parentId":"0a0b0c08","timestamp":"t9","thinkingLevel":"high"}
"#;

#[test]
fn a_tree_of_pi_loses_nothing() {
    let tree = parse(PI);
    assert_eq!(tree.source(), Source::Pi(3));
    insta::assert_snapshot!(jsonl(&tree), @r##"
    {"type":"session","format":"harness.session","version":1,"id":"p","created_at":"2030-01-01T00:00:00.000Z","cwd":"/w","parent_session":"/w/old.jsonl"}
    {"type":"message","id":"0a0b0c01","parent_id":null,"at":"t1","message":{"role":"user","content":"plain","timestamp":1}}
    {"type":"message","id":"0a0b0c02","parent_id":"0a0b0c01","at":"t2","message":{"role":"assistant","content":[{"type":"toolCall","id":"c","name":"bash","arguments":{"n":9007199254740993}}],"provider":"p","model":"m","stopReason":"toolUse","timestamp":2,"protocol":"x"}}
    {"type":"message","id":"0a0b0c03","parent_id":"0a0b0c02","at":"t3","message":{"role":"toolResult","toolCallId":"c","toolName":"bash","content":[],"isError":false,"details":{"k":[1.10]},"timestamp":3}}
    {"type":"message","id":"0a0b0c04","parent_id":"0a0b0c03","at":"t4","message":{"role":"custom","customType":"bashExecution","content":[{"type":"text","text":"$ ls\na"}],"data":{"role":"bashExecution","command":"ls","output":"a","exitCode":0,"cancelled":false,"truncated":false,"excludeFromContext":true,"timestamp":4},"toModel":false,"timestamp":4}}
    {"type":"custom","id":"0a0b0c05","parent_id":"0a0b0c04","at":"t5","custom_type":"ext","data":{"n":1}}
    {"type":"compaction","id":"0a0b0c06","parent_id":"0a0b0c05","at":"t6","summary":"S","first_kept_id":"0a0b0c05","tokens_before":7,"by":"hook","details":{"d":1}}
    {"type":"label","id":"0a0b0c07","parent_id":"0a0b0c06","at":"t7","target_id":"0a0b0c01","label":"start"}
    {"type":"hologram","id":"0a0b0c08","parent_id":"0a0b0c07","at":"t8","size":1e400}
    {"type":"config_change","id":"0a0b0c09","parent_id":"0a0b0c08","at":"t9","thinking_level":"high"}
    "##);
    check_context(
        &tree,
        Leaf::Last,
        &["0a0b0c06: What was said before this point, in short:\n\n<summary>\nS\n</summary>"],
    );
    assert_eq!(tree.context(Leaf::Last).thinking_level, "high");
    assert_eq!(tree.loaded(Leaf::Last).messages.len(), 4);
}

#[test]
fn an_imported_tree_of_pi_is_a_session() {
    let place = Place::new();
    parse(PI).save(place.path(), &OpenOptions::new()).unwrap();
    let session = place.open();
    say(&session, "on").unwrap();
    append(&session, &[]).unwrap();
    let loaded = load(&session).unwrap();
    assert_eq!(loaded.messages.len(), 5);
    assert!(loaded.plan.is_some());
}

#[test]
fn a_tree_of_a_newer_pi_is_refused_and_a_damaged_line_is_told() {
    let newer = PI.replace("\"version\":3", "\"version\":4");
    let refused = Tree::parse(newer.as_bytes(), "chat.jsonl", &OpenOptions::new());
    assert!(matches!(refused, Err(Error::WrongFormat { .. })), "{refused:?}");
    let (header, rest) = PI.split_once('\n').unwrap();
    let damaged = format!("{header}\n{{\"type\":\"mess\n{rest}");
    match Tree::parse(damaged.as_bytes(), "chat.jsonl", &OpenOptions::new()) {
        Err(Error::CorruptLine { line: 2, offset, .. }) => assert_eq!(offset, header.len() as u64 + 1),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_fork_of_pi_behind_a_label_keeps_its_history() {
    let at = EntryId::from("0a0b0c09");
    let fork = parse(PI).fork(Leaf::At(&at), ForkOptions::new("f", Time(0))).unwrap();
    assert_eq!(fork.loaded(Leaf::Last).messages.len(), 4);
    assert_eq!(fork.labels(), [(&EntryId::from("0a0b0c01"), "start")]);
    assert_eq!(fork.context(Leaf::Last), parse(PI).context(Leaf::Last));
}

#[test]
fn a_session_as_markdown() {
    let mut out = Vec::new();
    parse(PI).write_markdown(Leaf::Last, &mut out).unwrap();
    insta::assert_snapshot!(String::from_utf8(out).unwrap(), @r##"
    # p

    ## User

    plain

    *Label: start*

    ## Assistant

    Calls `bash`:

    ```json
    {"n":9007199254740993}
    ```

    ## bash answered

    ## bashExecution

    $ ls
    a

    ---

    *The view was compacted here; it had 7 tokens.*

    > S
    "##);
}

#[test]
fn the_body_of_an_entry_tells_what_it_is() {
    let tree = branched();
    let body = |id: &str| tree.get(&id.into()).unwrap().body.clone();
    assert!(
        matches!(body("d"), Body::Note(Note::BranchSummary { summary, .. }) if summary == "left was wrong")
    );
    assert!(matches!(body("l3"), Body::Note(Note::Label { label: None, .. })));
    let tree = parse(PI);
    let body = |id: &str| tree.get(&id.into()).unwrap().body.clone();
    assert!(matches!(body("0a0b0c06"), Body::Compaction { tokens_before: 7, permanent: false, .. }));
    assert!(matches!(body("0a0b0c08"), Body::Other { kind } if kind == "hologram"));
    assert!(tree.get(&"nobody".into()).is_none());
}
