//! A compactor that puts one summary in front of the newest turns.

mod mark;
mod state;
mod weigh;

use std::sync::{Arc, Mutex, PoisonError};

use harness_core::Fault;
use harness_core::message::{Block, Message, UserMessage};
use harness_core::port::{
    CompactAsk, CompactReason, Compaction, CompactionLevel, CompactionNote, Compactor, DynCompactor, Overflow,
};

use self::mark::mark;
use self::state::{Projection, State};
use self::weigh::{estimate, find_cut, weight, weights};
use super::group::{GroupKind, Groups};
use super::shown::{Shown, is_open, plan_of, shown_by};
use super::summarize::{DynSummarizer, Summarizer, Summary, SummaryAsk, SummaryFault, summarize};
use super::threads::Threads;

/// When a [`SummarizingCompactor`] compacts, and how much it keeps. Zero means the default.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SummarizingSettings {
    /// Tokens that stay free for the answer; the trigger is the window without them. 16,384.
    pub reserve_tokens: u64,
    /// Tokens of the newest messages that are kept as they are, at least. 20,000.
    pub keep_recent_tokens: u64,
    /// What happens when somebody asks for a shorter transcript. Default: it is made.
    pub when_asked: WhenAsked,
}

/// What happens when somebody asks for a shorter transcript.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum WhenAsked {
    /// It is made, whatever the trigger says, and keeps less than usual where there is little.
    #[default]
    Always,
    /// It is made above the trigger, as before a request.
    AboveTrigger,
}

impl SummarizingSettings {
    const DEFAULT: Self =
        Self { reserve_tokens: 16_384, keep_recent_tokens: 20_000, when_asked: WhenAsked::Always };

    /// These settings; zero means the default.
    pub fn new(reserve_tokens: u64, keep_recent_tokens: u64) -> Self {
        let or = |value: u64, default: u64| if value == 0 { default } else { value };
        Self {
            reserve_tokens: or(reserve_tokens, Self::DEFAULT.reserve_tokens),
            keep_recent_tokens: or(keep_recent_tokens, Self::DEFAULT.keep_recent_tokens),
            ..Self::DEFAULT
        }
    }

    /// The same settings, with another answer to whoever asks for a shorter transcript.
    #[must_use]
    pub fn when_asked(mut self, when_asked: WhenAsked) -> Self {
        self.when_asked = when_asked;
        self
    }
}

impl Default for SummarizingSettings {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// A compactor with one summary: above `window - reserve` everything before the newest turns becomes one
/// summary, which is put in front of the first message that is kept.
///
/// A request weighs the usage of the last answer, and a quarter of the bytes of what came after it. The
/// rules:
///
/// - usage counts only when its request was sent the view that is in force, and a shortened view stays
///   shortened until it has to become shorter still; usage from before a compaction that was made for good does
///   not count behind it, not in another process either: the summary says in its metadata what it stood before;
/// - one prompt with many tool calls behind it is cut at the newest answer that is old enough;
/// - summaries are remembered by content, and an earlier one is updated with the new part only;
/// - pinned messages, the system part and pending approvals are never summarized;
/// - a summary that fails leaves the view as it is; three failures in a row leave the next five requests
///   alone.
///
/// ```
/// use harness_memory::compact::{PlainSummarizer, SummarizingCompactor, SummarizingSettings, SummaryModel};
/// # fn build(model: impl harness_core::port::Model + 'static) -> SummarizingCompactor {
/// let summarizer = PlainSummarizer::new(SummaryModel::new(model, 200_000));
/// SummarizingCompactor::new(summarizer, 200_000, SummarizingSettings::default())
/// # }
/// ```
pub struct SummarizingCompactor {
    summarizer: Arc<dyn DynSummarizer>,
    window: u64,
    settings: SummarizingSettings,
    threads: Threads<State>,
}

impl std::fmt::Debug for SummarizingCompactor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SummarizingCompactor")
            .field("window", &self.window)
            .field("settings", &self.settings)
            .finish_non_exhaustive()
    }
}

/// What the request is about: its messages, and what stands for the oldest of them already.
struct Situation {
    items: Vec<Shown>,
    open: bool,
    in_force: Option<Projection>,
    estimate: u64,
}

