//! `harness chat` without a descriptor: an assistant with tools in the current directory.

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::support::{Answer, Output, Person, Project, Reply, Running, Server, through};

const SHIFT_TAB: &str = "\u{1b}[Z";
const CTRL_D: &str = "\u{4}";

fn call(id: &str, name: &str, arguments: &Value) -> Reply {
    Reply::Stream(Answer::call(id, name, arguments))
}

fn edit(id: &str, old: &str, new: &str) -> Reply {
    call(id, "file_edit", &json!({ "path": "note.txt", "old_string": old, "new_string": new }))
}

fn project() -> Project {
    Project::of(&[("note.txt", "one\ntwo\nthree\n")])
}

fn at_terminal(project: &Project, url: &str) -> Person {
    let mut command = project.command(&["chat", "--base-url", url]);
    command.env("HOME", project.path());
    Person::sit_down(command, 30, 80)
}

/// Leaves the chat.
#[track_caller]
fn leave(person: Person) {
    person.types(CTRL_D);
    let (code, shown) = person.leaves();
    assert_eq!(code, Some(0), "{shown}");
}

fn over_pipe(project: &Project, arguments: &[&str], input: &str) -> Output {
    let mut command = project.command(&[&["chat"], arguments].concat());
    command.env("HOME", project.path());
    Running::start_with_input(command, input.as_bytes()).end()
}

#[test]
fn edit_runs_after_its_diff_was_shown_and_approved() {
    let server = Server::start([edit("e1", "two", "2"), Reply::text("Done.")]);
    let project = project();
    let person = at_terminal(&project, &server.url);
    person.sees("/help for commands").types("edit it\r");
    person.sees("file_edit /note.txt +1 -1").sees("@@ -1,3 +1,3 @@").sees("-two").sees("+2").sees("y once");
    assert_eq!(project.read("note.txt"), "one\ntwo\nthree\n");
    person.types("y").sees("Done.");
    assert_eq!(project.read("note.txt"), "one\n2\nthree\n");
    leave(person);
}

#[test]
fn edit_of_a_file_that_changes_during_the_prompt_writes_nothing() {
    let server = Server::start([edit("e1", "two", "2"), Reply::text("Sorry.")]);
    let project = project();
    let person = at_terminal(&project, &server.url);
    person.sees("/help for commands").types("edit it\r").sees("y once");
    project.write("note.txt", "one\ntwo\nfour\n");
    person.types("y").sees("has changed since the call was approved").sees("Sorry.");
    assert_eq!(project.read("note.txt"), "one\ntwo\nfour\n");
    leave(person);
}

#[test]
fn edit_that_would_fail_does_not_prompt() {
    let server = Server::start([edit("e1", "missing", "2"), Reply::text("Sorry.")]);
    let project = project();
    let person = at_terminal(&project, &server.url);
    person.sees("/help for commands").types("edit it\r").sees("Sorry.");
    assert!(server.requests()[1].to_string().contains("old_string does not occur"));
    leave(person);
}

#[test]
fn accept_edits_mode_prompts_for_commands_only() {
    let shell = call("s1", "shell", &json!({ "command": "touch made" }));
    let server = Server::start([edit("e1", "two", "2"), shell, Reply::text("Done.")]);
    let project = project();
    let person = at_terminal(&project, &server.url);
    person.sees("/help for commands").sees("ask ·").types(SHIFT_TAB).sees("accept edits ·");
    person.types("edit it\r").sees("? shell $ touch made\n").sees("y once");
    assert_eq!(project.read("note.txt"), "one\n2\nthree\n");
    person.types("n").sees("Done.");
    assert!(!project.path().join("made").exists());
    leave(person);
}

#[test]
fn plan_mode_denies_edits_and_commands() {
    let shell = call("s1", "shell", &json!({ "command": "touch made" }));
    let server = Server::start([edit("e1", "two", "2"), shell, Reply::text("Here is a plan.")]);
    let project = project();
    let person = at_terminal(&project, &server.url);
    person.sees("ask ·").types(SHIFT_TAB).sees("accept edits ·").types(SHIFT_TAB).sees("plan ·");
    person.types("edit it\r").sees("Here is a plan.");
    leave(person);
    assert_eq!(project.read("note.txt"), "one\ntwo\nthree\n");
    assert!(!project.path().join("made").exists());
    let requests = server.requests();
    assert!(requests[0].to_string().contains("The mode is `plan` from now on"), "{}", requests[0]);
    assert!(requests[2].to_string().contains("which the mode `plan` does not allow"), "{}", requests[2]);
}

