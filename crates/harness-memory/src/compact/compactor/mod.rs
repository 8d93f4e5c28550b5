//! The product's compactor: one owner that decides, plans, executes and renders.

mod draft;
mod mark;
mod rehydrate;
mod rungs;
mod state;
mod store;
mod summary;

use std::collections::BTreeMap;
use std::sync::Arc;

use harness_core::outcome::TotalUsage;
use harness_core::port::{
    CompactAsk, CompactReason, Compaction, CompactionLevel, CompactionNote, Compactor, DynCompactor,
    Overflow, Pressure,
};
use harness_core::transcript::{Plan, Prefix, Span};
use harness_core::{Fault, FaultSource, Origin};
use harness_host::DynArtifactStore;
use parking_lot::Mutex;

use self::draft::Draft;
use self::rungs::{Aim, Means};
use self::state::{Shown, State};
use super::durability::DurabilityPolicies;
use super::meter::BudgetMeter;
use super::policy::{CompactionPolicy, Recency, Rung, Size, Target};
use super::summarize::{DynSummarizer, Summarizer, SummaryCache};
use super::tokens::CharacterCounter;
use crate::compact::tokens::TokenCounter;
use crate::shared::{apart, recent};
use lru::LruCache;

pub use self::rehydrate::Rehydration;

/// Threads that are remembered. A forgotten thread continues from the plan of the request.
const THREADS: usize = 256;

/// Code of the error that reports a view which is shorter, but longer than its target.
pub const TARGET_MISSED: &str = "compact_target_missed";

/// Makes views shorter as its [`CompactionPolicy`] says: before every request, when a provider refuses one,
/// and on request.
///
/// It works on whole groups: a call and its results stay together. The system part, the newest group, pinned
/// messages and pending approvals are never touched, nor is the first thing that the user said where
/// [`CompactionPolicy::keep_first_prompt`] is set. The transcript
/// stays as it is; what is shown instead of parts of it is a plan, which only changes when the next
/// compaction is due, so that a provider's prompt cache serves the requests in between.
///
/// Failures are reported: a summary that fails or is not shorter is an error in the reply
/// and the next rung is taken; a view that is too long even so is an overflow, and is not sent.
///
/// One compactor serves any number of threads.
///
/// ```
/// use std::sync::Arc;
/// use harness_core::message::{AssistantMessage, Block, Message, ToolCall, ToolResultMessage};
/// use harness_core::port::{CompactAsk, Compactor, ViewCx};
/// use harness_core::transcript::{Transcript, View};
/// use harness_core::{Json, Origin, Time};
/// use harness_memory::compact::{CompactionPolicy, ContextCompactor};
///
/// let mut log = Transcript::default();
/// log.push(Arc::new(Message::user("Find the bug.")));
/// for n in 0..20 {
///     let call = ToolCall::new(format!("c{n}"), "read_file", Json::empty_object());
///     let result = ToolResultMessage::new(&call, vec![Block::text("x".repeat(4_000))], false);
///     log.push(Arc::new(AssistantMessage::calls([call]).into()));
///     log.push(Arc::new(result.into()));
/// }
///
/// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
/// let compactor = ContextCompactor::new(CompactionPolicy::ladder(20_000));
/// let cx = ViewCx::new(log.prefix(), Arc::new(Origin::default()), Time(0));
/// let compaction = compactor.compact(CompactAsk::new(View::whole(log.prefix()), None, cx)).await?;
/// let note = compaction.note.ok_or("nothing was done")?;
/// assert_eq!(note.actions, [("clear".to_owned(), 7)]);
/// assert!(note.tokens_before > 20_000 && note.tokens_after <= 14_000);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(derive_more::Debug)]
pub struct ContextCompactor {
    policy: CompactionPolicy,
    #[debug(skip)]
    counter: Arc<dyn TokenCounter>,
    durability: DurabilityPolicies,
    #[debug(skip)]
    summarizer: Option<Arc<dyn DynSummarizer>>,
    #[debug(skip)]
    store: Option<Arc<dyn DynArtifactStore>>,
    rehydration: Option<Rehydration>,
    #[debug(skip)]
    cache: Mutex<SummaryCache>,
    #[debug(skip)]
    threads: Mutex<LruCache<String, Arc<Mutex<State>>>>,
}

