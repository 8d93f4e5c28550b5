//! Runtime policies: rules of the turn that answer a call in its tool's place, or tidy a text for the user.
//!
//! They cost nothing when a turn has none. What they answer is a result like any other for the model; it
//! uses no tool call, and its event says that a policy gave it.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::sanitize::sanitize;
use super::slot::{Progress, Slot};
use super::spec::TurnSpec;
use super::state::TurnState;
use crate::event::{EventKind, ResultNote};
use crate::ids::ToolName;
use crate::json::Json;
use crate::machine::Cx;
use crate::message::ToolCall;
use crate::outcome::{End, Outcome};
use crate::port::{RetryClass, ToolDef, ToolOutcome};

/// Candidates and remembered calls that a turn keeps at most; the oldest go first.
const KEPT: usize = 256;

/// Runtime policies of a turn. The default has none of them switched on.
///
/// They are asked in this order: rewrites of the todo list, the reserve, drilling, and, once gates and
/// approvals have let the call through, the cache. Guards of the host's own are tool gates
/// ([`crate::port::ToolGate`]).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct RuntimePolicies {
    /// How often the todo list may be written.
    pub todo_rewrite_cap: Option<TodoRewriteCap>,
    /// Which repeated calls are answered with the result that the turn already has.
    pub result_cache: ResultCache,
    /// Calls that are kept in reserve.
    pub reserve_floor: Option<ReserveFloor>,
    /// Whether what was found must be looked at before more is searched for.
    pub drill_or_stop: Option<DrillOrStop>,
    /// Whether pseudo tool syntax is taken out of texts for the user.
    pub sanitize_output: bool,
}

/// Ends endless rewriting of a todo list: later writes are answered without running.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TodoRewriteCap {
    /// The tools that write it.
    pub tool_names: Vec<ToolName>,
    /// How many writes run.
    pub max: u32,
}

/// Which repeated calls are answered from earlier results of the turn. A call repeats another when tool
/// and arguments are equal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ResultCache {
    /// None.
    #[default]
    Off,
    /// Those of tools that declare themselves `pure`.
    Pure,
    /// All: right only when no tool of the turn has effects.
    All,
}

/// Keeps tool calls in reserve: when few are left, tools of some categories are blocked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ReserveFloor {
    /// Calls left at which blocking begins.
    pub floor: u32,
    /// The categories, as a tool's metadata names them under `runtimePolicyCategories` or `categories`.
    pub blocked_categories: Vec<String>,
}

/// Blocks broad tools from the moment that candidates were found until one of them was used in a call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DrillOrStop {
    /// Tools whose results name candidates, in `candidates`, `paths`, `ids` or `items` of their data: texts,
    /// or objects with `id` or `path`.
    pub candidate_producing_tools: Vec<ToolName>,
    /// Tools that are blocked meanwhile.
    pub broad_tools: Vec<ToolName>,
}

/// What policies remember in a turn.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct PolicyState {
    todo_writes: u32,
    candidates: Vec<String>,
    cached: Vec<(Arc<ToolCall>, u64)>,
    blocked: u32,
    todo_blocked: u32,
    cache_hits: u32,
    sanitized: u32,
}

/// Why a call is answered by a policy.
struct Block {
    action: &'static str,
    reason: &'static str,
    facts: Json,
    advice: String,
}

impl Block {
    fn outcome(&self) -> ToolOutcome {
        #[derive(Serialize)]
        struct Data {
            ok: bool,
            blocked: bool,
            reason: &'static str,
        }
        let data = Json::of(&Data { ok: true, blocked: true, reason: self.reason }).unwrap_or_default();
        let mut outcome = ToolOutcome::text(self.advice.clone());
        outcome.structured = Some(data);
        outcome.metadata = synthetic(r#""blocked":true"#, self.reason, &self.facts);
        outcome
    }
}

/// `{"runtimePolicy":{"synthetic":true,…}}` with the facts beside it.
fn synthetic(kind: &str, reason: &str, facts: &Json) -> Option<Json> {
    let facts = facts.text().trim_start_matches('{').trim_end_matches('}');
    let comma = if facts.is_empty() { "" } else { "," };
    let text = format!(
        r#"{{"runtimePolicy":{{"synthetic":true,{kind},"reason":{}{comma}{facts}}}}}"#,
        Json::string(reason).text()
    );
    Json::parse(&text).ok()
}

fn facts(fields: &[(&str, serde_json::Value)]) -> Json {
    let map: serde_json::Map<_, _> =
        fields.iter().map(|(key, value)| ((*key).to_owned(), value.clone())).collect();
    serde_json::Value::Object(map).into()
}

impl TurnState {
    /// Answers a call that a policy does not let through. Whether it did.
    #[cold]
    pub(super) fn blocked_by_policy(&mut self, spec: &TurnSpec, cx: &mut Cx<'_>, at: u32) -> bool {
        let Some(policies) = &spec.policies else { return false };
        let Some(slot) = self.batch.as_ref().and_then(|batch| batch.slot(at)) else { return false };
        let Some(def) = self.def_of(slot) else { return false };
        let left = cx.sh.budgets.left().tool_calls;
        let reserve = policies.reserve_floor.as_ref().and_then(|rule| reserve_block(rule, def, left));
        let call = Arc::clone(&slot.call);
        let Some(state) = &mut self.policy else { return false };
        let block =
            state.todo_block(policies, &call).or(reserve).or_else(|| state.drill_block(policies, &call));
        let Some(block) = block else { return false };
        state.blocked += u32::from(block.action == "blocked");
        let (action, reason, facts) = (block.action, block.reason, block.facts.clone());
        let tool = Some(call.name.clone());
        cx.event(|| EventKind::RuntimePolicy { action: action.into(), reason: reason.into(), tool, facts });
        self.answer_by_policy(spec, cx, at, block.outcome());
        true
    }