#[test]
fn call_that_was_pending_when_plan_mode_began_does_not_run() {
    let server = Server::start([edit("e1", "two", "2"), Reply::text("As you wish.")]);
    let project = project();
    let person = at_terminal(&project, &server.url);
    person.sees("/help for commands").types("edit it\r").sees("y once");
    // Passing through the mode `accept edits` approves nothing.
    person.types(&SHIFT_TAB.repeat(2)).sees("plan ·");
    person.types("y").sees("As you wish.");
    leave(person);
    assert_eq!(project.read("note.txt"), "one\ntwo\nthree\n");
}

#[test]
fn edit_that_was_pending_when_accept_edits_mode_began_runs() {
    let server = Server::start([edit("e1", "two", "2"), Reply::text("Done.")]);
    let project = project();
    let person = at_terminal(&project, &server.url);
    person.sees("/help for commands").types("edit it\r").sees("y once");
    assert_eq!(project.read("note.txt"), "one\ntwo\nthree\n");
    person.types(SHIFT_TAB).sees("accept edits ·").sees("Done.");
    leave(person);
    assert_eq!(project.read("note.txt"), "one\n2\nthree\n");
}

#[test]
fn command_that_was_pending_when_accept_edits_mode_began_still_prompts() {
    let shell = call("s1", "shell", &json!({ "command": "touch made" }));
    let server = Server::start([edit("e1", "two", "2"), shell, Reply::text("Done.")]);
    let project = project();
    let person = at_terminal(&project, &server.url);
    person.sees("/help for commands").types("edit it\r").sees("y once").types(SHIFT_TAB);
    person.sees("? shell $ touch made").sees("y once").types("n").sees("Done.");
    leave(person);
    assert!(!project.path().join("made").exists());
}

#[test]
fn model_of_a_new_conversation_is_told_the_mode() {
    let server = Server::start([Reply::text("One."), Reply::text("Two.")]);
    let project = project();
    let person = at_terminal(&project, &server.url);
    person.sees("ask ·").types(&SHIFT_TAB.repeat(2)).sees("plan ·");
    person.types("first\r").sees("One.").types("/new\r").sees("started a new conversation");
    person.types("second\r").sees("Two.");
    leave(person);
    for request in server.requests() {
        assert!(request.to_string().contains("The mode is `plan` from now on"), "{request}");
    }
}

#[test]
fn files_outside_of_the_directory_are_not_read() {
    let read = |id: &str, path: &str| call(id, "workspace_read", &json!({ "path": path }));
    let server = Server::start([read("r1", "../secret.txt"), read("r2", "in.txt"), Reply::text("Read.")]);
    let outer = Project::of(&[("secret.txt", "the secret"), ("inner/in.txt", "the content")]);
    let mut command = outer.command(&["chat", "--base-url", &server.url]);
    command.current_dir(outer.path().join("inner")).env("HOME", outer.path());
    let output = Running::start_with_input(command, b"read it\n").end();
    assert_eq!((output.code, output.stdout.as_str()), (Some(0), "Read.\n"), "{}", output.stderr);
    let last = server.requests()[2].to_string();
    assert!(last.contains("the content") && !last.contains("the secret"), "{last}");
}

#[test]
fn demo_model_answers_without_an_api_key() {
    let output = over_pipe(&project(), &[], "call workspace_read {\"path\":\"note.txt\"}\n");
    assert_eq!(output.code, Some(0), "{}", output.stderr);
    assert!(output.stderr.contains("no API key set: using the rule-based demo model"), "{}", output.stderr);
    assert!(output.stdout.contains("two"), "{}", output.stdout);
}

/// The answers of the demo model to a message over a pipe.
fn demo(files: &[(&str, &str)], message: &str) -> String {
    let (project, home) = (Project::of(files), tempfile::tempdir().unwrap());
    let mut command = project.command(&["chat"]);
    command.env("HOME", home.path());
    let output = Running::start_with_input(command, format!("{message}\n").as_bytes()).end();
    assert_eq!(output.code, Some(0), "{}", output.stderr);
    output.stdout
}