/// Target of one compaction.
#[derive(Clone, Copy, Debug)]
struct Goal {
    /// Tokens of the request now.
    estimate: u64,
    /// Tokens of the request to get to; 0 where everything old goes, or messages are counted.
    target: u64,
    aim: Aim,
    /// Tokens above which nothing is sent; `None` when unknown.
    ceiling: Option<u64>,
    /// Thousandths by which counted tokens are the provider's.
    factor: u64,
    /// Counted tokens other than messages.
    overhead: u64,
}

impl Goal {
    /// So many of the provider's tokens, as counted messages.
    fn counted(&self, tokens: u64) -> u64 {
        (tokens.saturating_mul(1_000) / self.factor.max(1)).saturating_sub(self.overhead)
    }

    /// The request with messages of so many counted tokens.
    fn request(&self, counted: u64) -> u64 {
        counted.saturating_add(self.overhead).saturating_mul(self.factor).div_ceil(1_000)
    }

    /// So many of the provider's tokens of messages, as counted.
    fn counted_gain(&self, tokens: u64) -> u64 {
        tokens.saturating_mul(1_000) / self.factor.max(1)
    }

    fn is_too_long(&self, counted: u64) -> bool {
        self.ceiling.is_some_and(|ceiling| self.request(counted) > ceiling)
    }
}

/// Result so far.
#[derive(Debug, Default)]
struct Done {
    actions: BTreeMap<Rung, u32>,
    summary: Option<String>,
    /// A summarizer that failed is not asked again in the same compaction.
    has_failed: bool,
    usage: TotalUsage,
    failed: Vec<Fault>,
    pressure: Option<Pressure>,
}

impl ContextCompactor {
    /// A compactor that counts characters, knows the usual tools, and neither summarizes nor stores: a rung
    /// whose means are missing is passed over.
    pub fn new(policy: CompactionPolicy) -> Self {
        Self {
            policy,
            counter: Arc::new(CharacterCounter),
            durability: DurabilityPolicies::built_in(),
            summarizer: None,
            store: None,
            rehydration: None,
            cache: Mutex::default(),
            threads: Mutex::new(recent(THREADS)),
        }
    }

    /// Sets the summarizer.
    #[must_use]
    pub fn with_summarizer(self, summarizer: impl Summarizer + 'static) -> Self {
        Self { summarizer: Some(Arc::new(summarizer)), ..self }
    }

    /// Stores large contents in `store`. Offer the model
    /// [`read_artifact_tool`](crate::compact::artifacts::read_artifact_tool) with the same store.
    #[must_use]
    pub fn with_artifacts(self, store: Arc<dyn DynArtifactStore>) -> Self {
        Self { store: Some(store), ..self }
    }

    /// Shows stored contents again when they are named. Default off.
    #[must_use]
    pub fn with_rehydration(self, limits: Rehydration) -> Self {
        Self { rehydration: Some(limits), ..self }
    }

    /// Sets the token counter.
    #[must_use]
    pub fn with_counter(self, counter: Arc<dyn TokenCounter>) -> Self {
        Self { counter, ..self }
    }

    /// Sets the rules for the results of tools. What a tool of the agent declares in its metadata goes first
    /// ([`DurabilityPolicies::with_declared`]). Default: [`DurabilityPolicies::built_in`].
    #[must_use]
    pub fn with_durability(self, durability: DurabilityPolicies) -> Self {
        Self { durability, ..self }
    }

    /// Policy of the compactor.
    pub fn policy(&self) -> &CompactionPolicy {
        &self.policy
    }

    /// Target for the view; `None` when it may stay as it is.
    fn goal(&self, ask: &CompactAsk, state: &mut State, plan: Option<&Plan>) -> Option<Goal> {
        let (log, prepared, window) = (&ask.cx.log, ask.cx.prepared.as_ref(), self.policy.window);
        if let Some(measured) = &ask.measured {
            state.meter.learn(measured, log, prepared);
        }
        let counted = state.meter.counted(log, plan, prepared);
        if matches!(ask.reason, CompactReason::Overflow) && window > 0 {
            state.meter.learn_overflow(counted, window);
        }
        let estimate = state.meter.corrected(counted);
        let empty = Plan { spans: Arc::from([]) };
        let overhead = state.meter.counted(log, Some(&empty), prepared);
        let tokens = counted.saturating_sub(overhead);
        let size = Size { request: estimate, tokens, messages: messages_of(log, plan) };
        if matches!(ask.reason, CompactReason::Request) && !self.policy.is_due_at(size) {
            return None;
        }
        let ceiling = (window > 0).then(|| self.policy.ceiling());
        let (target, aim, factor) = (0, Aim::Tokens(0), state.meter.factor());
        Some(self.aimed(ask, Goal { estimate, target, aim, ceiling, factor, overhead }))
    }

