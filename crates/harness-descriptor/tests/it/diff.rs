//! What changed between two descriptors.

use harness_descriptor::diff::{Aspect, Difference, Subject, diff};
use harness_descriptor::{Descriptor, load_text};
use proptest::prelude::*;

fn load(yaml: &str) -> Descriptor {
    load_text(yaml).unwrap()
}

fn check(before: &str, after: &str) -> String {
    diff(&load(before), &load(after)).to_string()
}

#[test]
fn what_the_hash_does_not_see_is_no_change() {
    assert_eq!(
        check("a: 1 # one\nb: .nan\nd: 2020-01-01", "b: ~\na: 1.0\nd: '2020-01-01T00:00:00.000Z'"),
        ""
    );
    assert_eq!(check("{a: {__proto__: 1}}", "{a: {}}"), "");
}

#[test]
fn the_text_of_a_part_is_shown_once() {
    let yaml = "
instruction_parts: { tone: Be kind. }
agents:
  desk: { instructions_sequence: [{ ref: tone }, { text: Be quick. }] }
  expert: { instructions_sequence: [{ text: Be exact. }, { ref: tone }] }
";
    insta::assert_snapshot!(check(yaml, &yaml.replace("kind", "short").replace("quick", "slow")), @r#"
    ~ instruction part `tone`: "Be kind." → "Be short."
    ~ agent `desk`, instructions[0]: as instruction part `tone`
    ~ agent `desk`, instructions[1]: "Be quick." → "Be slow."
    ~ agent `expert`, instructions[1]: as instruction part `tone`
    "#);
}

#[test]
fn every_section() {
    let before = "
descriptor_version: a
metadata: { name: shop, deep: { x: 1, y: [1] } }
runtime: { entry_agent: desk, max_turns: 3 }
context:
  fields: { old: { default: 1 }, same: { default: 1, type: number } }
  references: { a: true, b: true }
instruction_parts: { tone: Be kind., spare: '' }
tools: { find: { target: t, note: 1 }, drop: { target: u } }
agent_defaults: { model: small, modelSettings: { temperature: 0, top_p: 1 } }
agents: { desk: { name: Desk, handoffDescription: d, tools: [find, drop] }, gone: {} }
other: 1
";
    let after = "
descriptor_version: b
metadata: { name: shop, deep: { x: 2, y: [2], z: ~ } }
runtime: { entry_agent: front, max_turns: 3 }
context:
  fields: { new: { default: 1 }, same: { default: 2, type: number } }
  references: { a: { type: boolean }, b: true }
  more: 1
instruction_parts: { tone: Be short. }
tools: { find: { target: v, note: 2 } }
agent_defaults: { model: large, modelSettings: { temperature: 0.5, seed: 1 } }
agents: { desk: { name: Front, tools: [find], color: red }, new: { model: m } }
other: [1]
";
    insta::assert_snapshot!(check(before, after), @r#"
    ~ descriptor_version: "a" → "b"
    ~ metadata, `deep.x`: 1 → 2
    ~ metadata, `deep.y`: [1] → [2]
    + metadata, `deep.z`: null
    ~ runtime, `entry_agent`: "desk" → "front"
    - context field `old`: {"default":1}
    ~ context field `same`, `default`: 1 → 2
    + context field `new`: {"default":1}
    ~ context reference `a`: true → {"type":"boolean"}
    + context.more: 1
    - instruction part `spare`: ""
    ~ instruction part `tone`: "Be kind." → "Be short."
    - tool `drop`: {"target":"u"}
    ~ tool `find`, `note`: 1 → 2
    ~ tool `find`, target: "t" → "v"
    ~ agent_defaults, model: "small" → "large"
    ~ agent_defaults, setting `temperature`: 0 → 0.5
    - agent_defaults, setting `top_p`: 1
    + agent_defaults, setting `seed`: 1
    - agent `desk`, handoffDescription: "d"
    ~ agent `desk`, name: "Desk" → "Front"
    - agent `desk`, tool `drop`
    + agent `desk`, `color`: "red"
    - agent `gone`: {}
    + agent `new`: {"model":"m"}
    ~ other: 1 → [1]
    "#);
}

#[test]
fn instructions_part_by_part() {
    let agent = |instructions: &str| format!("agents: {{ a: {{ instructions: {instructions} }} }}");
    let before =
        agent("[{ text: one }, { text: two, where: { context: x } }, { text: three }, { text: four }]");
    let after = agent(
        "[{ text: zero }, { text: one }, { text: two }, { text: drei }, { text: four, where: { context: y } }]",
    );
    insta::assert_snapshot!(check(&before, &after), @r#"
    + agent `a`, instructions[0]: {"text":"zero"}
    - agent `a`, condition of instructions[2]: {"context":"x"}
    ~ agent `a`, instructions[3]: "three" → "drei"
    + agent `a`, condition of instructions[4]: {"context":"y"}
    "#);
    insta::assert_snapshot!(check(&agent("x"), &agent("[{ text: x }]")), @r#"~ agent `a`, instructions: "x" → [{"text":"x"}]"#);
    insta::assert_snapshot!(check(&agent("[{ text: x, note: 1 }]"), &agent("[{ text: x }]")), @r#"~ agent `a`, instructions[0]: {"note":1,"text":"x"} → {"text":"x"}"#);
}

#[test]
fn tools_and_handoffs_in_lists() {
    let agent =
        |tools: &str, handoffs: &str| format!("agents: {{ a: {{ tools: {tools}, handoffs: {handoffs} }} }}");
    let before = agent("[x, y, z]", "[b, { agent: c }, { agent: d, where: { context: p } }, e]");
    let after = agent("[y, x, z, z]", "[{ agent: c, where: { context: q } }, d, { agent: e }, f]");
    insta::assert_snapshot!(check(&before, &after), @r#"
    - agent `a`, handoff to `b`
    + agent `a`, condition of the handoff to `c`: {"context":"q"}
    - agent `a`, condition of the handoff to `d`: {"context":"p"}
    ~ agent `a`, handoff to `e`: "e" → {"agent":"e"}
    + agent `a`, handoff to `f`
    + agent `a`, tool `y`
    - agent `a`, tool `y`
    + agent `a`, tool `z`
    "#);
    insta::assert_snapshot!(check(&agent("[]", "[b]"), &agent("x", "~")), @r#"
    ~ agent `a`, handoffs: ["b"] → null
    ~ agent `a`, tools: [] → "x"
    "#);
    insta::assert_snapshot!(check("agents: { a: {} }", &agent("[]", "[b]")), @r"
    + agent `a`, handoff to `b`
    + agent `a`, tools: []
    ");
}

#[test]
fn texts_are_shown_as_bounded_excerpts() {
    let agent =
        |text: &str| format!("agents: {{ a: {{ instructions: {} }} }}", serde_json::to_string(text).unwrap());
    let lines = |changed: &[usize]| -> String {
        (1..=60)
            .map(|at| if changed.contains(&at) { "changed\n".to_owned() } else { format!("line {at}\n") })
            .collect()
    };
    insta::assert_snapshot!(check(&agent(&lines(&[])), &agent(&lines(&[5, 6, 30]))), @r"
    ~ agent `a`, instructions:
        @@ line 4 @@
          line 4
        - line 5
        - line 6
        + changed
        + changed
          line 7
        @@ line 29 @@
          line 29
        - line 30
        + changed
          line 31
    ");
    let all: Vec<usize> = (1..=60).collect();
    assert_eq!(check(&agent(&lines(&[])), &agent(&lines(&all))).lines().count(), 1 + 16 + 1);
    let long = |end: &str| agent(&format!("{}{end}", "word ".repeat(60)));
    insta::assert_snapshot!(check(&long("old\u{1b}[2J"), &long("new")), @r"
    ~ agent `a`, instructions:
        @@ line 1 @@
        - …rd word word word word word word old�[2J
        + …rd word word word word word word new
    ");
}

#[test]
fn agents_that_inherit_a_change_are_affected() {
    let yaml = |model: &str| {
        format!("agent_defaults: {{ model: {model} }}\nagents: {{ a: {{}}, b: {{ model: x }}, c: {{}} }}")
    };
    let changes = diff(&load(&yaml("m")), &load(&yaml("n")));
    assert_eq!(changes.affected_agents, ["a", "c"]);
    let [change] = changes.changes.as_slice() else { panic!("one change") };
    assert_eq!((&change.subject, &change.aspect), (&Subject::Defaults, &Aspect::Model));
    assert_eq!(change.difference, Difference::Changed { before: "m".into(), after: "n".into() });
    insta::assert_snapshot!(serde_json::to_string_pretty(&changes.changes).unwrap(), @r#"
    [
      {
        "subject": {
          "kind": "defaults"
        },
        "aspect": {
          "kind": "model"
        },
        "difference": {
          "kind": "changed",
          "before": "m",
          "after": "n"
        }
      }
    ]
    "#);
}

#[test]
fn sections_that_appear_empty() {
    insta::assert_snapshot!(check("a: 1", "{a: 1, agents: {}, tools: ~, context: {}, metadata: {}}"), @r"
    + metadata: {}
    + context: {}
    + tools: null
    + agents: {}
    ");
    insta::assert_snapshot!(check("agents: { a: 1 }\ncontext: 1", "agents: []\ncontext: { fields: {} }"), @r#"
    ~ context: 1 → {"fields":{}}
    ~ agents: {"a":1} → []
    "#);
}

/// Two values in YAML's flow style that have much in common.
fn pair(depth: u32) -> BoxedStrategy<(String, String)> {
    let leaves = ["1", "1.0", "'1'", "~", ".nan", "a", "true", "{}", "[]", "2020-01-01"];
    let leaf = || prop::sample::select(leaves.to_vec()).prop_map(str::to_owned);
    let leaf = prop_oneof![3 => leaf().prop_map(|leaf| (leaf.clone(), leaf)), 1 => (leaf(), leaf())];
    if depth == 0 {
        return leaf.boxed();
    }
    let keys = "a agent agent_defaults agents context fields handoffs instructions metadata model \
                modelSettings references runtime target text tools where __proto__";
    let keys = prop::sample::select(keys.split_whitespace().collect::<Vec<_>>());
    let map = prop::collection::btree_map(keys, (pair(depth - 1), side()), 0..5);
    let map = map.prop_map(|entries| {
        let entries = entries.into_iter().map(|(key, ((before, after), side))| {
            ((format!("{key}: {before}"), format!("{key}: {after}")), side)
        });
        both("{", entries, "}")
    });
    let list = prop::collection::vec((pair(depth - 1), side()), 0..4);
    let list = list.prop_map(|items| both("[", items.into_iter(), "]"));
    prop_oneof![2 => leaf, 4 => map, 2 => list].boxed()
}

/// On which sides an entry stands.
fn side() -> impl Strategy<Value = (bool, bool)> {
    prop_oneof![6 => Just((true, true)), 1 => Just((true, false)), 1 => Just((false, true))]
}

fn both(
    open: &str,
    entries: impl Iterator<Item = ((String, String), (bool, bool))>,
    close: &str,
) -> (String, String) {
    let (mut before, mut after) = (Vec::new(), Vec::new());
    for ((old, new), (in_before, in_after)) in entries {
        before.extend(in_before.then_some(old));
        after.extend(in_after.then_some(new));
    }
    let text = |entries: &[String]| format!("{open}{}{close}", entries.join(", "));
    (text(&before), text(&after))
}

fn descriptors() -> impl Strategy<Value = (String, String)> {
    let below = |key: &str| {
        let text = key.to_owned();
        pair(3).prop_map(move |(before, after)| {
            (format!("{{{text}: {before}}}"), format!("{{{text}: {after}}}"))
        })
    };
    prop_oneof![
        pair(4).prop_filter("mappings", |(before, after)| before.starts_with('{') && after.starts_with('{')),
        below("agents"),
        below("agent_defaults"),
        below("context"),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn nothing_changed_exactly_if_the_hashes_are_equal((before, after) in descriptors()) {
        let (before, after) = (load(&before), load(&after));
        let changes = diff(&before, &after);
        prop_assert_eq!(changes.is_empty(), before.hash() == after.hash(), "{}", changes);
        prop_assert_eq!(changes.to_string().is_empty(), changes.is_empty());
    }
}
