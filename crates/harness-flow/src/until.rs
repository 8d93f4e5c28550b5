//! Stop predicates of loops.

use std::fmt;
use std::sync::Arc;

use harness_core::message::Cost;
use harness_core::port::BoxFuture;
use harness_core::{Json, Millis};
use harness_host::DynEmbedder;

use super::meaning::likeness;

/// Progress of a loop.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LoopSnapshot {
    /// Number of successful rounds.
    pub step_count: u64,
    /// Tokens of the whole execution, including the time before a restore.
    pub tokens: u64,
    /// Cost of the whole execution.
    pub cost: Cost,
    /// Time since the loop started in this process.
    pub elapsed: Millis,
    /// Output of the last round.
    pub last_output: Json,
    /// Text of the last output: a string as it is, else its `text` field, else its JSON.
    pub last_text: String,
    /// Text of the round before.
    pub previous_text: Option<String>,
    /// Outputs of the last rounds, up to [`Loop::max_history`](super::Loop::max_history).
    pub history: Vec<Json>,
    /// Number of enclosing spawns.
    pub depth: u32,
    /// Number of tool calls in the last model answer; `None` without an answer.
    pub last_tool_calls: Option<usize>,
}

/// Verdict on a loop after a round. The default continues.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Verdict {
    /// Whether the loop stops.
    pub stop: bool,
    /// Reason of the stop.
    pub reason: Option<String>,
    /// Feedback for the next round.
    pub feedback: Option<String>,
}

impl Verdict {
    /// Continues with feedback for the next round.
    pub fn feedback(feedback: impl Into<String>) -> Self {
        Self { feedback: Some(feedback.into()), ..Self::default() }
    }

    /// Stops the loop.
    pub fn stop(reason: impl Into<String>) -> Self {
        Self { stop: true, reason: Some(reason.into()), feedback: None }
    }

    fn stop_if(stop: bool, reason: impl FnOnce() -> String) -> Self {
        if stop { Self::stop(reason()) } else { Self::default() }
    }
}

type Judge = Arc<dyn Fn(LoopSnapshot) -> BoxFuture<'static, Result<Verdict, String>> + Send + Sync>;

/// Stop predicate of a loop, evaluated after each round. It has no state, so loops can share one.
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
    /// Stops after `most` successful rounds.
    pub fn max_steps(most: u64) -> Self {
        Self(Rule::MaxSteps(most))
    }

    /// Stops when the execution has reached a cost.
    pub fn max_cost(most: Cost) -> Self {
        Self(Rule::MaxCost(most))
    }

    /// Stops after a time.
    pub fn max_duration(most: Millis) -> Self {
        Self(Rule::MaxDuration(most))
    }

    /// Stops when the last model answer has no tool calls.
    pub fn no_tool_calls() -> Self {
        Self(Rule::NoToolCalls)
    }

    /// Never stops: the round limit, an error or an abort ends the loop.
    pub fn never() -> Self {
        Self(Rule::Never)
    }

    /// Stops when two consecutive rounds return the same text.
    pub fn converged() -> Self {
        Self(Rule::Converged)
    }

    /// Stops when two consecutive rounds return texts with a cosine similarity of at least `threshold`.
    pub fn similar(embedder: Arc<dyn DynEmbedder>, threshold: f32) -> Self {
        Self(Rule::Similar(embedder, threshold))
    }

    /// Stops when the text contains `marker`.
    pub fn output_contains(marker: impl Into<String>) -> Self {
        Self(Rule::Contains(marker.into()))
    }

    /// Stops when the text equals `sentinel`.
    pub fn output_equals(sentinel: impl Into<String>) -> Self {
        Self(Rule::Equals(sentinel.into()))
    }

    /// Stops when `verify` returns `Ok(())`; an inner error is the feedback for the next round. An outer error
    /// stops the loop.
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

    /// Stops as `judge` decides. An error stops the loop and is the reason.
    pub fn custom<F, Fut>(judge: F) -> Self
    where
        F: Fn(LoopSnapshot) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Verdict, String>> + Send + 'static,
    {
        Self(Rule::Custom(Arc::new(move |snapshot| Box::pin(judge(snapshot)))))
    }

    /// Stops when one predicate stops, evaluated in order.
    pub fn any(of: impl IntoIterator<Item = Self>) -> Self {
        Self(Rule::Any(of.into_iter().collect()))
    }

    /// Stops when all predicates stop, evaluated in order.
    pub fn all(of: impl IntoIterator<Item = Self>) -> Self {
        Self(Rule::All(of.into_iter().collect()))
    }

    /// Evaluates the predicate.
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
                Verdict::default()
            }
        }
    }
}

async fn similar(
    embedder: &dyn DynEmbedder,
    threshold: f32,
    snapshot: &LoopSnapshot,
) -> Result<Verdict, String> {
    let Some(previous) = &snapshot.previous_text else { return Ok(Verdict::default()) };
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
    Verdict::default()
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

/// Text of a value: a string as it is, else its `text` field, else its JSON.
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
