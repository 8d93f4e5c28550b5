//! Planning and scratchpad: what they keep, for how long, and wrong arguments.

use harness_core::Origin;
use harness_tools::{Keep, PlanningTools, ScratchpadTools};

use crate::support::{ask, ask_in, told};

const ONE: &str = r#"{"todos":[{"content":"scan"}]}"#;

fn listed(tools: &harness_tools::ToolSet, run: &str) -> String {
    ask_in(run, tools, "list_todos", "{}").structured.unwrap().to_string()
}

#[test]
fn each_run_has_a_list_of_its_own() {
    let tools = PlanningTools::default().into_set();
    ask_in("a", &tools, "write_todos", ONE);
    assert_eq!(listed(&tools, "b"), r#"{"ok":true,"todos":[]}"#);
    assert_eq!(
        listed(&tools, "a"),
        r#"{"ok":true,"todos":[{"id":"todo-1","content":"scan","status":"pending","seq":1}]}"#
    );
}

#[test]
fn lists_are_let_go_when_others_come_or_when_told() {
    let planning = PlanningTools::default();
    let tools = planning.clone().into_set();
    for run in 0..51 {
        ask_in(&format!("run-{run}"), &tools, "write_todos", ONE);
    }
    assert_eq!(listed(&tools, "run-0"), r#"{"ok":true,"todos":[]}"#);
    assert_ne!(listed(&tools, "run-50"), r#"{"ok":true,"todos":[]}"#);
    let mut origin = Origin::default();
    origin.run = Some("run-50".into());
    planning.forget(&origin);
    assert_eq!(listed(&tools, "run-50"), r#"{"ok":true,"todos":[]}"#);
}

#[test]
fn a_list_of_a_thread_lasts_over_its_runs() {
    let tools = PlanningTools::new(32, Keep::Thread).into_set();
    let in_run = |run: &str, name: &str, arguments: &str| {
        use harness_core::tool::{ToolCx, ToolRegistry as _};
        let call =
            harness_core::message::ToolCall::new("c", name, harness_core::Json::parse(arguments).unwrap());
        let mut cx = ToolCx::for_call(std::sync::Arc::new(call));
        let mut origin = Origin::default();
        origin.thread = Some("thread".into());
        origin.run = Some(run.into());
        cx.origin = std::sync::Arc::new(origin);
        crate::support::block_on(tools.call(cx)).unwrap()
    };
    in_run("a", "write_todos", ONE);
    assert_ne!(in_run("b", "list_todos", "{}").structured.unwrap().text(), r#"{"ok":true,"todos":[]}"#);
}

#[test]
fn more_than_one_item_in_progress_changes_nothing() {
    let tools = PlanningTools::default().into_set();
    ask(&tools, "write_todos", ONE);
    let two = r#"{"todos":[{"content":"a","status":"in_progress"},{"content":"b","status":"in_progress"}]}"#;
    let told = ask(&tools, "write_todos", two);
    assert!(told.contains("At most one todo can be in_progress at a time."), "{told}");
    assert!(listed(&tools, "run").contains("scan"));
}

#[test]
fn wrong_arguments_name_their_place() {
    let tools = PlanningTools::default().into_set();
    let refused = |arguments: &str| ask(&tools, "write_todos", arguments);
    assert_eq!(refused("[]"), "failed invalid_input\ninput must be an object");
    assert_eq!(
        refused(r#"{"todos":"a"}"#),
        "failed invalid_input\nargument `todos`: Expected array, received string"
    );
    assert_eq!(
        refused(r#"{"todos":[{"content":"a"},{"content":"b","status":"done"}]}"#),
        "failed invalid_input\nargument `todos[1].status`: Invalid enum value. Expected 'pending' | 'in_progress' | \
         'completed', received 'done'"
    );
    let long = format!(r#"{{"todos":[{{"content":"{}"}}]}}"#, "x".repeat(5_000));
    assert_eq!(
        refused(&long),
        "failed invalid_input\nargument `todos[0].content`: String must contain at most 4096 character(s)"
    );
}

#[test]
fn a_scratchpad_is_bounded_in_files_paths_and_bytes() {
    let tools = ScratchpadTools::new(Keep::Run).into_set();
    for n in 0..1_000 {
        ask(&tools, "scratch_write", &format!(r#"{{"path":"{n}","content":""}}"#));
    }
    let full = ask(&tools, "scratch_write", r#"{"path":"more","content":""}"#);
    assert!(full.contains("Scratchpad full: it has 1000 files."), "{full}");
    let path = format!(r#"{{"path":"{}","content":""}}"#, "p".repeat(1_025));
    assert!(ask(&tools, "scratch_write", &path).contains("Path too long: 1025 bytes; max 1024."));
    let big = format!(r#"{{"path":"0","content":"{}"}}"#, "x".repeat(65_537));
    assert!(ask(&tools, "scratch_write", &big).contains("File too large: 65537 bytes; max 65536."));
}

#[test]
fn an_edit_is_checked_before_anything_of_its_size_is_made() {
    let tools = ScratchpadTools::default().with_bounds(64, 64).into_set();
    ask(&tools, "scratch_write", r#"{"path":"a","content":"xxxxxxxx"}"#);
    let edit = serde_json::json!({ "path": "a", "old_string": "x", "new_string": "y".repeat(1_000_000), "replace_all": true });
    let told = told(&ask_in("run", &tools, "scratch_edit", &edit.to_string()));
    assert!(told.contains("File too large: 8000000 bytes; max 64."), "{told}");
    assert!(
        ask(&tools, "scratch_edit", r#"{"path":"a","old_string":"z","new_string":"","replace_all":true}"#)
            .contains(r#""replacements": 0"#)
    );
}
