//! State of a plan.

use std::sync::Arc;

use harness_core::{Json, Time};
use serde::{Deserialize, Serialize};

/// Entries of the log that are kept, the newest.
const MOST_LOG: usize = 10;

/// How far a plan has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, strum::Display)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
#[strum(serialize_all = "snake_case")]
pub enum PlanPhase {
    /// There is none.
    #[default]
    Idle,
    /// It is being made: nothing but reading and planning is allowed.
    Planning,
    /// It was approved and is carried out.
    Executing,
    /// It was carried out.
    Completed,
    /// It was started and did not complete.
    Failed,
}

/// How a plan came out, once.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct LogEntry {
    pub(super) version: u32,
    pub(super) outcome: PlanPhase,
    pub(super) at: Time,
}

/// A part of a plan that has a name and can be referred to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Workflow {
    pub(super) name: String,
    pub(super) document: Json,
}

/// The state of the layer.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct PlanState {
    /// How far it has come.
    pub phase: PlanPhase,
    /// Requirements and reasons, as Markdown.
    pub prd: Option<String>,
    /// Steps of the plan.
    pub plan_tree: Option<Json>,
    pub(super) workflows: Vec<Workflow>,
    pub(super) execution_log: Vec<LogEntry>,
    /// Counts the plans of the thread, from 1.
    pub version: u32,
    /// The host's name for the plan.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plan_slug: Option<String>,
}

impl PlanState {
    /// The document of a workflow.
    pub fn workflow(&self, name: &str) -> Option<&Json> {
        self.workflows.iter().find(|workflow| workflow.name == name).map(|workflow| &workflow.document)
    }

    /// The names of the workflows, in the order in which they were made.
    pub fn workflow_names(&self) -> impl Iterator<Item = &str> {
        self.workflows.iter().map(|workflow| workflow.name.as_str())
    }

    /// The plan is over.
    pub(super) fn end(&mut self, outcome: PlanPhase, at: Time) {
        self.phase = outcome;
        self.execution_log.push(LogEntry { version: self.version, outcome, at });
        let surplus = self.execution_log.len().saturating_sub(MOST_LOG);
        self.execution_log.drain(..surplus);
    }
}

/// Instructions for planning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PlanStyle {
    /// Understand, then design, then write down. The default.
    #[default]
    Phased,
    /// Ask the user question by question, and write down each answer.
    Interview,
}

/// The bounds and choices of a plan layer.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct PlanOptions {
    /// UTF-16 units of the text that says what is wanted. Default 50,000.
    pub max_prd_length: usize,
    /// How deep nodes may be nested. Default 5.
    pub max_depth: usize,
    /// Workflows of a plan. Default 20.
    pub max_workflows: usize,
    /// UTF-16 units of one document: the tree, or a workflow. Default 20,000.
    pub max_workflow_chars: usize,
    /// The kinds that nodes may have; `None` allows any. Default: the steps of a flow, and `workflow`.
    pub allowed_node_kinds: Option<Vec<Arc<str>>>,
    /// Instructions for planning. Default phased.
    pub style: PlanStyle,
    /// The tool that starts sub-agents, allowed while planning.
    pub sub_agent_tool: Option<Arc<str>>,
    /// More tools that are allowed while planning.
    pub additional_allowed_tools: Vec<Arc<str>>,
    /// More instructions for planning.
    pub additional_plan_instructions: Option<Arc<str>>,
    /// Whether leaving plan mode requires approval. Default false.
    pub requires_approval: bool,
}

impl Default for PlanOptions {
    fn default() -> Self {
        let kinds = ["run", "model", "tool", "branch", "parallel", "loop", "spawn", "workflow"];
        Self {
            max_prd_length: 50_000,
            max_depth: 5,
            max_workflows: 20,
            max_workflow_chars: 20_000,
            allowed_node_kinds: Some(kinds.map(Arc::from).to_vec()),
            style: PlanStyle::Phased,
            sub_agent_tool: None,
            additional_allowed_tools: Vec::new(),
            additional_plan_instructions: None,
            requires_approval: false,
        }
    }
}
