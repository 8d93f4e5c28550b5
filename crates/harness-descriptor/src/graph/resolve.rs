//! An agent in one turn.

use std::collections::HashMap;
use std::collections::HashSet;
use std::sync::Arc;

use sha2::{Digest as _, Sha256};

use super::agents::{Agent, BoundTool, Graph, Instructions};
use super::path::gate_is_open;
use crate::error::{DescriptorError, Fault};
use crate::field::{Expected, Field, PathUse, Target};
use crate::number::trim;
use crate::value::Value;

/// The instructions, tools, handoffs and model of an agent in one turn.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ResolvedAgent {
    /// The rendered instructions; `None` when the agent has none.
    pub instructions: Option<Arc<str>>,
    /// The agent's own tools in order.
    pub tools: Vec<BoundTool>,
    /// The handoffs that are open, in order.
    pub handoffs: Vec<OpenHandoff>,
    /// The model, trimmed and not empty.
    pub model: Arc<str>,
    /// The model settings as a whole.
    pub model_settings: Option<Value>,
    /// The JSON Schema that its answers must match.
    pub output: Option<Value>,
}

/// A handoff that is open in this turn.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct OpenHandoff {
    /// The id of the agent that takes over.
    pub to: Arc<str>,
    /// The name the model calls.
    pub tool_name: Arc<str>,
    /// Description for the model.
    pub description: Arc<str>,
}

impl Graph {
    /// Resolves the agent `id` for a turn with this context.
    ///
    /// Gates of handoffs are evaluated first, then the model is selected, then the instructions are
    /// rendered. Stops at the first error.
    pub fn resolve(&self, id: &str, context: &Value) -> Result<ResolvedAgent, DescriptorError> {
        self.resolve_with(id, context, None)
    }

    /// [`Self::resolve`] with a model in place of the agent's own.
    pub fn resolve_with(
        &self,
        id: &str,
        context: &Value,
        model: Option<&str>,
    ) -> Result<ResolvedAgent, DescriptorError> {
        let agent = self.known_agent(id)?;
        let handoffs = self.open_handoffs(agent, context)?;
        let model = match model {
            Some(model) => model.into(),
            None => self.model(agent)?,
        };
        let instructions = self.instructions(id, context)?;
        Ok(ResolvedAgent {
            instructions,
            tools: agent.tools.clone(),
            handoffs,
            model,
            model_settings: agent.model_settings.clone(),
            output: agent.output.clone(),
        })
    }

    /// The rendered instructions of the agent `id`; `None` when it has none.
    pub fn instructions(&self, id: &str, context: &Value) -> Result<Option<Arc<str>>, DescriptorError> {
        let agent = self.known_agent(id)?;
        let rendered =
            agent.instructions.as_ref().map(|instructions| instructions.render(&agent.id, context));
        rendered.transpose().map_err(|fault| {
            let document = self.descriptor.document();
            DescriptorError::new(fault, agent.instructions_node.map(|node| document.place(node)))
        })
    }

    fn open_handoffs(&self, agent: &Agent, context: &Value) -> Result<Vec<OpenHandoff>, DescriptorError> {
        let mut open = Vec::with_capacity(agent.handoffs.len());
        for handoff in &agent.handoffs {
            let used_by = || PathUse::HandoffGate { agent: agent.id.to_string(), to: handoff.to.to_string() };
            let is_open = handoff.gate.as_ref().map(|gate| gate_is_open(gate, context, used_by));
            let is_open = is_open.transpose().map_err(|fault| {
                DescriptorError::new(fault, Some(self.descriptor.document().place(handoff.node)))
            })?;
            if is_open.unwrap_or(true) {
                open.push(handoff);
            }
        }
        // Of several open handoffs to one agent the first is offered.
        let mut targets = HashSet::new();
        let mut offered = Vec::with_capacity(open.len());
        for handoff in open.into_iter().filter(|handoff| targets.insert(&*handoff.to)) {
            let target = self.known_agent(&handoff.to)?;
            offered.push(OpenHandoff {
                to: Arc::clone(&handoff.to),
                tool_name: Arc::clone(&handoff.tool_name),
                description: handoff_description(target),
            });
        }
        Ok(offered)
    }

    fn model(&self, agent: &Agent) -> Result<Arc<str>, DescriptorError> {
        let fault = match &agent.model {
            Some(Value::String(model)) if !trim(model).is_empty() => return Ok(trim(model).into()),
            None | Some(Value::Null | Value::String(_)) => Fault::NoModel { agent: agent.name.to_string() },
            Some(Value::Bool(_) | Value::Number(_) | Value::List(_) | Value::Map(_)) => {
                let field = Field::Key { target: Target::Agent(agent.id.to_string()), key: "model" };
                Fault::WrongType { field, expected: Expected::NonEmptyString }
            }
        };
        Err(DescriptorError::new(fault, Some(self.descriptor.document().place(agent.node))))
    }
}

