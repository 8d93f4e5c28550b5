//! A run that is killed at each of its crash points, and resumed.

use std::any::Any;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use harness_core::message::Message;
use harness_core::port::{DynSession, Loaded};
use harness_core::testing::laws;
use harness_core::tool::RetryClass;
use harness_runtime::{Prompt, Report, ResumeFrom, RuntimeError};

use super::CrashPoints;
use super::points::Execution;
use super::ports::Crashing;
use crate::builder::Builder;
use crate::error::HarnessError;

/// Points that a scenario passes at most, unless [`Scenario::max_points`] sets a different number.
const MAX_POINTS: usize = 1_000;

type Process<W> = Box<dyn Fn(&W, &CrashPoints) -> Builder>;
type Check<W> = Box<dyn Fn(&W, &CrashOutcome)>;

/// A run for [`every_crash`]: a prompt, a world, and the process that works in it.
///
/// The world is what survives a crash: stores, directories, accounts. It is made anew for each crash point. The process
/// is made once before the crash and once after it, over the same world, and needs a
/// [session](Builder::session).
///
/// ```
/// use harness::prelude::*;
/// use harness::session::MemorySession;
/// use harness::testing::{CrashPoints, Scenario, ScriptedModel};
///
/// let process = |session: &MemorySession, _: &CrashPoints| {
///     Harness::new(ScriptedModel::new([AssistantMessage::text("Hello.")]).repeatable()).session(session.clone())
/// };
/// let scenario = Scenario::new("Hi", MemorySession::new, process).max_points(20);
/// # let _ = scenario;
/// ```
pub struct Scenario<W> {
    prompt: Prompt,
    world: Box<dyn Fn() -> W>,
    process: Process<W>,
    check: Option<Check<W>>,
    max_points: usize,
}

impl<W> fmt::Debug for Scenario<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scenario").field("max_points", &self.max_points).finish_non_exhaustive()
    }
}

impl<W> Scenario<W> {
    /// Creates a scenario: `process` is prompted with `prompt` in a new `world`.
    pub fn new(
        prompt: impl Into<Prompt>,
        world: impl Fn() -> W + 'static,
        process: impl Fn(&W, &CrashPoints) -> Builder + 'static,
    ) -> Self {
        let (world, process) = (Box::new(world), Box::new(process));
        Self { prompt: prompt.into(), world, process, check: None, max_points: MAX_POINTS }
    }

    /// Sets the check of the result of each run, and of one that did not crash. It panics when something is wrong, as
    /// `assert!` does. Default: laws 1 and 5 alone, which are always checked.
    #[must_use]
    pub fn check(mut self, check: impl Fn(&W, &CrashOutcome) + 'static) -> Self {
        self.check = Some(Box::new(check));
        self
    }

    /// Sets the maximum number of crash points; a run with more fails. Default 1,000.
    #[must_use]
    pub fn max_points(mut self, limit: usize) -> Self {
        self.max_points = limit;
        self
    }
}

/// State after a run that crashed and was resumed.
///
/// ```
/// use harness::testing::CrashOutcome;
///
/// fn check(outcome: &CrashOutcome) {
///     assert!(outcome.executions("pay") <= 1, "it may have been paid twice");
///     let answer = outcome.messages.last().map(|message| message.joined_text());
///     assert_eq!(answer.as_deref(), Some("Paid."));
/// }
/// # let _ = check;
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub struct CrashOutcome {
    /// Point of the crash; `None` for the run that did not crash.
    pub point: Option<String>,
    /// Report of the resumed run; `None` if the run had ended before the crash.
    pub report: Option<Report>,
    /// Messages of the session.
    pub messages: Vec<Arc<Message>>,
    before: Vec<Execution>,
    after: Vec<Execution>,
}

impl CrashOutcome {
    /// Counts the executions of a tool, before and after the crash.
    pub fn executions(&self, tool: &str) -> usize {
        self.before.iter().chain(&self.after).filter(|execution| execution.tool.as_str() == tool).count()
    }

    fn repeated(&self) -> impl Iterator<Item = &Execution> {
        self.after.iter().filter(|again| self.before.iter().any(|first| first.is_of_call(again)))
    }

    /// Laws 1 and 5.
    fn check_laws(&self) -> Result<(), String> {
        let law_1 = match &self.report {
            Some(report) => laws::calls(&self.messages, &report.end),
            None => laws::transcript(&self.messages),
        };
        law_1.map_err(|broken| broken.to_string())?;
        match self.repeated().find(|execution| execution.class == RetryClass::Unsafe) {
            Some(execution) => {
                Err(format!("law 5 is broken: the unsafe call {} ran twice", shown(execution)))
            }
            None => Ok(()),
        }
    }
}

