//! Vectors of kind `summarizing-compactor`: transcripts given to one compactor with the policy that summarizes.

use std::sync::Arc;

use harness_core::message::Message;
use harness_core::port::{CompactAsk, Compactor, ViewCx};
use harness_core::transcript::{Transcript, View};
use harness_core::{Origin, Time};
use harness_memory::compact::{
    CompactionPolicy, ContextCompactor, Recency, Summarizer, Summary, SummaryAsk, SummaryFault, Trigger,
};
use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::Done;
use crate::case::{block_on, each};
use crate::vector::Vector;
use crate::verdict::Verdict;

/// Runs the one vector of the file.
pub(crate) fn run(vector: &Vector) -> Verdict {
    each(vector, play)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Input {
    #[serde(default)]
    context_window: u64,
    settings: Settings,
    #[serde(default)]
    summaries: Vec<String>,
    #[serde(default)]
    fail_on: Vec<usize>,
    calls: Vec<Call>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Settings {
    reserve_tokens: u64,
    keep_recent_tokens: u64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Call {
    messages: Vec<Value>,
}

fn play(input: Input) -> Done<Value> {
    let Input { context_window, settings, summaries, fail_on, calls } = input;
    let scripted = Scripted::new(summaries, fail_on);
    let policy = policy(context_window, settings.reserve_tokens, settings.keep_recent_tokens);
    let compactor = ContextCompactor::new(policy).with_summarizer(scripted.clone());
    let mut log = Transcript::default();
    let mut got = Vec::new();
    for Call { messages } in calls {
        log = grown(&log, messages)?;
        got.push(block_on(compact(&compactor, &log, &scripted))??);
    }
    Ok(json!({ "calls": got }))
}

/// The policy that summarizes everything old, the first prompt included, with these tokens in reserve and so many of
/// the newest kept; zero means the default.
pub(super) fn policy(window: u64, reserve: u64, keep: u64) -> CompactionPolicy {
    let mut policy = CompactionPolicy::summarize(window);
    policy.keep_first_prompt = false;
    if reserve > 0 {
        policy.trigger = Trigger::Reserve(reserve);
    }
    if keep > 0 {
        policy.recency = Recency::new(0, keep);
    }
    policy
}

/// The transcript of these messages. Existing ones are the same, as in a session that
/// only grows.
fn grown(log: &Transcript, messages: Vec<Value>) -> Done<Transcript> {
    let mut grown = Transcript::default();
    let mut is_same = true;
    for (at, message) in messages.into_iter().enumerate() {
        let message = serde_json::from_value::<Message>(message).map(Arc::new).map_err(|e| e.to_string())?;
        let known = log.get(at).filter(|known| is_same && **known == message);
        is_same = known.is_some();
        grown.push(known.cloned().unwrap_or(message));
    }
    Ok(grown)
}

async fn compact(compactor: &ContextCompactor, log: &Transcript, scripted: &Scripted) -> Done<Value> {
    let before: Vec<Arc<Message>> = log.iter().cloned().collect();
    let cx = ViewCx::new(log.prefix(), Arc::new(Origin::default()), Time(0));
    let compaction = compactor.compact(CompactAsk::new(View::whole(log.prefix()), None, cx)).await;
    let compaction = compaction.map_err(|fault| fault.to_string())?;

    let mut told = Map::new();
    told.insert("summarizer_prefix_lengths".to_owned(), json!(scripted.take_asked()));
    told.insert("input_mutated".to_owned(), json!(!before.iter().eq(log.iter())));
    match compaction.plan {
        None => match compaction.failed.first() {
            Some(fault) => {
                told.insert("error".to_owned(), json!({ "code": &*fault.code }));
            }
            None => {
                told.insert("unchanged".to_owned(), json!(true));
            }
        },
        Some(plan) => {
            let mut messages = Vec::new();
            View::planned(log.prefix(), plan).for_each(|message| messages.push(json!(**message)));
            told.insert("messages".to_owned(), json!(messages));
        }
    }
    Ok(Value::Object(told))
}

/// A summarizer that says what the vector wrote down.
#[derive(Clone)]
pub(super) struct Scripted(Arc<Mutex<Script>>);

struct Script {
    summaries: Vec<String>,
    fail_on: Vec<usize>,
    calls: usize,
    /// Lengths of the requested prefixes since the last report.
    asked: Vec<usize>,
    /// The callback that receives each length immediately.
    told: Option<Box<dyn Fn(usize) + Send>>,
}

impl Scripted {
    pub(super) fn new(summaries: Vec<String>, fail_on: Vec<usize>) -> Self {
        Self(Arc::new(Mutex::new(Script { summaries, fail_on, calls: 0, asked: Vec::new(), told: None })))
    }

    /// Sets the callback that receives the length of each requested prefix.
    pub(super) fn telling(self, told: impl Fn(usize) + Send + 'static) -> Self {
        self.0.lock().told = Some(Box::new(told));
        self
    }

    fn take_asked(&self) -> Vec<usize> {
        std::mem::take(&mut self.0.lock().asked)
    }
}

impl Summarizer for Scripted {
    async fn summarize(&self, ask: SummaryAsk) -> Result<Summary, SummaryFault> {
        let mut script = self.0.lock();
        let call = script.calls;
        script.calls += 1;
        script.asked.push(ask.covers);
        script.told.iter().for_each(|told| told(ask.covers));
        if script.fail_on.contains(&call) {
            return Err(SummaryFault::new("the scripted summary fails"));
        }
        let beyond = || format!("SUM{call}");
        Ok(Summary::new(script.summaries.get(call).cloned().unwrap_or_else(beyond)))
    }
}
