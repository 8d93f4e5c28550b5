//! Vectors of kinds `grouping` and `group-window`: the policies that count groups, calls and messages.

use std::sync::Arc;

use harness_core::transcript::Plan;
use harness_memory::compact::group::{Group, Groups};
use harness_memory::compact::{
    CompactionPolicy, ContextCompactor, Recency, Summarizer, Summary, SummaryAsk, SummaryFault, Target,
    Trigger,
};
use serde_json::{Map, Value, json};

use super::convert::Done;
use super::messages::Named;
use crate::turn::convert::{at, list, text};

/// The shares of the input budget from which a context window collapses calls, and truncates.
const COLLAPSE: u64 = 500;
const TRUNCATE: u64 = 800;

pub(super) fn grouping(input: &Value) -> Done<Value> {
    Ok(json!({"groups": groups(&Named::of(input)?)}))
}

pub(super) fn run(input: &Value) -> Done<Value> {
    let named = Named::of(input)?;
    let mut view = Viewed { named: &named, plan: None, excluded: Map::new() };
    let before = view.tokens();
    view.apply(at(input, "strategy"))?;
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
            "kind": group.kind.as_str(),
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

    fn apply(&mut self, wire: &Value) -> Done<()> {
        let number = |key: &str| at(wire, key).as_u64();
        let calls = number("keep_last_tool_call_groups").and_then(|n| usize::try_from(n).ok());
        match text(wire, "name") {
            "truncation" => self.compact(truncation(wire), "truncation", None),
            "sliding" => {
                let groups = number("keep_last_groups").and_then(|n| usize::try_from(n).ok()).unwrap_or(1);
                self.compact(CompactionPolicy::sliding_window(groups), "sliding_window", None)
            }
            "selective" => {
                let policy = CompactionPolicy::selective(calls.unwrap_or(1));
                self.compact(policy, "tool_call_compaction", None)
            }
            "tool_result" => {
                let policy = CompactionPolicy::tool_results(calls.unwrap_or(1));
                self.compact(policy, "tool_result_compaction", None)
            }
            "summarize" => {
                let reply = Reply(wire.get("reply").and_then(Value::as_str).map(str::to_owned));
                self.compact(summarization(wire), "summarized", Some(reply))
            }
            "window" => self.window(wire, calls.unwrap_or(4)),
            "budget" => self.budget(wire),
            other => Err(format!("`{other}` is no strategy")),
        }
    }

    /// Calls collapse from one share of the input on, and the oldest groups go from a greater one on.
    fn window(&mut self, wire: &Value, calls: usize) -> Done<()> {
        let number = |key: &str| at(wire, key).as_u64().unwrap_or(0);
        let input = number("max_context_window_tokens").saturating_sub(number("max_output_tokens"));
        let share = |thousandths: u64| input * thousandths / 1_000;
        let mut collapse = CompactionPolicy::tool_results(calls);
        collapse.trigger = Trigger::Tokens(share(COLLAPSE));
        self.compact(collapse, "tool_result_compaction", None)?;
        let truncate = CompactionPolicy::truncate(share(TRUNCATE), share(COLLAPSE));
        self.compact(truncate, "truncation", None)
    }

    /// Strategies in order until the budget is met, and truncation to it.
    fn budget(&mut self, wire: &Value) -> Done<()> {
        let budget = at(wire, "token_budget").as_u64().unwrap_or(0);
        for strategy in list(wire, "strategies") {
            if self.tokens() > budget {
                self.apply(strategy)?;
            }
        }
        self.compact(CompactionPolicy::truncate(budget, budget), "token_budget_fallback", None)
    }

    /// What a policy leaves of the view; what it takes away is excluded for `reason`.
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

fn truncation(wire: &Value) -> CompactionPolicy {
    let number = |key: &str| at(wire, key).as_u64().unwrap_or(0);
    let (above, to) = (number("max_n"), number("compact_to"));
    let mut policy = CompactionPolicy::truncate(above, to);
    if text(wire, "by") == "messages" {
        let messages = |n: u64| usize::try_from(n).unwrap_or(usize::MAX);
        (policy.trigger, policy.target) =
            (Trigger::Messages(messages(above)), Target::Messages(messages(to)));
    }
    if let Some(keep) = wire.get("preserve_first_user_group").and_then(Value::as_bool) {
        policy.keep_first_prompt = keep;
    }
    policy
}

/// Everything old, the first prompt included, becomes one summary.
fn summarization(wire: &Value) -> CompactionPolicy {
    let count = |key: &str, default: usize| {
        at(wire, key).as_u64().and_then(|n| usize::try_from(n).ok()).unwrap_or(default)
    };
    let (target, threshold) = (count("target_count", 4), count("threshold", 2));
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
