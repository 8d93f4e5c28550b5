//! Runs that continue until the work is done: control in the builder.

use std::collections::HashSet;
use std::sync::Arc;

use harness_control::contract::{PredicateKind, TaskContract};
use harness_control::{ContractCheck, ControlSpec, StandardFacts, WorkSpec};
use harness_core::decide::{DynFactSource, FactSource};
use harness_core::outcome::StopMode;
use harness_core::port::Clock;
use harness_core::tool::{DynTool, SchemaValidator};
use harness_core::{Json, ToolName};
use harness_host::DynWorkspace;
use harness_tools::{Keep, WorkTools, work_complete};

use crate::builder::Builder;
use crate::error::SetupFault;

/// Control of runs in a builder.
pub(crate) struct ControlParts {
    /// Control of a run; `None` leaves its checks of the end.
    pub(crate) spec: Option<ControlSpec>,
    facts: StandardFacts,
    /// In place of `facts`.
    own_facts: Option<Arc<dyn DynFactSource>>,
}

impl Default for ControlParts {
    fn default() -> Self {
        Self { spec: None, facts: StandardFacts::default().with_schemas(schemas()), own_facts: None }
    }
}

/// Validates outputs and answers against JSON Schemas.
#[cfg(feature = "schema-validation")]
pub(crate) fn schemas() -> Arc<dyn SchemaValidator> {
    Arc::new(harness_tools::JsonSchemas)
}

/// Validates the top level of outputs and answers.
#[cfg(not(feature = "schema-validation"))]
pub(crate) fn schemas() -> Arc<dyn SchemaValidator> {
    Arc::new(harness_core::tool::ShallowSchemas)
}

/// Runs that continue until the work is done.
///
/// ```
/// use harness::control::contract::{PredicateKind, TaskContract};
/// use harness::core::outcome::StopMode;
/// use harness::prelude::*;
/// # struct Hosted;
/// # impl Model for Hosted {
/// #     async fn step(&self, _: ModelRequest, _: &dyn Deltas) -> Result<AssistantMessage, ModelFault> {
/// #         Ok(AssistantMessage::text("hi"))
/// #     }
/// # }
///
/// let contract = TaskContract::new("report", "A report about the notes").require(
///     "R1",
///     "the answer names the summary",
///     PredicateKind::ContainsText {
///         pattern: "summary".to_owned(),
///         field: harness::control::contract::TextField::Response,
///     },
/// );
/// let harness = Harness::new(Hosted).stop_mode(StopMode::StrictAutomation).contract(contract).work_items().build()?;
/// # Ok::<(), harness::HarnessError>(())
/// ```
impl Builder {
    /// How an end is treated that a gate does not accept. Default interactive. Give it before the other parts:
    /// in strict automation stalls are noticed, too.
    pub fn stop_mode(self, mode: StopMode) -> Self {
        self.spec(|spec| spec.mode = mode)
    }

    /// Continues turn after turn until the model calls the tool `work_complete` and every check accepts that. Default: a run ends with its first answer that the checks of the end accept, or what
    /// the descriptor's `run` says.
    pub fn until_done(self) -> Self {
        self.change_control(|_| {})
    }

    /// Sets the control of runs, replacing earlier settings.
    pub fn control(mut self, control: ControlSpec) -> Self {
        self.control.spec = Some(control);
        self
    }

    /// Sets the contract of a run; continues [until done](Self::until_done).
    pub fn contract(self, contract: TaskContract) -> Self {
        self.change_control(|control| control.contract = Some(contract))
    }

    /// Gives every agent the tools of work items, and continues [until](Self::until_done) all are closed.
    pub fn work_items(self) -> Self {
        self.change_control(|control| control.work = Some(WorkSpec::default()))
    }

    /// Sets the workspace of the contract's files. Default none: every file is missing.
    pub fn contract_files(mut self, files: Arc<dyn DynWorkspace>) -> Self {
        self.control.facts = std::mem::take(&mut self.control.facts).with_workspace(files);
        self
    }