fn shown(execution: &Execution) -> String {
    format!("`{}` (#{})", execution.tool, execution.call)
}

/// Failure of [`every_crash`]. Its text names the crash point, the failed check, and the calls that ran again. `Debug` is
/// the text, too, so that `unwrap` shows it.
///
/// ```
/// use harness::prelude::*;
/// use harness::testing::{CrashPoints, Scenario, ScriptedModel, every_crash};
///
/// let process = |_: &(), _: &CrashPoints| Harness::new(ScriptedModel::new([AssistantMessage::text("Hello.")]));
/// let failure = every_crash(&Scenario::new("Hi", || (), process)).unwrap_err();
/// assert_eq!(failure.to_string(), "run without a crash: no session\nhint: set one with `Builder::session`");
/// ```
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct CrashFailure {
    /// Number and name of the crash point; `None` for the run that did not crash.
    pub point: Option<(usize, String)>,
    /// Failure, with notes and hints on further lines.
    pub message: String,
}

impl fmt::Display for CrashFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.point {
            Some((number, name)) => write!(f, "crash at point {number} ({name}): {}", self.message),
            None => write!(f, "run without a crash: {}", self.message),
        }
    }
}

impl fmt::Debug for CrashFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for CrashFailure {}

/// Runs a scenario once without a crash, and once for each of its crash points: kills the run there, resumes it from what
/// is stored, and checks the outcome. Returns the names of the points, in order.
///
/// Points are before and after each model call, tool call and write of the session and the checkpoints, between the
/// entries of one write, and those of [`CrashPoints::pass`]. A killed run stops at its point and is dropped with its tokio
/// runtime. Calls of a model that are repeated need equal answers: see
/// [`ScriptedModel::repeatable`](super::ScriptedModel::repeatable). Call it outside of any tokio runtime.
///
/// ```
/// use harness::core::Json;
/// use harness::core::message::ToolCall;
/// use harness::prelude::*;
/// use harness::session::MemorySession;
/// use harness::testing::{CrashPoints, Scenario, ScriptedModel, every_crash};
///
/// #[derive(serde::Deserialize, schemars::JsonSchema)]
/// struct Nothing {}
///
/// fn process(session: &MemorySession, _: &CrashPoints) -> harness::Builder {
///     let model = ScriptedModel::new([
///         AssistantMessage::calls([ToolCall::new("c1", "pay", Json::empty_object())]),
///         AssistantMessage::text("Paid."),
///     ]);
///     let pay = tool_fn("pay", "Pays", |_: Nothing, _| async { Ok::<_, std::io::Error>("done") });
///     Harness::new(model.repeatable()).tool(pay).session(session.clone())
/// }
///
/// let scenario = Scenario::new("Pay the bill.", MemorySession::new, process)
///     .check(|_, outcome| assert!(outcome.executions("pay") <= 1));
/// let points = every_crash(&scenario)?;
/// assert!(points.contains(&"after tool call #c1 pay".to_owned()));
/// # Ok::<(), harness::testing::CrashFailure>(())
/// ```
///
/// # Errors
/// The first point after which the check or a law failed or the run could not be resumed; a run with more points than
/// [`Scenario::max_points`], or one whose points differ from those of the run without a crash.
pub fn every_crash<W>(scenario: &Scenario<W>) -> Result<Vec<String>, CrashFailure> {
    let whole = CrashPoints::new(None);
    let whole_failure = |message| CrashFailure { point: None, message };
    if tokio::runtime::Handle::try_current().is_ok() {
        return Err(whole_failure(
            "called inside a tokio runtime\nhint: use `#[test]`, not `#[tokio::test]`".into(),
        ));
    }
    one(scenario, &whole).map_err(whole_failure)?;
    let names = whole.passed();
    if names.len() > scenario.max_points {
        let (count, most) = (names.len(), scenario.max_points);
        let message = format!("{count} crash points exceed the limit of {most}");
        return Err(whole_failure(format!("{message}\nhint: raise it with `Scenario::max_points`")));
    }
    for (number, name) in (1..).zip(&names) {
        let points = CrashPoints::new(Some(number));
        let failure = |message| CrashFailure { point: Some((number, name.clone())), message };
        let result = one(scenario, &points);
        let passed = points.passed();
        if names.get(..number) != Some(&*passed) {
            let differs = passed.iter().zip(&names).find(|(passed, name)| passed != name);
            let at = differs.map_or("none", |(passed, _)| passed);
            return Err(failure(format!(
                "the scenario is not deterministic: the points differ from the run without a crash at `{at}`"
            )));
        }
        result.map_err(failure)?;
    }
    Ok(names)
}

