//! Steps: what a flow is made of.

use std::fmt;
use std::sync::Arc;

use harness_core::limits::Amount;
use harness_core::port::BoxFuture;
use harness_core::tool::DynTool;
use harness_core::{Json, Millis};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::context::StepCx;
use super::model::{AnswerForm, DynStepAgent};
use super::parallel::Join;
use super::repeat::Rounds;
use super::retry::Retry;
use super::spawn::SpawnSpec;

/// Kind of a step.
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    Hash,
    Serialize,
    serde::Deserialize,
    strum::Display,
    strum::IntoStaticStr,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
#[non_exhaustive]
pub enum StepKind {
    /// Code.
    Run,
    /// A model turn, with its tools.
    Model,
    /// One call of a tool.
    Tool,
    /// A step chosen at run time.
    Branch,
    /// Concurrent steps.
    Parallel,
    /// Repeated steps.
    Loop,
    /// A step in a child context.
    Spawn,
}

pub(super) type Body = Arc<dyn Fn(Json, StepCx) -> BoxFuture<'static, Result<Json, String>> + Send + Sync>;
pub(super) type Route =
    Arc<dyn Fn(Json, StepCx) -> BoxFuture<'static, Result<Option<Step>, String>> + Send + Sync>;

/// Node of a flow, from a JSON value to a JSON value. Cloning is cheap. [`Parallel`](super::Parallel) and
/// [`Loop`](super::Loop) convert into a step.
///
/// ```
/// use harness_core::Millis;
/// use harness_flow::{Retry, Step};
///
/// let double = Step::run("double", async |n: u64, _| Ok::<_, String>(2 * n));
/// let patient = double.retry(Retry::new(3)).timeout(Millis(500));
/// assert_eq!(&**patient.id(), "double");
/// ```
#[derive(Clone)]
pub struct Step {
    id: Arc<str>,
    kind: Kind,
    options: Options,
}

#[derive(Clone)]
pub(super) enum Kind {
    Run(Body),
    Model(Arc<dyn DynStepAgent>, AnswerForm),
    Tool(Arc<dyn DynTool>, Json),
    Branch(Route),
    Parallel(Arc<Join>),
    Loop(Arc<Rounds>),
    Spawn(Box<Step>, SpawnSpec),
}

/// Options of every kind of step.
#[derive(Clone, Debug)]
pub(super) struct Options {
    pub(super) timeout: Option<Millis>,
    pub(super) budget: Option<Amount>,
    pub(super) retry: Retry,
    pub(super) recorded: bool,
}

impl fmt::Debug for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Step")
            .field("id", &self.id)
            .field("kind", &self.kind())
            .field("options", &self.options)
            .finish()
    }
}

impl Step {
    pub(super) fn new(id: impl Into<Arc<str>>, kind: Kind) -> Self {
        let options = Options { timeout: None, budget: None, retry: Retry::new(1), recorded: true };
        Self { id: id.into(), kind, options }
    }

    /// Creates a step from code. Input and output are converted from and to JSON. A panic fails the step. An
    /// abort drops the code at its next await.
    pub fn run<I, O, E, F, Fut>(id: impl Into<Arc<str>>, body: F) -> Self
    where
        I: DeserializeOwned,
        O: Serialize,
        E: fmt::Display,
        F: Fn(I, StepCx) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<O, E>> + Send + 'static,
    {
        let body: Body = Arc::new(move |input, cx| {
            let started = input.to::<I>().map(|input| body(input, cx));
            Box::pin(async move {
                let work = started.map_err(|error| format!("the input does not fit: {error}"))?;
                let output = work.await.map_err(|error| error.to_string())?;
                Json::of(&output).map_err(|error| format!("the output has no JSON form: {error}"))
            })
        });
        Self::new(id, Kind::Run(body))
    }