#[test]
fn demo_model_reads_lists_and_searches() {
    let files = [("src/main.rs", "fn main() {\n    let tax = 7;\n}\n"), ("notes.md", "# Notes\nBuy tea.\n")];
    insta::assert_snapshot!(demo(&files, "What is in main.rs?"), @r"
    `/src/main.rs` has 3 lines:

    ```rs
    fn main() {
        let tax = 7;
    }
    ```
    ");
    insta::assert_snapshot!(demo(&files, "Read notes.md"), @r"
    `notes.md` has 2 lines:

    ```md
    # Notes
    Buy tea.
    ```
    ");
    insta::assert_snapshot!(demo(&files, "What is here?"), @r"
    - `/notes.md`
    - `/src/`
    ");
    insta::assert_snapshot!(demo(&files, "List the files in src"), @"- `/src/main.rs`");
    insta::assert_snapshot!(demo(&files, "Where is \"let tax\"?"), @"- `/src/main.rs`: fn main() { let tax = 7; }");
    insta::assert_snapshot!(demo(&files, "Where is \"let vat\"?"), @"The search found no `let vat`.");
    insta::assert_snapshot!(demo(&files, "What is in missing.rs?"), @r"
    workspace read failed: Workspace file not found: missing.rs
    A search found no file of that name. Is `missing.rs` spelled correctly?
    ");
}

#[test]
fn demo_model_answers_the_message_in_plan_mode() {
    let (project, home) = (project(), tempfile::tempdir().unwrap());
    let mut command = project.command(&["chat"]);
    command.env("HOME", home.path());
    let person = Person::sit_down(command, 30, 80);
    person.sees("ask ·").types(&SHIFT_TAB.repeat(2)).sees("plan ·");
    person
        .types("What is in note.txt?\r")
        .sees("• The mode is `plan` from now on.")
        .sees("note.txt has 3 lines");
    // The note about the mode is not the user's: what is undone is the message.
    person.sees("\nplan ·").types("\u{1b}").sees("press Esc again");
    person
        .types("\u{1b}")
        .sees("undid your last message")
        .types(" now")
        .sees("› What is in note.txt? now")
        .types("\u{15}");
    leave(person);
}

#[test]
fn search_and_menu_skip_what_gitignore_excludes() {
    let files = [(".gitignore", "made.md\n"), ("made.md", "the tax"), ("note.md", "the tax")];
    assert_eq!(demo(&files, "Where is \"the tax\"?"), "- `/note.md`: the tax\n");
    let (project, home) = (Project::of(&files), tempfile::tempdir().unwrap());
    let mut command = project.command(&["chat"]);
    command.env("HOME", home.path());
    let person = Person::sit_down(command, 30, 80);
    person.sees("/help for commands").types("read @md").sees("  @note.md");
    person.screen(|screen| assert!(!screen.contents().contains("made.md"), "{}", screen.contents()));
    person.types("\u{15}");
    leave(person);
}

#[test]
fn demo_model_makes_up_no_command_and_no_edit() {
    let files = [("a.txt", "one\n")];
    insta::assert_snapshot!(demo(&files, "Edit a.txt"), @r#"`file_edit` changes files or runs programs. I am a rule-based demo model and do not make up such a call. To make it, send exactly: call file_edit {"path":"…","old_string":"…","new_string":"…"}"#);
    insta::assert_snapshot!(demo(&files, "Use the shell to delete everything"), @r#"`shell` changes files or runs programs. I am a rule-based demo model and do not make up such a call. To make it, send exactly: call shell {"command":"…"}"#);
}

#[test]
fn opening_says_that_the_demo_model_answers_and_how_to_change_it() {
    let project = project();
    let mut command = project.command(&["chat"]);
    command.env("HOME", project.path());
    let person = Person::sit_down(command, 30, 150);
    person
        .sees("harness chat · assistant · demo")
        .sees("no API key set: using the rule-based demo model")
        .sees(
            "set ANTHROPIC_API_KEY or OPENAI_API_KEY or OPENROUTER_API_KEY, or pass --model for a live one",
        );
    person.types("What is in note.txt?\r").sees("note.txt has 3 lines");
    leave(person);
}

#[test]
fn conversations_of_the_assistant_belong_to_the_directory() {
    let server = Server::start([Reply::text("One."), Reply::text("Two.")]);
    let project = Project::of(&[("a/x", ""), ("b/x", "")]);
    let chat = |folder: &str, more: &[&str]| {
        let mut command = project.command(&[&["chat", "--base-url", &server.url], more].concat());
        command.current_dir(project.path().join(folder)).env("HOME", project.path());
        Running::start_with_input(command, b"hello\n").end()
    };
    assert_eq!(chat("a", &[]).code, Some(0));
    let elsewhere = chat("b", &["--continue"]);
    assert_eq!(elsewhere.code, Some(2), "{}", elsewhere.stderr);
    assert_eq!(chat("a", &["--continue"]).stdout, "Two.\n");
}

#[test]
fn conversation_is_found_by_the_words_of_an_answer() {
    let server = Server::start([Reply::text("The tent is green."), Reply::text("The stove is red.")]);
    let project = project();
    for question in ["Which color?", "And the other one?"] {
        over_pipe(&project, &["--base-url", &server.url], question);
    }
    let mut command = project.command(&["chat", "--resume", "--base-url", &server.url]);
    command.env("HOME", project.path());
    let person = Person::sit_down(command, 30, 80);
    person.sees("Which color?").sees("And the other one?");
    person
        .types("tent GREEN")
        .sees("(1 of 2)")
        .loses("And the other one?")
        .types("\r")
        .sees("The tent is green.");
    leave(person);
}

#[test]
fn signal_ends_the_choice_of_a_conversation() {
    let server = Server::start([Reply::text("Green.")]);
    let project = project();
    over_pipe(&project, &["--base-url", &server.url], "Which color?");
    for (signal, code) in [(Signal::HUP, 129), (Signal::TERM, 143)] {
        let command = project.command(&["chat", "--resume", "--base-url", &server.url]);
        // Under `nohup` the program would ignore SIGHUP.
        let mut command = through(&["env", "--default-signal"], &command);
        command.env("HOME", project.path());
        let person = Person::sit_down(command, 30, 80);
        person.sees("Which color?").sends(signal);
        assert_eq!(person.leaves().0, Some(code));
    }
}

#[test]
fn command_of_the_user_runs_and_the_model_sees_its_output_with_the_next_message() {
    let server = Server::start([Reply::text("I see.")]);
    let project = project();
    let person = at_terminal(&project, &server.url);
    person.sees("/help for commands").types("!cat note.txt; exit 3\r").sees("│ two").sees("exit code 3");
    assert_eq!(server.requests().len(), 0);
    person.types("what is that?\r").sees("[output of `cat note.txt; exit 3`]").sees("I see.");
    let request = server.requests()[0].to_string();
    assert!(request.contains("one\\ntwo\\nthree\\nexit code 3"), "{request}");
    leave(person);
}

#[test]
fn file_is_chosen_from_the_menu_and_attached() {
    let server = Server::start([Reply::text("I see.")]);
    let project = Project::of(&[("src/tax.rs", "fn tax() {}"), ("src/total.rs", "")]);
    let person = at_terminal(&project, &server.url);
    person.sees("/help for commands").types("explain @tax").sees("  @src/tax.rs").types("\t");
    person.sees("› explain @src/tax.rs").types("please\r").sees("[file src/tax.rs]").sees("I see.");
    assert!(server.requests()[0].to_string().contains("fn tax() {}"));
    leave(person);
}

/// A chat whose programs for the clipboard are those of the project.
fn with_clipboard(project: &Project, url: &str) -> Person {
    let mut command = project.command(&["chat", "--base-url", url]);
    let path = format!("{}:/usr/bin:/bin", project.path().join("bin").display());
    command.env("HOME", project.path()).env("PATH", path).env_remove("WAYLAND_DISPLAY");
    Person::sit_down(command, 24, 100)
}

#[test]
fn image_on_the_clipboard_is_attached() {
    let server = Server::start([Reply::text("A picture.")]);
    let project = Project::of(&[("bin/xclip", "#!/bin/sh\nprintf '\\211PNG and more'\n")]);
    project.set_executable("bin/xclip");
    let person = with_clipboard(&project, &server.url);
    person.sees("/help for commands").types("what is \u{16}").sees("› what is @/").sees(".png");
    person.types("?\r").sees("[image image/png]").sees("A picture.");
    assert!(server.requests()[0].to_string().contains("data:image/png;base64,iVBORyBhbmQgbW9yZQ=="));
    leave(person);
}

#[test]
fn clipboard_without_an_image_is_reported() {
    let server = Server::start([]);
    let project = Project::of(&[("bin/xclip", "#!/bin/sh\nexit 1\n")]);
    project.set_executable("bin/xclip");
    let person = with_clipboard(&project, &server.url);
    person.sees("/help for commands").types("\u{16}").sees("no image on the clipboard");
    leave(person);
}

#[test]
fn model_that_cannot_reason_has_no_thinking_levels() {
    let server = Server::start([]);
    let project = project();
    let mut command = project.command(&["chat", "--base-url", &server.url, "--model", "gpt-4.1-mini"]);
    command.env("HOME", project.path());
    let person = Person::sit_down(command, 24, 100);
    person.sees("/help for commands").types("/thinking high\r").sees("gpt-4.1-mini has no thinking levels");
    leave(person);
}

#[test]
fn menu_lists_commands_with_what_they_do() {
    let server = Server::start([]);
    let project = project();
    let person = at_terminal(&project, &server.url);
    person
        .sees("/help for commands")
        .types("/co")
        .sees("/compact")
        .sees("/cost")
        .sees("show the usage of this chat");
    person.types("\u{1b}[B\u{1b}[B\u{1b}[B\r").sees("no usage yet");
    person.types("/model de").sees("  demo").types("\t\r").sees("demo answers from the next message on");
    leave(person);
}

#[test]
fn last_message_is_edited_after_escape_was_pressed_twice() {
    let server = Server::start([Reply::text("One."), Reply::text("Two.")]);
    let project = project();
    let person = at_terminal(&project, &server.url);
    person.sees("/help for commands").types("first\r").sees("One.").sees("\nask ·");
    person.types("\u{1b}").sees("press Esc again");
    person.types("\u{1b}").sees("undid your last message").types(" again\r").sees("Two.");
    let request = server.requests()[1].to_string();
    assert!(request.contains("first again") && !request.contains("One."), "{request}");
    leave(person);
}

#[test]
fn draft_is_edited_in_the_editor_of_the_user() {
    let server = Server::start([Reply::text("Done.")]);
    let project =
        Project::of(&[("edit.sh", "echo editing; read line; echo \"$line and $(cat \"$1\")\" > \"$1\"\n")]);
    let mut command = project.command(&["chat", "--base-url", &server.url]);
    command.env("HOME", project.path()).env("VISUAL", "sh edit.sh");
    let person = Person::sit_down(command, 24, 80);
    // The editor has the keys, and the chat has them again.
    person.sees("/help for commands").types("draft\u{7}").sees("editing").types("typed\r");
    person.sees("› typed and draft").types("!\r").sees("Done.");
    assert!(server.requests()[0].to_string().contains("typed and draft!"));
    leave(person);
}

#[test]
fn missing_editor_is_reported_and_the_draft_is_kept() {
    let server = Server::start([]);
    let project = project();
    let mut command = project.command(&["chat", "--base-url", &server.url]);
    command.env("HOME", project.path()).env("EDITOR", "no-such-editor");
    let person = Person::sit_down(command, 24, 80);
    person
        .sees("/help for commands")
        .types("draft\u{7}")
        .sees("editor `no-such-editor` not found")
        .sees("› draft");
    person.types("\u{15}");
    leave(person);
}

#[test]
fn suspended_chat_goes_on() {
    let server = Server::start([Reply::text("Still here.")]);
    let project = project();
    let mut command = project.command(&["chat", "--base-url", &server.url]);
    command.env("HOME", project.path());
    let person = Person::sit_down(through(&["setsid"], &command), 24, 80);
    // Without a shell that could continue it, the system does not stop the program.
    person.sees("/help for commands").types("half\u{1a}").sees("› half").types(" done\r").sees("Still here.");
    leave(person);
}