    /// The goal with what is to be reached.
    fn aimed(&self, ask: &CompactAsk, goal: Goal) -> Goal {
        let at_request = |target| Goal { target, aim: Aim::Tokens(goal.counted(target)), ..goal };
        match (&ask.reason, self.policy.target) {
            (CompactReason::Overflow, _) if self.policy.window > 0 => at_request(self.policy.window / 2),
            (CompactReason::Overflow, _) => at_request(goal.estimate / 2),
            (_, Target::Tokens(tokens)) => {
                Goal { target: goal.request(tokens), aim: Aim::Tokens(tokens), ..goal }
            }
            (_, Target::Messages(messages)) => Goal { aim: Aim::Messages(messages), ..goal },
            (CompactReason::Requested { .. }, Target::Slack(_)) | (_, Target::Everything) => goal,
            (_, Target::Slack(_)) => at_request(self.policy.target()),
        }
    }

    /// That the window fills, once per crossing.
    fn pressure(&self, goal: &Goal, state: &mut State) -> Option<Pressure> {
        let (window, estimate) = (self.policy.window, goal.estimate);
        let is_due = self.policy.is_due(estimate);
        let crossed = !std::mem::replace(&mut state.pressed, is_due) && is_due;
        let (soft, blocking) = (self.policy.trigger(), self.policy.ceiling());
        crossed.then_some(Pressure { estimate, soft, blocking, window })
    }

    fn recency(&self, ask: &CompactAsk, goal: &Goal) -> Recency {
        let keep = Recency { tokens: goal.counted_gain(self.policy.keep_tokens()), ..self.policy.recency };
        match ask.reason {
            // Somebody who asks wants a short view, however short the conversation is.
            CompactReason::Requested { .. } => {
                Recency { messages: 0, tokens: keep.tokens.min(goal.counted(goal.estimate) / 4), ..keep }
            }
            CompactReason::Overflow => {
                Recency { tokens: keep.tokens.min(goal.counted(goal.target) / 2), ..keep }
            }
            CompactReason::Request | _ => keep,
        }
    }

    /// Whether anything can go altogether, or into a summary.
    fn may_remove(&self) -> bool {
        self.policy.ladder.iter().any(|rung| match rung {
            Rung::Drop | Rung::Truncate | Rung::Select => true,
            Rung::Summarize => self.summarizer.is_some(),
            Rung::Clear | Rung::Collapse | Rung::Externalize => false,
        })
    }

    /// The rungs to take.
    fn ladder(&self, ask: &CompactAsk, is_stored_in_use: bool) -> Vec<Rung> {
        let all = &self.policy.ladder;
        let summarizes = all.contains(&Rung::Summarize) && self.summarizer.is_some();
        match ask.reason {
            CompactReason::Requested { .. } if summarizes => vec![Rung::Summarize],
            CompactReason::Request if is_stored_in_use => {
                all.iter().copied().filter(|rung| !rung.waits_for_stored()).collect()
            }
            CompactReason::Requested { .. } | CompactReason::Overflow | CompactReason::Request | _ => {
                all.clone()
            }
        }
    }

    /// The view that may stay as it is, with what is named of what was stored elsewhere.
    async fn rehydrated(&self, ask: &CompactAsk, state: &Mutex<State>, plan: Option<Plan>) -> Compaction {
        let unchanged = planned(plan.clone(), ask.plan.as_ref());
        let (Some(limits), Some(store)) = (&self.rehydration, &self.store) else { return unchanged };
        let log = &ask.cx.log;
        let (wanted, room) = {
            let mut state = state.lock();
            let wanted = state.shelf.wanted(ask, limits);
            if wanted.is_empty() {
                return unchanged;
            }
            let estimate = state.meter.estimate(log, plan.as_ref(), ask.cx.prepared.as_ref());
            let is_known = self.policy.window > 0;
            (wanted, if is_known { self.policy.trigger().saturating_sub(estimate) } else { limits.total })
        };
        let messages = rehydrate::fetch(wanted, limits, room, &**store, &*self.counter, ask).await;
        if messages.is_empty() {
            return unchanged;
        }
        state.lock().shelf.note_shown();
        Compaction::planned(rehydrate::at_end(plan.as_ref(), log, messages))
    }

