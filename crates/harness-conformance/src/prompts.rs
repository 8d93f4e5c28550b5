//! Vectors of kinds `prompt-template` and `skills-prompt`: texts that a person's prompt and an agent's
//! instructions are made of.

use harness_runtime::skill::{Skill, SkillSet};
use harness_runtime::template::PromptTemplate;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::case::each;
use crate::vector::Vector;
use crate::verdict::Verdict;

/// Expands one template.
pub(crate) fn run_template(vector: &Vector) -> Verdict {
    each(vector, |TemplateInput { content, args }| {
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        Ok(json!({ "text": PromptTemplate::new("template", content).expand(&args) }))
    })
}

/// Lists skills, and invokes one.
pub(crate) fn run_skills(vector: &Vector) -> Verdict {
    each(vector, |input| Ok(skills(input)))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TemplateInput {
    content: String,
    #[serde(default)]
    args: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SkillsInput {
    skills: Vec<SkillWords>,
    invoke: Option<Invoke>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Invoke {
    name: String,
    #[serde(default)]
    additional: Vec<String>,
}

/// A skill as vectors write it.
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "PascalCase")]
pub(crate) struct SkillWords {
    name: String,
    #[serde(default)]
    description: String,
    #[serde(default)]
    content: String,
    #[serde(default)]
    disable_model_invocation: bool,
}

impl From<SkillWords> for Skill {
    fn from(words: SkillWords) -> Self {
        let skill = Self::new(words.name, words.description, words.content);
        if words.disable_model_invocation { skill.hidden() } else { skill }
    }
}

fn skills(input: SkillsInput) -> Value {
    let skills: SkillSet = input.skills.into_iter().map(Skill::from).collect();
    let block = skills.listing();
    let Some(Invoke { name, additional }) = input.invoke else {
        return json!({ "system_prompt_block": block });
    };
    let additional: Vec<&str> = additional.iter().map(String::as_str).collect();
    let (text, error) = match skills.invoke(&name, &additional) {
        Some(text) => (json!(text), Value::Null),
        None => (Value::Null, json!([{ "code": "unknown_skill", "name": name }])),
    };
    json!({ "system_prompt_block": block, "invoke_text": text, "invoke_error": error })
}
