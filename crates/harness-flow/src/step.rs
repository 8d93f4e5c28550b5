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

/// What sort of step it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum StepKind {
    /// Code.
    Run,
    /// A turn of a model, with its tools.
    Model,
    /// One call of a tool.
    Tool,
    /// A step that is chosen when its time has come.
    Branch,
    /// Steps side by side.
    Parallel,
    /// Steps again and again.
    Loop,
    /// A step in a context of its own.
    Spawn,
}

impl StepKind {
    /// The wire name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Run => "run",
            Self::Model => "model",
            Self::Tool => "tool",
            Self::Branch => "branch",
            Self::Parallel => "parallel",
            Self::Loop => "loop",
            Self::Spawn => "spawn",
        }
    }
}

pub(super) type Body = Arc<dyn Fn(Json, StepCx) -> BoxFuture<'static, Result<Json, String>> + Send + Sync>;
pub(super) type Route =
    Arc<dyn Fn(Json, StepCx) -> BoxFuture<'static, Result<Option<Step>, String>> + Send + Sync>;

/// A node of a flow: takes a JSON value and gives one. Cloning is cheap.
///
/// Steps are made by the functions here, by [`Parallel`](super::Parallel) and by [`Loop`](super::Loop).
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

/// What every step can be told.
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

    /// Code. Its input and output are read from and written to JSON; whatever prints is an error. A panic fails
    /// the step. When the step is aborted, the code is dropped at its next await.
    ///
    /// ```
    /// use harness_flow::Step;
    ///
    /// let double = Step::run("double", async |n: u64, _| Ok::<_, String>(2 * n));
    /// # let _ = double;
    /// ```
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

    /// A turn of a model: the input becomes a user message (a text as it is, all else as its `text`, or as JSON),
    /// the output is the answer's text. What was said is added to the messages.
    pub fn model(id: impl Into<Arc<str>>, agent: Arc<dyn DynStepAgent>) -> Self {
        Self::new(id, Kind::Model(agent, AnswerForm::Text))
    }

    /// The same; the answer must be JSON that reads as `T`, and is the output. A fence around it is taken away.
    pub fn model_json<T: DeserializeOwned>(id: impl Into<Arc<str>>, agent: Arc<dyn DynStepAgent>) -> Self {
        let check = |value: &Json| value.to::<T>().map(drop).map_err(|error| error.to_string());
        Self::new(id, Kind::Model(agent, AnswerForm::Json(Arc::new(check))))
    }

    /// One call of a tool. Its arguments are the input, if that is an object, overlaid with `fixed`. They are
    /// checked, gates are asked, approval is sought as in a turn; a tool of class `unsafe` that had begun when
    /// an earlier process ended is not called again. The output is the result's data, else its text.
    pub fn tool(id: impl Into<Arc<str>>, tool: Arc<dyn DynTool>, fixed: Json) -> Self {
        Self::new(id, Kind::Tool(tool, fixed))
    }

    /// A step that `route` chooses by the input; without one the input passes through. A restored flow asks
    /// again, so let the choice depend on nothing else.
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

    /// A step in a child context: no messages, a copy of the state and of the working folder, the same
    /// [`Workplace`](harness_host::Workplace), one level deeper. What it spends counts for the parent, also
    /// when it fails.
    pub fn spawn(id: impl Into<Arc<str>>, child: Self) -> Self {
        Self::spawn_with(id, child, SpawnSpec::new())
    }

    /// The same, in a place of its own.
    pub fn spawn_with(id: impl Into<Arc<str>>, child: Self, spec: SpawnSpec) -> Self {
        Self::new(id, Kind::Spawn(Box::new(child), spec))
    }

    /// The same step, which may take so long, with all its attempts. After that its work is aborted and it has
    /// failed.
    #[must_use]
    pub fn timeout(mut self, timeout: Millis) -> Self {
        self.options.timeout = Some(timeout);
        self
    }

    /// The same step, which with all beneath it may spend so much, and never more than is left above it.
    #[must_use]
    pub fn budget(mut self, most: Amount) -> Self {
        self.options.budget = Some(most);
        self
    }

    /// The same step, tried again when it fails.
    #[must_use]
    pub fn retry(mut self, retry: Retry) -> Self {
        self.options.retry = retry;
        self
    }

    /// The same step, whose output is never recorded: a restored flow runs it again.
    #[must_use]
    pub fn unrecorded(mut self) -> Self {
        self.options.recorded = false;
        self
    }

    /// Its name; unique beside its siblings, best in the whole flow.
    pub fn id(&self) -> &Arc<str> {
        &self.id
    }

    /// What sort of step it is.
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
