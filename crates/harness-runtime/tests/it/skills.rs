//! Skills: the list, invocation, files, the tool.

use std::sync::Arc;

use harness_core::Json;
use harness_core::message::ToolCall;
use harness_core::tool::{ToolCx, ToolOutcome};
use harness_runtime::skill::{LOAD_SKILL, Skill, SkillSet, read_skills};

use crate::tree::Tree;

fn two() -> SkillSet {
    SkillSet::new([
        Skill::new("zip", "Pack <files> & \"more\"", "Use zip."),
        Skill::new("inner", "Only for people", "Do it.").hidden(),
        Skill::new("zip", "Another", "Never used."),
    ])
}

#[test]
fn the_list_has_visible_skills_in_their_order() {
    insta::assert_snapshot!(two().instructions(), @r#"
    The following skills provide specialized instructions for specific tasks. Use one when the task matches its description.

    <available_skills>
      <skill>
        <name>zip</name>
        <description>Pack &lt;files&gt; &amp; "more"</description>
      </skill>
      <skill>
        <name>zip</name>
        <description>Another</description>
      </skill>
    </available_skills>

    Read a skill with the tool `load_skill` before you use it.
    "#);
    let hidden = SkillSet::new([Skill::new("a", "b", "c").hidden()]);
    assert_eq!((hidden.listing(), hidden.instructions()), (String::new(), String::new()));
}

#[track_caller]
fn check_invoke(name: &str, additional: &[&str], expected: Option<&str>) {
    assert_eq!(two().invoke(name, additional).as_deref(), expected);
}

#[test]
fn people_invoke_any_skill_by_its_name() {
    check_invoke("inner", &[], Some("<skill name=\"inner\">\nDo it.\n</skill>"));
    check_invoke("zip", &["a", "b"], Some("<skill name=\"zip\">\nUse zip.\n</skill>\n\na\n\nb"));
    check_invoke("zip", &["", ""], Some("<skill name=\"zip\">\nUse zip.\n</skill>\n\n\n\n"));
    check_invoke("none", &[], None);
}

#[test]
fn a_skill_from_a_file_says_where_its_references_lie() {
    let skills = SkillSet::new([Skill::new("a", "b", "Read x.md").at("/skills/a/SKILL.md")]);
    let expected = "<skill name=\"a\" location=\"/skills/a/SKILL.md\">\n\
                    References are relative to /skills/a.\n\nRead x.md\n</skill>";
    assert_eq!(skills.invoke("a", &[]).as_deref(), Some(expected));
}

#[track_caller]
fn check_file(text: &str, location: Option<&str>, expected: &str) {
    let shown = match Skill::parse(text, location) {
        Ok(parsed) => {
            let Skill { name, description, content, hidden, .. } = &parsed.skill;
            let warnings: Vec<_> = parsed.warnings.iter().map(ToString::to_string).collect();
            format!("{name}|{description}|{content}|{hidden}|{}", warnings.join("; "))
        }
        Err(fault) => format!("{}: {fault}", fault.kind()),
    };
    assert_eq!(shown, expected);
}

#[test]
fn a_skill_file_has_front_matter_and_a_body() {
    let text = "---\nname: pdf-tools\ndescription: Fills forms\ndisable-model-invocation: true\nother: 1\n---\n\n# Forms\n\n";
    check_file(text, Some("/s/pdf-tools/SKILL.md"), "pdf-tools|Fills forms|# Forms|true|");
    check_file("---\ndescription: d\n---\nx", Some("/s/deep/SKILL.md"), "deep|d|x|false|");
}

#[test]
fn oddities_warn_and_what_no_model_could_use_is_refused() {
    let odd = "the name `A--b` should be of `a-z`, `0-9` and single hyphens between them; \
               the name `A--b` differs from its directory `c`";
    let text = "---\nname: A--b\ndescription: d\n---\nx";
    check_file(text, Some("/s/c/SKILL.md"), &format!("A--b|d|x|false|{odd}"));
    let none = "markdown.no_description: missing `description`: state in the front matter when to use it";
    check_file("---\nname: a\n---\nx", None, none);
    check_file(
        "---\ndescription: d\n---\n",
        None,
        "markdown.no_name: missing `name`: set it in the front matter",
    );
    let long = format!("---\nname: a\ndescription: {}\n---\n", "d".repeat(1_025));
    let warning = "the description has 1025 characters; the format allows 1024";
    check_file(&long, None, &format!("a|{}||false|{warning}", "d".repeat(1_025)));
}

#[test]
fn further_keys_of_a_skill_file_are_kept() {
    let text = "---\nname: a\ndescription: d\nlicense: MIT\ncompatibility: linux\n\
                allowed-tools: [read, grep]\nmetadata: {version: 2}\n---\n";
    let skill = Skill::parse(text, None).expect("a skill").skill;
    assert_eq!(skill.license.as_deref(), Some("MIT"));
    assert_eq!(skill.compatibility.as_deref(), Some("linux"));
    assert_eq!(skill.allowed_tools.as_deref(), Some("read grep"));
    assert_eq!(skill.metadata.map(|data| data.text().to_owned()).as_deref(), Some(r#"{"version":2}"#));
}

#[tokio::test]
async fn folders_give_skills_and_the_first_of_a_name_counts() {
    let good = |name: &str| format!("---\nname: {name}\ndescription: d\n---\n");
    let tree = Tree::new(&[
        ("/project/a/SKILL.md", &good("a")),
        ("/project/group/b/SKILL.md", &good("b")),
        ("/project/notes/README.md", "no skill"),
        ("/user/a/SKILL.md", &good("a")),
        ("/user/bad/SKILL.md", "text"),
        ("/user/c/SKILL.md", &good("see")),
        ("/user/gone/SKILL.md", "!"),
    ]);
    let found = read_skills(&tree, &["/project", "/user", "/none"]).await;
    let places: Vec<_> = found.skills.skills().iter().filter_map(|skill| skill.location.as_deref()).collect();
    assert_eq!(places, ["/project/a/SKILL.md", "/project/group/b/SKILL.md", "/user/c/SKILL.md"]);
    let problems: Vec<_> = found.problems.iter().map(ToString::to_string).collect();
    insta::assert_snapshot!(problems.join("\n"), @r"
    /user/a/SKILL.md: skipped: `a` is already the name of /project/a/SKILL.md
    /user/bad/SKILL.md: missing `description`: state in the front matter when to use it
    /user/c/SKILL.md: the name `see` differs from its directory `c`
    /user/gone/SKILL.md: the disk is gone
    ");
}

async fn load(skills: &SkillSet, arguments: &str) -> ToolOutcome {
    let call = ToolCall::new("c1", LOAD_SKILL, Json::parse(arguments).expect("JSON"));
    skills.tool().expect("a tool").call_boxed(ToolCx::for_call(Arc::new(call))).await
}

#[tokio::test]
async fn the_tool_loads_what_is_listed() {
    let text = |outcome: ToolOutcome| {
        outcome.error.map_or_else(|| "ok".to_owned(), |error| format!("{}: {}", error.code, error.message))
    };
    let skills = two();
    let loaded = load(&skills, r#"{"name":"zip"}"#).await;
    let shown = loaded.content.iter().filter_map(|block| block.as_text()).collect::<String>();
    assert_eq!(shown, "<skill name=\"zip\">\nUse zip.\n</skill>");
    let unknown = "unknown_skill: there is no skill `inner`: the skills are `zip`";
    assert_eq!(text(load(&skills, r#"{"name":"inner"}"#).await), unknown);
    assert!(SkillSet::default().tool().is_none());
}
