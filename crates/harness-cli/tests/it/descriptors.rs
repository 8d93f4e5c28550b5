//! The commands about descriptors: show, graph, check, hash, completions.

use std::fs;

use serde_json::{Value, json};

use crate::support::Project;

const CLINIC: &str = "\
runtime: { entry_agent: desk }
context:
  fields:
    open: { type: boolean, default: true }
    known: { type: boolean, default: false }
  references:
    open: { type: boolean }
    known: { type: boolean }
    name: { type: string }
tools: { find: { target: records.find } }
agent_defaults: { model: example/small, modelSettings: { temperature: 0 } }
agents:
  desk:
    name: Front desk
    instructions_sequence:
      - text: |
          Be brief.
          Be kind.
      - text: You know this patient.
        where: { context: known }
    tools: [find]
    handoffs:
      - nurse
      - { agent: night, where: { context: known } }
  nurse:
    handoffDescription: Answers questions about symptoms.
    instructions: \"Call them {{context.name}}.\"
  night: {}
";

fn clinic() -> Project {
    let project = Project::plain();
    project.write("clinic.yaml", CLINIC);
    fs::remove_file(project.path().join("registry.yaml")).unwrap();
    project
}

#[track_caller]
fn check(project: &Project, arguments: &[&str], expected_code: i32) -> String {
    let output = project.harness(arguments);
    assert_eq!(output.code, Some(expected_code), "{}", output.stderr);
    project.told(&output)
}

#[test]
fn show_prints_the_materialized_descriptor() {
    let project = clinic();
    insta::assert_snapshot!(check(&project, &["show", "clinic.yaml"], 0), @r#"
    exit 0
    runtime:
      entry_agent: desk
    context:
      fields:
        open:
          type: boolean
          default: true
        known:
          type: boolean
          default: false
      references:
        open:
          type: boolean
        known:
          type: boolean
        name:
          type: string
    tools:
      find:
        target: records.find
    agent_defaults:
      model: example/small
      modelSettings:
        temperature: 0
    agents:
      desk:
        name: Front desk
        tools: [find]
        handoffs:
          - nurse
          - agent: night
            where:
              context: known
        instructions:
          - text: |
              Be brief.
              Be kind.
          - text: You know this patient.
            where:
              context: known
      nurse:
        handoffDescription: Answers questions about symptoms.
        instructions: Call them {{context.name}}.
      night: {}
    ---
    "#);
    let shown = project.harness(&["show", "clinic.yaml"]).stdout;
    project.write("again.yaml", &shown);
    let hash = |name| project.harness(&["hash", name]).stdout;
    assert_eq!(hash("again.yaml"), hash("clinic.yaml"), "what is shown is the same descriptor");
    let json = project.harness(&["show", "clinic.yaml", "--json"]).stdout;
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["agents"]["desk"]["instructions"][0], json!({ "text": "Be brief.\nBe kind.\n" }));
}