impl SummarizingCompactor {
    /// A compactor for a model with this window, in tokens; 0 is a window that nobody knows, and nothing is
    /// compacted before a provider refuses a request or somebody asks for it.
    pub fn new(summarizer: impl Summarizer + 'static, window: u64, settings: SummarizingSettings) -> Self {
        Self { summarizer: Arc::new(summarizer), window, settings, threads: Threads::default() }
    }

    fn trigger(&self) -> u64 {
        self.window.saturating_sub(self.settings.reserve_tokens)
    }

    fn is_due(&self, ask: &CompactAsk, estimate: u64) -> bool {
        self.is_forced(&ask.reason) || (self.window > 0 && estimate > self.trigger())
    }

    /// Whether the trigger does not count.
    fn is_forced(&self, reason: &CompactReason) -> bool {
        match reason {
            CompactReason::Overflow => true,
            CompactReason::Requested { .. } => self.settings.when_asked == WhenAsked::Always,
            CompactReason::Request | _ => false,
        }
    }

    fn situation(ask: &CompactAsk, state: &mut State) -> Situation {
        let log = &ask.cx.log;
        let in_force = state.in_force(log, ask.plan.as_ref());
        let plan = if in_force.is_some() { None } else { ask.plan.as_ref() };
        let items = shown_by(log, plan);
        let estimate = estimate(&items, in_force.as_ref(), ask);
        Situation { open: is_open(log, plan), items, in_force, estimate }
    }

    /// How much is kept: less than usual when the usual amount was too much for the provider, or when
    /// somebody asks for a short view.
    fn keep(&self, ask: &CompactAsk, weights: &[u64]) -> u64 {
        let keep = self.settings.keep_recent_tokens;
        if self.is_forced(&ask.reason) { keep.min(weights.iter().sum::<u64>() / 4) } else { keep }
    }

    async fn shorten(&self, ask: &CompactAsk, state: &Mutex<State>, now: Situation) -> Compaction {
        let weights = weights(&now.items);
        let cut = find_cut(&now.items, &weights, self.keep(ask, &weights));
        let in_force = now.in_force.as_ref();
        let mut compaction =
            in_force.map_or_else(Compaction::unchanged, |p| Compaction::planned(p.plan.clone()));
        let moved = |cut: &usize| in_force.is_none_or(|projection| *cut > projection.cut);
        let forced = matches!(ask.reason, CompactReason::Requested { .. }) && self.is_forced(&ask.reason);
        let (kept, covered) = match cut.filter(|cut| forced || moved(cut)) {
            Some(cut) => split(&now.items, cut),
            None => Default::default(),
        };
        let Some(cut) = cut.filter(|_| !covered.is_empty()) else {
            compaction.overflow = self.overflow(ask, &now);
            return compaction;
        };
        let made = match self.summary(ask, state, covered).await {
            Ok(made) => made,
            Err(failed) => {
                compaction.failed.extend(failed.as_ref().map(|failed| failed.fault.clone()));
                compaction.usage = failed.map(|failed| failed.usage).unwrap_or_default();
                compaction.overflow = self.overflow(ask, &now);
                return compaction;
            }
        };
        let items = merged(&made, kept, now.items.get(cut..).unwrap_or_default());
        let plan = plan_of(&items, &ask.cx.log, now.open);
        let tokens_after = items.iter().map(|item| weight(&item.message)).sum();
        let projection = Projection::new(cut, &now.items, &ask.cx.log, plan.clone());
        let version = lock(state).put(projection);
        let mut note = CompactionNote::default();
        (note.tokens_before, note.tokens_after, note.target) = (now.estimate, tokens_after, self.trigger());
        note.plan_version = version;
        note.actions = vec![("summarize".to_owned(), 1)];
        note.level = if tokens_after.saturating_mul(10) <= now.estimate {
            CompactionLevel::Destructive
        } else {
            CompactionLevel::Compressed
        };
        note.first_kept =
            now.items.iter().skip(cut).find_map(|item| item.at).unwrap_or(ask.cx.log.len()) as u64;
        note.summary = Some(made.text);
        let mut compaction = Compaction::planned(plan);
        compaction.note = Some(note);
        compaction.usage = made.usage;
        compaction
    }

