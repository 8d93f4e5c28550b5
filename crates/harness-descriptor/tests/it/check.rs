//! All faults of a descriptor in one pass.

use harness_descriptor::check::{CheckOptions, Report, Style, check_text};
use harness_descriptor::{Registry, TextSource};

/// What is shown of the faults.
fn faults(report: &Report) -> String {
    let shown: Vec<String> = report.faults().map(|fault| fault.render(Style::Plain).to_string()).collect();
    shown.join("\n").replace("<inline descriptor>:", "")
}

fn check(yaml: &str) -> String {
    faults(&check_text(yaml, &CheckOptions::default()))
}

#[test]
#[expect(clippy::too_many_lines, reason = "one case after another")]
fn seven_faults_of_seven_kinds_are_all_shown() {
    let yaml = r#"
runtime: { entry_agent: dsk }
context:
  references:
    user.name: true
    shop.open: { type: string }
instruction_parts:
  tone: Be kind.
tools:
  find: { target: "" }
agents:
  desk:
    tools: [find, lsit]
    handoffs: [{ agent: expert, where: { context: shop.open } }, exprt]
    instructions_sequence:
      - ref: tnoe
      - text: Greet {{context.user.nmae}}.
  expert:
    instructions_file: /etc/expert.md
"#;
    insta::assert_snapshot!(check(yaml), @r#"
    2:25: error[descriptor.unknown_entry_agent]: unknown agent `dsk` in `runtime.entry_agent`
      |
    2 | runtime: { entry_agent: dsk }
      |                         ^^^
    help: did you mean `desk`?

    10:19: error[descriptor.wrong_type]: tools.find.target must be a non-empty string
       |
    10 |   find: { target: "" }
       |                   ^^

    13:19: error[descriptor.unknown_tool]: agent `desk` lists undeclared tool `lsit`
       |
    13 |     tools: [find, lsit]
       |                   ^^^^
    help: declare the tool under `tools` with a `target`

    14:51: error[descriptor.gate_type]: the gate of the handoff from `desk` to `expert` reads context path `shop.open`, which is not declared with type boolean
       |
    14 |     handoffs: [{ agent: expert, where: { context: shop.open } }, exprt]
       |                                                   ^^^^^^^^^
    help: declare the path as `{ type: boolean }` under `context.references`
    6:5: note: declared here
      |
    6 |     shop.open: { type: string }
      |     ---------

    14:66: error[descriptor.unknown_handoff]: agent `desk` hands off to unknown agent `exprt`
       |
    14 |     handoffs: [{ agent: expert, where: { context: shop.open } }, exprt]
       |                                                                  ^^^^^
    help: did you mean `expert`?

    16:14: error[descriptor.unknown_part]: agents.desk.instructions_sequence[0].ref names unknown part `tnoe`
       |
    16 |       - ref: tnoe
       |              ^^^^
    help: did you mean `tone`?

    17:21: error[descriptor.undeclared]: placeholder `{{context.user.nmae}}` of agent `desk` reads context path `user.nmae`, which context.references does not declare
       |
    17 |       - text: Greet {{context.user.nmae}}.
       |                     ^^^^^^^^^^^^^^^^^^^^^
    help: did you mean `user.name`?

    19:24: error[descriptor.path_rule]: agents.expert.instructions_file `/etc/expert.md` must not be an absolute path
       |
    19 |     instructions_file: /etc/expert.md
       |                        ^^^^^^^^^^^^^^
    "#);
}

#[test]
fn shared_text_has_its_fault_once() {
    let yaml = "
runtime: { entry_agent: a }
agent_defaults: { instructions: '{{context.x}} {{context.y z}} {{context.x}}' }
agents: { a: {}, b: {}, c: { instructions: 7 } }
";
    insta::assert_snapshot!(check(yaml), @r#"
    3:34: error[descriptor.undeclared]: placeholder `{{context.x}}` of agent `a` reads context path `x`, which context.references does not declare
      |
    3 | agent_defaults: { instructions: '{{context.x}} {{context.y z}} {{context.x}}' }
      |                                  ^^^^^^^^^^^^^
    help: add the path under `context.references`

    3:48: error[descriptor.bad_context_path]: placeholder `{{context.y z}}` of agent `a` has the invalid path segment `y z`
      |
    3 | agent_defaults: { instructions: '{{context.x}} {{context.y z}} {{context.x}}' }
      |                                                ^^^^^^^^^^^^^^^

    4:44: error[descriptor.wrong_type]: agents.c.instructions must be a string or a list of parts
      |
    4 | agents: { a: {}, b: {}, c: { instructions: 7 } }
      |                                            ^
    "#);
}

#[test]
fn missing_sections_do_not_hide_the_rest() {
    insta::assert_snapshot!(check("metadata: 1\ntools: []\nagents: { a: ~, b: { handoffs: ~ } }\n"), @r#"
    1:1: error[descriptor.wrong_type]: runtime must be a mapping
      |
    1 | metadata: 1
      | ^^^^^^^^^^^

    1:11: error[descriptor.wrong_type]: metadata must be a mapping
      |
    1 | metadata: 1
      |           ^

    2:8: error[descriptor.wrong_type]: tools must be a mapping
      |
    2 | tools: []
      |        ^^

    3:14: error[descriptor.wrong_type]: agents.a must be a mapping
      |
    3 | agents: { a: ~, b: { handoffs: ~ } }
      |              ^

    3:32: error[descriptor.wrong_type]: agents.b.handoffs must be a list
      |
    3 | agents: { a: ~, b: { handoffs: ~ } }
      |                                ^
    "#);
}

#[test]
fn one_fault_of_syntax_stops_the_pass() {
    insta::assert_snapshot!(check("a: [b\nc: {"), @r#"
    2:2: error[yaml.syntax]: invalid YAML: illegal placement of ':' indicator
      |
    2 | c: {
      |  ^
    help: check indentation and quotes at that place
    "#);
}

#[test]
fn faults_of_the_text_that_leave_it_readable_are_all_told() {
    let yaml = "
runtime: { entry_agent: a, entry_agent: b }
metadata: &m { since: 2023-02-30, x: !own 1, y: !!int z, self: *m, <<: 7 }
agents: { a: { model: m, tools: [t], tools: [u] } }
";
    let found = check_text(yaml, &CheckOptions::default());
    let found: Vec<String> = found
        .faults()
        .map(|fault| format!("{} {}", fault.place.as_ref().unwrap().column, fault.code))
        .collect();
    assert_eq!(
        found,
        [
            "28 yaml.duplicate_key",
            "23 yaml.instant_out_of_range",
            "43 yaml.tag",
            "55 yaml.tag",
            "64 yaml.cycle",
            "72 yaml.merge_source",
            "34 descriptor.unknown_tool",
            "38 yaml.duplicate_key",
        ]
    );
    let stopped = check_text("a: 1\na: 2\nb: [", &CheckOptions::default());
    let codes: Vec<&str> = stopped.faults().map(|fault| fault.code).collect();
    assert_eq!(codes, ["yaml.duplicate_key", "yaml.syntax"]);
}

#[test]
fn prompts_that_are_missing_are_all_named() {
    let yaml = "
runtime: { entry_agent: a }
agents:
  a: { instructions_files: [a.md, b.md, ../c.md] }
  b: { instructions_sequence: [{ file: d.md }, { file: a.md }] }
";
    let source = || TextSource::new(yaml).root("/project");
    insta::assert_snapshot!(faults(&source().check(&CheckOptions::default())), @r"
    4:29: error[descriptor.prompt_map_required]: the descriptor uses prompt files (instructions_file, instructions_files or file items), but no prompt map was passed
      |
    4 |   a: { instructions_files: [a.md, b.md, ../c.md] }
      |                             ^^^^
    help: pass the prompt texts with `TextSource::prompts`, or load the file with `load_file`

    4:41: error[descriptor.outside_root]: agents.a.instructions_files[2] `../c.md` is outside the root directory `/project`
      |
    4 |   a: { instructions_files: [a.md, b.md, ../c.md] }
      |                                         ^^^^^^^
    help: move the file into the root directory, or choose a larger root directory
    ");
    let source = source().prompts([("a.md", "{{context.no}}")]);
    insta::assert_snapshot!(faults(&source.check(&CheckOptions::default())), @r"
    4:35: error[descriptor.prompt_missing]: no text for `b.md` of agents.a in the prompt map
      |
    4 |   a: { instructions_files: [a.md, b.md, ../c.md] }
      |                                   ^^^^

    4:41: error[descriptor.outside_root]: agents.a.instructions_files[2] `../c.md` is outside the root directory `/project`
      |
    4 |   a: { instructions_files: [a.md, b.md, ../c.md] }
      |                                         ^^^^^^^
    help: move the file into the root directory, or choose a larger root directory

    5:40: error[descriptor.prompt_missing]: no text for `d.md` of agents.b in the prompt map
      |
    5 |   b: { instructions_sequence: [{ file: d.md }, { file: a.md }] }
      |                                        ^^^^

    a.md:1:1: error[descriptor.undeclared]: placeholder `{{context.no}}` of agent `a` reads context path `no`, which context.references does not declare
      |
    1 | {{context.no}}
      | ^^^^^^^^^^^^^^
    help: add the path under `context.references`
    ");
}

#[test]
fn faults_in_prompts_stand_in_their_files() {
    let yaml = "
runtime: { entry_agent: a }
agents:
  a: { model: m, instructions_files: [one.md, two.md], instructions: '{{context.inline}}', handoffs: [b] }
  b: { model: m, instructions_sequence: [{ text: x }, { file: two.md }] }
";
    let prompts = [("one.md", "Plain.\n{{ctx.x}}\n"), ("two.md", "First\n\n  then {{context.two}}.\n")];
    let report = TextSource::new(yaml).root("/project").prompts(prompts).check(&CheckOptions::default());
    insta::assert_snapshot!(report.render(Style::Plain), @r"
    <inline descriptor>:4:38: error[descriptor.undeclared]: placeholder `{{context.inline}}` of agent `a` reads context path `inline`, which context.references does not declare
      |
    4 |   a: { model: m, instructions_files: [one.md, two.md], instructions: '{{context.inline}}', handoffs: [b] }
      |                                      ^^^^^^^^^^^^^^^^
    help: add the path under `context.references`

    one.md:2:1: warning[lint.placeholder]: `{{ctx.x}}` is not a placeholder and stays in the text unchanged
      |
    2 | {{ctx.x}}
      | ^^^^^^^^^
    help: a placeholder is written `{{context.PATH}}`

    two.md:3:8: error[descriptor.undeclared]: placeholder `{{context.two}}` of agent `a` reads context path `two`, which context.references does not declare
      |
    3 |   then {{context.two}}.
      |        ^^^^^^^^^^^^^^^
    help: add the path under `context.references`
    ");
}

#[test]
fn targets_are_compared_with_the_registry() {
    let yaml =
        "runtime: { entry_agent: a }\ntools: { x: { target: shop.find } }\nagents: { a: { tools: [x] } }\n";
    assert_eq!(check(yaml), "");
    let registry = Registry::new().bind("shop.finds", "find", "Finds.");
    let report = check_text(yaml, &CheckOptions::default().registry(registry));
    insta::assert_snapshot!(faults(&report), @r"
    2:23: error[descriptor.unbound_target]: target `shop.find` of tool `x` is not bound
      |
    2 | tools: { x: { target: shop.find } }
      |                       ^^^^^^^^^
    help: did you mean `shop.finds`?
    ");
}

#[test]
fn fields_are_checked_before_a_context_is_made() {
    let yaml = "
runtime: { entry_agent: a }
context: { fields: { x: ~, '..': { default: 1 }, y: { default: 2 } } }
agents: { a: {} }
";
    insta::assert_snapshot!(check(yaml), @r#"
    3:22: error[descriptor.wrong_type]: context.fields.x must be a mapping
      |
    3 | context: { fields: { x: ~, '..': { default: 1 }, y: { default: 2 } } }
      |                      ^

    3:28: error[descriptor.bad_context_path]: the key of a context field is an empty path
      |
    3 | context: { fields: { x: ~, '..': { default: 1 }, y: { default: 2 } } }
      |                            ^^^^
    "#);
}

#[test]
fn a_sound_descriptor_comes_with_its_graph() {
    let yaml =
        "runtime: { entry_agent: a }\ntools: { x: { target: t } }\nagents: { a: { model: m, tools: [x] } }\n";
    let report = check_text(yaml, &CheckOptions::default());
    assert!(report.is_sound());
    assert!(report.descriptor().is_some());
    let graph = report.graph().unwrap();
    assert_eq!(&*graph.entry_agent().tools()[0].name, "x");
}

#[test]
fn strict_makes_a_lossy_hash_a_fault() {
    let yaml = "runtime: { entry_agent: a }\nmetadata: { since: 2020-01-01 }\nagents: { a: { model: m } }\n";
    let check = |strict| check_text(yaml, &CheckOptions::default().strict(strict));
    let report = check(false);
    assert!(report.is_sound() && !report.is_clean());
    assert_eq!(report.diagnostics()[0].code, "hash.lossy");
    let report = check(true);
    assert!(!report.is_sound());
    assert!(report.descriptor().is_none() && report.graph().is_none());
}

#[test]
fn lists_of_faults_are_bounded() {
    let tools = "x, ".repeat(500);
    let yaml = format!("runtime: {{ entry_agent: a }}\nagents: {{ a: {{ tools: [{tools}] }} }}\n");
    let report = check_text(yaml, &CheckOptions::default());
    assert!(report.is_truncated());
    assert_eq!(report.faults().count(), 201);
}

#[test]
fn marks_stand_below_values_after_wide_characters() {
    let report = check_text(
        "runtime: { entry_agent: desk }\nagents: { desk: { model: m, name: 受付😀, tools: [fnd受] } }",
        &CheckOptions::default(),
    );
    insta::assert_snapshot!(report.render(Style::Plain), @r"
    <inline descriptor>:2:48: error[descriptor.unknown_tool]: agent `desk` lists undeclared tool `fnd受`
      |
    2 | agents: { desk: { model: m, name: 受付😀, tools: [fnd受] } }
      |                                                   ^^^^^
    help: declare the tool under `tools` with a `target`
    ");
}
