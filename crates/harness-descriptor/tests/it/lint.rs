//! What looks wrong in a descriptor that can be used.

use std::fmt::Write as _;

use harness_descriptor::check::{CheckOptions, Severity, check_text};

/// The warnings of a descriptor, two lines each.
fn check_with(yaml: &str, options: &CheckOptions) -> String {
    let mut out = String::new();
    for found in check_text(yaml, options).diagnostics() {
        let place = found.place.as_ref().unwrap();
        let mark = if found.severity == Severity::Error { "error " } else { "" };
        writeln!(out, "{}:{} {mark}{}: {}", place.line, place.column, found.code, found.message).unwrap();
        if let Some(hint) = &found.hint {
            writeln!(out, "    {hint}").unwrap();
        }
        for related in &found.related {
            writeln!(out, "    {}:{} {}", related.place.line, related.place.column, related.message).unwrap();
        }
    }
    out
}

fn check(yaml: &str) -> String {
    check_with(yaml, &CheckOptions::default())
}

/// A descriptor with one agent that has these keys, and these sections beside it.
fn one(agent: &str, sections: &str) -> String {
    format!("runtime: {{ entry_agent: a }}\nagents: {{ a: {{ model: m, {agent} }} }}\n{sections}\n")
}

#[test]
fn a_plain_descriptor_has_no_warnings() {
    assert_eq!(check(&one("", "descriptor_version: aioc.agent_graph.v0\nx-note: 1")), "");
}

