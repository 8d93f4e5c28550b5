//! Vectors of kinds `prompt-template` and `skills-prompt`: texts that a person's prompt and an agent's
//! instructions are made of.

use std::path::Path;

use harness_runtime::skill::{Skill, SkillSet};
use harness_runtime::template::PromptTemplate;
use serde_json::{Value, json};

use super::single::judged;
use super::subset::matches;
use super::turn::convert::{at, list, text};
use crate::conformance::Verdict;

/// Expands one template.
pub(crate) fn run_template(path: &Path) -> Vec<(String, Verdict)> {
    judged(path, |vector| {
        let input = at(vector, "input");
        let got = PromptTemplate::new("template", text(input, "content")).expand(&texts(input, "args"));
        matches("expect", at(vector, "expect"), &json!({ "text": got }))
    })
}

/// Lists skills, and invokes one.
pub(crate) fn run_skills(path: &Path) -> Vec<(String, Verdict)> {
    judged(path, |vector| {
        let input = at(vector, "input");
        let skills: SkillSet = list(input, "skills").iter().map(skill).collect();
        let block = skills.listing();
        let got = match input.get("invoke") {
            None => json!({ "system_prompt_block": block }),
            Some(invoke) => {
                let name = text(invoke, "name");
                let error = json!([{ "code": "unknown_skill", "name": name }]);
                let message = skills.invoke(name, &texts(invoke, "additional"));
                message.map_or_else(
                    || json!({ "system_prompt_block": block, "invoke_error": error }),
                    |message| json!({ "system_prompt_block": block, "invoke_text": message }),
                )
            }
        };
        matches("expect", at(vector, "expect"), &got)
    })
}

fn skill(input: &Value) -> Skill {
    let skill = Skill::new(text(input, "Name"), text(input, "Description"), text(input, "Content"));
    if at(input, "DisableModelInvocation") == &Value::Bool(true) { skill.hidden() } else { skill }
}

fn texts<'a>(value: &'a Value, key: &str) -> Vec<&'a str> {
    list(value, key).iter().filter_map(Value::as_str).collect()
}