    /// Answers a call with a result that the turn already has. Whether there is one.
    #[cold]
    pub(super) fn answered_from_cache(&mut self, spec: &TurnSpec, cx: &mut Cx<'_>, at: u32) -> bool {
        let (Some(_), Some(state)) = (&spec.policies, &mut self.policy) else { return false };
        if state.cached.is_empty() {
            return false;
        }
        let Some(slot) = self.batch.as_ref().and_then(|batch| batch.slot(at)) else { return false };
        let call = Arc::clone(&slot.call);
        let same =
            |(old, _): &&(Arc<ToolCall>, u64)| old.name == call.name && old.arguments == call.arguments;
        let Some((_, position)) = state.cached.iter().find(same) else { return false };
        let message = usize::try_from(*position).ok().and_then(|position| cx.log.get(position));
        let Some(result) = message.and_then(|message| message.as_tool_result()) else { return false };
        let mut outcome = ToolOutcome::blocks(result.content.clone());
        outcome.structured.clone_from(&result.structured);
        let reason = "identical_call";
        outcome.metadata = synthetic(r#""cacheHit":true"#, reason, &Json::empty_object());
        state.cache_hits += 1;
        let tool = Some(call.name.clone());
        let facts = Json::empty_object();
        cx.event(|| EventKind::RuntimePolicy {
            action: "cache_hit".into(),
            reason: reason.into(),
            tool,
            facts,
        });
        self.answer_by_policy(spec, cx, at, outcome);
        true
    }

    /// A text for the user, tidied when that is wanted.
    pub(super) fn user_text(&mut self, spec: &TurnSpec, cx: &mut Cx<'_>, text: String) -> String {
        let (Some(policies), Some(state)) = (&spec.policies, &mut self.policy) else { return text };
        let Some(clean) = policies.sanitize_output.then(|| sanitize(&text)).flatten() else { return text };
        state.sanitized += 1;
        let facts = facts(&[("strippedTokenClasses", clean.classes.into())]);
        cx.event(|| EventKind::RuntimePolicy {
            action: "output_sanitized".into(),
            reason: "pseudo_tool_syntax_removed".into(),
            tool: None,
            facts,
        });
        clean.text
    }

    /// Tells of an answer or a question that came about although policies had to step in.
    pub(super) fn tell_salvaged(&self, spec: &TurnSpec, cx: &mut Cx<'_>, end: &End) {
        let (Some(_), Some(state)) = (&spec.policies, &self.policy) else { return };
        let steps = [state.blocked, state.todo_blocked, state.cache_hits, state.sanitized];
        let worth = matches!(end.outcome(), Outcome::Completed | Outcome::NeedsClarification);
        if !worth || steps.iter().all(|count| *count == 0) {
            return;
        }
        let facts = facts(&[
            ("outcome", end.outcome().as_str().into()),
            ("stopReason", end.reason().as_str().into()),
            ("blockedCalls", state.blocked.into()),
            ("todoRewriteBlocks", state.todo_blocked.into()),
            ("cacheHits", state.cache_hits.into()),
            ("sanitizerHits", state.sanitized.into()),
        ]);
        cx.event(|| EventKind::RuntimePolicy {
            action: "synthesis_salvaged".into(),
            reason: "completed_after_runtime_policy_intervention".into(),
            tool: None,
            facts,
        });
    }

    fn answer_by_policy(&mut self, spec: &TurnSpec, cx: &mut Cx<'_>, at: u32, outcome: ToolOutcome) {
        let done = super::batch::Done { note: Some(ResultNote::RuntimePolicy), ..Default::default() };
        self.finish_call(spec, cx, at, Box::new(outcome), done);
    }
}

impl PolicyState {
    /// Remembers what later decisions need of a success, whose result stands at `position` of the transcript.
    pub(super) fn note_success(&mut self, policies: &RuntimePolicies, slot: &Slot, position: usize) {
        let Progress::Finished(finished) = &slot.progress else { return };
        let cacheable = match policies.result_cache {
            ResultCache::Off => false,
            ResultCache::Pure => slot.class == RetryClass::Pure,
            ResultCache::All => true,
        };
        if cacheable {
            push_bounded(&mut self.cached, (Arc::clone(&slot.call), position as u64));
        }
        let produces = |rule: &&DrillOrStop| rule.candidate_producing_tools.contains(&slot.call.name);
        if let (Some(_), Some(data)) =
            (policies.drill_or_stop.as_ref().filter(produces), &finished.outcome.structured)
        {
            for found in candidates(data) {
                push_bounded(&mut self.candidates, found);
            }
        }
    }

