//! Vectors of kind `summarizing-compactor`: transcripts given to one compactor with the policy that summarizes.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use harness_core::Time;
use harness_core::machine::Origin;
use harness_core::message::Message;
use harness_core::port::{CompactAsk, Compactor, ViewCx};
use harness_core::transcript::{Transcript, View};
use harness_memory::compact::{
    CompactionPolicy, ContextCompactor, Recency, Summarizer, Summary, SummaryAsk, SummaryFault, Trigger,
};
use serde_json::{Map, Value, json};

use super::subset::matches;
use super::turn::convert::{at, list};
use crate::vector::Vector;
use crate::verdict::Verdict;

/// Runs the one vector of the file.
pub(crate) fn run(vector: &Vector) -> Verdict {
    check(&vector.value).into()
}

fn check(vector: &Value) -> Result<(), String> {
    let input = at(vector, "input");
    let scripted = Scripted::new(input);
    let window = at(input, "context_window").as_u64().unwrap_or(0);
    let policy = policy(window, at(input, "settings"));
    let compactor = ContextCompactor::new(policy).with_summarizer(scripted.clone());
    let runtime = tokio::runtime::Builder::new_current_thread().build().map_err(|e| e.to_string())?;

    let mut log = Transcript::default();
    let mut got = Vec::new();
    for call in list(input, "calls") {
        log = grown(&log, list(call, "messages"))?;
        got.push(runtime.block_on(compact(&compactor, &log, &scripted))?);
    }
    matches("expect", at(vector, "expect"), &json!({ "calls": got }))
}

/// The policy that summarizes everything old, the first prompt included, with these settings; zero means the
/// default.
pub(super) fn policy(window: u64, settings: &Value) -> CompactionPolicy {
    let number = |key: &str| at(settings, key).as_u64().filter(|number| *number > 0);
    let mut policy = CompactionPolicy::summarize(window);
    policy.keep_first_prompt = false;
    policy.trigger = number("reserve_tokens").map_or(policy.trigger, Trigger::Reserve);
    policy.recency = number("keep_recent_tokens").map_or(policy.recency, |tokens| Recency::new(0, tokens));
    policy
}

/// The transcript of these messages. Those that are there already are the same ones, as in a session that
/// only grows.
fn grown(log: &Transcript, messages: &[Value]) -> Result<Transcript, String> {
    let parsed = messages.iter().map(|message| {
        serde_json::from_value::<Message>(message.clone()).map(Arc::new).map_err(|e| e.to_string())
    });
    let mut grown = Transcript::default();
    let mut is_same = true;
    for (at, message) in parsed.enumerate() {
        let message = message?;
        let known = log.get(at).filter(|known| is_same && **known == message);
        is_same = known.is_some();
        grown.push(known.cloned().unwrap_or(message));
    }
    Ok(grown)
}

async fn compact(
    compactor: &ContextCompactor,
    log: &Transcript,
    scripted: &Scripted,
) -> Result<Value, String> {
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
    fail_on: Vec<u64>,
    calls: usize,
    /// The lengths of the prefixes that were asked about since they were told last.
    asked: Vec<usize>,
    /// Who hears of each of them at once.
    told: Option<Box<dyn Fn(usize) + Send>>,
}

impl Scripted {
    pub(super) fn new(input: &Value) -> Self {
        let texts =
            |key: &str| list(input, key).iter().filter_map(Value::as_str).map(str::to_owned).collect();
        let fail_on = list(input, "fail_on").iter().filter_map(Value::as_u64).collect();
        let script =
            Script { summaries: texts("summaries"), fail_on, calls: 0, asked: Vec::new(), told: None };
        Self(Arc::new(Mutex::new(script)))
    }

    /// The same, telling the length of each prefix that it is asked about.
    pub(super) fn telling(self, told: impl Fn(usize) + Send + 'static) -> Self {
        self.lock().told = Some(Box::new(told));
        self
    }

    fn lock(&self) -> MutexGuard<'_, Script> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take_asked(&self) -> Vec<usize> {
        std::mem::take(&mut self.lock().asked)
    }
}

impl Summarizer for Scripted {
    async fn summarize(&self, ask: SummaryAsk) -> Result<Summary, SummaryFault> {
        let mut script = self.lock();
        let call = script.calls;
        script.calls += 1;
        script.asked.push(ask.covers);
        script.told.iter().for_each(|told| told(ask.covers));
        if script.fail_on.contains(&(call as u64)) {
            return Err(SummaryFault::new("the scripted summary fails"));
        }
        let beyond = || format!("SUM{call}");
        Ok(Summary::new(script.summaries.get(call).cloned().unwrap_or_else(beyond)))
    }
}