    /// Nothing was summarized: a request that a provider refused must not be sent again.
    fn overflow(&self, ask: &CompactAsk, now: &Situation) -> Option<Overflow> {
        matches!(ask.reason, CompactReason::Overflow)
            .then_some(Overflow { tokens: now.estimate, ceiling: self.window })
    }

    /// The summary of these messages, remembered or new; `None` when none is asked for at the moment.
    async fn summary(
        &self,
        ask: &CompactAsk,
        state: &Mutex<State>,
        covered: Vec<Arc<Message>>,
    ) -> Result<Summary, Option<SummaryFault>> {
        let (instructions, cached) = match &ask.reason {
            CompactReason::Requested { instructions } => (instructions.clone(), instructions.is_none()),
            CompactReason::Request | CompactReason::Overflow | _ => (None, true),
        };
        let known = lock(state).cache.look_up("", &covered);
        let all = covered.len();
        let max_tokens = self.settings.reserve_tokens / 5 * 4;
        let request = match known.known {
            Some((summary, count)) if count == all && cached => return Ok(summary),
            Some((summary, count)) if count < all => {
                let fresh = covered.into_iter().skip(count).collect();
                SummaryAsk::new(fresh, max_tokens, ask.cx.clone()).after(summary, count)
            }
            Some(_) | None => SummaryAsk::new(covered, max_tokens, ask.cx.clone()),
        };
        if !lock(state).breaker.lets_through() {
            return Err(None);
        }
        let made = summarize(&*self.summarizer, request.with_instructions(instructions)).await;
        let mut state = lock(state);
        state.breaker.note(made.is_ok());
        match made {
            Ok(summary) => {
                state.cache.put(known.key, &summary);
                Ok(summary)
            }
            Err(fault) => Err(Some(fault)),
        }
    }
}

impl Compactor for SummarizingCompactor {
    fn ahead(&self) -> Option<Arc<dyn DynCompactor>> {
        let (summarizer, threads) = (Arc::clone(&self.summarizer), self.threads.copied());
        Some(Arc::new(Self { summarizer, window: self.window, settings: self.settings, threads }))
    }

    async fn compact(&self, ask: CompactAsk) -> Result<Compaction, Fault> {
        let state = self.threads.of(&ask.cx.origin);
        let now = Self::situation(&ask, &mut lock(&state));
        if self.is_due(&ask, now.estimate) {
            return Ok(self.shorten(&ask, &state, now).await);
        }
        let plan = now.in_force.map(|projection| projection.plan);
        Ok(plan.map_or_else(Compaction::unchanged, Compaction::planned))
    }
}

fn lock(state: &Mutex<State>) -> std::sync::MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What stays of the messages before the cut, and what is summarized of them: whole groups that nothing
/// protects.
fn split(items: &[Shown], cut: usize) -> (Vec<Shown>, Vec<Arc<Message>>) {
    let groups = Groups::of(items);
    let (mut kept, mut covered) = (Vec::new(), Vec::new());
    for (at, item) in items.iter().enumerate().take(cut) {
        let group = groups.index_of(at).and_then(|index| groups.get(index));
        if group.is_some_and(|group| group.is_protected() || group.last() >= cut) {
            kept.push(item.clone());
        } else if group.is_some_and(|group| group.kind != GroupKind::Unsent) {
            covered.push(Arc::clone(&item.message));
        }
    }
    (kept, covered)
}

/// The view: what is protected, the summary, what is kept. A user message that comes next carries the
/// summary as its first block, so that roles alternate as they did.
fn merged(summary: &Summary, mut items: Vec<Shown>, kept: &[Shown]) -> Vec<Shown> {
    let preface = Block::text(format!("Summary of the earlier conversation:\n\n{}\n\n---\n\n", summary.text));
    let carrier = kept.split_first().and_then(|(first, rest)| {
        let Message::User(user) = &*first.message else { return None };
        let mut user = user.clone();
        mark(&mut user, rest.len()).then_some((user, rest))
    });
    let (mut user, rest) = carrier.unwrap_or_else(|| {
        let mut user = UserMessage::default().from_origin("summary");
        mark(&mut user, kept.len());
        (user, kept)
    });
    user.content.insert(0, preface);
    items.push(Shown::made(user));
    items.extend(rest.iter().cloned());
    items
}

#[cfg(test)]
mod tests;