    async fn climb(
        &self,
        ladder: &[Rung],
        draft: &mut Draft,
        ask: &CompactAsk,
        goal: &Goal,
        state: &Mutex<State>,
        done: &mut Done,
    ) {
        let tools = ask.cx.prepared.iter().flat_map(|prepared| prepared.tools.iter());
        let means = Means {
            policy: &self.policy,
            durability: &self.durability.clone().with_declared(tools),
            counter: &*self.counter,
            aim: goal.aim,
        };
        for rung in ladder {
            if means.are_done(draft) || ask.cx.cancel.is_cancelled() {
                break;
            }
            let groups = match rung {
                Rung::Clear => rungs::clear(draft, &means),
                Rung::Collapse => rungs::collapse(draft, &means),
                Rung::Externalize => self.externalize(draft, &means, ask, done).await,
                Rung::Summarize => self.summarize(draft, &means, ask, state, done).await,
                Rung::Drop => rungs::drop_old(draft, &means),
                Rung::Truncate => rungs::truncate(draft, &means),
                Rung::Select => rungs::select(draft, &means),
            };
            if groups > 0 {
                *done.actions.entry(*rung).or_default() += groups;
            }
        }
    }

    async fn externalize(
        &self,
        draft: &mut Draft,
        means: &Means<'_>,
        ask: &CompactAsk,
        done: &mut Done,
    ) -> u32 {
        let Some(store) = &self.store else { return 0 };
        let stored = store::externalize(draft, means, &**store, &ask.cx).await;
        done.failed.extend(stored.failed);
        stored.groups
    }

    async fn summarize(
        &self,
        draft: &mut Draft,
        means: &Means<'_>,
        ask: &CompactAsk,
        state: &Mutex<State>,
        done: &mut Done,
    ) -> u32 {
        let Some(summarizer) = &self.summarizer else { return 0 };
        if done.has_failed || !state.lock().breaker.lets_through() {
            return 0;
        }
        let instructions = match &ask.reason {
            CompactReason::Requested { instructions } => instructions.clone(),
            CompactReason::Request | CompactReason::Overflow | _ => None,
        };
        let made =
            summary::summarize_old(draft, means, &**summarizer, &self.cache, instructions, &ask.cx).await;
        done.has_failed = made.failed.is_some();
        state.lock().breaker.note(!done.has_failed);
        done.usage.merge(&made.usage);
        done.failed.extend(made.failed.map(|failed| failed.fault));
        done.summary = made.text.or(done.summary.take());
        made.groups
    }
}

/// The reply: the new plan when something was changed, else the one in force.
fn settle(ask: &CompactAsk, goal: &Goal, draft: &Draft, state: &Mutex<State>, done: Done) -> Compaction {
    let mut state = state.lock();
    let mut compaction = Compaction::unchanged();
    compaction.usage = done.usage;
    compaction.failed = done.failed;
    compaction.pressure = done.pressure;
    let tokens = goal.request(draft.tokens);
    if let Some(ceiling) = goal.ceiling.filter(|ceiling| tokens > *ceiling) {
        compaction.overflow = Some(Overflow { tokens, ceiling });
    }
    if !draft.is_changed() {
        compaction.plan = planned(state.in_force(&ask.cx.log, ask.plan.as_ref()), ask.plan.as_ref()).plan;
        if matches!(ask.reason, CompactReason::Overflow) {
            let ceiling = goal.ceiling.unwrap_or(goal.estimate.saturating_sub(1));
            compaction.overflow = Some(Overflow { tokens, ceiling });
        }
        return compaction;
    }
    let log = &ask.cx.log;
    let plan = state.put(draft.edits(log), &draft.shown(), log, ask.plan.as_ref());
    compaction.plan = Some(plan);
    let is_missed = tokens > goal.target && goal.target > 0 && compaction.overflow.is_none();
    if is_missed {
        let text = format!("the view has {tokens} tokens after compaction, {} were aimed at", goal.target);
        compaction.failed.push(Fault::new(FaultSource::Compactor, TARGET_MISSED, text));
    }
    let mut note = CompactionNote::default();
    (note.tokens_before, note.tokens_after, note.target) = (goal.estimate, tokens, goal.target);
    note.plan_version = state.version;
    note.level = level(goal.estimate, tokens, done.summary.is_some());
    note.actions = done.actions.into_iter().map(|(rung, groups)| (rung.to_string(), groups)).collect();
    note.summary = done.summary;
    note.first_kept = state.first_kept() as u64;
    compaction.note = Some(note);
    compaction
}

/// How many messages a view has.
fn messages_of(log: &Prefix, plan: Option<&Plan>) -> usize {
    let of_span = |span: &Span| match span {
        Span::Kept(range) => range.end.min(log.len()).saturating_sub(range.start),
        Span::Made(made) => made.len(),
    };
    plan.map_or(log.len(), |plan| plan.spans.iter().map(of_span).sum())
}

