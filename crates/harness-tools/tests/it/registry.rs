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
    assert_eq!((spec.timeout.as_secs(), spec.max_output), (30, 65_536));
    assert_eq!(spec.cwd, Some(std::path::absolute(".").unwrap()));
    assert_eq!(spec.program, std::path::absolute("./check").unwrap());
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
    insta::assert_snapshot!(refused("order.lookup"), @"
    [tools.target_unbound] tool target `order.lookup` is not bound in the registry file tools.yaml
      did you mean `orders.lookup`?
    ");
    insta::assert_snapshot!(refused("payments"), @"
    [tools.target_unbound] tool target `payments` is not bound in the registry file tools.yaml
      add it under `tools`; bound are `Größe/prüfen!`, `orders.lookup`
    ");
    let empty = parse("version: 1\ntools: {}").unwrap();
    insta::assert_snapshot!(with_hint(&empty.toolbox(["payments"]).unwrap_err()), @"
    [tools.target_unbound] tool target `payments` is not bound in the registry file tools.yaml
      the file binds no target; add `payments` under `tools`
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
    insta::assert_snapshot!(refused(text), @r#"
    [tools.registry_faulty]
    tools.yaml:3:1: tool: unknown key `tool`; did you mean `tools`?
    tools.yaml:5:3: tools.a: `command` is missing; write the program that the tool runs
    tools.yaml:6:5: tools.a.comand: unknown key `comand`; did you mean `command`?
    tools.yaml:7:11: tools.a.args: expected a list of texts, found a text; write it as a list: `[a, b]`
    tools.yaml:9:14: tools."b.c".command: expected a text, found a list; write the program in `command`, and its arguments in `args`
    tools.yaml:10:16: tools."b.c".args[1]: expected a text without NUL, found a number; write it in quotes
    tools.yaml:11:14: tools."b.c".timeout: `10` has no unit; write a number and `ms`, `s`, `m` or `h`, from `1ms` to `1h`
    tools.yaml:12:17: tools."b.c".max_output: `64KB` is no amount of bytes; write a number and `B`, `KiB` or `MiB`, from `256B` to `16MiB`
    tools.yaml:13:12: tools."b.c".class: unknown word `safe`; write `unsafe`, `pure` or `idempotent`
    tools.yaml:14:12: tools."b.c".input: unknown word `json_stdin`; did you mean `json-stdin`?
    tools.yaml:15:24: tools."b.c".requires_approval: expected a boolean, found a text; write `true` or `false`
    tools.yaml:16:11: tools."b.c".name: `look up` is no name that models can call; use 1 to 64 letters, digits, `_` and `-`, such as `look_up`
    tools.yaml:17:17: tools."b.c".parameters: the schema's type is "string", and an object is required; write a JSON Schema of an object: `type: object`, `properties`, `required`
    tools.yaml:19:14: tools.d.command: the text is empty; write the program that the tool runs
    tools.yaml:20:14: tools.d.timeout: `2h` is out of bounds; write a number and `ms`, `s`, `m` or `h`, from `1ms` to `1h`
    tools.yaml:21:17: tools.d.max_output: `17MiB` is out of bounds; write a number and `B`, `KiB` or `MiB`, from `256B` to `16MiB`
    tools.yaml:22:12: tools.d.env."A=B": `A=B` is no name of a variable; a name has no `=` and is not empty
    tools.yaml:22:20: tools.d.env.HARNESS_CALL_ID: `HARNESS_CALL_ID` cannot be set here; names that begin with `HARNESS_` are set by the program itself
    tools.yaml:22:43: tools.d.env.N: expected a text without NUL, found a number; write it in quotes
    tools.yaml:23:15: tools.d.env_pass: expected a list of texts, found a mapping; write it as a list: `[a, b]`
    tools.yaml:24:10: tools.d.cwd: expected a text, found a number; write it in quotes
    tools.yaml:25:17: tools.d.parameters: expected a JSON Schema, found a list; write a JSON Schema of an object: `type: object`, `properties`, `required`
    tools.yaml:26:6: tools.e: expected a mapping, found a text; write `command` and the tool's other keys below it
    tools.yaml:27:29: tools.f.timeout: `fast` is no span of time; write a number and `ms`, `s`, `m` or `h`, from `1ms` to `1h`
    tools.yaml:27:47: tools.f.max_output: `1` is out of bounds; write a number and `B`, `KiB` or `MiB`, from `256B` to `16MiB`
    "#);
}

#[test]
fn a_file_that_is_no_registry_is_refused() {
    insta::assert_snapshot!(refused(""), @"
    [tools.registry_faulty]
    tools.yaml:1:1: expected a registry, found nothing; begin it with `version: 1` and `tools:`
    ");
    insta::assert_snapshot!(refused("- a"), @"
    [tools.registry_faulty]
    tools.yaml:1:1: expected a registry, found a list; begin it with `version: 1` and `tools:`
    ");
    insta::assert_snapshot!(refused("tools: []"), @"
    [tools.registry_faulty]
    tools.yaml:1:1: `version` is missing; write `version: 1`
    tools.yaml:1:8: tools: expected a mapping, found a list; write the targets below it, or `{}` for none
    ");
    insta::assert_snapshot!(refused("version: 1.5\ntools: {}"), @"
    [tools.registry_faulty]
    tools.yaml:1:10: version: there is no version 1.5 of the format; write `version: 1`
    ");
    insta::assert_snapshot!(refused("version: '1'\ntools: {}"), @"
    [tools.registry_faulty]
    tools.yaml:1:10: version: expected a number, found a text; write `version: 1`
    ");
    insta::assert_snapshot!(refused("version: 1"), @"
    [tools.registry_faulty]
    tools.yaml:1:1: `tools` is missing; write the targets and their programs below `tools:`
    ");
}

#[test]
fn a_file_that_is_no_yaml_is_refused_with_its_place() {
    insta::assert_snapshot!(refused("version: 1\ntools:\n  a: [1\n  b: 2\n"), @"
    [tools.registry_syntax] tools.yaml:4:4: not valid YAML: did not find expected ',' or ']'
      check indentation and quotes at that place
    ");
    insta::assert_snapshot!(refused("version: 1\ntools:\n  a: { command: x }\n  a: { command: y }\n"), @r#"
    [tools.registry_syntax] tools.yaml:3:3: not valid YAML: tools: duplicate entry with key "a"
      keep only one of them
    "#);
    insta::assert_snapshot!(refused("version: 1\n---\nversion: 1\n"), @"
    [tools.registry_syntax] tools.yaml: not valid YAML: deserializing from YAML containing more than one document is not supported
      keep one document in the file
    ");
    insta::assert_snapshot!(refused("version: 1\ntools: *none\n"), @"
    [tools.registry_syntax] tools.yaml:2:8: not valid YAML: unknown anchor
      check indentation and quotes at that place
    ");
}

#[test]
fn a_newer_version_is_refused_without_further_faults() {
    insta::assert_snapshot!(refused("version: 2\nprograms: []\n"), @"
    [tools.registry_newer_version] tools.yaml:1:10: the registry file has version 2, and this program reads version 1
      update this program, or write the file as version 1
    ");
}

#[test]
fn names_that_a_model_cannot_tell_apart_are_refused() {
    insta::assert_snapshot!(refused("version: 1\ntools:\n  a.b: { command: x }\n  a_b: { command: y }\n"), @"
    [tools.registry_faulty]
    tools.yaml:4:3: tools.a_b: the tool of `a.b` has the name `a_b`, too; give one of them another `name`
    ");
}

#[test]
fn an_alias_bomb_is_refused() {
    let mut lines = vec!["version: 1".to_owned(), "x0: &x0 [a, a, a, a, a, a, a, a, a, a]".to_owned()];
    for n in 1..10 {
        let list = vec![format!("*x{}", n - 1); 10].join(", ");
        lines.push(format!("x{n}: &x{n} [{list}]"));
    }
    insta::assert_snapshot!(refused(&lines.join("\n")), @"
    [tools.registry_syntax] tools.yaml: not valid YAML: repetition limit exceeded
      write it with fewer aliases and levels
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
    let timeouts: Vec<u64> =
        registry.targets().map(|target| registry.command(target).unwrap().spec().timeout.as_secs()).collect();
    assert_eq!(timeouts, [5, 5]);
}

#[test]
fn the_number_of_reported_faults_is_bounded() {
    let tools: Vec<String> = (0..80).map(|n| format!("  t{n}: {{}}\n")).collect();
    let told = refused(&format!("version: 1\ntools:\n{}", tools.concat()));
    assert_eq!(told.lines().count(), 52);
    assert!(told.ends_with("\ntools.yaml: 30 more faults"), "{told}");
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
    insta::assert_snapshot!(refused("none.yaml"), @"
    [tools.registry_unreadable] cannot read the registry file [DIR]/none.yaml: No such file or directory (os error 2)
      check the path of the registry file
    ");
    insta::assert_snapshot!(refused(""), @"
    [tools.registry_unreadable] cannot read the registry file [DIR]/: Is a directory (os error 21)
      check that it is a file and that you may read it
    ");
    insta::assert_snapshot!(refused("long.yaml"), @"
    [tools.registry_too_long] the registry file [DIR]/long.yaml is longer than 1048576 bytes
      split it, or move long schemas into the programs
    ");
    insta::assert_snapshot!(refused("latin.yaml"), @"
    [tools.registry_not_text] the registry file [DIR]/latin.yaml is not UTF-8 text: the first wrong byte is byte 16
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
    insta::assert_snapshot!(told, @"
    [DIR]/tools.yaml:5:20: tool target `gone`: there is no program [DIR]/gone; correct `command`
    [DIR]/tools.yaml:6:35: tool target `plain`: its folder [DIR]/nowhere does not exist; create it, or correct `cwd`
    [DIR]/tools.yaml:6:21: tool target `plain`: [DIR]/plain is not executable; make it so with `chmod +x`
    [DIR]/tools.yaml:7:20: tool target `name`: no program `no-such-program` is in PATH; install it, or write its path in `command`
    [DIR]/tools.yaml:8:21: tool target `shell`: no program `python3 run.py` is in PATH; there is no shell: write the program in `command`, and its arguments in `args`
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
    tools.yaml:6:44: tools.a.parameters.properties.n.type: the schema is wrong: expected one of several forms, and none fits; found "numbr"; correct the schema; references must stay inside it
    "#);
}