    /// Counts a write of the todo list; the ones beyond the cap are blocked.
    fn todo_block(&mut self, policies: &RuntimePolicies, call: &ToolCall) -> Option<Block> {
        let rule = policies.todo_rewrite_cap.as_ref().filter(|rule| rule.tool_names.contains(&call.name))?;
        if self.todo_writes < rule.max {
            self.todo_writes += 1;
            return None;
        }
        self.todo_blocked += 1;
        Some(Block {
            action: "todo_rewrite_blocked",
            reason: "todo_rewrite_cap_reached",
            facts: facts(&[("max", rule.max.into())]),
            advice: "The list was not written again: it has been rewritten often enough. Go on with the work itself."
                .to_owned(),
        })
    }

    /// Blocks a broad tool while candidates wait; a call that names one of them lets go of all.
    fn drill_block(&mut self, policies: &RuntimePolicies, call: &ToolCall) -> Option<Block> {
        let rule = policies.drill_or_stop.as_ref()?;
        let arguments = call.arguments.text();
        if self.candidates.iter().any(|candidate| arguments.contains(candidate.as_str())) {
            self.candidates.clear();
        }
        if self.candidates.is_empty() || !rule.broad_tools.contains(&call.name) {
            return None;
        }
        let count = self.candidates.len();
        Some(Block {
            action: "blocked",
            reason: "drill_or_stop_required",
            facts: facts(&[("pendingCandidateCount", count.into())]),
            advice: format!(
                "This search did not run: {count} candidates were found already. Open one of them, or answer \
                 with what is known."
            ),
        })
    }
}

fn reserve_block(rule: &ReserveFloor, def: &ToolDef, left: u32) -> Option<Block> {
    let own = categories(def);
    let blocked: Vec<_> = own.into_iter().filter(|name| rule.blocked_categories.contains(name)).collect();
    if left > rule.floor || blocked.is_empty() {
        return None;
    }
    Some(Block {
        action: "blocked",
        reason: "reserve_floor_reached",
        facts: facts(&[
            ("floor", rule.floor.into()),
            ("remainingToolCalls", left.into()),
            ("categories", blocked.into()),
        ]),
        advice: format!(
            "This call did not run: only {left} tool calls are left, which are kept for finishing the work."
        ),
    })
}

/// The categories that a tool's metadata names.
fn categories(def: &ToolDef) -> Vec<String> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Named {
        runtime_policy_categories: Option<Vec<String>>,
        categories: Option<Vec<String>>,
    }
    let named = def.metadata.as_ref().and_then(|metadata| metadata.to::<Named>().ok());
    named.and_then(|named| named.runtime_policy_categories.or(named.categories)).unwrap_or_default()
}

/// The candidates that a result's data names.
fn candidates(data: &Json) -> Vec<String> {
    let Ok(serde_json::Value::Object(data)) = data.to() else { return Vec::new() };
    let lists = ["candidates", "paths", "ids", "items"].iter().filter_map(|key| data.get(*key)?.as_array());
    let text = |value: &serde_json::Value| {
        let named = [Some(value), value.get("id"), value.get("path")];
        named.into_iter().flatten().find_map(|value| value.as_str()).map(str::to_owned)
    };
    lists.flatten().filter_map(text).filter(|text| !text.is_empty()).collect()
}

fn push_bounded<T>(list: &mut Vec<T>, item: T) {
    if list.len() >= KEPT {
        list.remove(0);
    }
    list.push(item);
}