#[test]
fn unknown_keys_of_every_level() {
    let yaml = "
runtime: { entry_agent: a, maxTurns: 3 }
context:
  field: {}
  fields: { x: { default: 1, redacted: true } }
  references: { x: { optionl: true }, y: true }
instruction_part: {}
tools: { t: { targets: 1, target: t } }
agent_defaults: { instruction: x, tools: [t], owner: me }
agents:
  a:
    model: m
    tools: [t]
    hand_offs: []
    handoffs: [{ agent: b, when: { context: y } }]
    instructions: [{ txt: 1, text: '{{context.x}}{{context.y}}', where: { contexts: 1, context: z } }]
  b: { model: m, instructions_sequence: [{ texts: 1, text: '' }] }
";
    insta::assert_snapshot!(check(yaml), @r"
    2:28 error descriptor.unknown_key: unknown key `maxTurns` in runtime
        did you mean `max_turns`?
    4:3 error descriptor.unknown_key: unknown key `field` in context
        did you mean `fields`?
    5:30 error descriptor.unknown_key: unknown key `redacted` in a context field
        did you mean `redact`?
    6:22 error descriptor.unknown_key: unknown key `optionl` in a context reference
        did you mean `optional`?
    7:1 error descriptor.unknown_key: unknown key `instruction_part` in a descriptor
        did you mean `instruction_parts`?
    8:15 error descriptor.unknown_key: unknown key `targets` in a tool
        did you mean `target`?
    9:19 error descriptor.unknown_key: unknown key `instruction` in agent_defaults
        did you mean `instructions`?
    9:35 error descriptor.unknown_key: unknown key `tools` in agent_defaults
        `tools` has no default, set it on each agent
    9:47 error descriptor.unknown_key: unknown key `owner` in agent_defaults
        your own keys start with `x-`; data of other programs belongs in `extensions`
    14:5 error descriptor.unknown_key: unknown key `hand_offs` in an agent
        did you mean `handoffs`?
    15:28 error descriptor.unknown_key: unknown key `when` in a handoff
        your own keys start with `x-`; data of other programs belongs in `extensions`
    16:22 error descriptor.unknown_key: unknown key `txt` in a part of instructions
        did you mean `text`?
    16:75 error descriptor.unknown_key: unknown key `contexts` in where
        did you mean `context`?
    16:97 error descriptor.undeclared: the gate of an instruction part of agent `a` reads context path `z`, which context.references does not declare
        add the path under `context.references`
    17:44 error descriptor.unknown_key: unknown key `texts` in an item of instructions_sequence
        did you mean `text`?
    ");
}

#[test]
fn unused_parts_agents_and_tools() {
    let yaml = "
runtime: { entry_agent: a }
instruction_parts: { used: '', spare: '' }
tools: { used: { target: t }, spare: { target: u } }
agent_defaults: { model: m }
agents:
  a: { tools: [used], handoffs: [b], instructions_sequence: [{ ref: used }] }
  b: { handoffs: [a] }
  c: { handoffs: [d] }
  d: { handoffs: [c] }
";
    insta::assert_snapshot!(check(yaml), @r"
    3:32 lint.unused_part: instruction part `spare` is used by no instructions_sequence
        use it with `ref: spare`, or remove it
    4:31 lint.unused_tool: tool `spare` is listed by no agent
        add it to the `tools` of an agent, or remove it
    9:3 lint.unreachable_agent: no handoffs lead from the entry agent `a` to agent `c`
        hand off to it from an agent that is reached, or remove it
    10:3 lint.unreachable_agent: no handoffs lead from the entry agent `a` to agent `d`
        hand off to it from an agent that is reached, or remove it
    ");
}

#[test]
fn what_a_fault_makes_look_unused_is_not_warned_of() {
    let yaml = "
runtime: { entry_agent: a }
context: { references: { x: true } }
tools: { list: { target: t } }
agent_defaults: { model: m }
agents:
  a: { tools: [lst], handoffs: [c], instructions: '{{context.y}}' }
  b: {}
";
    let warnings: String = check(yaml).lines().filter(|line| line.contains("lint.")).collect();
    assert_eq!(warnings, "");
}

#[test]
fn handoffs_to_oneself_and_repeated_ones() {
    let yaml = "
runtime: { entry_agent: a }
context: { references: { x: { type: boolean }, y: { type: boolean } } }
tools: { t: { target: t } }
agent_defaults: { model: m }
agents:
  a:
    tools: [t, t]
    handoffs: [a, b, { agent: b, where: { context: x } }, { agent: c, where: { context: x } }]
  b: { handoffs: [{ agent: c, where: { context: x } }, { agent: c, where: { context: y } }] }
  c: {}
";
    insta::assert_snapshot!(check(yaml), @r"
    8:16 lint.duplicate_tool: tool `t` is listed twice
        remove it
        8:13 listed first here
    9:16 lint.self_handoff: agent `a` hands off to itself
        remove the handoff; an agent continues by answering or calling tools
    9:31 lint.duplicate_handoff: agent `a` hands off to `b` twice
        remove one of them; of several open handoffs to one agent the first is offered
        9:19 first here
    ");
}

#[test]
fn models() {
    let yaml = "
runtime: { entry_agent: a }
agents:
  a: { handoffs: [b, c, d] }
  b: { model: ' ' }
  c: { model: 7 }
  d: { model: ~ }
";
    insta::assert_snapshot!(check(yaml), @r"
    4:3 descriptor.no_model: agent `a` has no model
        set `model` on the agent or in `agent_defaults`, or name one for each run
    5:3 descriptor.no_model: agent `b` has no model
        set `model` on the agent or in `agent_defaults`, or name one for each run
    6:15 error descriptor.wrong_type: `model` takes a string, not a number
    7:3 descriptor.no_model: agent `d` has no model
        set `model` on the agent or in `agent_defaults`, or name one for each run
    ");
}

#[test]
fn references_and_fields_that_are_not_read() {
    let yaml = "
runtime: { entry_agent: a }
context:
  fields:
    user: { default: { name: x } }
    cart.items.0: { default: 1 }
    spare.part: { default: 1 }
    ' user ': { default: 1 }
  references:
    user.name: true
    cart.items: true
    spare: false
    open: { type: boolean, optional: true }
    never: true
    user .name: { optional: true }
agents:
  a:
    model: m
    handoffs: [{ agent: b, where: { context: open } }]
    instructions: '{{context.user.name}} {{context.cart.items}}'
  b: { model: m }
";
    insta::assert_snapshot!(check(yaml), @r"
    7:5 lint.unused_field: context field `spare.part` is declared by no reference, so no text and no gate reads it
        declare it under `context.references` and read it, or leave it if only tools use it
    8:5 lint.unused_field: context field ` user ` is declared by no reference, so no text and no gate reads it
        declare it under `context.references` and read it, or leave it if only tools use it
    8:5 lint.field_path: no placeholder and no gate can read the context field ` user `
        use letters, digits, `_` and `-`, with dots between segments
    13:5 lint.optional_gate: a gate reads `open`, but a gate fails where an optional value is missing
        give it a default under `context.fields`, and leave `optional` out
    14:5 lint.unused_reference: context path `never` is declared, but read by no instructions and no gate
        remove it, or read it
    15:5 lint.duplicate_reference: context path `user.name` is declared twice; this declaration counts
        remove one of them
        10:5 declared first here
    ");
}

#[test]
fn braces_that_are_no_placeholders() {
    let yaml = "
runtime: { entry_agent: a }
context: { references: { user.name: true } }
agents:
  a:
    model: m
    instructions: |
      {{context.user.name}} and {{{context.user.name}}}
      {{ user.name }} {{ctx.user.name}} {{context}}
      an open {{ brace
  b: { model: m, instructions: \"{{\\u0078}} {{ y\" }
";
    insta::assert_snapshot!(check(yaml), @r"
    9:7 lint.placeholder: `{{ user.name }}` is not a placeholder and stays in the text unchanged
        did you mean `{{context.user.name}}`?
    9:23 lint.placeholder: `{{ctx.user.name}}` is not a placeholder and stays in the text unchanged
        did you mean `{{context.user.name}}`?
    9:41 lint.placeholder: `{{context}}` is not a placeholder and stays in the text unchanged
        a placeholder is written `{{context.PATH}}`
    10:15 lint.placeholder: `{{ brace` is not a placeholder and stays in the text unchanged
        a placeholder is written `{{context.PATH}}`
    11:3 lint.unreachable_agent: no handoffs lead from the entry agent `a` to agent `b`
        hand off to it from an agent that is reached, or remove it
    11:32 lint.placeholder: `{{x}}` is not a placeholder and stays in the text unchanged
        a placeholder is written `{{context.PATH}}`
    11:44 lint.placeholder: `{{ y` is not a placeholder and stays in the text unchanged
        a placeholder is written `{{context.PATH}}`
    ");
}

#[test]
fn values_of_the_wrong_type() {
    let yaml = "
descriptor_version: 2
runtime: { entry_agent: a }
context:
  fields:
    x: { type: bool, default: 1, redact: 'yes' }
    y: { type: boolean, default: 'no', mutable: 1 }
    z: { type: string, default: 'at {{ runtime.now_iso }}' }
    m: { type: string, default: '{{input.message}}' }
    n: { type: integer, default: 1.5, optional: ~ }
    o: { type: list, default: ~ }
    p: { type: thing }
  references:
    { x: { type: ~ }, y: { optional: 'no' }, z: true, m: true, n: true, o: true, p: true }
agents:
  a:
    model: m
    name: 7
    handoffDescription: [x]
    instructions: '{{context.x}}{{context.y}}{{context.z}}{{context.m}}{{context.n}}{{context.o}}{{context.p}}'
";
    insta::assert_snapshot!(check(yaml), @r"
    2:21 lint.descriptor_version: descriptor_version names no version that is known; the descriptor is read all the same
        write `aioc.agent_graph.v0`, or leave it out
    6:16 lint.type_name: unknown type `bool`
        did you mean `boolean`?
    6:42 lint.value_type: `redact` takes `true` or `false`, not a string
    7:34 lint.default_type: this default is a string, but the field's type is boolean
    7:49 lint.value_type: `mutable` takes `true` or `false`, not a number
    8:33 lint.default_placeholder: a default is filled in only if it is exactly `{{runtime.now_iso}}`
        without anything before, behind or between
    10:34 lint.default_type: this default is a fraction, but the field's type is integer
    10:49 lint.value_type: `optional` takes `true` or `false`, not null
    12:16 lint.type_name: unknown type `thing`
        the types are any, array, boolean, date, integer, list, null, number, object, string, timestamp
    14:18 lint.value_type: `type` takes a string, not null
    14:38 lint.value_type: `optional` takes `true` or `false`, not a string
    18:11 lint.value_type: `name` takes a string, not a number
    19:25 lint.value_type: `handoffDescription` takes a string, not a list
    ");
}

#[test]
fn model_settings() {
    let settings = "{ temperature: '0.5', maxTokens: 9, stop: x, seed: 1.5, stream: true, zzz: 1, top_p: ~ }";
    insta::assert_snapshot!(check(&one(&format!("modelSettings: {settings}"), "agent_defaults: { modelSettings: 7 }")), @r"
    2:56 lint.setting_type: setting `temperature` takes a number, not a string
    2:63 lint.unknown_setting: unknown model setting `maxTokens`; it is sent unchanged
        did you mean `max_tokens`?
    2:92 lint.setting_type: setting `seed` takes a whole number, not a fraction
    2:97 lint.reserved_setting: adapters write `stream` themselves and refuse it as a setting
        remove it
    2:111 lint.unknown_setting: unknown model setting `zzz`; it is sent unchanged
        keep it if your model's provider documents it
    3:34 lint.setting_type: modelSettings takes a mapping, not a number
    ");
}

#[test]
fn a_value_that_an_alias_repeats_is_warned_of_once() {
    let yaml = "
runtime: { entry_agent: a }
agents:
  a: &a { model: m, hooks: 1, handoffs: [b] }
  b: *a
";
    let found = check(yaml);
    assert_eq!(found.matches("descriptor.unknown_key").count(), 1, "{found}");
}

#[test]
fn lists_of_warnings_are_bounded() {
    let tools: String =
        (0..300).fold("tools:\n".to_owned(), |text, at| text + &format!("  t{at}: {{ target: x }}\n"));
    let report = check_text(one("", &tools), &CheckOptions::default());
    assert!(report.is_truncated() && report.is_sound());
    assert_eq!(report.warnings().count(), 200);
}
