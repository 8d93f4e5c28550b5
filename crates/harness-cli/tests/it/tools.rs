//! `harness tools`: the list of a registry's tools, and trying one.

use std::fs;

use crate::support::{Project, Running};

const REGISTRY: &str = "\
version: 1
tools:
  orders.lookup:
    name: lookup_order
    description: Finds an order
    command: cat
    class: pure
    parameters:
      type: object
      properties:
        number: { type: integer, description: The number on the receipt }
        form: { enum: [short, long] }
      required: [number]
  files: { builtin: workspace, root: files }
  sh: { builtin: shell, allow: [echo, 'false'], sandbox: off }
  slow: { command: sh, args: [-c, 'echo begun; sleep 1000'], timeout: 2s }
";

fn project() -> Project {
    let project = Project::plain();
    project.write("tools.yaml", REGISTRY);
    fs::create_dir(project.path().join("files")).unwrap();
    project.write("files/a.md", "Berth 4 is free.");
    project
}

/// What calling a tool prints, with the exit code before it.
#[track_caller]
fn called(arguments: &[&str]) -> String {
    let project = project();
    let output = project.harness(&[&["tools", "tools.yaml"], arguments].concat());
    project.told(&output)
}

#[test]
fn the_list_tells_names_flags_and_arguments() {
    insta::assert_snapshot!(called(&[]), @r"
    exit 0
    lookup_order (orders.lookup) · pure
      Finds an order
        form  short|long
        number  integer, required  The number on the receipt

    workspace_search (files.workspace_search) · pure
      Finds files whose path or text contains the query, whatever its case.
        limit  integer
        query  string, required

    workspace_list (files.workspace_list) · pure
      Lists the files and directories below a path. `/` is the root; depth 1 is the content of the directory.
        depth  integer
        limit  integer
        path  string, required

    workspace_read (files.workspace_read) · pure
      Reads a text file.
        limit  integer  How many bytes to give at most.
        offset  integer  The byte to begin at, for what follows an earlier page.
        path  string, required

    workspace_read_json (files.workspace_read_json) · pure
      Reads a JSON file and gives its value.
        path  string, required

    shell (sh) · unsafe · needs approval · runs alone
      Runs a command and gives what it prints and its exit code.
        command  string, required  A program and its arguments. There is no shell: quotes work, pipes, lists, redirections, var…
        cwd  string  Working directory, inside the default one. Default: the default one.

    slow (slow) · unsafe
    ---
    ");
}

#[test]
fn the_list_for_programs_has_the_schemas() {
    let project = project();
    let output = project.harness(&["tools", "tools.yaml", "--json"]);
    let tools: serde_json::Value = serde_json::from_str(&output.stdout).unwrap();
    assert_eq!(tools.as_array().unwrap().len(), 7);
    assert_eq!(
        tools[0],
        serde_json::json!({
            "name": "lookup_order",
            "target": "orders.lookup",
            "description": "Finds an order",
            "class": "pure",
            "requiresApproval": false,
            "sequential": false,
            "inputSchema": {
                "type": "object",
                "properties": {
                    "number": { "type": "integer", "description": "The number on the receipt" },
                    "form": { "enum": ["short", "long"] },
                },
                "required": ["number"],
            },
        })
    );
}

#[test]
fn a_tool_is_called_by_name_or_target_with_exact_input() {
    insta::assert_snapshot!(called(&["--call", "lookup_order", "--input", r#"{"number":9007199254740993}"#]), @r#"
    exit 0
    {"number":9007199254740993}
    ---
    "#);
    insta::assert_snapshot!(called(&["--call", "files.workspace_read", "--input", r#"{"path":"a.md"}"#]), @r#"
    exit 0
    Berth 4 is free.
    ---
    "#);
}

#[test]
fn input_comes_from_a_file_or_standard_input() {
    let project = project();
    project.write("input.json", "{\"path\": \"a.md\"}\n");
    let from_file =
        project.harness(&["tools", "tools.yaml", "--call", "workspace_read", "--input", "@input.json"]);
    assert_eq!((from_file.code, &*from_file.stdout), (Some(0), "Berth 4 is free.\n"));
    let command = project.command(&["tools", "tools.yaml", "--call", "workspace_read", "--input", "-"]);
    let from_stdin = Running::start_with_input(command, b"{\"path\":\"a.md\"}").end();
    assert_eq!((from_stdin.code, &*from_stdin.stdout), (Some(0), "Berth 4 is free.\n"));
}

#[test]
fn a_failed_call_is_exit_1_and_another_exit_code_of_a_command_is_no_failure() {
    insta::assert_snapshot!(called(&["--call", "workspace_read", "--input", r#"{"path":"../x"}"#]), @r#"
    exit 1
    `../x` leads out of the workspace; write the path from its root
    ---
    outside_workspace
    "#);
    insta::assert_snapshot!(called(&["--call", "shell", "--yes", "--input", r#"{"command":"false"}"#]), @r#"
    exit 0
    exit code 1
    ---
    "#);
    insta::assert_snapshot!(called(&["--call", "slow"]), @r"
    exit 1
    `sh` did not finish within [TIME] and was stopped; if it needs more time, raise its `timeout`

    stdout:
    begun
    ---
    timeout
    ");
}

#[test]
fn a_call_that_needs_approval_does_not_run_without_it() {
    insta::assert_snapshot!(called(&["--call", "shell", "--input", r#"{"command":"echo x"}"#]), @r#"
    exit 4
    ---
    `shell` was not called: it needs approval: use --yes, or a terminal to be asked on
    "#);
    insta::assert_snapshot!(called(&["--call", "shell", "--yes", "--input", r#"{"command":"echo x"}"#]), @r#"
    exit 0
    x
    ---
    "#);
}

#[test]
fn all_of_a_result_is_shown_to_programs() {
    let project = project();
    let output = project.harness(&[
        "tools",
        "tools.yaml",
        "--call",
        "shell",
        "--yes",
        "--json",
        "--input",
        r#"{"command":"echo x"}"#,
    ]);
    let result: serde_json::Value = serde_json::from_str(&output.stdout).unwrap();
    assert_eq!((&result["status"], &result["exitCode"]), (&"success".into(), &0.into()));
}

#[test]
fn what_is_wrong_is_told_and_nothing_is_called() {
    insta::assert_snapshot!(called(&["--call", "lookup"]), @r"
    exit 2
    ---
    error: tool `lookup` not found in registry tools.yaml
      hint: available: `lookup_order`, `workspace_search`, `workspace_list`, `workspace_read`, `workspace_read_json`, `shell`, `slow`
    ");
    insta::assert_snapshot!(called(&["--call", "lookup_order", "--input", "{}"]), @r"
    exit 2
    ---
    error: invalid input for tool `lookup_order`: argument `number` is wrong: it is required and missing
      hint: `harness tools --json` prints the schemas of the arguments
    ");
    insta::assert_snapshot!(called(&["--call", "shell", "--input", "[1]"]), @r"
    exit 2
    ---
    error: invalid input on the command line: not a JSON object
      hint: pass a JSON object, @FILE, or - for standard input
    ");
    insta::assert_snapshot!(called(&["--call", "shell", "--input", "{\"command\":"]), @r"
    exit 2
    ---
    error: invalid input on the command line: invalid JSON: EOF while parsing a value at line 1 column 11
      hint: pass a JSON object, @FILE, or - for standard input
    ");
    insta::assert_snapshot!(called(&["--call", "shell", "--input", "@no.json"]), @r"
    exit 2
    ---
    error: invalid input in no.json: cannot be read: No such file or directory (os error 2)
      hint: pass a JSON object, @FILE, or - for standard input
    ");
    insta::assert_snapshot!(called(&["--call", "shell", "--yes", "--input", r#"{"command":"rm -rf x"}"#]), @r"
    exit 2
    ---
    error: invalid input for tool `shell`: argument `command` is wrong: `rm` is not allowed; allowed are `echo` and `false`
      hint: `harness tools --json` prints the schemas of the arguments
    ");
}

/// An MCP server with one tool, and a program that is none.
const SERVER: &str = r#"
reply() { printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$1"; }
while read -r line; do
    id=${line#*\"id\":}; id=${id%%[,\}]*}
    case $line in
        *'"initialize"'*) reply '{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"harbor","version":"1"}}' ;;
        *'"tools/list"'*) reply '{"tools":[{"name":"tide","description":"The tide","inputSchema":{"type":"object","properties":{"berth":{"type":"integer"}},"required":["berth"]}}]}' ;;
        *'"tools/call"'*) reply '{"content":[{"type":"text","text":"rising"}]}' ;;
    esac
done
"#;

const SERVERS: &str = "\
version: 1
tools:
  harbor: { mcp: { command: [sh, harbor.sh] } }
  gone: { mcp: { command: [sh, -c, 'echo broken >&2; exit 3'] } }
";

#[track_caller]
fn served(arguments: &[&str]) -> String {
    let project = project();
    project.write("harbor.sh", SERVER);
    project.write("servers.yaml", SERVERS);
    let output = project.harness(&[&["tools", "servers.yaml"], arguments].concat());
    project.told(&output)
}

#[test]
fn the_tools_of_servers_are_listed_and_called() {
    insta::assert_snapshot!(served(&[]), @r#"
    exit 0
    harbor__tide (harbor.tide) · unsafe
      The tide
        berth  integer, required
    ---
    cannot use MCP server `gone`: its program ended: exit code 3; its stderr says "broken"
      hint: run the command in a shell to see why it ends
    "#);
    insta::assert_snapshot!(served(&["--call", "harbor.tide", "--input", r#"{"berth":4}"#]), @r#"
    exit 0
    rising
    ---
    "#);
    insta::assert_snapshot!(served(&["--call", "harbor__tide"]), @r"
    exit 2
    ---
    error: invalid input for tool `harbor__tide`: argument `berth` is wrong: it is required and missing
      hint: `harness tools --json` prints the schemas of the arguments
    ");
    insta::assert_snapshot!(served(&["--call", "gone.tide"]), @r#"
    exit 2
    ---
    error: cannot use MCP server `gone`: its program ended: exit code 3; its stderr says "broken"
      hint: run the command in a shell to see why it ends
    "#);
    insta::assert_snapshot!(served(&["--call", "harbor.wind"]), @r"
    exit 2
    ---
    error: tool `harbor.wind` not found in registry servers.yaml
      hint: available: `harbor__tide`
    ");
}