    /// Creates a model turn. The input becomes a user message: a string as it is, else its `text` field, else
    /// its JSON. The output is the text of the answer. The messages of the turn are appended.
    pub fn model(id: impl Into<Arc<str>>, agent: Arc<dyn DynStepAgent>) -> Self {
        Self::new(id, Kind::Model(agent, AnswerForm::Text))
    }

    /// Creates a model turn whose answer must be JSON that deserializes as `T`; the output is that JSON. A code
    /// fence around the answer is removed.
    pub fn model_json<T: DeserializeOwned>(id: impl Into<Arc<str>>, agent: Arc<dyn DynStepAgent>) -> Self {
        let check = |value: &Json| value.to::<T>().map(drop).map_err(|error| error.to_string());
        Self::new(id, Kind::Model(agent, AnswerForm::Json(Arc::new(check))))
    }

    /// Creates a tool call. Its arguments are the input, if it is an object, overlaid with `fixed`. Validation,
    /// gates and approval work as in a turn. An `unsafe` tool with an unknown result from an earlier process is
    /// not called again. The output is the data of the result, else its text.
    pub fn tool(id: impl Into<Arc<str>>, tool: Arc<dyn DynTool>, fixed: Json) -> Self {
        Self::new(id, Kind::Tool(tool, fixed))
    }

    /// Creates a branch: `route` returns the next step, or `None` to pass the input through. A restored flow
    /// calls `route` again, so it must depend on the input alone.
    pub fn branch<E, F, Fut>(id: impl Into<Arc<str>>, route: F) -> Self
    where
        E: fmt::Display,
        F: Fn(Json, StepCx) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Option<Step>, E>> + Send + 'static,
    {
        let route: Route = Arc::new(move |input, cx| {
            let asked = route(input, cx);
            Box::pin(async move { asked.await.map_err(|error| error.to_string()) })
        });
        Self::new(id, Kind::Branch(route))
    }

    /// Creates a step in a child context: without messages, with copies of state and working directory, in the
    /// same [`Workplace`](harness_host::Workplace). Its usage is charged to the parent, even on failure.
    pub fn spawn(id: impl Into<Arc<str>>, child: Self) -> Self {
        Self::spawn_with(id, child, SpawnSpec::default())
    }

    /// Creates a step in a child context with overrides.
    pub fn spawn_with(id: impl Into<Arc<str>>, child: Self, spec: SpawnSpec) -> Self {
        Self::new(id, Kind::Spawn(Box::new(child), spec))
    }

    /// Limits the time of all attempts together. The step fails when it is exceeded.
    #[must_use]
    pub fn timeout(mut self, timeout: Millis) -> Self {
        self.options.timeout = Some(timeout);
        self
    }

    /// Limits the usage of the step and its children, within the enclosing budgets.
    #[must_use]
    pub fn budget(mut self, most: Amount) -> Self {
        self.options.budget = Some(most);
        self
    }

    /// Retries the step on failure.
    #[must_use]
    pub fn retry(mut self, retry: Retry) -> Self {
        self.options.retry = retry;
        self
    }

    /// Keeps the output out of the ledger: a restored flow runs the step again.
    #[must_use]
    pub fn unrecorded(mut self) -> Self {
        self.options.recorded = false;
        self
    }

    /// Id of the step, unique among its siblings and preferably in the flow.
    pub fn id(&self) -> &Arc<str> {
        &self.id
    }

    /// Kind of the step.
    pub fn kind(&self) -> StepKind {
        match self.kind {
            Kind::Run(_) => StepKind::Run,
            Kind::Model(..) => StepKind::Model,
            Kind::Tool(..) => StepKind::Tool,
            Kind::Branch(_) => StepKind::Branch,
            Kind::Parallel(_) => StepKind::Parallel,
            Kind::Loop(_) => StepKind::Loop,
            Kind::Spawn(..) => StepKind::Spawn,
        }
    }

    pub(super) fn what(&self) -> &Kind {
        &self.kind
    }

    pub(super) fn options(&self) -> &Options {
        &self.options
    }
}
