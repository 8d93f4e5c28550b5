//! Vectors of kinds `grouping` and `group-window`: the policies that count groups, calls and messages.

use std::sync::Arc;

use harness_core::transcript::Plan;
use harness_memory::compact::group::{Group, Groups};
use harness_memory::compact::{
    CompactionPolicy, ContextCompactor, Recency, Summarizer, Summary, SummaryAsk, SummaryFault, Target,
    Trigger,
};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::convert::MessageWords;
use super::messages::Named;
use super::parts::Messages;
use crate::Done;

/// The shares of the input budget from which a context window collapses calls, and truncates.
const COLLAPSE: u64 = 500;
const TRUNCATE: u64 = 800;

/// Messages, and what makes them fewer.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Input {
    messages: Vec<MessageWords>,
    strategy: Strategy,
}

/// A strategy; what is left out is as the source has it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, tag = "name", rename_all = "snake_case")]
enum Strategy {
    Truncation { by: Unit, max_n: u64, compact_to: u64, preserve_first_user_group: Option<bool> },
    Sliding { keep_last_groups: usize },
    Selective { keep_last_tool_call_groups: Option<usize> },
    ToolResult { keep_last_tool_call_groups: Option<usize> },
    Summarize { target_count: Option<usize>, threshold: Option<usize>, reply: Option<String> },
    Window(Window),
    Budget { token_budget: u64, strategies: Vec<Self> },
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Unit {
    Messages,
    Tokens,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Window {
    max_context_window_tokens: u64,
    max_output_tokens: u64,
    keep_last_tool_call_groups: Option<usize>,
}

pub(super) fn grouping(Messages { messages }: Messages) -> Value {
    json!({"groups": groups(&Named::of(messages))})
}

pub(super) fn run(Input { messages, strategy }: Input) -> Done<Value> {
    let named = Named::of(messages);
    let mut view = Viewed { named: &named, plan: None, excluded: Map::new() };
    let before = view.tokens();
    view.apply(strategy)?;
    Ok(json!({
        "groups": groups(&named),
        "tokens_before": before,
        "changed": view.plan.is_some(),
        "tokens_after": view.tokens(),
        "view": named.view(view.plan.as_ref(), false),
        "excluded": view.excluded,
        "links": {},
    }))
}

fn groups(named: &Named) -> Vec<Value> {
    let messages: Vec<_> = named.log.iter().cloned().collect();
    let group = |group: &Group| {
        let mut ids: Vec<&str> = group.members.iter().map(|at| named.id_at(*at)).collect();
        ids.dedup();
        json!({
            "kind": group.kind.to_string(),
            "ids": ids,
            "group": format!("group_{}", named.id_at(group.first())),
            "has_reasoning": group.has_reasoning,
        })
    };
    Groups::of(&messages).iter().map(group).collect()
}

/// A view that policies make shorter, one after another.
struct Viewed<'a> {
    named: &'a Named,
    plan: Option<Plan>,
    excluded: Map<String, Value>,
}

impl Viewed<'_> {
    fn tokens(&self) -> u64 {
        self.named.tokens(&self.named.costs(), self.plan.as_ref())
    }

    fn apply(&mut self, strategy: Strategy) -> Done<()> {
        match strategy {
            Strategy::Truncation { by, max_n, compact_to, preserve_first_user_group } => {
                let mut policy = CompactionPolicy::truncate(max_n, compact_to);
                if let Unit::Messages = by {
                    let messages = |n: u64| usize::try_from(n).map_err(|e| e.to_string());
                    policy.trigger = Trigger::Messages(messages(max_n)?);
                    policy.target = Target::Messages(messages(compact_to)?);
                }
                policy.keep_first_prompt = preserve_first_user_group.unwrap_or(policy.keep_first_prompt);
                self.compact(policy, "truncation", None)
            }
            Strategy::Sliding { keep_last_groups } => {
                self.compact(CompactionPolicy::sliding_window(keep_last_groups), "sliding_window", None)
            }
            Strategy::Selective { keep_last_tool_call_groups: calls } => {
                self.compact(CompactionPolicy::selective(calls.unwrap_or(1)), "tool_call_compaction", None)
            }
            Strategy::ToolResult { keep_last_tool_call_groups: calls } => {
                let policy = CompactionPolicy::tool_results(calls.unwrap_or(1));
                self.compact(policy, "tool_result_compaction", None)
            }
            Strategy::Summarize { target_count, threshold, reply } => {
                let policy = summarization(target_count.unwrap_or(4), threshold.unwrap_or(2));
                self.compact(policy, "summarized", Some(Reply(reply)))
            }
            Strategy::Window(window) => self.window(&window),
            Strategy::Budget { token_budget, strategies } => self.budget(token_budget, strategies),
        }
    }

    /// Calls collapse from one share of the input on, and the oldest groups go from a greater one on.
    fn window(&mut self, window: &Window) -> Done<()> {
        let input = window.max_context_window_tokens.saturating_sub(window.max_output_tokens);
        let share = |thousandths: u64| input * thousandths / 1_000;
        let mut collapse = CompactionPolicy::tool_results(window.keep_last_tool_call_groups.unwrap_or(4));
        collapse.trigger = Trigger::Tokens(share(COLLAPSE));
        self.compact(collapse, "tool_result_compaction", None)?;
        let truncate = CompactionPolicy::truncate(share(TRUNCATE), share(COLLAPSE));
        self.compact(truncate, "truncation", None)
    }

    /// Strategies in order until the budget is met, and truncation to it.
    fn budget(&mut self, budget: u64, strategies: Vec<Strategy>) -> Done<()> {
        for strategy in strategies {
            if self.tokens() > budget {
                self.apply(strategy)?;
            }
        }
        self.compact(CompactionPolicy::truncate(budget, budget), "token_budget_fallback", None)
    }

    /// Remaining view of a policy; removed messages are excluded for `reason`.
    fn compact(&mut self, policy: CompactionPolicy, reason: &str, reply: Option<Reply>) -> Done<()> {
        let mut compactor = ContextCompactor::new(policy).with_counter(Arc::new(self.named.costs()));
        if let Some(reply) = reply {
            compactor = compactor.with_summarizer(reply);
        }
        let made = self.named.compact(&compactor, self.plan.as_ref())?;
        self.plan = made.plan.or(self.plan.take());
        let view = self.named.shown(self.plan.as_ref());
        let shown: Vec<&str> = view.iter().filter_map(|message| self.named.id_of(message)).collect();
        for id in self.named.ids().into_iter().filter(|id| !shown.contains(id)) {
            self.excluded.entry(id).or_insert_with(|| json!(reason));
        }
        Ok(())
    }
}

/// Everything old, the first prompt included, becomes one summary.
fn summarization(target: usize, threshold: usize) -> CompactionPolicy {
    let mut policy = CompactionPolicy::summarize(0);
    policy.trigger = Trigger::Messages(target + threshold);
    policy.target = Target::Everything;
    policy.recency = Recency::new(target, 0);
    policy.keep_first_prompt = false;
    policy
}

/// The summarizer's answer; `None` fails.
struct Reply(Option<String>);

impl Summarizer for Reply {
    async fn summarize(&self, _: SummaryAsk) -> Result<Summary, SummaryFault> {
        self.0.clone().map(Summary::new).ok_or_else(|| SummaryFault::new("the scripted summary fails"))
    }
}
