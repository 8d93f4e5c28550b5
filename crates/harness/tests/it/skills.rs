//! Skills, templates, and what else agents are told by their host.

use harness::descriptor::load_text;
use harness::prelude::*;
use harness::runtime::skill::{Skill, SkillSet};
use harness::runtime::template::{PromptTemplate, TemplateSet};
use harness::{BoundGraph, HarnessError};

use crate::support::{Script, call};

/// An agent that lists its tools: none.
const DESK: &str = "
runtime: { entry_agent: desk }
agent_defaults: { model: small }
agents: { desk: { instructions: You are the desk., tools: [] } }
";

fn skills() -> SkillSet {
    let release = Skill::new("release", "Cuts a release.", "Run the tests first.");
    SkillSet::new([release, Skill::new("secret", "For people.", "Say hush.").hidden()])
}

#[tokio::test]
async fn every_agent_is_told_of_skills_and_can_read_one() {
    let script =
        Script::new([call("c1", "load_skill", r#"{"name":"release"}"#), AssistantMessage::text("Done.")]);
    let graph = BoundGraph::bind(&load_text(DESK).unwrap(), Vec::<(String, _)>::new()).unwrap();
    let builder = Harness::new(script.clone()).graph(graph).more_instructions("Be brief.");
    let report = builder.skills(skills()).build().unwrap().prompt("Release it.").await.unwrap();
    assert_eq!(report.answer(), "Done.");
    insta::assert_snapshot!(script.seen().last().unwrap(), @r#"
    desk: You are the desk.

    Be brief.

    The following skills provide specialized instructions for specific tasks. Use one when the task matches its description.

    <available_skills>
      <skill>
        <name>release</name>
        <description>Cuts a release.</description>
      </skill>
    </available_skills>

    Read a skill with the tool `load_skill` before you use it. | user Release it. | assistant  | toolResult <skill name="release">
    Run the tests first.
    </skill>
    "#);
}

#[tokio::test]
async fn threads_are_prompted_with_skills_and_templates() {
    let script = Script::new(["one", "two", "three"].map(AssistantMessage::text));
    let templates = TemplateSet::new([PromptTemplate::new("fix", "Fix issue $1.")]);
    let builder = Harness::new(script.clone()).skills(skills()).templates(templates);
    let thread = builder.build_runtime().unwrap().thread("a");
    thread.prompt_skill("secret", &["Now."]).await.unwrap();
    thread.prompt_template("fix", &["7"]).await.unwrap();
    let said: Vec<String> = thread.messages().await.unwrap().iter().map(|said| said.joined_text()).collect();
    let invoked = "<skill name=\"secret\">\nSay hush.\n</skill>\n\nNow.";
    assert_eq!(said, [invoked, "one", "Fix issue 7.", "two"]);
}

#[tokio::test]
async fn without_a_visible_skill_nothing_is_told() {
    let script = Script::new([AssistantMessage::text("one")]);
    let hidden = SkillSet::new([Skill::new("secret", "For people.", "Say hush.").hidden()]);
    let builder = Harness::new(script.clone()).instructions("Be brief.").more_instructions("");
    builder.skills(hidden).build().unwrap().prompt("Hello").await.unwrap();
    assert_eq!(script.seen(), ["main: Be brief. | user Hello"]);
}

#[test]
fn a_tool_of_that_name_is_told() {
    #[derive(serde::Deserialize, schemars::JsonSchema)]
    struct Nothing {}
    let other = tool_fn("load_skill", "Loads", |_: Nothing, _| async { "loaded" });
    let error = Harness::new(Script::default()).tool(other).skills(skills()).build().unwrap_err();
    assert!(matches!(error, HarnessError::Setup(_)), "{error}");
    assert!(error.to_string().contains("load_skill"), "{error}");
}
