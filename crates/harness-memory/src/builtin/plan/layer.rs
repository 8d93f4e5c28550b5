//! The layer that keeps the plan.

use std::sync::Arc;

use harness_core::Json;
use harness_core::port::BoxFuture;
use harness_core::tool::{ArgumentFault, RetryClass};

use super::super::arguments::{check, function, parsed};
use super::super::text::units_of;
use super::render;
use super::session::{self, Action, Document, Enter, Exit, Name, NamedDocument, Prd};
use super::state::{PlanOptions, PlanPhase, PlanState};
use crate::MemoryError;
use crate::layer::{
    Called, Decided, Decision, Ending, Execution, FunctionDef, Hook, Layer, LayerCx, LayerDef, RecallAsk,
    Recalled, Scope, Spawned, ToolAsk, Update,
};

/// Host of plan mode: notified at its start, and asked to approve a plan.
pub trait PlanHost: Send + Sync {
    /// Planning begins: a name for the plan, if the host has one. The default has none.
    ///
    /// # Errors
    /// Planning does not begin; the model reads it.
    fn enter<'a>(&'a self, _cx: &'a LayerCx) -> BoxFuture<'a, Result<Option<String>, MemoryError>> {
        Box::pin(async { Ok(None) })
    }

    /// Decides whether a complete plan is executed. The default approves.
    ///
    /// # Errors
    /// The plan is not approved; the model reads the reason.
    fn approve<'a>(
        &'a self,
        _plan: &'a PlanState,
        _cx: &'a LayerCx,
    ) -> BoxFuture<'a, Result<bool, MemoryError>> {
        Box::pin(async { Ok(true) })
    }

    /// Planning ended: the plan is executed or was cancelled. The default does nothing.
    fn leave(&self, _cx: &LayerCx) {}
}

/// Plan mode: the agent writes down requirements and steps. Meanwhile, tools that may change something
/// ([`ToolDef::mutates`](harness_core::tool::ToolDef::mutates)) are denied. The approved plan stays in the view while
/// it is executed.
///
/// Without a [`PlanHost`] and without `requires_approval` a complete plan is approved at once.
///
/// ```
/// use harness_memory::builtin::plan::{Plan, PlanOptions, PlanStyle};
///
/// let mut options = PlanOptions::default();
/// options.style = PlanStyle::Interview;
/// options.additional_allowed_tools = vec!["workspace_read".into()];
/// let layer = Plan::new(options);
/// # let _ = layer;
/// ```
#[derive(Clone, derive_more::Debug)]
pub struct Plan {
    /// Definition: id, slot, scope, budget, placement, hooks.
    pub def: LayerDef,
    options: PlanOptions,
    #[debug(skip)]
    host: Option<Arc<dyn PlanHost>>,
}

impl Plan {
    /// Plan mode with these bounds and choices.
    pub fn new(options: PlanOptions) -> Self {
        let hooks = [Hook::Init, Hook::Recall, Hook::BeforeTool, Hook::Spawn, Hook::Complete];
        let def = LayerDef::new("plan", 240, hooks).with_scope(Scope::Thread).with_range(100, 3_000);
        let mut functions = functions();
        for function in functions.iter_mut().filter(|function| &*function.name == "exitPlanMode") {
            function.requires_approval = options.requires_approval;
        }
        Self { def: functions.into_iter().fold(def, LayerDef::with_function), options, host: None }
    }

    /// Sets the host that names plans and approves them.
    #[must_use]
    pub fn with_host(self, host: Arc<dyn PlanHost>) -> Self {
        Self { host: Some(host), ..self }
    }

    /// Tools that are allowed while planning although they may change something, without this layer's own.
    fn allowed(&self) -> impl Iterator<Item = &str> {
        let options = &self.options;
        options.sub_agent_tool.iter().chain(&options.additional_allowed_tools).map(|name| &**name)
    }

    async fn slug(&self, cx: &LayerCx) -> Result<Option<String>, MemoryError> {
        match &self.host {
            Some(host) => host.enter(cx).await,
            None => Ok(None),
        }
    }

    async fn is_approved(&self, state: &PlanState, cx: &LayerCx) -> Result<bool, MemoryError> {
        match &self.host {
            Some(host) => host.approve(state, cx).await,
            None => Ok(true),
        }
    }

