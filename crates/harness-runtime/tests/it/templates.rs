//! Prompt templates: expansion, files, commands.

use harness_runtime::MarkdownFault;
use harness_runtime::skill::{Skill, SkillSet};
use harness_runtime::template::{
    PromptTemplate, TemplateSet, expand_command, read_templates, split_arguments,
};

use crate::tree::Tree;

#[track_caller]
fn check(content: &str, arguments: &[&str], expected: &str) {
    assert_eq!(PromptTemplate::new("t", content).expand(arguments), expected);
}

#[test]
fn positions_count_from_one_and_take_all_digits() {
    check("a=$1 b=$2", &["X", "Y"], "a=X b=Y");
    check("<$0>", &["x"], "<>");
    check("<$3><$99999999999999999999999>", &["x"], "<><>");
    check("$01$1$1x", &["a", "b"], "aaax");
    check("$10-$1", &["1", "2", "3", "4", "5", "6", "7", "8", "9", "ten"], "ten-1");
    check("$1.00", &["A"], "A.00");
}

#[test]
fn all_arguments_are_joined_by_one_space() {
    check("[$@][$ARGUMENTS]", &["", "b"], "[ b][ b]");
    check("$ARGUMENTSX $ARGUMENT $arguments", &["v"], "vX $ARGUMENT $arguments");
    check("[$@]", &[], "[]");
}

#[test]
fn slices_name_where_they_begin_and_how_many_they_take() {
    check("${@:2} ${@:2:1} ${@:0} ${@:9} ${@:1:0}.", &["a", "b", "c"], "b c b a b c  .");
    check("${@:} ${@:x} ${@:1:} ${@} ${@:1", &["a"], "${@:} ${@:x} ${@:1:} ${@} ${@:1");
}

#[test]
fn every_other_dollar_stays() {
    check("$ $x $$ ${1} end$", &["v"], "$ $x $$ ${1} end$");
    check("\\$1 $$1", &["v"], "\\v $v");
}

#[test]
fn inserted_text_is_never_expanded_again() {
    check("$1 / $2 / $@", &["$@", "$1"], "$@ / $1 / $@ $1");
}

#[track_caller]
fn check_file(text: &str, description: &str, content: &str) {
    let template = PromptTemplate::parse("t", text).expect("a template");
    assert_eq!((&*template.description, &*template.content), (description, content));
}

#[test]
fn a_file_describes_itself_or_by_its_first_line() {
    check_file("---\ndescription: Fixes\nargument-hint: <issue>\n---\nFix $1\n", "Fixes", "Fix $1\n");
    check_file("\n  Fix $1 \nnow", "Fix $1", "\n  Fix $1 \nnow");
    let long = "é".repeat(61);
    check_file(&long, &format!("{}...", "é".repeat(60)), &long);
    let hint = PromptTemplate::parse("t", "---\nargument-hint: <issue>\n---\n").expect("a template");
    assert_eq!(hint.argument_hint.as_deref(), Some("<issue>"));
}

#[test]
fn a_file_that_is_too_long_is_refused() {
    let fault = PromptTemplate::parse("t", &"x".repeat(300_000)).expect_err("too long");
    assert_eq!(fault, MarkdownFault::TooLong { bytes: 300_000, most: 262_144 });
    assert_eq!(fault.kind(), "markdown.too_long");
}

#[tokio::test]
async fn folders_give_templates_by_the_names_of_their_files() {
    let tree = Tree::new(&[
        ("/mine/fix.md", "mine"),
        ("/mine/gone.md", "!"),
        ("/shared/bad.md", "---\ndescription: [\n---\n"),
        ("/shared/deep/x.md", "deep"),
        ("/shared/fix.md", "shared"),
        ("/shared/note.txt", "no template"),
        ("/shared/ship.md", "ship"),
    ]);
    let found = read_templates(&tree, &["/mine", "/shared", "/none"]).await;
    let names: Vec<_> =
        found.templates.templates().iter().map(|template| (&*template.name, &*template.content)).collect();
    assert_eq!(names, [("fix", "mine"), ("ship", "ship")]);
    let problems: Vec<_> = found.problems.iter().map(ToString::to_string).collect();
    insta::assert_snapshot!(problems.join("\n"), @r"
    /mine/gone.md: the disk is gone
    /shared/bad.md: line 2, column 14: invalid YAML: unclosed bracket '['; check indentation and quotes at that place
    /shared/fix.md: skipped: `fix` is already the name of /mine/fix.md
    ");
}

#[test]
fn quotes_hold_words_together() {
    let words = |line| split_arguments(line).join("|");
    assert_eq!(words(r#"  a "b c"  d'e f'g "" '' "#), "a|b c|de fg");
    assert_eq!(words(r#"it"s open"#), "its open");
    assert_eq!(words(r#"a\"b c""#), r"a\b c");
}

#[test]
fn commands_expand_templates_and_invoke_skills() {
    let templates = TemplateSet::new([PromptTemplate::new("fix", "Fix $1 of $2")]);
    let skills = SkillSet::new([Skill::new("ship", "", "Do ship.").hidden()]);
    let expand = |text| expand_command(text, &templates, &skills);
    assert_eq!(expand("/fix 'the bug' main\n").as_deref(), Some("Fix the bug of main"));
    assert_eq!(expand("/fix").as_deref(), Some("Fix  of "));
    let ship = "<skill name=\"ship\">\nDo ship.\n</skill>\n\nnow \"please\"";
    assert_eq!(expand("/skill:ship  now \"please\" ").as_deref(), Some(ship));
    for text in ["fix", "/skill:none", "/none", "/ fix", " /fix", ""] {
        assert_eq!(expand(text), None, "{text:?}");
    }
}
