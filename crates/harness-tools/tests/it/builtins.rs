//! Entries of built-in tools in registry files.

use std::fs;
use std::path::Path;

use harness_tools::{Registry, ToolsError};

use crate::support::{ask_in, block_on, environment, told};

/// The example of the reference page, which must be one.
const PAGE: &str = include_str!("../../../../docs/reference/registry.md");

fn parse(text: &str, folder: &Path) -> Result<Registry, ToolsError> {
    Registry::parse(&format!("version: 1\ntools:\n{text}"), &folder.join("tools.yaml"), &environment())
}

fn bound(text: &str) -> Vec<String> {
    let folder = tempfile::tempdir().unwrap();
    let registry = parse(text, folder.path()).unwrap();
    let flags = |tool: &dyn harness_core::tool::DynTool| {
        if tool.tool_def().requires_approval { " (asks)" } else { "" }
    };
    registry
        .iter()
        .map(|(target, tool)| format!("{target} = {}{}", tool.tool_def().name, flags(&**tool)))
        .collect()
}

/// The error of a file, without its code.
#[track_caller]
fn refused(text: &str, expected: &str) {
    let error = parse(text, Path::new("")).unwrap_err();
    assert_eq!(error.kind(), "tools.registry_faulty");
    assert_eq!(error.to_string().replace("tools.yaml", "F"), expected);
}

#[test]
fn an_entry_binds_each_of_its_tools_to_a_target_of_its_own() {
    assert_eq!(
        bound("  files: { builtin: workspace, root: . }\n  edit: { builtin: file_edit, root: . }\n"),
        [
            "files.workspace_search = workspace_search",
            "files.workspace_list = workspace_list",
            "files.workspace_read = workspace_read",
            "files.workspace_read_json = workspace_read_json",
            "edit.file_write = file_write (asks)",
            "edit.file_edit = file_edit (asks)",
        ]
    );
    assert_eq!(bound("  sh: { builtin: shell, allow: [ls] }\n"), ["sh = shell (asks)"]);
    let free = "  sh: { builtin: shell, allow: any, name: run, requires_approval: false }\n";
    assert_eq!(bound(free), ["sh = run"]);
    assert_eq!(
        bound("  todo: { builtin: work_items }\n").join(" "),
        "todo.add = work_item_add todo.update = work_item_update todo.list = work_item_list"
    );
    assert_eq!(bound("  mode: { builtin: modes }\n"), ["mode.get = mode_get", "mode.set = mode_set (asks)"]);
    let agents = "agents: { scout: { description: looks, instructions: Look. } }";
    let text =
        format!("  team: {{ builtin: subagents, {agents} }}\n  bg: {{ builtin: background, {agents} }}\n");
    assert_eq!(
        bound(&text).join(" "),
        "team.task = task bg.start_task = background_agents_start_task \
         bg.wait_for_first_completion = background_agents_wait_for_first_completion \
         bg.get_task_results = background_agents_get_task_results \
         bg.get_all_tasks = background_agents_get_all_tasks bg.continue_task = background_agents_continue_task \
         bg.clear_completed_task = background_agents_clear_completed_task"
    );
}

#[test]
fn a_second_folder_needs_a_prefix() {
    let two = "  a: { builtin: workspace, root: . }\n  b: { builtin: workspace, root: . }\n";
    refused(
        two,
        "F:4:3: duplicate tool name `workspace_search`, also used by `a`; set a different `name` or `prefix`",
    );
    let prefixed = two.replace("b: { builtin: workspace,", "b: { builtin: workspace, prefix: docs_,");
    assert_eq!(bound(&prefixed).last().unwrap(), "b.workspace_read_json = docs_workspace_read_json");
}

