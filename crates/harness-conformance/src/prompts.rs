//! Vectors of kinds `prompt-template` and `skills-prompt`: texts that a person's prompt and an agent's
//! instructions are made of.

use harness_runtime::skill::{Skill, SkillSet};
use harness_runtime::template::PromptTemplate;
use serde_json::{Value, json};

use super::subset::matches;
use super::turn::convert::{at, list, text};
use crate::vector::Vector;
use crate::verdict::Verdict;

/// Expands one template.
pub(crate) fn run_template(vector: &Vector) -> Verdict {
    let input = at(&vector.value, "input");
    let got = PromptTemplate::new("template", text(input, "content")).expand(&texts(input, "args"));
    matches("expect", at(&vector.value, "expect"), &json!({ "text": got })).into()
}

/// Lists skills, and invokes one.
pub(crate) fn run_skills(vector: &Vector) -> Verdict {
    let input = at(&vector.value, "input");
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
    matches("expect", at(&vector.value, "expect"), &got).into()
}

fn skill(input: &Value) -> Skill {
    let skill = Skill::new(text(input, "Name"), text(input, "Description"), text(input, "Content"));
    if at(input, "DisableModelInvocation") == &Value::Bool(true) { skill.hidden() } else { skill }
}

fn texts<'a>(value: &'a Value, key: &str) -> Vec<&'a str> {
    list(value, key).iter().filter_map(Value::as_str).collect()
}
