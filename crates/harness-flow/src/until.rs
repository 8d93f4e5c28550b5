//! When a loop is done.

use std::fmt;
use std::sync::Arc;

use harness_core::message::Cost;
use harness_core::port::BoxFuture;
use harness_core::{Json, Millis};
use harness_host::DynEmbedder;

use super::meaning::likeness;

/// What a loop has done so far.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LoopSnapshot {
    /// Rounds that succeeded.
    pub step_count: u64,
    /// Tokens of the whole execution, before a restore, too.
    pub tokens: u64,
    /// Money of the whole execution.
    pub cost: Cost,
    /// Time since the loop began; in this process.
    pub elapsed: Millis,
    /// What the last round gave.
    pub last_output: Json,
    /// The same as a text: itself, else its `text`, else its JSON.
    pub last_text: String,
    /// The text of the round before.
    pub previous_text: Option<String>,
    /// What the last rounds gave, as many as the loop keeps.
    pub history: Vec<Json>,
    /// Spawns above the loop.
    pub depth: u32,
    /// Tool calls in the last answer of a model; `None` without one.
    pub last_tool_calls: Option<usize>,
}

/// Whether a loop is done.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Verdict {
    /// Whether it stops.
    pub stop: bool,
    /// Why.
    pub reason: Option<String>,
    /// What the next round should mind.
    pub feedback: Option<String>,
}

impl Verdict {
    /// Goes on.
    pub fn go_on() -> Self {
        Self::default()
    }

    /// Goes on, with something to mind.
    pub fn feedback(feedback: impl Into<String>) -> Self {
        Self { feedback: Some(feedback.into()), ..Self::default() }
    }

    /// Stops.
    pub fn stop(reason: impl Into<String>) -> Self {
        Self { stop: true, reason: Some(reason.into()), feedback: None }
    }

    fn stop_if(stop: bool, reason: impl FnOnce() -> String) -> Self {
        if stop { Self::stop(reason()) } else { Self::go_on() }
    }
}

type Judge = Arc<dyn Fn(LoopSnapshot) -> BoxFuture<'static, Result<Verdict, String>> + Send + Sync>;

/// When a loop is done; asked after each round. Nothing is kept from round to round but the snapshot, so loops
/// that share one do not disturb each other.
///
/// ```
/// use harness_flow::Until;
///
/// let until = Until::any([Until::output_contains("DONE"), Until::max_steps(5)]);
/// # let _ = until;
/// ```
#[derive(Clone)]
pub struct Until(Rule);

#[derive(Clone)]
enum Rule {
    MaxSteps(u64),
    MaxCost(Cost),
    MaxDuration(Millis),
    NoToolCalls,
    Never,
    Converged,
    Similar(Arc<dyn DynEmbedder>, f32),
    Contains(String),
    Equals(String),
    Custom(Judge),
    Any(Vec<Until>),
    All(Vec<Until>),
}

impl fmt::Debug for Until {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Rule::MaxSteps(most) => write!(f, "max_steps({most})"),
            Rule::MaxCost(most) => write!(f, "max_cost({most})"),
            Rule::MaxDuration(most) => write!(f, "max_duration({most})"),
            Rule::NoToolCalls => f.write_str("no_tool_calls"),
            Rule::Never => f.write_str("never"),
            Rule::Converged => f.write_str("converged"),
            Rule::Similar(_, threshold) => write!(f, "similar({threshold})"),
            Rule::Contains(marker) => write!(f, "output_contains({marker:?})"),
            Rule::Equals(sentinel) => write!(f, "output_equals({sentinel:?})"),
            Rule::Custom(_) => f.write_str("custom"),
            Rule::Any(of) => f.debug_tuple("any").field(of).finish(),
            Rule::All(of) => f.debug_tuple("all").field(of).finish(),
        }
    }
}

impl Until {
    /// After so many rounds that succeeded.
    pub fn max_steps(most: u64) -> Self {
        Self(Rule::MaxSteps(most))
    }

    /// When the whole execution has cost so much.
    pub fn max_cost(most: Cost) -> Self {
        Self(Rule::MaxCost(most))
    }

    /// After so long.
    pub fn max_duration(most: Millis) -> Self {
        Self(Rule::MaxDuration(most))
    }

    /// When the last answer of a model has no tool calls.
    pub fn no_tool_calls() -> Self {
        Self(Rule::NoToolCalls)
    }

    /// Never by itself: the bound of the loop, an error or an abort ends it.
    pub fn never() -> Self {
        Self(Rule::Never)
    }

    /// When two rounds in a row give the same text.
    pub fn converged() -> Self {
        Self(Rule::Converged)
    }

    /// When two rounds in a row give texts that mean nearly the same: the cosine of their vectors is at least
    /// `threshold`.
    pub fn similar(embedder: Arc<dyn DynEmbedder>, threshold: f32) -> Self {
        Self(Rule::Similar(embedder, threshold))
    }

    /// When the text has `marker` in it.
    pub fn output_contains(marker: impl Into<String>) -> Self {
        Self(Rule::Contains(marker.into()))
    }

    /// When the text is exactly this.
    pub fn output_equals(sentinel: impl Into<String>) -> Self {
        Self(Rule::Equals(sentinel.into()))
    }

