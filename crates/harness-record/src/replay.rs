//! Tools and input of a replay.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::sync::Arc;

use harness_core::message::{Message, ToolCall, ToolResultMessage};
use harness_core::tool::{
    ArgumentFault, DynToolRegistry, ToolCx, ToolDef, ToolOutcome, ToolRegistry, ToolScope, ToolStatus,
};
use harness_core::{Fault, FaultSource, Json, ToolName, canonical};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

use super::calls::extract_tool_calls;
use super::run_record::RunRecord;

/// Source of tool results in a replay.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ReplayMode {
    /// The record; a call without a recorded result is an error.
    #[default]
    Strict,
    /// The record; a call without a recorded result is executed.
    Hybrid,
    /// Every call is executed.
    Live,
}

/// Input of a replay.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum InputMode {
    /// The recorded input, including earlier messages of the thread.
    #[default]
    Recorded,
    /// The question alone.
    Question,
}

/// Origin of a replay's input.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum InputSource {
    /// The first items of the record.
    InputItemCount,
    /// The question, because the record has no items.
    QuestionFallback,
    /// The question, as requested.
    Question,
}

/// Messages of a replay's input.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ReplayInput {
    /// Messages before the prompt.
    pub history: Vec<Arc<Message>>,
    /// Prompt; `None` continues the history.
    pub prompt: Option<Arc<Message>>,
    /// Origin of the input.
    pub source: InputSource,
}

impl ReplayInput {
    /// Reads the input of a recorded run.
    pub fn of(record: &RunRecord, mode: InputMode) -> Self {
        let count = usize::try_from(record.input_item_count).unwrap_or(usize::MAX);
        let input = record.items.get(..count.min(record.items.len())).unwrap_or_default();
        let question = |source| Self {
            history: Vec::new(),
            prompt: Some(Arc::new(Message::user(record.question.clone()))),
            source,
        };
        match (mode, input.split_last()) {
            (InputMode::Question, _) => question(InputSource::Question),
            (InputMode::Recorded, None) => question(InputSource::QuestionFallback),
            (InputMode::Recorded, Some((last, before))) => {
                let source = InputSource::InputItemCount;
                if matches!(**last, Message::User(_)) {
                    return Self { history: before.to_vec(), prompt: Some(Arc::clone(last)), source };
                }
                Self { history: input.to_vec(), prompt: None, source }
            }
        }
    }
}

/// Figures of a replay.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ReplayStats {
    /// Number of recorded outcomes.
    pub recorded_tool_calls: u64,
    /// Number of calls with a recorded outcome.
    pub replayed_from_record: u64,
    /// Number of calls without one.
    pub missing_tool_calls: u64,
    /// Number of calls that were executed instead.
    pub live_fallback_calls: u64,
}

type Queues = HashMap<(ToolName, String), VecDeque<ToolOutcome>>;

#[derive(Debug, Default)]
struct State {
    queues: Queues,
    stats: ReplayStats,
}

/// Tool registry that answers from a record, by name and arguments, first in first out.
///
/// It replays every call that ran, including errors. Calls that did not run (denied, held, cancelled) are not replayed:
/// gates and policies decide again. Tools and argument validation are those of the inner registry. Clones share the
/// queues and figures.
#[derive(Clone)]
pub struct ReplayTools {
    inner: Arc<dyn DynToolRegistry>,
    mode: ReplayMode,
    state: Arc<Mutex<State>>,
}

impl fmt::Debug for ReplayTools {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReplayTools")
            .field("mode", &self.mode)
            .field("stats", &self.stats())
            .finish_non_exhaustive()
    }
}

impl ReplayTools {
    /// Wraps a registry.
    pub fn new(inner: Arc<dyn DynToolRegistry>, record: &RunRecord, mode: ReplayMode) -> Self {
        let queues = queues(record);
        let recorded = queues.values().map(|queue| queue.len() as u64).sum();
        let stats = ReplayStats { recorded_tool_calls: recorded, ..ReplayStats::default() };
        Self { inner, mode, state: Arc::new(Mutex::new(State { queues, stats })) }
    }

    /// Figures of the replay so far.
    pub fn stats(&self) -> ReplayStats {
        self.state.lock().stats
    }

    /// Number of unused outcomes.
    pub fn unused(&self) -> u64 {
        self.state.lock().queues.values().map(|queue| queue.len() as u64).sum()
    }

