//! Registry files: what they bind, and every way in which one can be wrong.

use std::fs;
use std::path::Path;

use harness_core::tool::RetryClass;
use harness_host::process::Environment;
use harness_tools::{Registry, ToolsError};

use crate::support::{block_on, cx, environment, told};

fn parse(text: &str) -> Result<Registry, ToolsError> {
    Registry::parse(text, Path::new("tools.yaml"), &environment())
}

/// The message and the hint of the error.
#[track_caller]
fn refused(text: &str) -> String {
    with_hint(&parse(text).unwrap_err())
}

fn with_hint(error: &ToolsError) -> String {
    match error.hint() {
        Some(hint) => format!("[{}] {error}\n  {hint}", error.kind()),
        None => format!("[{}]\n{error}", error.kind()),
    }
}

const FULL: &str = r#"
version: 1
tools:
  orders.lookup:
    name: lookup_order
    description: Finds an order
    command: sh
    args: [-c, 'printf "%s " "$MODE" "$TOKEN"; pwd; cat']
    input: json-stdin
    timeout: 20s
    max_output: 1KiB
    cwd: data
    env: { MODE: read-only }
    env_pass: [TOKEN]
    class: pure
    requires_approval: true
    sequential: true
    parameters:
      type: object
      properties:
        number: { type: integer, maximum: 9007199254740993 }
      required: [number]
  Größe/prüfen!:
    command: ./check
"#;