#[test]
fn what_reads_a_folder_and_what_changes_it_know_of_each_other() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("a.md"), "old").unwrap();
    let text = "  files: { builtin: workspace, root: . }\n  edit: { builtin: file_edit, root: ., requires_approval: false }\n";
    let registry = parse(text, folder.path()).unwrap();
    let tools = registry.toolbox(registry.targets()).unwrap();
    let tools =
        harness_tools::ToolSet::new(tools.defs().iter().map(|def| tools.get(&def.name).unwrap().clone()));
    let ask = |name: &str, arguments: &str| told(&ask_in("run", &tools, name, arguments));
    let write = r#"{"path":"a.md","content":"new"}"#;
    assert!(ask("file_write", write).starts_with("failed file_not_read"));
    assert_eq!(ask("workspace_read", r#"{"path":"a.md"}"#), "success\nold");
    assert_eq!(ask("file_write", write), "success\nreplaced a.md; it has 3 bytes now");
    assert_eq!(fs::read_to_string(folder.path().join("a.md")).unwrap(), "new");
}

#[test]
fn faults_are_told_with_their_place_and_what_was_meant() {
    refused(
        "  a: { builtin: workspce, root: . }\n",
        "F:3:17: tools.a.builtin: unknown built-in tool `workspce`; did you mean `workspace`?",
    );
    refused(
        "  a: { builtin: sql }\n",
        "F:3:17: tools.a.builtin: unknown built-in tool `sql`; expected `workspace`, `file_edit`, `shell`, \
         `work_items`, `modes`, `subagents` or `background`",
    );
    refused(
        "  a: { builtin: workspace, rot: . }\n",
        "F:3:3: missing `root` in tools.a; set it to the directory that the tools may use\n\
         F:3:28: unknown key `rot` in tools.a; did you mean `root`?",
    );
    refused(
        "  a: { builtin: shell, allow: [ls, 'git log; rm'] }\n",
        "F:3:36: tools.a.allow[1]: the rule has a list of commands at character 8; write the first words of a \
         command, such as `git log`; quote words with special characters",
    );
    refused(
        "  a: { builtin: shell }\n",
        "F:3:3: missing `allow` in tools.a; list the commands that may run, such as `[git status, ls]`, or write `any` \
         for all",
    );
    refused(
        "  a: { builtin: work_items, max_items: 0, keep: turn }\n",
        "F:3:40: tools.a.max_items must be a whole number from 1 to 10000, not `0`\n\
         F:3:49: tools.a.keep must be `run` or `thread`, not `turn`",
    );
    refused(
        "  a: { builtin: workspace, root: ., max_file: 1TiB }\n",
        "F:3:47: tools.a.max_file must be a size from 1B to 1024MiB, not `1TiB`; write a number with `B`, `KiB` or \
         `MiB`, such as `64KiB`",
    );
    refused(
        "  a.list: { command: ls }\n  a: { builtin: work_items }\n",
        "F:4:3: `a` binds target `a.list`, which `a.list` already binds; rename one of the entries",
    );
}

#[test]
fn a_folder_that_is_not_there_is_a_problem_and_calls_say_why() {
    let folder = tempfile::tempdir().unwrap();
    let text = "  files: { builtin: workspace, root: none }\n  sh: { builtin: shell, allow: [ls], cwd: none, env_pass: [NOPE] }\n";
    let registry = parse(text, folder.path()).unwrap();
    let told: Vec<String> = registry.problems().iter().map(ToString::to_string).collect();
    let told = told.join("\n").replace(folder.path().to_str().unwrap(), "DIR");
    assert_eq!(
        told,
        "DIR/tools.yaml:3:38: tool target `files`: cannot open workspace directory DIR/none: No such file or \
         directory (os error 2); create it, or correct `root`\n\
         DIR/tools.yaml:4:43: tool target `sh`: directory `DIR/none` does not exist; create it, or correct `cwd`\n\
         DIR/tools.yaml:4:59: tool target `sh`: the variable `NOPE` is not set; set it, or remove it from `env_pass`"
    );
    let read = registry.get("files.workspace_read").unwrap();
    let outcome = block_on(read.call_boxed(crate::support::cx(r#"{"path":"a"}"#)));
    assert_eq!(outcome.error.unwrap().code, "not_found");
}

#[test]
fn the_example_of_the_reference_page_is_a_registry() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("docs")).unwrap();
    let examples: Vec<&str> = PAGE
        .split("```yaml\n")
        .skip(1)
        .filter_map(|rest| rest.split_once("```").map(|(text, _)| text))
        .collect();
    assert!(!examples.is_empty());
    for example in examples {
        let registry = Registry::parse(example, &folder.path().join("tools.yaml"), &environment()).unwrap();
        assert!(registry.targets().count() > 0 || registry.memory().is_some());
    }
}

#[test]
fn agents_of_a_file_are_checked_with_their_places() {
    refused(
        "  t: { builtin: subagents }\n",
        "F:3:3: missing `agents` in tools.t; write `NAME: { description: …, instructions: … }` for each agent",
    );
    refused(
        "  t:\n    builtin: subagents\n    agents:\n      a b: { description: looks, instructions: Look. }\n      c: { description: looks, max_turn: 2 }\n",
        "F:6:7: invalid agent name `a b`; use 1 to 64 letters, digits, `_` and `-`\n\
         F:7:7: missing `instructions` in tools.t.agents.c; write the agent's instructions\n\
         F:7:32: unknown key `max_turn` in tools.t.agents.c; did you mean `max_turns`?",
    );
}

#[test]
fn a_file_tells_what_it_asks_of_the_program() {
    let parse = |text: &str| parse(text, Path::new("")).unwrap();
    let none = parse("  todo: { builtin: work_items }\n");
    assert!(none.work_tools().is_some() && none.modes().is_none() && none.runner_slot().is_none());
    let modes = parse("  m: { builtin: modes, initial: execute, model_may_set: true }\n");
    let modes = modes.modes().unwrap();
    assert_eq!(&*modes.of(None).current().name, "execute");
    let text = "  t: { builtin: subagents, agents: { scout: { description: looks, instructions: Look., tools: [look] } } }\n";
    let registry = parse(text);
    let tools = registry.toolbox(registry.targets()).unwrap();
    let tool = tools.get(&"task".into()).unwrap();
    let ask = || {
        let arguments = r#"{"description":"go","subagent_type":"scout"}"#;
        let call =
            harness_core::message::ToolCall::new("c", "task", harness_core::Json::parse(arguments).unwrap());
        told(&block_on(tool.call_boxed(harness_core::tool::ToolCx::for_call(std::sync::Arc::new(call)))))
    };
    assert!(ask().contains("no runner for sub-agents is configured"), "{}", ask());
    registry.runner_slot().unwrap().fill(std::sync::Arc::new(Names));
    assert!(ask().contains("scout: look"), "{}", ask());
}

/// Answers with its name and tools.
struct Names;

impl harness_tools::SubagentRunner for Names {
    async fn run(&self, ask: harness_tools::SubagentAsk) -> harness_tools::SubagentReport {
        let tools = ask.subagent.tools.clone().unwrap_or_default().join(" ");
        harness_tools::SubagentReport::answered(format!("{}: {tools}", ask.subagent.name), 1)
    }
}

#[test]
fn fault_09_a_file_names_the_options_that_it_permits() {
    let folder = tempfile::tempdir().unwrap();
    let text = "  sh: { builtin: shell, allow: [sort, find], allow_options: [find -delete], sandbox: off, requires_approval: false }\n";
    let registry = parse(text, folder.path()).unwrap();
    let tools = registry.toolbox(registry.targets()).unwrap();
    let tools =
        harness_tools::ToolSet::new(tools.defs().iter().map(|def| tools.get(&def.name).unwrap().clone()));
    let run = |line: &str| {
        told(&ask_in("run", &tools, "shell", &serde_json::json!({ "command": line }).to_string()))
    };
    fs::write(folder.path().join("old.txt"), "b\na\n").unwrap();
    assert_eq!(
        run("sort --out=new.txt old.txt"),
        "failed command_not_allowed\n`--output` lets `sort` write files or start programs, and no rule names it; leave \
         it out, or use another command"
    );
    assert!(!folder.path().join("new.txt").exists());
    assert_eq!(run("sort old.txt"), "success exit 0\na\nb");
    assert_eq!(run("find . -name old.txt -delete"), "success exit 0\n(no output)");
    assert!(!folder.path().join("old.txt").exists());
    refused(
        "  a: { builtin: shell, allow: [ls], allow_options: ['find -exec;'] }\n",
        "F:3:53: tools.a.allow_options[0]: the rule has a list of commands at character 11; write the first words of a \
         command, such as `git log`; quote words with special characters",
    );
}

#[test]
fn fault_10_a_registry_file_and_what_the_host_adds_are_never_written() {
    let folder = tempfile::tempdir().unwrap();
    let text = "  edit: { builtin: file_edit, root: ., requires_approval: false, unprotected: [.envrc] }\n"
        .to_owned();
    fs::write(folder.path().join("tools.yaml"), &text).unwrap();
    let registry = parse(&text, folder.path()).unwrap();
    registry.protected().add(folder.path().join("harness.yaml"));
    let tools = registry.toolbox(registry.targets()).unwrap();
    let tools =
        harness_tools::ToolSet::new(tools.defs().iter().map(|def| tools.get(&def.name).unwrap().clone()));
    let write = |path: &str| {
        told(&ask_in(
            "run",
            &tools,
            "file_write",
            &serde_json::json!({ "path": path, "content": "x" }).to_string(),
        ))
    };
    assert_eq!(
        write("harness.yaml"),
        "failed protected_path\n`/harness.yaml` is protected and cannot be written: the program itself is set up by it"
    );
    let edit = r#"{"path":"tools.yaml","old_string":"false","new_string":"true"}"#;
    assert!(told(&ask_in("run", &tools, "file_edit", edit)).starts_with("failed protected_path"));
    assert_eq!(fs::read_to_string(folder.path().join("tools.yaml")).unwrap(), text);
    assert!(write(".git/config").starts_with("failed protected_path"));
    assert!(write(".envrc").starts_with("success"));
}
