//! Functions that edit a plan: each returns a sentence, even when it rejects.

use harness_core::Json;
use schemars::JsonSchema;
use serde::Deserialize;

use super::super::text::units;
use super::document::{self, is_slug};
use super::state::{PlanOptions, PlanPhase, PlanState, Workflow};

#[derive(Deserialize, JsonSchema)]
pub(super) struct Enter {
    /// Goal, in a sentence or two.
    pub(super) goal: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
pub(super) struct Prd {
    /// Requirements and reasons, as Markdown. They replace the earlier text.
    pub(super) content: String,
}

#[derive(Deserialize, JsonSchema)]
pub(super) struct Document {
    /// The root node: an object with `kind`, `name` and what is below it. A node that runs a workflow names
    /// it under `workflow`.
    #[schemars(with = "serde_json::Value")]
    pub(super) document: Json,
}

#[derive(Deserialize, JsonSchema)]
pub(super) struct NamedDocument {
    /// The name: lower-case letters, digits, `_` and `-`.
    pub(super) name: String,
    /// The root node of the workflow.
    #[schemars(with = "serde_json::Value")]
    pub(super) document: Json,
}

#[derive(Deserialize, JsonSchema)]
pub(super) struct Name {
    /// The name of the workflow.
    pub(super) name: String,
}

/// Decision about the plan.
#[derive(Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum Action {
    Execute,
    Cancel,
}

#[derive(Deserialize, JsonSchema)]
pub(super) struct Exit {
    /// Whether the plan is carried out or given up.
    pub(super) action: Action,
}

/// Answer to the model; an error is a rejection.
pub(super) type Said = Result<String, String>;

fn planning(state: &PlanState) -> Result<(), String> {
    if state.phase == PlanPhase::Planning {
        return Ok(());
    }
    Err(format!("Refused: the plan is {}, not in planning. Call enterPlanMode first.", state.phase))
}

pub(super) fn may_enter(state: &PlanState) -> Result<(), String> {
    match state.phase {
        PlanPhase::Planning | PlanPhase::Executing => {
            Err(format!("Refused: a plan is {} already.", state.phase))
        }
        PlanPhase::Idle | PlanPhase::Completed | PlanPhase::Failed => Ok(()),
    }
}

pub(super) fn enter(state: &mut PlanState, goal: Option<String>, slug: Option<String>) -> Said {
    may_enter(state)?;
    *state = PlanState {
        phase: PlanPhase::Planning,
        prd: goal.filter(|goal| !goal.trim().is_empty()).map(|goal| format!("# Goal\n\n{goal}\n")),
        version: state.version.saturating_add(1),
        plan_slug: slug,
        ..PlanState::default()
    };
    Ok(format!("Plan mode entered. Plan v{}.", state.version))
}

pub(super) fn update_prd(state: &mut PlanState, content: String, options: &PlanOptions) -> Said {
    planning(state)?;
    let (length, most) = (units(&content), options.max_prd_length);
    if length > most {
        return Err(format!("Refused: the PRD has {length} characters; {most} are the most."));
    }
    state.prd = Some(content);
    Ok("PRD updated.".to_owned())
}

pub(super) fn set_tree(state: &mut PlanState, given: &Json, options: &PlanOptions) -> Said {
    planning(state)?;
    state.plan_tree = Some(document::read(given, options).map_err(refused)?);
    Ok("Plan tree set.".to_owned())
}

pub(super) fn set_workflow(state: &mut PlanState, args: NamedDocument, options: &PlanOptions) -> Said {
    planning(state)?;
    let NamedDocument { name, document } = args;
    if !is_slug(&name) {
        return Err(format!(
            "Refused: \"{name}\" is not a name of a workflow; use 1 to 64 of a-z, 0-9, _ and -, beginning with a letter or digit."
        ));
    }
    let document = document::read(&document, options).map_err(refused)?;
    let said = format!("Workflow {name} set.");
    let is_full = state.workflows.len() >= options.max_workflows;
    match state.workflows.iter_mut().find(|workflow| workflow.name == name) {
        Some(workflow) => workflow.document = document,
        None if is_full => {
            return Err(format!("Refused: a plan has {} workflows at most.", options.max_workflows));
        }
        None => state.workflows.push(Workflow { name, document }),
    }
    Ok(said)
}

fn refused(problem: String) -> String {
    format!("Refused: {problem}")
}

pub(super) fn remove_workflow(state: &mut PlanState, name: &str) -> Said {
    planning(state)?;
    let before = state.workflows.len();
    state.workflows.retain(|workflow| workflow.name != name);
    if state.workflows.len() == before {
        return Err(format!("There is no workflow {name}."));
    }
    Ok(format!("Workflow {name} removed."))
}

pub(super) fn get_workflow(state: &PlanState, name: &str) -> String {
    state
        .workflow(name)
        .map_or_else(|| format!("There is no workflow {name}."), |found| found.text().to_owned())
}

/// Whether the plan may be left in that way.
pub(super) fn may_exit(state: &PlanState, action: Action) -> Result<(), String> {
    planning(state)?;
    if action == Action::Execute { document::ready(state) } else { Ok(()) }
}

pub(super) fn exit(state: &mut PlanState, action: Action, approved: bool) -> Said {
    may_exit(state, action)?;
    if action == Action::Cancel {
        state.phase = PlanPhase::Idle;
        return Ok("Plan cancelled.".to_owned());
    }
    if !approved {
        return Err("The plan was not approved. Ask what to change, and continue planning.".to_owned());
    }
    state.phase = PlanPhase::Executing;
    Ok(format!("Plan v{} approved. Carry it out.", state.version))
}