    /// Calls a function; a rejection is `Err`.
    async fn run(
        &self,
        name: &str,
        arguments: &Json,
        state: &mut PlanState,
        cx: &LayerCx,
    ) -> Result<session::Said, MemoryError> {
        Ok(match name {
            "enterPlanMode" => {
                let Enter { goal } = parsed(arguments)?;
                if let Err(refusal) = session::may_enter(state) {
                    return Ok(Err(refusal));
                }
                session::enter(state, goal, self.slug(cx).await?)
            }
            "updatePrd" => session::update_prd(state, parsed::<Prd>(arguments)?.content, &self.options),
            "setPlanTree" => {
                session::set_tree(state, &parsed::<Document>(arguments)?.document, &self.options)
            }
            "setWorkflow" => session::set_workflow(state, parsed(arguments)?, &self.options),
            "removeWorkflow" => session::remove_workflow(state, &parsed::<Name>(arguments)?.name),
            "getWorkflow" => Ok(session::get_workflow(state, &parsed::<Name>(arguments)?.name)),
            _ => {
                let Exit { action } = parsed(arguments)?;
                if let Err(refusal) = session::may_exit(state, action) {
                    return Ok(Err(refusal));
                }
                let approved = action == Action::Execute && self.is_approved(state, cx).await?;
                let said = session::exit(state, action, approved);
                if let (Some(host), true) = (&self.host, state.phase != PlanPhase::Planning) {
                    host.leave(cx);
                }
                said
            }
        })
    }
}

impl Default for Plan {
    fn default() -> Self {
        Self::new(PlanOptions::default())
    }
}

fn functions() -> [FunctionDef; 7] {
    [
        function::<Enter>(
            "enterPlanMode",
            "Begins to plan. Until the plan is approved nothing may be changed.",
        ),
        function::<Prd>("updatePrd", "Writes down what is wanted and why."),
        function::<Document>("setPlanTree", "Writes down the steps of the plan, as a tree of nodes."),
        function::<NamedDocument>("setWorkflow", "Writes down a part of the plan under a name."),
        function::<Name>("removeWorkflow", "Removes a named part of the plan."),
        function::<Name>("getWorkflow", "Gives a named part of the plan.").with_class(RetryClass::Pure),
        function::<Exit>(
            "exitPlanMode",
            "Ends planning: asks for approval to carry the plan out, or gives it up.",
        ),
    ]
}

impl Layer for Plan {
    fn def(&self) -> &LayerDef {
        &self.def
    }

    async fn recall(&self, ask: RecallAsk, cx: &LayerCx) -> Result<Recalled, MemoryError> {
        let state: PlanState = cx.state_as()?;
        let mut allowed: Vec<&str> = self.allowed().collect();
        allowed.extend(self.def.functions.iter().map(|function| &*function.name));
        let shown = render::shown(&state, &self.options, &allowed.join(", "), units_of(ask.budget));
        Ok(shown.map_or_else(Recalled::nothing, Recalled::text))
    }

    async fn before_tool(&self, ask: &ToolAsk, cx: &LayerCx) -> Result<Decided, MemoryError> {
        let state: PlanState = cx.state_as()?;
        let tool = ask.def.name.as_str();
        let is_allowed = !ask.def.mutates() || self.allowed().any(|name| name == tool);
        if state.phase != PlanPhase::Planning || is_allowed {
            return Ok(Decision::Allow.into());
        }
        let guidance = format!(
            "plan mode is on: `{tool}` may change something and is denied before the plan is approved; read, ask and \
             plan, then call exitPlanMode"
        );
        Ok(Decision::deny(guidance).into())
    }

    async fn spawn(&self, _child: &Execution, cx: &LayerCx) -> Result<Option<Spawned>, MemoryError> {
        Ok(cx.state.clone().map(Spawned::state))
    }

    async fn complete(&self, ending: Ending, cx: &LayerCx) -> Result<Update, MemoryError> {
        let mut state: PlanState = cx.state_as()?;
        if state.phase != PlanPhase::Executing || ending == Ending::Paused {
            return Ok(Update::Keep);
        }
        let outcome = if ending == Ending::Success { PlanPhase::Completed } else { PlanPhase::Failed };
        state.end(outcome, cx.now);
        Update::set(&state)
    }

    fn check_call(&self, function: &str, arguments: &Json) -> Result<(), ArgumentFault> {
        match function {
            "enterPlanMode" => check::<Enter>(arguments),
            "updatePrd" => check::<Prd>(arguments),
            "setPlanTree" => check::<Document>(arguments),
            "setWorkflow" => check::<NamedDocument>(arguments),
            "removeWorkflow" | "getWorkflow" => check::<Name>(arguments),
            _ => check::<Exit>(arguments),
        }
    }

    async fn call(&self, function: &str, arguments: Json, cx: &LayerCx) -> Result<Called, MemoryError> {
        let mut state: PlanState = cx.state_as()?;
        let before = state.clone();
        let said = self.run(function, &arguments, &mut state, cx).await?;
        let update = if state == before { Update::Keep } else { Update::set(&state)? };
        let (Ok(text) | Err(text)) = said;
        Ok(Called::text(&text).with_state(update))
    }
}
