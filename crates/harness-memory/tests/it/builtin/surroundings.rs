//! Layers about the surroundings: environment, reminders, context files.

use harness_core::Time;
use harness_core::message::Message;
use harness_core::port::AppendSource;
use harness_memory::builtin::{
    ContextFileLimits, ContextFileSet, ContextFiles, Environment, Reminder, Reminders, directories_down_to,
};

use super::files::Files;
use super::{probe, run, says, shown, with};

#[test]
fn the_environment_shows_the_day_and_what_the_host_says() {
    let layer =
        Environment::new().with("Working folder", "/srv/a\nDate: never").with("Shell", "</environment>");
    let mut layer = probe(with(layer, |layer| layer.utc_offset = 120));
    layer.cx.now = Time::parse_iso("2025-12-31T23:00:00Z").unwrap();
    insta::assert_snapshot!(shown(&mut layer, 0), @r"
    <environment>
    Date: 2026-01-01
    Working folder: /srv/a Date: never
    Shell: <\/environment>
    </environment>
    ");
}

#[test]
fn a_reminder_is_shown_once_in_a_while_and_so_often_at_most() {
    let mut layer = probe(Reminders::new([Reminder::new("tests", "Run the tests.").every(3).at_most(2)]));
    let block = "<system-reminder>\nRun the tests.\n</system-reminder>";
    let views: Vec<bool> = (0..8).map(|_| shown(&mut layer, 0) == block).collect();
    assert_eq!(views, [true, false, false, true, false, false, false, false]);
}

#[test]
fn a_reminder_follows_the_message_that_asks_for_it() {
    let failed = Reminder::new("failed", "Read the error first.")
        .after(|m| m.joined_text().contains("error"))
        .every(2);
    let late = Reminder::new("late", "Be brief.").when(|cx| cx.step > 5);
    let mut layer = probe(Reminders::new([failed, late]));
    assert_eq!(shown(&mut layer, 0), "");
    says(&mut layer, "an error");
    assert_eq!(shown(&mut layer, 0), "<system-reminder>\nRead the error first.\n</system-reminder>");
    run(layer.append(AppendSource::ToolResults, [Message::user("error again")])).unwrap();
    assert_eq!(shown(&mut layer, 0), "", "too soon");
    says(&mut layer, "an error");
    layer.cx.step = 6;
    let both = "<system-reminder>\nRead the error first.\n</system-reminder>\n<system-reminder>\nBe brief.\n</system-reminder>";
    assert_eq!(shown(&mut layer, 0), both);
}

#[test]
fn context_files_come_from_every_folder_with_what_they_import() {
    let files = Files::new(&[
        ("/agent/CLAUDE.md", "Agent's own."),
        ("/AGENTS.md", "Root. See @docs/style.md, and `@docs/code.md`.\n```\n@docs/code.md\n```\n"),
        ("/CLAUDE.md", "Not this one."),
        ("/docs/style.md", "Style. @../AGENTS.md @./deep.MD @/shared.md @gone.md a@b.md"),
        ("/docs/deep.MD", "Deep."),
        ("/docs/code.md", "Never."),
        ("/shared.md", "Shared."),
        ("/a/AGENTS.MD", "In a."),
        ("/a/b/CLAUDE.MD", "In b."),
        ("/a/b/c/AGENTS.md", "Below."),
    ]);
    let mut layer = probe(ContextFiles::new(files, "/a/b/").with_agent_directory("agent"));
    insta::assert_snapshot!(shown(&mut layer, 0), @r"
    # Project context

    ## /agent/CLAUDE.md

    Agent's own.

    ## /AGENTS.md

    Root. See @docs/style.md, and `@docs/code.md`.
    ```
    @docs/code.md
    ```

    ## /docs/style.md

    Style. @../AGENTS.md @./deep.MD @/shared.md @gone.md a@b.md

    ## /docs/deep.MD

    Deep.

    ## /shared.md

    Shared.

    ## /a/AGENTS.MD

    In a.

    ## /a/b/CLAUDE.MD

    In b.
    ");
    assert!(shown(&mut layer, 20).ends_with("\n[cut: the budget of context files is used up]"));
    assert_eq!(shown(&mut probe(ContextFiles::new(Files::new(&[]), "/a")), 0), "");
}

#[test]
fn context_files_are_bounded_in_depth_lines_and_bytes() {
    let chain: Vec<(String, String)> =
        (0..10).map(|n| (format!("/{n}.md"), format!("File {n} @{}.md", n + 1))).collect();
    let mut files: Vec<(&str, &str)> =
        chain.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
    files.push(("/AGENTS.md", "@0.md"));
    let text = shown(&mut probe(ContextFiles::new(Files::new(&files), "/")), 0);
    assert!(text.contains("File 4") && !text.contains("File 5"), "{text}");

    let many_lines = "line\n".repeat(300);
    let text = shown(&mut probe(ContextFiles::new(Files::new(&[("/AGENTS.md", &many_lines)]), "")), 0);
    assert_eq!(text.matches("line\n").count(), 200);
    assert!(text.ends_with("[cut after 200 lines]"), "{text}");

    let long = format!("{}\n{}", "x".repeat(20_000), "y".repeat(9_000));
    let paths = ["/AGENTS.md", "/a/AGENTS.md", "/a/b/AGENTS.md", "/a/b/c/AGENTS.md"];
    let files: Vec<(&str, &str)> = paths.iter().map(|path| (*path, long.as_str())).collect();
    let text = shown(&mut probe(ContextFiles::new(Files::new(&files), "/a/b/c")), 0);
    assert_eq!(text.matches("[cut after 1 lines]").count(), 2);
    assert!(text.ends_with("[further context files are omitted]"));
    assert!(text.len() < 61_000);
}

/// Paths of the files, then the problems, of a directory after an extra one.
#[track_caller]
fn check(files: &[(&str, &str)], extra: Option<&str>, directory: &str, expected: &[&str]) {
    let files = Files::new(files);
    let mut directories = directories_down_to(directory);
    directories.splice(0..0, extra.map(str::to_owned));
    let found = run(ContextFileSet::read(&*files, &directories, ContextFileLimits::default()));
    let paths = found.files.iter().map(|file| file.path.clone());
    let problems = found.problems.iter().map(|(path, fault)| format!("{path}: {fault}"));
    assert_eq!(paths.chain(problems).collect::<Vec<_>>(), expected);
}

#[test]
fn directories_are_read_from_the_root_down() {
    let files = [
        ("/AGENTS.md", "root"),
        ("/CLAUDE.md", "not first"),
        ("/user/AGENTS.md", "mine"),
        ("/shop/CLAUDE.MD", "shop"),
        ("/shop/empty/AGENTS.md", " \n"),
        ("/shop/deep/AGENTS.md", "deep"),
        ("/shop/deep/other/AGENTS.md", "beside"),
    ];
    let all = ["/user/AGENTS.md", "/AGENTS.md", "/shop/CLAUDE.MD", "/shop/deep/AGENTS.md"];
    check(&files, Some("/user"), "/shop/deep", &all);
    check(&files, None, "", &["/AGENTS.md"]);
    check(&files, Some("/shop"), "/shop/empty", &["/shop/CLAUDE.MD", "/AGENTS.md"]);
    let denied = [("/AGENTS.md", "!denied"), ("/CLAUDE.md", "not instead")];
    check(&denied, None, "", &["/AGENTS.md: Permission denied (os error 13)"]);
}