#[test]
fn every_key_reaches_the_tool() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("tools.yaml");
    fs::create_dir(folder.path().join("data")).unwrap();
    fs::write(&file, FULL).unwrap();
    let environment = Environment::from_iter([("PATH", "/usr/bin:/bin"), ("TOKEN", "t0k"), ("OTHER", "x")]);
    let registry = Registry::load_with(&file, &environment).unwrap();

    assert_eq!(registry.targets().collect::<Vec<_>>(), ["Größe/prüfen!", "orders.lookup"]);
    assert_eq!(
        registry.iter().map(|(target, _)| target).collect::<Vec<_>>(),
        ["orders.lookup", "Größe/prüfen!"]
    );
    let tool = registry.get("orders.lookup").unwrap();
    let def = tool.tool_def();
    assert_eq!((def.name.as_str(), &*def.description), ("lookup_order", "Finds an order"));
    assert_eq!((def.class, def.requires_approval, def.sequential), (RetryClass::Pure, true, true));
    assert_eq!(
        def.input_schema.as_ref().unwrap().text(),
        r#"{"type":"object","properties":{"number":{"type":"integer","maximum":9007199254740993}},"required":["number"]}"#
    );
    let here = folder.path().canonicalize().unwrap().display().to_string();
    let told = told(&block_on(tool.call_boxed(cx(r#"{"number":1}"#)))).replace(&here, "[DIR]");
    assert_eq!(told, "success exit 0\nread-only t0k [DIR]/data\n{\"number\":1}");
}

#[test]
fn defaults_are_the_documented_ones() {
    let registry = parse(FULL).unwrap();
    let (target, _) = registry.iter().nth(1).unwrap();
    let spec = registry.command(target).unwrap().spec();
    assert_eq!((spec.limits.time.as_secs(), spec.limits.stdout), (30, 65_536));
    assert_eq!(spec.program.cwd, Some(std::path::absolute(".").unwrap()));
    assert_eq!(spec.program.path, std::path::absolute("./check").unwrap());
    let def = registry.get("Größe/prüfen!").unwrap().tool_def().clone();
    assert_eq!((def.name.as_str(), def.class), ("Gr_e_pr_fen", RetryClass::Unsafe));
    assert_eq!(def.input_schema, None);
}

#[test]
fn a_relative_program_is_found_beside_the_file() {
    let folder = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink("/bin/sh", folder.path().join("hello")).unwrap();
    let file = folder.path().join("tools.yaml");
    fs::write(&file, "version: 1\ntools:\n  hello: { command: ./hello, args: [-c, echo hello] }\n").unwrap();
    let registry = Registry::load_with(&file, &environment()).unwrap();
    assert_eq!(registry.problems(), []);
    let tool = registry.get("hello").unwrap();
    assert_eq!(told(&block_on(tool.call_boxed(cx("{}")))), "success exit 0\nhello");
}

#[test]
fn an_unbound_target_lists_the_near_ones() {
    let registry = parse(FULL).unwrap();
    let refused = |target: &str| with_hint(&registry.get(target).map(|_| ()).unwrap_err());
    insta::assert_snapshot!(refused("order.lookup"), @r"
    [tools.target_unbound] tool target `order.lookup` is not bound in registry tools.yaml
      did you mean `orders.lookup`?
    ");
    insta::assert_snapshot!(refused("payments"), @r"
    [tools.target_unbound] tool target `payments` is not bound in registry tools.yaml
      add it under `tools`; available: `Größe/prüfen!` and `orders.lookup`
    ");
    let empty = parse("version: 1\ntools: {}").unwrap();
    insta::assert_snapshot!(with_hint(&empty.toolbox(["payments"]).unwrap_err()), @r"
    [tools.target_unbound] tool target `payments` is not bound in registry tools.yaml
      the file binds no targets; add `payments` under `tools`
    ");
}

#[test]
fn a_toolbox_has_each_chosen_tool_once_in_the_chosen_order() {
    let registry = parse(FULL).unwrap();
    let toolbox = registry.toolbox(["Größe/prüfen!", "orders.lookup", "Größe/prüfen!"]).unwrap();
    let names: Vec<&str> = toolbox.defs().iter().map(|def| def.name.as_str()).collect();
    assert_eq!(names, ["Gr_e_pr_fen", "lookup_order"]);
}

#[test]
fn all_faults_are_reported_at_once_with_their_places() {
    let text = r"
version: 1
tool: {}
tools:
  a:
    comand: run
    args: run
  b.c:
    command: [python3, run.py]
    args: [-n, 5, ok]
    timeout: 10
    max_output: 64KB
    class: safe
    input: json_stdin
    requires_approval: yes please
    name: 'look up'
    parameters: { type: string }
  d:
    command: ''
    timeout: 2h
    max_output: 17MiB
    env: { A=B: c, HARNESS_CALL_ID: x, N: 1 }
    env_pass: { A: b }
    cwd: 3
    parameters: []
  e: run
  f: { command: x, timeout: fast, max_output: 1, name: b_c }
";
    insta::assert_snapshot!(refused(text), @r"
    [tools.registry_faulty]
    tools.yaml:3:1: unknown key `tool` in the registry file; did you mean `tools`?
    tools.yaml:5:3: missing `command` in tools.a; set it to the program that the tool runs
    tools.yaml:6:5: unknown key `comand` in tools.a; did you mean `command`?
    tools.yaml:7:11: tools.a.args must be a list of strings, not `run`; write it as a list: `[a, b]`
    tools.yaml:9:14: tools.b.c.command must be a string, not a list; write the program in `command`, and its arguments in `args`
    tools.yaml:10:16: tools.b.c.args[1] must be a string, not `5`; put it in quotes
    tools.yaml:11:14: tools.b.c.timeout must be a duration of at most 1h, not `10`; write a number with `ms`, `s`, `m` or `h`, such as `500ms` or `90s`
    tools.yaml:12:17: tools.b.c.max_output must be a size from 256B to 16MiB, not `64KB`; write a number with `B`, `KiB` or `MiB`, such as `64KiB`
    tools.yaml:13:12: tools.b.c.class must be `unsafe`, `pure` or `idempotent`, not `safe`
    tools.yaml:14:12: tools.b.c.input must be `json-stdin` or `none`, not `json_stdin`; did you mean `json-stdin`?
    tools.yaml:15:24: tools.b.c.requires_approval must be `true` or `false`, not `yes please`
    tools.yaml:16:11: tools.b.c.name must be a tool name, not `look up`; use 1 to 64 letters, digits, `_` and `-`, such as `look_up`
    tools.yaml:17:25: tools.b.c.parameters.type must be `object`, not `string`; write a JSON Schema of an object: `type: object`, `properties`, `required`
    tools.yaml:19:14: tools.d.command: the string is empty; set it to the program that the tool runs
    tools.yaml:20:14: tools.d.timeout must be a duration of at most 1h, not `2h`; write a number with `ms`, `s`, `m` or `h`, such as `500ms` or `90s`
    tools.yaml:21:17: tools.d.max_output must be a size from 256B to 16MiB, not `17MiB`; write a number with `B`, `KiB` or `MiB`, such as `64KiB`
    tools.yaml:22:12: invalid variable name `A=B`; a variable name is not empty and contains no `=`
    tools.yaml:22:20: the variable `HARNESS_CALL_ID` is reserved; names that start with `HARNESS_` are set by the program itself
    tools.yaml:22:43: tools.d.env.N must be a string, not `1`; put it in quotes
    tools.yaml:23:15: tools.d.env_pass must be a list of strings, not a mapping; write it as a list: `[a, b]`
    tools.yaml:24:10: tools.d.cwd must be a string, not `3`; put it in quotes
    tools.yaml:25:17: tools.d.parameters must be a mapping, not a list; write a JSON Schema of an object: `type: object`, `properties`, `required`
    tools.yaml:26:6: tools.e must be a mapping, not a string; write `command` and the tool's other keys below it
    tools.yaml:27:29: tools.f.timeout must be a duration of at most 1h, not `fast`; write a number with `ms`, `s`, `m` or `h`, such as `500ms` or `90s`
    tools.yaml:27:47: tools.f.max_output must be a size from 256B to 16MiB, not `1`; write a number with `B`, `KiB` or `MiB`, such as `64KiB`
    ");
}

#[test]
fn a_file_that_is_no_registry_is_refused() {
    insta::assert_snapshot!(refused(""), @r"
    [tools.registry_faulty]
    tools.yaml:1:1: the registry file must be a mapping, not nothing
    ");
    insta::assert_snapshot!(refused("- a"), @r"
    [tools.registry_faulty]
    tools.yaml:1:1: the registry file must be a mapping, not a list
    ");
    insta::assert_snapshot!(refused("tools: []"), @r"
    [tools.registry_faulty]
    tools.yaml:1:1: missing `version` in the registry file; write `version: 1`
    tools.yaml:1:8: tools must be a mapping, not a list; write the targets below it, or `{}` for none
    ");
    insta::assert_snapshot!(refused("version: 1.5\ntools: {}"), @r"
    [tools.registry_faulty]
    tools.yaml:1:10: version must be `1`, not `1.5`; write `version: 1`
    ");
    insta::assert_snapshot!(refused("version: '1'\ntools: {}"), @r"
    [tools.registry_faulty]
    tools.yaml:1:10: version must be `1`, not `1`; write `version: 1`
    ");
    insta::assert_snapshot!(refused("version: 1"), @r"
    [tools.registry_faulty]
    tools.yaml:1:1: missing `tools` in the registry file; write the targets and their programs below `tools:`
    ");
}

#[test]
fn a_file_that_is_no_yaml_is_refused_with_its_place() {
    insta::assert_snapshot!(refused("version: 1\ntools:\n  a: [1\n  b: 2\n"), @r"
    [yaml.syntax]
    tools.yaml:4:4: invalid YAML: illegal placement of ':' indicator; check indentation and quotes at that place
    ");
    insta::assert_snapshot!(refused("version: 1\ntools:\n  a: { command: x }\n  a: { command: y }\n"), @r"
    [yaml.duplicate_key]
    tools.yaml:4:3: duplicate key `a`, first defined on line 3
    ");
    insta::assert_snapshot!(refused("version: 1\n---\nversion: 1\n"), @r"
    [yaml.second_document]
    tools.yaml:2:1: only one YAML document is allowed; a second one starts here; keep one document in the file
    ");
    insta::assert_snapshot!(refused("version: 1\ntools: *none\n"), @r"
    [yaml.syntax]
    tools.yaml:2:8: invalid YAML: unknown alias `*none`; check indentation and quotes at that place
    ");
}

#[test]
fn a_newer_version_is_refused_without_further_faults() {
    insta::assert_snapshot!(refused("version: 2\nprograms: []\n"), @r"
    [tools.registry_newer_version]
    tools.yaml:1:10: unsupported registry version 2, expected 1; update this program, or write the file as version 1
    ");
}

#[test]
fn names_that_a_model_cannot_tell_apart_are_refused() {
    insta::assert_snapshot!(refused("version: 1\ntools:\n  a.b: { command: x }\n  a_b: { command: y }\n"), @r"
    [tools.registry_faulty]
    tools.yaml:4:3: duplicate tool name `a_b`, also used by `a.b`; set a different `name`
    ");
}

#[test]
fn an_alias_bomb_is_refused() {
    let mut lines = vec!["version: 1".to_owned(), "x0: &x0 [a, a, a, a, a, a, a, a, a, a]".to_owned()];
    for n in 1..10 {
        let list = vec![format!("*x{}", n - 1); 10].join(", ");
        lines.push(format!("x{n}: &x{n} [{list}]"));
    }
    insta::assert_snapshot!(refused(&lines.join("\n")), @r"
    [yaml.too_large]
    tools.yaml:7:9: count of values, aliases followed, of 1111111 exceeds the limit of 1048576
    ");
}

#[test]
fn anchors_and_merge_keys_work() {
    let text = "
version: 1
tools:
  a: &base { command: x, timeout: 5s }
  b: { <<: *base, command: y }
";
    let registry = parse(text).unwrap();
    let timeouts: Vec<u64> = registry
        .targets()
        .map(|target| registry.command(target).unwrap().spec().limits.time.as_secs())
        .collect();
    assert_eq!(timeouts, [5, 5]);
}

#[test]
fn the_number_of_reported_faults_is_bounded() {
    let tools: Vec<String> = (0..80).map(|n| format!("  t{n}: {{}}\n")).collect();
    let told = refused(&format!("version: 1\ntools:\n{}", tools.concat()));
    assert_eq!(told.lines().count(), 52);
    assert!(told.ends_with("\n30 more errors in tools.yaml"), "{told}");
}

#[test]
fn a_file_that_cannot_be_read_says_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    let refused = |name: &str| {
        let error = Registry::load_with(folder.path().join(name), &environment()).unwrap_err();
        with_hint(&error).replace(&folder.path().display().to_string(), "[DIR]")
    };
    fs::write(folder.path().join("long.yaml"), "#".repeat(1024 * 1024 + 1)).unwrap();
    fs::write(folder.path().join("latin.yaml"), b"version: 1 # caf\xe9").unwrap();
    insta::assert_snapshot!(refused("none.yaml"), @r"
    [tools.registry_unreadable] cannot read registry file [DIR]/none.yaml: No such file or directory (os error 2)
      check the path of the registry file
    ");
    insta::assert_snapshot!(refused(""), @r"
    [tools.registry_unreadable] cannot read registry file [DIR]/: Is a directory (os error 21)
      check that it is a readable file
    ");
    insta::assert_snapshot!(refused("long.yaml"), @r"
    [tools.registry_too_long] registry file [DIR]/long.yaml exceeds 1048576 bytes
      split it, or move long schemas into the programs
    ");
    insta::assert_snapshot!(refused("latin.yaml"), @r"
    [tools.registry_not_text] registry file [DIR]/latin.yaml is not UTF-8: invalid byte at offset 16
      save it as UTF-8
    ");
}

#[test]
fn problems_tell_what_this_machine_lacks() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("tools.yaml");
    fs::write(folder.path().join("plain"), "no program").unwrap();
    let text = "
version: 1
tools:
  fine: { command: sh }
  gone: { command: ./gone }
  plain: { command: ./plain, cwd: nowhere }
  name: { command: no-such-program }
  shell: { command: 'python3 run.py' }
  token: { command: sh, env_pass: [API_TOKEN] }
";
    fs::write(&file, text).unwrap();
    let registry = Registry::load_with(&file, &environment()).unwrap();
    let told: Vec<String> = registry.problems().iter().map(ToString::to_string).collect();
    let told = told.join("\n").replace(&folder.path().display().to_string(), "[DIR]");
    insta::assert_snapshot!(told, @r"
    [DIR]/tools.yaml:5:20: tool target `gone`: program `[DIR]/gone` not found; correct `command`
    [DIR]/tools.yaml:6:35: tool target `plain`: directory `[DIR]/nowhere` does not exist; create it, or correct `cwd`
    [DIR]/tools.yaml:6:21: tool target `plain`: `[DIR]/plain` is not executable; make it so with `chmod +x`
    [DIR]/tools.yaml:7:20: tool target `name`: program `no-such-program` not found in PATH; install it, or write its path in `command`
    [DIR]/tools.yaml:8:21: tool target `shell`: program `python3 run.py` not found in PATH; there is no shell: write the program in `command`, and its arguments in `args`
    [DIR]/tools.yaml:9:35: tool target `token`: the variable `API_TOKEN` is not set; set it, or remove it from `env_pass`
    ");
}

#[cfg(feature = "schema-validation")]
#[test]
fn a_wrong_schema_is_a_fault_of_the_file() {
    let text = "
version: 1
tools:
  a:
    command: x
    parameters: { properties: { n: { type: numbr } } }
";
    insta::assert_snapshot!(refused(text), @r#"
    [tools.registry_faulty]
    tools.yaml:6:44: tools.a.parameters.properties.n.type: invalid schema: expected one of several forms, and none fits; found "numbr"; correct the schema; references must stay inside it
    "#);
}