/// The plan in force, where the host does not know it.
fn planned(plan: Option<Plan>, asked: Option<&Plan>) -> Compaction {
    plan.filter(|plan| asked != Some(plan)).map_or_else(Compaction::unchanged, Compaction::planned)
}

fn level(before: u64, after: u64, summarized: bool) -> CompactionLevel {
    if after.saturating_mul(10) <= before {
        CompactionLevel::Destructive
    } else if summarized {
        CompactionLevel::Compressed
    } else {
        CompactionLevel::Optimized
    }
}

/// Name of the thread of this work. A sub-agent has its own view in the thread of its caller.
fn thread_of(origin: &Origin) -> String {
    let thread = origin.thread.as_ref().map_or("", |id| id.as_str());
    let session = origin.session.as_ref().map_or("", |id| id.as_str());
    let child = origin.run.as_ref().filter(|_| origin.parent.is_some()).map_or("", |id| id.as_str());
    format!("{thread}\n{session}\n{child}")
}

impl Compactor for ContextCompactor {
    /// Contents that the twin stores stay in the artifact store.
    fn ahead(&self) -> Option<Arc<dyn DynCompactor>> {
        let cache = self.cache.lock().clone();
        Some(Arc::new(Self {
            policy: self.policy.clone(),
            counter: Arc::clone(&self.counter),
            durability: self.durability.clone(),
            summarizer: self.summarizer.clone(),
            store: self.store.clone(),
            rehydration: self.rehydration,
            cache: Mutex::new(cache),
            threads: Mutex::new(apart(&self.threads.lock())),
        }))
    }

    async fn compact(&self, ask: CompactAsk) -> Result<Compaction, Fault> {
        let (log, asked) = (&ask.cx.log, ask.plan.as_ref());
        let new = || Arc::new(Mutex::new(State::new(BudgetMeter::new(Arc::clone(&self.counter)))));
        let state = Arc::clone(self.threads.lock().get_or_insert(thread_of(&ask.cx.origin), new));
        let begun = {
            let mut state = state.lock();
            state.follow(log, asked);
            let plan = state.in_force(log, asked);
            if let Some(goal) = self.goal(&ask, &mut state, plan.as_ref()) {
                let shown = state.shown(log, asked);
                let meter = &mut state.meter;
                let cost = |shown: &Shown| meter.tokens_of(&shown.message, shown.at);
                Ok((Draft::of(&shown, self.policy.keep_first_prompt, cost), goal))
            } else {
                state.pressed = false;
                Err(plan)
            }
        };
        let (mut draft, goal) = match begun {
            Ok(begun) => begun,
            Err(plan) => return Ok(self.rehydrated(&ask, &state, plan).await),
        };
        draft.keep(self.recency(&ask, &goal));
        let mut done = Done { pressure: self.pressure(&goal, &mut state.lock()), ..Done::default() };
        // Above the hard stop nothing waits, and every change counts.
        let may_wait = matches!(ask.reason, CompactReason::Request) && !goal.is_too_long(draft.tokens);
        if let Some(changes) = self.policy.max_changes.filter(|_| may_wait) {
            draft.allow(changes);
        }
        let is_in_use = may_wait && state.lock().shelf.is_in_use(ask.cx.origin.turn.as_ref());
        let ladder = self.ladder(&ask, is_in_use);
        let is_worth_it = draft.possible_gain(self.may_remove()) >= goal.counted_gain(self.policy.min_gain());
        if is_worth_it || !may_wait {
            self.climb(&ladder, &mut draft, &ask, &goal, &state, &mut done).await;
        }
        if goal.is_too_long(draft.tokens) {
            // Better little is kept than nothing is sent.
            draft.keep(Recency::new(0, goal.counted(goal.target) / 4));
            self.climb(&ladder, &mut draft, &ask, &goal, &state, &mut done).await;
        }
        Ok(settle(&ask, &goal, &draft, &state, done))
    }
}

#[cfg(test)]
mod tests {
    use harness_core::ParentCall;

    use super::*;

    #[test]
    fn a_sub_agent_has_its_own_state() {
        let mut caller = Origin::default();
        caller.thread = Some("t".into());
        let mut child = caller.child(ParentCall::new("c1", "desk", &caller));
        child.run = Some("child".into());
        assert_eq!([&caller, &child].map(thread_of), ["t\n\n", "t\n\nchild"]);
    }
}
