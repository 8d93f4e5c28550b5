//! Files about a project.

use harness_runtime::context_file::read_context_files;

use crate::tree::Tree;

#[track_caller]
fn check(files: &[(&str, &str)], extra: Option<&str>, folder: &str, expected: &[&str]) {
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    let tree = Tree::new(files);
    let found = runtime.block_on(read_context_files(&tree, extra, folder));
    let files = found.files.iter().map(|file| file.path.clone());
    let problems = found.problems.iter().map(|(path, fault)| format!("{path}: {fault}"));
    assert_eq!(files.chain(problems).collect::<Vec<_>>(), expected);
}

#[test]
fn folders_are_looked_at_from_the_root_down() {
    let files = [
        ("/AGENTS.md", "root"),
        ("/CLAUDE.md", "not first"),
        ("/user/AGENTS.md", "mine"),
        ("/shop/CLAUDE.MD", "shop"),
        ("/shop/deep/AGENTS.md", "deep"),
        ("/shop/deep/other/AGENTS.md", "beside"),
    ];
    check(
        &files,
        Some("/user"),
        "/shop/deep",
        &["/user/AGENTS.md", "/AGENTS.md", "/shop/CLAUDE.MD", "/shop/deep/AGENTS.md"],
    );
    check(&files, None, "", &["/AGENTS.md"]);
    check(&files, Some("/shop"), "/shop/", &["/shop/CLAUDE.MD", "/AGENTS.md"]);
}

#[test]
fn what_cannot_be_taken_is_told() {
    let long = "x".repeat(131_073);
    let files = [("/AGENTS.md", "!"), ("/a/AGENTS.md", &*long), ("/a/b/AGENTS.md", " \n")];
    let problems =
        ["/AGENTS.md: the disk is gone", "/a/AGENTS.md: it has 131073 bytes; at most 131072 are taken"];
    check(&files, None, "/a/b", &problems);
}
