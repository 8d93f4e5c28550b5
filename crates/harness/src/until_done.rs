//! Runs that go on until the work is done: what a builder knows of their control.

use std::collections::HashSet;
use std::sync::Arc;

use harness_control::contract::{PredicateKind, TaskContract};
use harness_control::{ContractCheck, ControlSpec, StandardFacts, WorkSpec};
use harness_core::decide::{DynFactSource, FactSource};
use harness_core::outcome::StopMode;
use harness_core::port::Clock;
use harness_core::tool::DynTool;
use harness_core::{Json, ToolName};
use harness_host::DynWorkspace;
use harness_tools::{Keep, WorkTools, work_complete};

use crate::builder::Builder;
use crate::error::SetupFault;

/// What a builder knows of the control of runs.
pub(crate) struct ControlParts {
    /// What controls a run; `None` is nothing but its checks of the end.
    pub(crate) spec: Option<ControlSpec>,
    facts: StandardFacts,
    /// In place of `facts`.
    own_facts: Option<Arc<dyn DynFactSource>>,
}

impl Default for ControlParts {
    #[cfg(feature = "schema-validation")]
    fn default() -> Self {
        let facts = StandardFacts::default().with_schemas(Arc::new(harness_tools::JsonSchemas));
        Self { spec: None, facts, own_facts: None }
    }

    #[cfg(not(feature = "schema-validation"))]
    fn default() -> Self {
        Self { spec: None, facts: StandardFacts::default(), own_facts: None }
    }
}

/// Runs that go on until the work is done.
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

    /// Goes on turn after turn until the model says by the tool `work_complete` that the work is done and
    /// every gate accepts that. Default: a run ends with its first answer that the checks of the end accept, or what
    /// the descriptor's `run` says.
    pub fn until_done(self) -> Self {
        self.change_control(|_| {})
    }

    /// What controls a run, in place of everything that was given before.
    pub fn control(mut self, control: ControlSpec) -> Self {
        self.control.spec = Some(control);
        self
    }

    /// What a run must have produced before it may be called done; goes on [until done](Self::until_done).
    pub fn contract(self, contract: TaskContract) -> Self {
        self.change_control(|control| control.contract = Some(contract))
    }

    /// Gives every agent the tools of work items, and goes on [until](Self::until_done) nothing is left of
    /// them.
    pub fn work_items(self) -> Self {
        self.change_control(|control| control.work = Some(WorkSpec::default()))
    }

    /// The folder, or what else has files, in which a contract's files are looked for. Default none: no file
    /// is known then.
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

    /// Who finds out what lies outside of a run, in place of [`contract_files`](Self::contract_files),
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

/// What control needs of tools, when nobody gave it.
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
    /// What controls a run, and who finds out what lies outside of it.
    pub(crate) fn into_parts(self) -> Option<(Arc<ControlSpec>, Arc<dyn DynFactSource>)> {
        let facts = self.own_facts.unwrap_or_else(|| Arc::new(self.facts));
        Some((Arc::new(self.spec?), facts))
    }

    /// What is wrong with the control of a run. `given` are all tools there are, unless there are sources whose
    /// list may change.
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
