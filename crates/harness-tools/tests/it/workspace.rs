//! The workspace tools over files in memory: forms, pages and wrong arguments.

use std::sync::Arc;

use harness_core::tool::{ToolRegistry as _, ToolScope};
use harness_host::{MemoryWorkspace, WorkspaceFile};
use harness_tools::{ToolSet, WorkspaceOptions, WorkspaceTools};

use crate::support::{ask, ask_in, block_on};

fn tools(files: &[(&str, &str)]) -> ToolSet {
    let files = files.iter().map(|(path, text)| WorkspaceFile::text(*path, *text));
    WorkspaceTools::new(Arc::new(MemoryWorkspace::new(files)), WorkspaceOptions::default()).into_set()
}

#[track_caller]
fn check(name: &str, arguments: &str, expected: &str) {
    let tools =
        tools(&[("/a.md", "Berth 4 is free."), ("/docs/b.json", r#"{"n":1.10,"n":9007199254740993}"#)]);
    assert_eq!(ask(&tools, name, arguments), expected);
}

#[test]
fn files_are_found_listed_and_read() {
    check("workspace_read", r#"{"path":"a.md"}"#, "success\nBerth 4 is free.");
    check(
        "workspace_search",
        r#"{"query":"BERTH"}"#,
        "success\n[\n  {\n    \"path\": \"/a.md\",\n    \"provider\": \"unknown\",\n    \"preview\": \"Berth 4 is free.\"\n  }\n]",
    );
    check(
        "workspace_list",
        r#"{"path":"/"}"#,
        "success\n[\n  {\n    \"path\": \"/a.md\",\n    \"type\": \"file\",\n    \"size\": 16\n  },\n  {\n    \"path\": \"/docs\",\n    \"type\": \"dir\"\n  }\n]",
    );
}

#[test]
fn numbers_and_repeated_keys_of_json_files_stay_as_they_are() {
    check(
        "workspace_read_json",
        r#"{"path":"/docs/b.json"}"#,
        "success\n{\n  \"path\": \"/docs/b.json\",\n  \"json\": {\n    \"n\": 1.10,\n    \"n\": 9007199254740993\n  }\n}",
    );
    let wrong = "failed invalid_json\nWorkspace file is not valid JSON: a.md";
    check("workspace_read_json", r#"{"path":"a.md"}"#, wrong);
}

#[test]
fn what_is_wrong_is_said_and_a_missing_file_is_not_tried_again() {
    check("workspace_read", r#"{"path":"/x"}"#, "failed not_found\nWorkspace file not found: /x");
    check("workspace_read", "{}", "failed invalid_input\ninput.path must be a non-empty string");
    let wrong = "failed invalid_input\ninput.offset must be an integer between 0 and 1099511627776";
    check("workspace_read", r#"{"path":"/a.md","offset":-1}"#, wrong);
    let beyond = "failed invalid_input\ninput.offset is beyond the end of the file, which has 16 bytes";
    check("workspace_read", r#"{"path":"/a.md","offset":16}"#, beyond);
    check("workspace_write", "{}", "failed unknown_tool\nUnknown tool: workspace_write");
}

/// Reads a file page by page as the notes say; the pages and how many they were.
fn pages(text: &str, limit: usize) -> (String, usize) {
    let tools = tools(&[("/long", text)]);
    let (mut read, mut offset, mut count) = (String::new(), 0, 0);
    loop {
        let arguments = format!(r#"{{"path":"/long","offset":{offset},"limit":{limit}}}"#);
        let outcome = ask_in("run", &tools, "workspace_read", &arguments);
        let page = outcome.content[0].as_text().unwrap();
        assert!(page.len() <= limit.max(4), "a page of {} bytes", page.len());
        read.push_str(page);
        count += 1;
        let data: serde_json::Value = outcome.structured.unwrap().to().unwrap();
        match data["next"].as_u64() {
            Some(next) => offset = next,
            None => return (read, count),
        }
    }
}

#[test]
fn every_file_can_be_read_to_its_end_by_pages() {
    for text in ["a\nbb\nccc\n", "äöü€🚢äöü€🚢", "x", &"line of text\n".repeat(100)] {
        for limit in [1, 2, 3, 7, 100] {
            assert_eq!(pages(text, limit).0, text, "limit {limit}");
        }
    }
    let long = "0123456789abcde\n".repeat(10_000);
    let (read, count) = pages(&long, 51_200);
    assert_eq!((read == long, count), (true, 4));
}

#[test]
fn a_long_file_begins_with_its_first_page_and_pages_end_at_lines() {
    let long = "0123456789abcde\n".repeat(10_000);
    let outcome = ask_in("run", &tools(&[("/long", &long)]), "workspace_read", r#"{"path":"/long"}"#);
    let page = outcome.content[0].as_text().unwrap();
    assert!(page.ends_with("e\n") && page.len() > 50_000);
    let note = outcome.content[1].as_text().unwrap();
    assert_eq!(note, "\n[bytes 0 to 50992 of 160000; continue with offset 50992]");
    let all: usize = outcome.content.iter().filter_map(|block| block.as_text()).map(str::len).sum();
    assert!(all <= 51_200, "{all}");
}

#[test]
fn a_second_workspace_has_names_of_its_own_and_one_without_files_offers_nothing() {
    let names = |tools: &ToolSet| {
        let listed = block_on(tools.list(&ToolScope::new(Arc::default(), None))).unwrap();
        listed.iter().map(|def| def.name.to_string()).collect::<Vec<_>>().join(" ")
    };
    let files = Arc::new(MemoryWorkspace::new([]));
    let second = WorkspaceTools::new(files, WorkspaceOptions::default()).with_prefix("docs_").into_set();
    let expected = "docs_workspace_search docs_workspace_list docs_workspace_read docs_workspace_read_json";
    assert_eq!(names(&second), expected);
    let none = WorkspaceTools::unavailable(WorkspaceOptions::default()).into_set();
    assert_eq!(names(&none), "");
    let told = ask(&none, "workspace_read", r#"{"path":"/a"}"#);
    assert_eq!(told, "failed workspace_unavailable\nWorkspace VFS not configured");
}