impl Instructions {
    fn render(&self, agent: &str, context: &Value) -> Result<Arc<str>, Fault> {
        let parts = match self {
            Self::Text(template) => return template.render(context),
            Self::Parts(parts) => parts,
        };
        let mut out = String::new();
        let mut first = true;
        for part in parts {
            let used_by = || PathUse::PartGate { agent: agent.to_owned() };
            let open = part.gate.as_ref().map(|gate| gate_is_open(gate, context, used_by)).transpose()?;
            if open == Some(false) {
                continue;
            }
            if !first {
                out.push_str("\n\n");
            }
            first = false;
            part.template.render_into(&mut out, context)?;
        }
        Ok(out.into())
    }
}

fn handoff_description(target: &Agent) -> Arc<str> {
    let name = &target.name;
    match &*target.handoff_description {
        "" => format!("Handoff to agent \"{name}\".").into(),
        description => format!("Handoff to agent \"{name}\". {description}").into(),
    }
}

const PREFIX: &str = "handoff_to_";
/// Providers take tool names of up to 64 letters, digits, `_` and `-`.
const MAX_NAME: usize = 64;
const MARK: usize = 8;

fn free_name(name: &str, taken: &mut HashSet<Arc<str>>) -> Arc<str> {
    let mut free: Arc<str> = name.into();
    let mut count = 2_u64;
    while taken.contains(&free) {
        free = format!("{name}_{count}").into();
        count += 1;
    }
    taken.insert(Arc::clone(&free));
    free
}

/// Names by agent id for the handoffs of one agent, one for each target.
pub(super) fn stable_tool_names<'a>(
    targets: impl Iterator<Item = &'a str>,
    tools: &[BoundTool],
) -> Vec<Arc<str>> {
    let mut taken: HashSet<Arc<str>> = tools.iter().map(|tool| Arc::clone(&tool.name)).collect();
    let mut known: HashMap<&str, Arc<str>> = HashMap::new();
    targets
        .map(|target| {
            let name = known.entry(target).or_insert_with(|| {
                let plain = plain_name(target).filter(|name| !taken.contains(name.as_str()));
                free_name(&plain.unwrap_or_else(|| marked_name(target)), &mut taken)
            });
            Arc::clone(name)
        })
        .collect()
}

/// The prefix and the id itself, if a provider takes it as it is.
fn plain_name(id: &str) -> Option<String> {
    let safe = id.bytes().all(is_name_byte) && !id.is_empty() && PREFIX.len() + id.len() <= MAX_NAME;
    safe.then(|| format!("{PREFIX}{id}"))
}

/// The prefix, what is left of the id, and a mark made from the whole id.
fn marked_name(id: &str) -> String {
    let room = MAX_NAME - PREFIX.len() - 1 - MARK;
    let kept: String =
        id.chars().map(|c| if c.is_ascii() && is_name_byte(c as u8) { c } else { '_' }).take(room).collect();
    let digest = Sha256::digest(id.as_bytes());
    let mark = digest.iter().take(MARK / 2).fold(0_u32, |mark, byte| mark << 8 | u32::from(*byte));
    let kept = kept.trim_matches('_');
    if kept.is_empty() { format!("{PREFIX}{mark:08x}") } else { format!("{PREFIX}{kept}_{mark:08x}") }
}

fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_stable(targets: &[&str], tools: &[&str], expected: &[&str]) {
        let tools: Vec<BoundTool> = tools
            .iter()
            .map(|name| BoundTool {
                id: (*name).into(),
                target: "".into(),
                name: (*name).into(),
                description: "".into(),
            })
            .collect();
        let names = stable_tool_names(targets.iter().copied(), &tools);
        assert_eq!(names.iter().map(|name| &**name).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn names_from_ids_are_safe_and_unique() {
        check_stable(
            &["billing", "desk-2", "billing"],
            &[],
            &["handoff_to_billing", "handoff_to_desk-2", "handoff_to_billing"],
        );
        check_stable(&["a b", "a.b"], &[], &["handoff_to_a_b_c8687a08", "handoff_to_a_b_2e7336dc"]);
        check_stable(&["日本"], &[], &["handoff_to_cf2abf0c"]);
        check_stable(&["x"], &["handoff_to_x"], &["handoff_to_x_2d711642"]);
        let long = "l".repeat(80);
        let names = stable_tool_names(std::iter::once(long.as_str()), &[]);
        assert!(names.iter().all(|name| name.len() == MAX_NAME));
    }
}