    /// When `verify` says so; otherwise its feedback is for the next round. An error stops the loop.
    pub fn verified<F, Fut>(verify: F) -> Self
    where
        F: Fn(LoopSnapshot) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Result<(), String>, String>> + Send + 'static,
    {
        Self::custom(move |snapshot| {
            let verified = verify(snapshot);
            async move {
                Ok(match verified.await? {
                    Ok(()) => Verdict::stop("Verification passed"),
                    Err(feedback) => Verdict::feedback(feedback),
                })
            }
        })
    }

    /// When `judge` says so. An error stops the loop, with it as the reason.
    pub fn custom<F, Fut>(judge: F) -> Self
    where
        F: Fn(LoopSnapshot) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Verdict, String>> + Send + 'static,
    {
        Self(Rule::Custom(Arc::new(move |snapshot| Box::pin(judge(snapshot)))))
    }

    /// When one of these says so; asked in order up to the first that does.
    pub fn any(of: impl IntoIterator<Item = Self>) -> Self {
        Self(Rule::Any(of.into_iter().collect()))
    }

    /// When all of these say so; asked in order up to the first that does not.
    pub fn all(of: impl IntoIterator<Item = Self>) -> Self {
        Self(Rule::All(of.into_iter().collect()))
    }

    /// What it says of a snapshot.
    pub fn judge<'a>(&'a self, snapshot: &'a LoopSnapshot) -> BoxFuture<'a, Verdict> {
        Box::pin(async move {
            let said = match &self.0 {
                Rule::Similar(embedder, threshold) => similar(&**embedder, *threshold, snapshot).await,
                Rule::Custom(judge) => judge(snapshot.clone()).await,
                Rule::Any(of) => Ok(any(of, snapshot).await),
                Rule::All(of) => Ok(all(of, snapshot).await),
                Rule::MaxSteps(_)
                | Rule::MaxCost(_)
                | Rule::MaxDuration(_)
                | Rule::NoToolCalls
                | Rule::Never
                | Rule::Converged
                | Rule::Contains(_)
                | Rule::Equals(_) => Ok(self.0.judge(snapshot)),
            };
            said.unwrap_or_else(|problem| Verdict::stop(format!("Predicate error: {problem}")))
        })
    }
}

impl Rule {
    fn judge(&self, snapshot: &LoopSnapshot) -> Verdict {
        let text = &snapshot.last_text;
        match self {
            Self::MaxSteps(most) => {
                Verdict::stop_if(snapshot.step_count >= *most, || format!("Reached max steps ({most})"))
            }
            Self::MaxCost(most) => {
                Verdict::stop_if(snapshot.cost >= *most, || format!("Reached max cost (${most})"))
            }
            Self::MaxDuration(most) => {
                Verdict::stop_if(snapshot.elapsed >= *most, || format!("Reached max duration ({}ms)", most.0))
            }
            Self::NoToolCalls => {
                let none = snapshot.step_count > 0 && snapshot.last_tool_calls.unwrap_or_default() == 0;
                Verdict::stop_if(none, || "No tool calls in last response".to_owned())
            }
            Self::Converged => {
                let same = snapshot.previous_text.as_ref() == Some(text);
                Verdict::stop_if(same, || "Output converged".to_owned())
            }
            Self::Contains(marker) => {
                Verdict::stop_if(text.contains(marker), || format!("Output contains marker: {marker}"))
            }
            Self::Equals(sentinel) => {
                Verdict::stop_if(text == sentinel, || format!("Output matched sentinel: {sentinel}"))
            }
            Self::Never | Self::Similar(..) | Self::Custom(_) | Self::Any(_) | Self::All(_) => {
                Verdict::go_on()
            }
        }
    }
}

async fn similar(
    embedder: &dyn DynEmbedder,
    threshold: f32,
    snapshot: &LoopSnapshot,
) -> Result<Verdict, String> {
    let Some(previous) = &snapshot.previous_text else { return Ok(Verdict::go_on()) };
    let vectors = embedder.embed_boxed(&[previous, &snapshot.last_text]).await.map_err(|e| e.to_string())?;
    let [before, now] = vectors.as_slice() else { return Err("two vectors were expected".to_owned()) };
    let likeness = likeness(before, now)?;
    Ok(Verdict::stop_if(likeness >= threshold, || format!("Output converged (similarity: {likeness:.3})")))
}

async fn any(of: &[Until], snapshot: &LoopSnapshot) -> Verdict {
    for until in of {
        let verdict = until.judge(snapshot).await;
        if verdict.stop {
            return verdict;
        }
    }
    Verdict::go_on()
}

async fn all(of: &[Until], snapshot: &LoopSnapshot) -> Verdict {
    let mut reasons = Vec::new();
    for until in of {
        let verdict = until.judge(snapshot).await;
        if !verdict.stop {
            return verdict;
        }
        reasons.extend(verdict.reason);
    }
    Verdict::stop(if reasons.is_empty() { "All predicates satisfied".to_owned() } else { reasons.join("; ") })
}

/// A value as a text: itself, else its `text`, else its JSON.
pub(super) fn text_of(value: &Json) -> String {
    #[derive(serde::Deserialize)]
    struct Text {
        text: String,
    }
    value
        .to::<String>()
        .or_else(|_| value.to::<Text>().map(|Text { text }| text))
        .unwrap_or_else(|_| value.to_string())
}