#[test]
#[expect(clippy::too_many_lines, reason = "one case after another")]
fn show_tells_what_an_agent_gets_and_why_not_more() {
    let project = clinic();
    insta::assert_snapshot!(check(&project, &["show", "clinic.yaml", "--agent", "desk"], 0), @r#"
    exit 0
    desk · Front desk
    model example/small {"temperature":0}

    instructions
    │ Be brief.
    │ Be kind.

    omitted parts
    2 of 2  closed: known is false
            You know this patient.

    tools
    find (records.find)

    handoffs
    handoff_to_nurse
            Handoff to agent "nurse". Answers questions about symptoms.
    handoff_to_night  closed: known is false
    ---
    note: no registry file; tools have the names of the descriptor
    "#);
    let known = ["show", "clinic.yaml", "--agent", "desk", "--context", "known=true", "--json"];
    insta::assert_snapshot!(check(&project, &known, 0), @r#"
    exit 0
    {
      "agent": "desk",
      "name": "Front desk",
      "model": "example/small",
      "modelSettings": {
        "temperature": 0
      },
      "instructions": "Be brief.\nBe kind.\n\n\nYou know this patient.",
      "parts": [
        {
          "source": "Be brief.\nBe kind.\n",
          "standing": "open"
        },
        {
          "source": "You know this patient.",
          "gate": "known",
          "standing": "open"
        }
      ],
      "tools": [
        {
          "id": "find",
          "name": "find",
          "target": "records.find",
          "description": ""
        }
      ],
      "handoffs": [
        {
          "to": "nurse",
          "toolName": "handoff_to_nurse",
          "description": "Handoff to agent \"nurse\". Answers questions about symptoms.",
          "standing": "open"
        },
        {
          "to": "night",
          "toolName": "handoff_to_night",
          "description": "Handoff to agent \"night\".",
          "gate": "known",
          "standing": "open"
        }
      ],
      "context": {
        "open": true,
        "known": true
      }
    }
    ---
    note: no registry file; tools have the names of the descriptor
    "#);
}

#[test]
fn show_says_what_a_context_lacks() {
    let project = clinic();
    insta::assert_snapshot!(check(&project, &["show", "clinic.yaml", "--agent", "nurse"], 2), @r#"
    exit 2
    nurse

    no tools

    no handoffs
    ---
    agent `nurse` cannot run with this context:
    clinic.yaml:27:19: error[context.missing]: no value for context path `name`, which the instructions read
       |
    27 |     instructions: "Call them {{context.name}}."
       |                   ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
    help: set it with `--context name=VALUE`, or set a default under `context.fields`
    "#);
    let arguments = ["show", "clinic.yaml", "--agent", "desk", "--context", "known=perhaps"];
    insta::assert_snapshot!(check(&project, &arguments, 2), @r"
    exit 2
    desk · Front desk

    omitted parts
    2 of 2  error: the gate of an instruction part of agent `desk` requires a boolean at context path `known`, not a string
            You know this patient.

    tools
    find (records.find)

    handoffs
    handoff_to_nurse
    handoff_to_night  error: the gate of the handoff from `desk` to `night` requires a boolean at context path `known`, not a string
    ---
    note: no registry file; tools have the names of the descriptor
    agent `desk` cannot run with this context:
    clinic.yaml:24:9: error[context.gate_not_boolean]: the gate of the handoff from `desk` to `night` requires a boolean at context path `known`, not a string
       |
    24 |       - { agent: night, where: { context: known } }
       |         ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
    help: set it with `--context known=true`, or set a default under `context.fields`
    ");
    insta::assert_snapshot!(check(&project, &["show", "clinic.yaml", "--agent", "boss"], 2), @r#"
    exit 2
    ---
    error: clinic.yaml has no agent `boss`
      hint: available: `desk`, `nurse`, `night`
    "#);
}

#[test]
fn show_puts_a_fault_into_its_json() {
    let output = clinic().harness(&["show", "clinic.yaml", "--agent", "nurse", "--json"]);
    let shown: Value = serde_json::from_str(&output.stdout).unwrap();
    assert_eq!((output.code, &shown["fault"]["kind"]), (Some(2), &json!("context.missing")));
}

#[test]
fn show_uses_the_names_of_the_registry() {
    let project = Project::plain();
    insta::assert_snapshot!(check(&project, &["show", "harness.yaml", "--agent", "expert"], 0), @r#"
    exit 0
    expert
    model scripted

    instructions
    │ You are the expert.

    tools
    look (look)
            Looks at something.

    no handoffs
    ---
    "#);
}

#[test]
fn graph_prints_a_flowchart() {
    let project = clinic();
    insta::assert_snapshot!(check(&project, &["graph", "clinic.yaml"], 0), @r#"
    exit 0
    %%{init: {"flowchart": {"wrappingWidth": 400}}}%%
    flowchart LR
      agent_desk("<b>Front desk</b><br/><i>entry agent</i><br/>desk<br/>example/small<br/>• find"):::entry
      agent_nurse("<b>nurse</b><br/>example/small")
      agent_night("<b>night</b><br/>example/small")
      agent_desk --> agent_nurse
      agent_desk -.->|"if known"| agent_night
      classDef entry stroke-width:4px
    ---
    "#);
    insta::assert_snapshot!(check(&project, &["graph", "clinic.yaml", "--format", "dot"], 0), @r#"
    exit 0
    digraph "agents" {
      rankdir=LR
      graph [fontname="Helvetica" nodesep=0.4 ranksep=0.9]
      node [shape=Mrecord fontname="Helvetica" fontsize=12]
      start [shape=point width=0.15 label=""]
      edge [fontname="Helvetica" fontsize=10]
      agent_desk [label="Front desk\ndesk\nexample/small|find\l" penwidth=3]
      start -> agent_desk
      agent_nurse [label="nurse\nexample/small"]
      agent_night [label="night\nexample/small"]
      agent_desk -> agent_nurse
      agent_desk -> agent_night [style=dashed label="if known"]
    }
    ---
    "#);
}

#[test]
fn check_takes_several_files_and_sums_up() {
    let project = clinic();
    project.write(
        "bad.yaml",
        "runtime: { entry_agent: a }\nagents: { a: { model: m, tool: [x], handoffs: [b] } }\n",
    );
    insta::assert_snapshot!(check(&project, &["check", "clinic.yaml", "bad.yaml", "none.yaml"], 2), @r"
    exit 2
    clinic.yaml is valid: 3 agents, entry `desk`, 1 tool
    sha256:6c3a836037d9537f90f149d3fc662f72dcfccfe72c798f8d8b5b6df62cc58e27
    ---
    clinic.yaml:7:5: warning[lint.unused_reference]: context path `open` is declared, but read by no instructions and no gate
      |
    7 |     open: { type: boolean }
      |     ^^^^
    help: remove it, or read it

    bad.yaml:2:26: error[descriptor.unknown_key]: unknown key `tool` in an agent
      |
    2 | agents: { a: { model: m, tool: [x], handoffs: [b] } }
      |                          ^^^^
    help: did you mean `tools`?

    bad.yaml:2:48: error[descriptor.unknown_handoff]: agent `a` hands off to unknown agent `b`
      |
    2 | agents: { a: { model: m, tool: [x], handoffs: [b] } }
      |                                                ^
    help: use the id of an agent, or add the agent under `agents`

    error[descriptor.io]: cannot read the descriptor `none.yaml`: No such file or directory (os error 2)
    help: check the path

    note: no registry file next to clinic.yaml; tool targets were not checked
    3 errors, 1 warning in 3 descriptors
    ");
    let output = project.harness(&["check", "clinic.yaml", "bad.yaml", "--json"]);
    let lines: Vec<Value> = output.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines[0]["sound"], json!(true));
    assert_eq!(lines[1]["diagnostics"][0]["place"]["file"], json!("bad.yaml"));
    assert_eq!(lines[2], json!({ "type": "summary", "descriptors": 2, "errors": 2, "warnings": 1 }));
}

#[test]
fn check_is_strict_about_the_hash_when_asked() {
    let project = clinic();
    project.write(
        "lossy.yaml",
        "runtime: { entry_agent: a }\nagents: { a: { model: m } }\nmetadata: { x-on: 2026-01-01 }\n",
    );
    insta::assert_snapshot!(check(&project, &["check", "lossy.yaml"], 0), @r"
    exit 0
    lossy.yaml is valid: 1 agent, entry `a`, 0 tools
    sha256:8d2cf55e1fbd4c647db2c7b3fe92bb51b50fc22d137fb1ca27ffce02c5e195ef
    ---
    lossy.yaml:3:19: warning[hash.lossy]: this date is hashed like the same text in quotes
      |
    3 | metadata: { x-on: 2026-01-01 }
      |                   ^^^^^^^^^^

    1 warning
    ");
    insta::assert_snapshot!(check(&project, &["check", "--strict", "lossy.yaml"], 2), @r#"
    exit 2
    ---
    lossy.yaml:3:19: error[hash.lossy]: this date is hashed like the same text in quotes
      |
    3 | metadata: { x-on: 2026-01-01 }
      |                   ^^^^^^^^^^

    1 error
    "#);
}

#[test]
fn hash_tells_agents_and_parts_apart() {
    let project = clinic();
    let lines = |name: &str| {
        let output = project.harness(&["hash", name, "--agents", "--parts"]);
        output.stdout.lines().map(str::to_owned).collect::<Vec<_>>()
    };
    project.write("other.yaml", &CLINIC.replace("Be kind.", "Be quick."));
    let (before, after) = (lines("clinic.yaml"), lines("other.yaml"));
    let changed: Vec<&str> = std::iter::zip(&before, &after)
        .filter(|(before, after)| before != after)
        .map(|(before, _)| before.split_once("  ").map_or("the whole", |(_, name)| name))
        .collect();
    assert_eq!(changed, ["the whole", "agent desk"]);
    let json = project.harness(&["hash", "clinic.yaml", "--agents", "--json"]).stdout;
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!((&json["hash"], &json["agents"][1]["id"]), (&json!(before[0]), &json!("nurse")));
}

#[test]
fn diff_tells_what_changed_by_text_and_exit_code() {
    let project = clinic();
    project.write("same.yaml", &format!("# Another comment.\n{CLINIC}"));
    let other = CLINIC.replace("Be kind.", "Be quick.").replace("temperature: 0", "temperature: 0.5");
    project.write("other.yaml", &other.replace("      - nurse\n", ""));
    insta::assert_snapshot!(check(&project, &["diff", "clinic.yaml", "same.yaml"], 0), @r#"
    exit 0
    no difference: both are sha256:6c3a836037d9537f90f149d3fc662f72dcfccfe72c798f8d8b5b6df62cc58e27
    ---
    "#);
    insta::assert_snapshot!(check(&project, &["diff", "clinic.yaml", "other.yaml"], 1), @r#"
    exit 1
    ~ agent_defaults, setting `temperature`: 0 → 0.5
    - agent `desk`, handoff to `nurse`
    ~ agent `desk`, instructions[0]:
        @@ line 1 @@
          Be brief.
        - Be kind.
        + Be quick.
          

    changed agents: `desk`, `nurse`, `night`
    ---
    "#);
    let output = project.harness(&["diff", "clinic.yaml", "other.yaml", "--json"]);
    let diff: Value = serde_json::from_str(&output.stdout).unwrap();
    assert_eq!((output.code, &diff["affectedAgents"]), (Some(1), &json!(["desk", "nurse", "night"])));
    insta::assert_snapshot!(check(&project, &["diff", "clinic.yaml", "none.yaml"], 2), @r#"
    exit 2
    ---
    error[descriptor.io]: cannot read the descriptor `none.yaml`: No such file or directory (os error 2)
    help: check the path
    "#);
}

#[test]
fn schema_is_the_published_one() {
    let project = clinic();
    let published = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/descriptor.schema.json");
    assert_eq!(project.harness(&["schema"]).stdout, fs::read_to_string(published).unwrap());
    let header = project.harness(&["schema", "--header"]).stdout;
    assert_eq!(header, "# yaml-language-server: $schema=descriptor.schema.json\n");
    project.write("with-header.yaml", &format!("{header}{CLINIC}"));
    let hash = |name| project.harness(&["hash", name]).stdout;
    assert_eq!(hash("with-header.yaml"), hash("clinic.yaml"));
}

#[test]
fn completions_name_the_commands() {
    let project = clinic();
    for shell in ["bash", "zsh", "fish"] {
        let output = project.harness(&["completions", shell]);
        assert_eq!(output.code, Some(0));
        assert!(output.stdout.contains("graph") && output.stdout.contains("run-record"), "{shell}");
    }
}
