//! The sandbox of shell and command tools, as a registry file sets it.

use std::fs;
use std::path::Path;

use harness_host::process::Sandbox;
use harness_tools::{Registry, ToolSet};
use tempfile::TempDir;

use crate::support::{ask_in, environment, told};

fn parse(entry: &str, folder: &Path) -> Result<Registry, harness_tools::ToolsError> {
    Registry::parse(&format!("version: 1\ntools:\n{entry}"), &folder.join("tools.yaml"), &environment())
}

/// A folder `work` for commands, beside it `shared`.
fn place() -> TempDir {
    let place = TempDir::new().unwrap();
    fs::create_dir(place.path().join("work")).unwrap();
    fs::create_dir(place.path().join("shared")).unwrap();
    fs::write(place.path().join("shared/a.txt"), "shared").unwrap();
    place
}

/// What a script of `sh` prints through the tool of an entry; `None` when this machine cannot sandbox programs, and
/// refused.
#[track_caller]
fn run(place: &TempDir, entry: &str, script: &str) -> Option<String> {
    let registry = parse(entry, place.path()).unwrap();
    let tools = registry.toolbox(registry.targets()).unwrap();
    let tools = ToolSet::new(tools.defs().iter().map(|def| tools.get(&def.name).unwrap().clone()));
    let command = serde_json::json!({ "command": format!("sh -c '{script}'") }).to_string();
    let outcome = ask_in("run", &tools, "tool", &command);
    if entry.contains("sandbox: off") || Sandbox::available().is_ok() {
        return Some(told(&outcome));
    }
    assert_eq!(outcome.error.unwrap().code, "sandbox_unavailable");
    assert!(registry.problems().iter().any(|problem| problem.to_string().contains("cannot be sandboxed")));
    None
}

#[track_caller]
fn check(place: &TempDir, settings: &str, script: &str, expected: &str) {
    let shell = format!(
        "  tool: {{ builtin: shell, allow: any, name: tool, cwd: work, requires_approval: false{settings} }}\n"
    );
    let printed = run(place, &shell, script);
    assert!(printed.is_none() || printed.as_deref() == Some(expected), "{settings}: {printed:?}");
}

#[test]
fn sandbox_of_the_shell_tool_is_on_by_default() {
    let place = place();
    let all = "exec 2> /dev/null; echo x > made && echo own; echo x > ../shared/made || echo unwritten; \
               cat ../shared/a.txt || echo unread; echo x > $TMPDIR/t && echo temporary; test $HOME = $TMPDIR && echo home";
    check(&place, "", all, "success exit 0\nown\nunwritten\nunread\ntemporary\nhome");
    assert!(!place.path().join("shared/made").exists());
    check(
        &place,
        ", sandbox: on",
        "cat ../shared/a.txt 2> /dev/null || echo unread",
        "success exit 0\nunread",
    );
    check(
        &place,
        ", sandbox: { read: [shared], write: [] }",
        "exec 2> /dev/null; cat ../shared/a.txt; echo; cat made; echo y > made || echo unwritten",
        "success exit 0\nshared\nx\nunwritten",
    );
    check(
        &place,
        ", sandbox: { write: [work, shared] }, env: { HOME: /nowhere }",
        "echo y > ../shared/made; cat ../shared/made; echo $HOME",
        "success exit 0\ny\n/nowhere",
    );
    fs::write(place.path().join("shared/made"), "").unwrap();
    check(&place, ", sandbox: off", "echo z > ../shared/made; cat ../shared/made", "success exit 0\nz");
}

#[test]
fn sandbox_has_a_temporary_folder_of_each_call() {
    let place = place();
    let shell = "  tool: { builtin: shell, allow: any, name: tool, cwd: work, requires_approval: false }\n";
    let Some(first) = run(&place, shell, "echo x > $TMPDIR/x; echo $TMPDIR") else { return };
    let second = run(&place, shell, "ls $TMPDIR; echo $TMPDIR").unwrap();
    assert_ne!(first, second);
    for told in [&first, &second] {
        let folder = told.strip_prefix("success exit 0\n").unwrap();
        assert!(folder.starts_with('/') && !Path::new(folder).exists(), "{folder}");
    }
}

#[test]
fn sandbox_of_a_command_is_on_when_it_is_named() {
    let place = place();
    let command = |settings: &str| {
        format!(
            "  tool: {{ command: sh, args: [-c, 'echo x > ../shared/made && echo made'], input: none, cwd: work{settings} }}\n"
        )
    };
    assert_eq!(run(&place, &command(", sandbox: off"), "").unwrap(), "success exit 0\nmade");
    fs::remove_file(place.path().join("shared/made")).unwrap();
    if let Some(told) = run(&place, &command(", sandbox: {}"), "") {
        assert!(told.starts_with("failed nonzero_exit"), "{told}");
    }
    assert!(!place.path().join("shared/made").exists());
}

#[test]
fn sandbox_faults_are_told_with_their_place() {
    let refused = |entry: &str, expected: &str| {
        let error = parse(entry, Path::new("")).unwrap_err().to_string();
        assert_eq!(error.replace("tools.yaml", "F"), expected);
    };
    refused(
        "  a: { command: ls, sandbox: strict }\n",
        "F:3:30: tools.a.sandbox must be `on`, `off` or a mapping of `read`, `write` and `network`, not a string",
    );
    refused(
        "  a: { builtin: shell, allow: [ls], sandbox: { writ: [x], network: 1, read: x } }\n",
        "F:3:48: unknown key `writ` in tools.a.sandbox; did you mean `write`?\n\
         F:3:68: tools.a.sandbox.network must be `true` or `false`, not `1`\n\
         F:3:77: tools.a.sandbox.read must be a list of strings, not `x`; write it as a list: `[a, b]`",
    );
    refused(
        "  a: { command: ls, sandbox: [x] }\n",
        "F:3:30: tools.a.sandbox must be `on`, `off` or a mapping of `read`, `write` and `network`, not a list",
    );
}
