//! The tools that change files.

use std::sync::Arc;

use harness_core::Json;
use harness_core::message::ToolCall;
use harness_core::port::ProposedCall;
use harness_core::tool::{ToolCx, ToolDef, ToolRegistry as _, ToolScope};
use harness_host::{MemoryWorkspace, Precondition, Workspace as _, WorkspaceFile};
use harness_tools::{FileEdits, SeenFiles, ToolSet, WorkspaceOptions, WorkspaceTools};

use crate::support::{ask, ask_in, block_on, told};

/// One file, the tools that read it and those that change it.
struct Desk {
    files: Arc<MemoryWorkspace>,
    read: ToolSet,
    edit: ToolSet,
}

impl Desk {
    fn with(text: &str) -> Self {
        let files = Arc::new(MemoryWorkspace::new([WorkspaceFile::text("/a", text)]));
        let read = WorkspaceTools::new(Arc::clone(&files) as _, WorkspaceOptions::default());
        let edit = FileEdits::new(Arc::clone(&files) as _, read.seen()).into_set();
        Self { files, read: read.into_set(), edit }
    }

    fn read(&self) {
        ask(&self.read, "workspace_read", r#"{"path":"a"}"#);
    }

    fn text(&self) -> String {
        block_on(self.files.read("/a")).unwrap().unwrap().content
    }

    fn edit(&self, old: &str, new: &str) -> String {
        let arguments = serde_json::json!({ "path": "/a", "old_string": old, "new_string": new });
        ask(&self.edit, "file_edit", &arguments.to_string())
    }

    fn write(&self, text: &str) -> String {
        let arguments = serde_json::json!({ "path": "/a", "content": text });
        ask(&self.edit, "file_write", &arguments.to_string())
    }
}

/// Edits a file of this text; what the model is told, and the file afterwards if it has changed.
#[track_caller]
fn check(text: &str, (old, new): (&str, &str), expected: &str, after: Option<&str>) {
    let desk = Desk::with(text);
    assert_eq!(desk.edit(old, new), expected);
    assert_eq!(desk.text(), after.unwrap_or(text));
}

#[test]
fn a_text_that_occurs_once_is_replaced() {
    let once = "success\nedited /a once, at line 2; it has 6 bytes now";
    check("a\nb\nc\n", ("b", "x"), once, Some("a\nx\nc\n"));
    check("a\nb\nc\n", ("b\nc", "x\ny"), once, Some("a\nx\ny\n"));
    check("ab", ("ab", ""), "success\nedited /a once, at line 1; it has 0 bytes now", Some(""));
}

#[test]
fn no_match_and_several_matches_are_told_with_what_helps() {
    check(
        "a b a\na",
        ("a", "x"),
        "failed several_matches\nold_string occurs 3 times in `/a`, at lines 1, 1, 2; take more of its \
         surroundings into it, or set replace_all",
        None,
    );
    check(
        "fn a() {\n    b();\n}\n",
        ("fn a() {\n\tb();", "x"),
        "failed no_match\nold_string does not occur in `/a`; from line 1 on the text differs from it only in \
         white space",
        None,
    );
    check(
        "a",
        ("b", "x"),
        "failed no_match\nold_string does not occur in `/a`; read the file again and copy the text from it",
        None,
    );
    let same = "failed invalid_input\nnew_string is the same text as old_string";
    check("a", ("a", "a"), same, None);
    check(
        "a",
        ("", "x"),
        "failed invalid_input\nargument `old_string`: String must contain at least 1 character(s)",
        None,
    );
}

#[test]
fn every_occurrence_is_replaced_when_that_is_asked_for() {
    let desk = Desk::with("a\na\na");
    let arguments = r#"{"path":"/a","old_string":"a","new_string":"bb","replace_all":true}"#;
    let told = ask(&desk.edit, "file_edit", arguments);
    assert_eq!(told, "success\nedited /a 3 times, at lines 1, 2, 3; it has 8 bytes now");
    assert_eq!(desk.text(), "bb\nbb\nbb");
}

#[test]
fn line_ends_and_byte_order_mark_of_a_file_are_kept() {
    let once = |bytes| format!("success\nedited /a once, at line 2; it has {bytes} bytes now");
    check("a\r\nb\r\nc\r\n", ("b\nc", "x\ny\nz"), &once(12), Some("a\r\nx\r\ny\r\nz\r\n"));
    check("\u{feff}a\nb", ("b", "x"), &once(6), Some("\u{feff}a\nx"));
    let desk = Desk::with("\u{feff}a\r\nb\r\n");
    desk.read();
    assert_eq!(desk.write("x\ny\n"), "success\nreplaced /a; it has 9 bytes now");
    assert_eq!(desk.text(), "\u{feff}x\r\ny\r\n");
}

#[test]
fn what_was_not_read_is_not_replaced() {
    let desk = Desk::with("a");
    assert_eq!(
        desk.write("x"),
        "failed file_not_read\n`/a` exists and was not read; read it before you replace it"
    );
    desk.read();
    assert_eq!(desk.write("x"), "success\nreplaced /a; it has 1 bytes now");
    assert_eq!(desk.write("y"), "success\nreplaced /a; it has 1 bytes now", "it knows what it wrote");
    // Another run has not read it.
    let other = ask_in("other", &desk.edit, "file_write", r#"{"path":"/a","content":"z"}"#);
    assert!(told(&other).starts_with("failed file_not_read"));
}

#[test]
fn what_has_changed_since_it_was_read_is_not_touched() {
    let desk = Desk::with("a");
    desk.read();
    block_on(desk.files.write("/a", "a and more", &harness_host::Precondition::Any)).unwrap();
    let changed = "failed file_changed\n`/a` has changed since it was read; read it again";
    assert_eq!(desk.edit("a and", "x"), changed);
    assert_eq!(desk.write("x"), changed);
    desk.read();
    assert_eq!(desk.edit("a and", "x"), "success\nedited /a once, at line 1; it has 6 bytes now");
}

#[test]
fn a_new_file_is_made_with_a_plain_write() {
    let desk = Desk::with("a");
    let outcome = ask_in("run", &desk.edit, "file_write", r#"{"path":"new/b.md","content":"x\n"}"#);
    assert_eq!(told(&outcome), "success\nmade new/b.md; it has 2 bytes now");
    assert_eq!(outcome.structured.unwrap().text(), r#"{"bytes":2,"created":true,"path":"new/b.md"}"#);
    let missing = ask(&desk.edit, "file_edit", r#"{"path":"/no","old_string":"a","new_string":"b"}"#);
    assert_eq!(missing, "failed not_found\nWorkspace file not found: /no");
}

#[test]
fn changes_wait_for_approval_and_run_alone_unless_the_host_says_otherwise() {
    let listed = |tools: &ToolSet| block_on(tools.list(&ToolScope::new(Arc::default(), None))).unwrap();
    let files: Arc<MemoryWorkspace> = Arc::new(MemoryWorkspace::new([]));
    let edits = FileEdits::new(files, harness_tools::SeenFiles::default());
    assert!(listed(&edits.clone().into_set()).iter().all(|def| def.requires_approval && def.sequential));
    assert!(listed(&edits.without_approval().into_set()).iter().all(|def| !def.requires_approval));
}

/// Shows a call of `a\n` to `b\n`, changes the file to this text, and runs the call; its result and the file.
#[track_caller]
fn check_shown(between: &str, expected: &str, after: &str) {
    let files = Arc::new(MemoryWorkspace::new([WorkspaceFile::text("/a", "a\nz\n")]));
    let edits = FileEdits::new(Arc::clone(&files) as _, SeenFiles::default());
    let arguments = Json::parse(r#"{"path":"a","old_string":"a","new_string":"b"}"#).unwrap();
    let call = Arc::new(ToolCall::new("c1", "file_edit", arguments));
    let proposed = ProposedCall::new(Arc::clone(&call), ToolDef::new("file_edit", "Edits"), "main".into(), 1);
    let preview = block_on(edits.preview(&proposed)).unwrap().unwrap();
    assert_eq!(
        (&*preview.path, preview.before.as_deref(), &*preview.after),
        ("/a", Some("a\nz\n"), "b\nz\n")
    );
    block_on(files.write("/a", between, &Precondition::Content("a\nz\n".to_owned()))).unwrap();
    let outcome = block_on(edits.into_set().call(ToolCx::for_call(call))).unwrap();
    assert_eq!(told(&outcome), expected);
    assert_eq!(block_on(files.read("/a")).unwrap().unwrap().content, after);
}

#[test]
fn call_that_was_shown_writes_what_was_shown_or_nothing() {
    check_shown("a\nz\n", "success\nedited a once, at line 1; it has 4 bytes now", "b\nz\n");
    let changed = "failed file_changed\n`a` has changed since the call was approved; read it again";
    check_shown("a\ny\n", changed, "a\ny\n");
}

#[test]
fn preview_tells_why_a_call_would_write_nothing() {
    let files = Arc::new(MemoryWorkspace::new([WorkspaceFile::text("/a", "text")]));
    let edits = FileEdits::new(files, SeenFiles::default());
    let preview = |name: &str, arguments: &str| {
        let call = Arc::new(ToolCall::new("c1", name, Json::parse(arguments).unwrap()));
        let def = ToolDef::new(name, "Edits");
        block_on(edits.preview(&ProposedCall::new(call, def, "main".into(), 1)))
    };
    let unread = preview("file_write", r#"{"path":"a","content":"new"}"#).unwrap().unwrap_err();
    assert_eq!(unread, "`a` exists and was not read; read it before you replace it");
    let invalid = preview("file_edit", r#"{"path":"a"}"#).unwrap().unwrap_err();
    assert!(invalid.contains("old_string"), "{invalid}");
    assert_eq!(preview("shell", "{}"), None);
}