/// One run in a new world, with a crash unless `points` has none.
fn one<W>(scenario: &Scenario<W>, points: &CrashPoints) -> Result<(), String> {
    let world = (scenario.world)();
    let first = Life::new((scenario.process)(&world, points), points)?;
    let survivors = CrashPoints::new(None);
    let ended = first.run(scenario.prompt.clone(), false, points)?;
    let (report, loaded) = if let Some(ended) = ended {
        ended
    } else {
        let second = Life::new((scenario.process)(&world, &survivors), &survivors)?;
        let ended = second.run(scenario.prompt.clone(), true, &survivors);
        ended.map_err(|message| format!("the run cannot be resumed: {message}"))?.unwrap_or_default()
    };
    let point = points.is_dead().then(|| points.passed().pop()).flatten();
    let (before, after) = (points.executions(), survivors.executions());
    let outcome = CrashOutcome { point, report, messages: loaded.messages, before, after };
    let checked = outcome.check_laws().and_then(|()| match &scenario.check {
        Some(check) => {
            let checked = catch_unwind(AssertUnwindSafe(|| check(&world, &outcome)));
            checked.map_err(|panic| format!("check failed: {}", panic_text(&*panic)))
        }
        None => Ok(()),
    });
    checked
        .map_err(|message| outcome.repeated().fold(message, |message, execution| message + &note(execution)))
}

/// A note on a call that ran again after a crash.
fn note(execution: &Execution) -> String {
    let why = match execution.class {
        RetryClass::Pure => "a pure call must have no effects",
        RetryClass::Idempotent => {
            "a repeated call with the same idempotency key must have its effects once; if the tool cannot ensure \
             that, remove `.idempotent()`"
        }
        RetryClass::Unsafe => "it must not",
    };
    format!(
        "\nnote: {} ran again after the crash, because its tool is `{}`: {why}",
        shown(execution),
        execution.class.as_str()
    )
}

fn panic_text(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("a panic without a text").to_owned()
}

/// A process and its session.
struct Life {
    builder: Builder,
    session: Arc<dyn DynSession>,
}

type Ended = (Option<Report>, Loaded);

impl Life {
    /// Puts points around all ports of a process.
    fn new(mut builder: Builder, points: &CrashPoints) -> Result<Self, String> {
        let Some(session) = builder.ports.session.take() else {
            return Err("no session\nhint: set one with `Builder::session`".to_owned());
        };
        let model = Crashing::new(Arc::clone(&builder.ports.model), points);
        builder.ports.model = Arc::new(model);
        builder.ports.session = Some(Arc::new(Crashing::new(Arc::clone(&session), points)));
        if let Some(store) = builder.ports.checkpoints.take() {
            builder.ports.checkpoints = Some(Arc::new(Crashing::new(store, points)));
        }
        let points = points.clone();
        let builder = builder.wrap_tools(move |tools| Crashing::new(tools, &points));
        Ok(Self { builder, session })
    }

    /// Runs until the end, or until the process dies: then `None`.
    fn run(self, prompt: Prompt, resumes: bool, points: &CrashPoints) -> Result<Option<Ended>, String> {
        let tokio = tokio::runtime::Builder::new_current_thread().enable_all().build();
        tokio.map_err(|error| error.to_string())?.block_on(async {
            tokio::select! {
                biased;
                () = points.death() => Ok(None),
                ended = self.ended(prompt, resumes) => ended.map(Some).map_err(|error| error.to_string()),
            }
        })
    }

    async fn ended(self, prompt: Prompt, resumes: bool) -> Result<Ended, HarnessError> {
        let harness = self.builder.build()?;
        let loaded = self.session.load_boxed().await.map_err(RuntimeError::from)?;
        let report = if !resumes || loaded.messages.is_empty() {
            Some(harness.prompt(prompt).await?)
        } else if let Some(run) = harness.thread().unfinished_run().await? {
            Some(harness.resume(ResumeFrom::Checkpoint(run)).await?)
        } else if loaded.ended {
            None
        } else {
            match harness.resume(ResumeFrom::Transcript).await {
                Err(RuntimeError::NothingToResume { .. }) => None,
                result => Some(result?),
            }
        };
        drop(harness);
        Ok((report, self.session.load_boxed().await.map_err(RuntimeError::from)?))
    }
}