    /// Answers a call from the record; `None` executes it.
    fn answer(&self, call: &ToolCall) -> Option<Result<ToolOutcome, Fault>> {
        let args_hash = canonical::hash(&call.arguments);
        let mut state = self.state.lock();
        let queue = state.queues.get_mut(&(call.name.clone(), args_hash.clone()));
        if let Some(outcome) = queue.and_then(VecDeque::pop_front) {
            state.stats.replayed_from_record += 1;
            return Some(Ok(outcome));
        }
        state.stats.missing_tool_calls += 1;
        if self.mode == ReplayMode::Strict {
            return Some(Err(missing_fault(&call.name, &args_hash)));
        }
        state.stats.live_fallback_calls += 1;
        None
    }
}

fn missing_fault(name: &ToolName, args_hash: &str) -> Fault {
    let hash = args_hash.get(..12).unwrap_or_default();
    Fault::new(
        FaultSource::Tool,
        "replay_missing_call",
        format!(
            "no recorded call of `{name}` with these arguments is left ({hash}…); replay in hybrid mode to execute \
             such calls"
        ),
    )
}

impl ToolRegistry for ReplayTools {
    async fn list(&self, scope: &ToolScope) -> Result<Arc<[ToolDef]>, Fault> {
        self.inner.list_boxed(scope).await
    }

    fn check(&self, call: &ToolCall) -> Result<(), ArgumentFault> {
        self.inner.check_dyn(call)
    }

    async fn call(&self, cx: ToolCx) -> Result<ToolOutcome, Fault> {
        if self.mode != ReplayMode::Live
            && let Some(answer) = self.answer(&cx.call)
        {
            return answer;
        }
        self.inner.call_boxed(cx).await
    }
}

/// Outcomes of all calls that ran.
fn queues(record: &RunRecord) -> Queues {
    let mut results: HashMap<&str, VecDeque<&ToolResultMessage>> = HashMap::new();
    for result in record.own_items().iter().filter_map(|item| item.as_tool_result()) {
        results.entry(result.tool_call_id.as_str()).or_default().push_back(result);
    }
    // Results are in the order of the calls, which is the order to replay.
    let mut ran: HashMap<&str, VecDeque<(bool, &str)>> = HashMap::new();
    for entry in &record.tool_calls {
        ran.entry(entry.call_id.as_str()).or_default().push_back((entry.ran, entry.args_hash.as_str()));
    }
    let mut queues = Queues::new();
    for call in extract_tool_calls(record) {
        let Some(result) = results.get_mut(call.call_id.as_str()).and_then(VecDeque::pop_front) else {
            continue;
        };
        let ended = ran.get_mut(call.call_id.as_str()).and_then(VecDeque::pop_front);
        let (did_run, hash) = ended.unwrap_or((false, ""));
        // A handoff is performed by the turn itself.
        let is_handoff = record.handoffs.iter().any(|handoff| handoff.call_id == call.call_id);
        if did_run && !is_handoff {
            let key = (call.name.clone(), hash.to_owned());
            queues.entry(key).or_default().push_back(outcome_of(result));
        }
    }
    queues
}

/// Reads the outcome of a stored result.
fn outcome_of(result: &ToolResultMessage) -> ToolOutcome {
    #[derive(Deserialize, Default)]
    #[serde(rename_all = "camelCase", default)]
    struct Stored {
        status: ToolStatus,
        error_code: Option<String>,
        exit_code: Option<i32>,
        data: Option<Json>,
    }
    let stored: Stored = result.outcome.as_ref().and_then(|outcome| outcome.to().ok()).unwrap_or_default();
    let mut outcome = if result.is_error {
        let status = if stored.status == ToolStatus::Success { ToolStatus::Failed } else { stored.status };
        let text = Message::ToolResult(result.clone()).joined_text();
        ToolOutcome::with_error(status, stored.error_code.unwrap_or_else(|| "error".to_owned()), text)
    } else {
        ToolOutcome::default()
    };
    if let Some(error) = &mut outcome.error {
        error.metadata = stored.data;
    }
    outcome.content.clone_from(&result.content);
    outcome.structured.clone_from(&result.structured);
    outcome.exit_code = stored.exit_code;
    outcome.metadata.clone_from(&result.details);
    outcome.terminate = result.terminate.unwrap_or_default();
    outcome
}