    /// A check of the application's own, for predicates of type `custom` that name it: what it found, or why
    /// it fails.
    pub fn contract_check<F: Future<Output = Result<String, String>> + Send + 'static>(
        mut self,
        name: impl Into<String>,
        check: impl Fn() -> F + Send + Sync + 'static,
    ) -> Self {
        let check: ContractCheck = Arc::new(move |_| Box::pin(check()));
        self.control.facts = std::mem::take(&mut self.control.facts).with_check(name, check);
        self
    }

    /// Data of the application's own, for predicates that look into it by this name.
    pub fn contract_data(mut self, name: impl Into<String>, data: &Json) -> Self {
        let data = data.to().unwrap_or_default();
        self.control.facts = std::mem::take(&mut self.control.facts).with_data(name, data);
        self
    }

    /// Sets the source of facts outside of a run, in place of [`contract_files`](Self::contract_files),
    /// [`contract_check`](Self::contract_check) and [`contract_data`](Self::contract_data).
    pub fn facts(mut self, facts: impl FactSource + 'static) -> Self {
        self.control.own_facts = Some(Arc::new(facts));
        self
    }

    fn change_control(mut self, change: impl FnOnce(&mut ControlSpec)) -> Self {
        let mode = self.spec.mode;
        change(self.control.spec.get_or_insert_with(|| ControlSpec::for_mode(mode)));
        self
    }
}

/// Tools that the control requires and the builder lacks.
pub(crate) fn missing_tools(
    control: Option<&ControlSpec>,
    given: &[Arc<dyn DynTool>],
    shared: Option<WorkTools>,
    clock: &Arc<dyn Clock>,
) -> (Vec<Arc<dyn DynTool>>, Option<WorkTools>) {
    let Some(control) = control else { return (Vec::new(), None) };
    let given: HashSet<&ToolName> = given.iter().map(|tool| &tool.tool_def().name).collect();
    let mut missing = Vec::new();
    let complete = work_complete();
    if control.signal.as_ref().is_some_and(|signal| signal.tool == complete.tool_def().name) {
        missing.push(complete);
    }
    let own = || WorkTools::new(Keep::Run, Arc::clone(clock));
    let work = control.work.is_some().then(|| shared.unwrap_or_else(own));
    if let Some(work) = &work {
        missing.extend_from_slice(work.clone().into_set().tools());
    }
    missing.retain(|tool| !given.contains(&tool.tool_def().name));
    (missing, work)
}

impl ControlParts {
    /// Control of a run, and its source of facts.
    pub(crate) fn into_parts(self) -> Option<(Arc<ControlSpec>, Arc<dyn DynFactSource>)> {
        let facts = self.own_facts.unwrap_or_else(|| Arc::new(self.facts));
        Some((Arc::new(self.spec?), facts))
    }

    /// Problems of the control. `given` are all tools, unless sources have dynamic lists.
    pub(crate) fn faults(&self, mode: StopMode, given: Option<&[Arc<dyn DynTool>]>) -> Vec<SetupFault> {
        let Some(control) = &self.spec else { return Vec::new() };
        let mut faults: Vec<SetupFault> = control.check().into_iter().map(SetupFault::from).collect();
        if let (Some(signal), Some(given)) = (&control.signal, given)
            && signal.tool != work_complete().tool_def().name
            && !given.iter().any(|tool| tool.tool_def().name == signal.tool)
        {
            faults.push(SetupFault::NoSignal { name: signal.tool.to_string() });
        }
        let is_strict = mode == StopMode::StrictAutomation && self.own_facts.is_none();
        let outputs = control.contract.iter().flat_map(|contract| &contract.required_outputs);
        for output in outputs.filter(|_| is_strict) {
            if let PredicateKind::Custom { check: Some(name) } = &output.predicate.kind
                && !self.facts.has_check(name)
            {
                faults.push(SetupFault::NoCheck { output: output.id.clone(), name: name.clone() });
            }
        }
        faults
    }
}
