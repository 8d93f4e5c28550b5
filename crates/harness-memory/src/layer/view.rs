//! The view of one iteration: bands of layers around the newest history that fits.

use std::ops::Range;
use std::sync::Arc;

use harness_core::message::Message;
use harness_core::port::{PreparedAgent, ViewCx};
use harness_core::transcript::{Plan, Prefix, Span};
use parking_lot::Mutex;

use super::ask::is_developer;
use super::assembly::Room;
use super::banding::Banded;
use super::budget::{Totals, share};
use super::def::Placement;
use super::flow::Output;
use super::history::History;
use super::run::LayerRun;
use super::tokens::message_tokens;
use super::usage::{DropReason, Dropped, LayerShare, LayerUsage, Served};
use crate::MemoryError;
use crate::compact::tokens::{Tally, TokenCounter};

/// Tokens of a request in addition to the view.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PreparedTokens {
    pub(crate) instructions: u64,
    pub(crate) tools: u64,
}

/// The last offer that was counted.
#[derive(Debug, Default)]
pub(crate) struct PreparedCount(Mutex<Option<(Arc<PreparedAgent>, PreparedTokens)>>);

impl PreparedCount {
    /// Tokens of the instructions and of the tool definitions, counted once per offer.
    pub(crate) fn of(&self, run: &LayerRun, prepared: Option<&Arc<PreparedAgent>>) -> PreparedTokens {
        let Some(prepared) = prepared else { return PreparedTokens::default() };
        let mut last = self.0.lock();
        if let Some((known, tokens)) = last.as_ref() {
            let is_same = Arc::ptr_eq(known, prepared)
                || (Arc::ptr_eq(&known.instructions, &prepared.instructions)
                    && Arc::ptr_eq(&known.tools, &prepared.tools));
            if is_same {
                return *tokens;
            }
        }
        let counter = &*run.stack.counter;
        let tools = if prepared.tools.is_empty() {
            0
        } else {
            serde_json::to_string(&*prepared.tools).map_or(0, |text| counter.count(&text))
        };
        let tokens = PreparedTokens { instructions: counter.count(&prepared.instructions), tools };
        *last = Some((Arc::clone(prepared), tokens));
        tokens
    }
}

/// The history of a view and what it costs.
#[derive(Debug, Default)]
struct Shown {
    spans: Vec<Span>,
    tokens: u64,
    dropped: Vec<Dropped>,
}

impl LayerRun {
    /// Makes the view of an iteration: recall, projection, bands, budget. `None` shows the whole transcript.
    ///
    /// # Errors
    /// The totals of the budget are not numbers, or layers chose a history that splits a call from its
    /// result in a way that cannot be mended.
    pub async fn view(&self, cx: &ViewCx) -> Result<(Option<Plan>, LayerUsage), MemoryError> {
        let prepared = self.stack.prepared.of(self, cx.prepared.as_ref());
        let flow = self.recall(&self.budgets(prepared)?, cx).await;
        let banded = self.band(flow.merged, cx).await;
        let history = self.project(History::whole(cx.log.clone()), cx).await;

        let counts = self.counts();
        let mut counts = counts.lock();
        counts.follow(&cx.log, &*self.stack.counter);
        let counter = &*self.stack.counter;
        let projected = history.spans().iter().map(|span| span_tokens(&counts, counter, span)).sum::<u64>();
        let (systems, history) = split_systems(&history, &counts);

        let mut usage = self.usage(cx, prepared, &banded);
        usage.system_tokens = systems.iter().map(|message| message_tokens(counter, message)).sum();
        let mut room = self.room(prepared);
        room.take_all([usage.system_tokens].into_iter());
        let anchor = take_band(&mut room, &banded.anchor, counter, &mut usage);
        let live = take_band(&mut room, &banded.live, counter, &mut usage);
        let supersede = banded.supersede.as_ref().map(|(message, tokens)| {
            usage.supersede_tokens = *tokens;
            Arc::clone(message)
        });
        room.take_all([usage.supersede_tokens].into_iter());
        usage.anchor_tokens = anchor.1;
        usage.live_tokens = live.1;
        let left_out = counts.range(0..cx.log.len()).saturating_sub(projected);
        if left_out > 0 {
            let items = cx.log.len().saturating_sub(history.len() + systems.len());
            let reason = DropReason::Projection;
            usage.dropped.push(Dropped { layer_id: None, items, tokens: left_out, reason });
        }
        let window = self.stack.budget.and_then(|budget| budget.window).unwrap_or(usize::MAX);
        let shown = newest(&history, &counts, counter, room.0, window);
        usage.history_tokens = shown.tokens;
        usage.dropped.extend(shown.dropped);
        usage.total_used_tokens = prepared.instructions
            + prepared.tools
            + usage.system_tokens
            + usage.anchor_tokens
            + usage.history_tokens
            + usage.live_tokens
            + usage.supersede_tokens;

        let before = systems.into_iter().chain(anchor.0).collect();
        let after = live.0.into_iter().chain(supersede).collect();
        Ok((plan(&cx.log, before, shown.spans, after)?, usage))
    }

    /// Tokens of each layer, by position.
    fn budgets(&self, prepared: PreparedTokens) -> Result<Vec<u64>, MemoryError> {
        let mut tokens = vec![0; self.stack.layers.len()];
        let Some(budget) = self.stack.budget else { return Ok(tokens) };
        let (positions, budgets) = self.recall_budgets();
        let system = prepared.instructions.saturating_add(prepared.tools);
        let totals =
            Totals::new(as_float(budget.tokens), as_float(budget.response_reserve), as_float(system));
        for (at, share) in positions.into_iter().zip(share(totals, &budgets)?.layers) {
            if let Some(tokens) = tokens.get_mut(at) {
                *tokens = as_tokens(share);
            }
        }
        Ok(tokens)
    }

    fn room(&self, prepared: PreparedTokens) -> Room {
        let Some(budget) = &self.stack.budget else { return Room(u64::MAX) };
        Room(budget.room().saturating_sub(prepared.instructions).saturating_sub(prepared.tools))
    }

    /// The report of the view so far: the layers, and what goes with every request.
    fn usage(&self, cx: &ViewCx, prepared: PreparedTokens, banded: &Banded) -> LayerUsage {
        let share = |(output, placement): (&Output, Placement)| {
            let churn = banded.churn.get(&output.layer).copied().unwrap_or_default();
            let is_pinned = placement == Placement::Anchor && banded.is_pinned;
            LayerShare {
                layer_id: output.layer.clone(),
                token_count: output.tokens,
                items: output.items.len(),
                placement,
                served: if is_pinned { Served::Pinned } else { Served::Fresh },
                changed: banded.stale.contains(&output.layer),
                churn_rate: churn.rate(),
                rebill_tokens: churn.rebill_tokens,
            }
        };
        let anchored = banded.anchor.iter().map(|output| (output, Placement::Anchor));
        let live = banded.live.iter().map(|output| (output, Placement::Live));
        let mut layers: Vec<LayerShare> = anchored.chain(live).map(share).collect();
        layers.sort_by(|a, b| a.layer_id.cmp(&b.layer_id));
        LayerUsage {
            execution_id: Arc::clone(&self.execution.id),
            model_id: cx.prepared.as_ref().and_then(|prepared| prepared.model.clone()),
            layers,
            system_prompt_tokens: prepared.instructions,
            tools_tokens: prepared.tools,
            system_tokens: 0,
            anchor_tokens: 0,
            history_tokens: 0,
            live_tokens: 0,
            supersede_tokens: 0,
            total_used_tokens: 0,
            dropped: Vec::new(),
            epoch: banded.epoch.clone(),
            exhausted_guides: self.lock_progress().exhausted,
            spent: self.spent(),
        }
    }
}

/// The messages of a band that fit, each asked by itself, and their tokens. What does not fit is noted.
fn take_band(
    room: &mut Room,
    band: &[Output],
    counter: &dyn TokenCounter,
    usage: &mut LayerUsage,
) -> (Vec<Arc<Message>>, u64) {
    let (mut taken, mut sum) = (Vec::new(), 0_u64);
    for output in band {
        let (mut items, mut tokens) = (0, 0_u64);
        for message in output.items.iter() {
            let cost = message_tokens(counter, message);
            if room.take(cost) {
                sum = sum.saturating_add(cost);
                taken.push(Arc::clone(message));
            } else {
                (items, tokens) = (items + 1, tokens.saturating_add(cost));
            }
        }
        if items > 0 {
            let layer_id = Some(output.layer.clone());
            usage.dropped.push(Dropped { layer_id, items, tokens, reason: DropReason::Budget });
        }
    }
    (taken, sum)
}

fn span_tokens(counts: &Tally, counter: &dyn TokenCounter, span: &Span) -> u64 {
    match span {
        Span::Kept(range) => counts.range(range.clone()),
        Span::Made(messages) => messages.iter().map(|message| message_tokens(counter, message)).sum(),
    }
}

/// Takes the system messages out of the history.
fn split_systems(history: &History, counts: &Tally) -> (Vec<Arc<Message>>, History) {
    let log = history.log();
    let mut systems = Vec::new();
    let mut rest = History::of(log.clone(), []);
    for span in history.spans() {
        match span {
            Span::Kept(range) => {
                let mut from = range.start;
                for at in counts.systems(range) {
                    systems.extend(log.get(*at).cloned());
                    rest.push(Span::Kept(from..*at));
                    from = at + 1;
                }
                rest.push(Span::Kept(from..range.end));
            }
            Span::Made(messages) => {
                let is_system = |m: &&Arc<Message>| matches!(***m, Message::System(_)) && !is_developer(m);
                systems.extend(messages.iter().filter(is_system).cloned());
                rest.push(Span::Made(messages.iter().filter(|m| !is_system(m)).cloned().collect()));
            }
        }
    }
    (systems, rest)
}

/// The newest of the history that fit, without calls and results that are not together. What is newest
/// of all is shown even when it does not fit: a view without it asks nothing.
fn newest(history: &History, counts: &Tally, counter: &dyn TokenCounter, room: u64, window: usize) -> Shown {
    let mut shown = mended(fitting(history, counts, counter, room, window));
    if shown.is_empty() && !history.is_empty() {
        let last = history.len() - history.iter().rev().take_while(|m| is_result(m)).count();
        shown = mended(history.slice(last.saturating_sub(1)..history.len()));
    }
    let tokens_of = |history: &History| {
        history.spans().iter().map(|span| span_tokens(counts, counter, span)).fold(0, u64::saturating_add)
    };
    let tokens = tokens_of(&shown);
    let lost = tokens_of(history).saturating_sub(tokens);
    let items = history.len() - shown.len();
    let reason = DropReason::Budget;
    let dropped = (items > 0).then_some(Dropped { layer_id: None, items, tokens: lost, reason });
    Shown { spans: shown.spans().to_vec(), tokens, dropped: dropped.into_iter().collect() }
}

/// The newest messages that fit, walked span by span from the end.
fn fitting(
    history: &History,
    counts: &Tally,
    counter: &dyn TokenCounter,
    room: u64,
    window: usize,
) -> History {
    let (mut room, mut window) = (room, window);
    let mut kept: Vec<Span> = Vec::new();
    for span in history.spans().iter().rev() {
        match span {
            Span::Kept(range) => {
                let first = range.start.max(range.end.saturating_sub(window));
                let start = counts.newest(first..range.end, room);
                room = room.saturating_sub(counts.range(start..range.end));
                window -= range.end - start;
                kept.push(Span::Kept(start..range.end));
                if start > range.start {
                    break;
                }
            }
            Span::Made(messages) => {
                let mut left = Room(room);
                let fits = |message: &&Arc<Message>| left.take(message_tokens(counter, message));
                let count = messages.iter().rev().take(window).take_while(fits).count();
                room = left.0;
                window -= count;
                kept.push(Span::Made(messages.iter().skip(messages.len() - count).cloned().collect()));
                if count < messages.len() {
                    break;
                }
            }
        }
    }
    History::of(history.log().clone(), kept.into_iter().rev())
}

/// A history in which each call is before its result. In a stretch of the transcript only its borders can split them;
/// messages that layers made are checked one by one.
fn mended(mut history: History) -> History {
    let is_made = history.spans().iter().any(|span| matches!(span, Span::Made(_)));
    loop {
        let before = history.len();
        history = bordered(&if is_made { history.paired() } else { history });
        // A result that goes at a border leaves a call without one.
        if !is_made || history.len() == before {
            return history;
        }
    }
}

/// A history of which no stretch starts with a result or ends with a call.
fn bordered(history: &History) -> History {
    let log = history.log();
    let mut out = History::of(log.clone(), []);
    let spans = history.spans();
    for (at, span) in spans.iter().enumerate() {
        let Span::Kept(range) = span else {
            out.push(span.clone());
            continue;
        };
        let is_result_at = |at: usize| log.get(at).is_some_and(is_result);
        let mut range: Range<usize> = range.clone();
        let before = at.checked_sub(1).and_then(|before| spans.get(before));
        if !matches!(before, Some(Span::Kept(before)) if before.end == range.start) {
            while range.start < range.end && is_result_at(range.start) {
                range.start += 1;
            }
        }
        if is_result_at(range.end) {
            while range.start < range.end && is_result_at(range.end - 1) {
                range.end -= 1;
            }
            range.end = range.end.saturating_sub(1).max(range.start);
        }
        out.push(Span::Kept(range));
    }
    out
}

fn is_result(message: &Arc<Message>) -> bool {
    matches!(**message, Message::ToolResult(_))
}

/// The plan of the bands; `None` when it would show the whole transcript and nothing else.
fn plan(
    log: &Prefix,
    before: Vec<Arc<Message>>,
    history: Vec<Span>,
    after: Vec<Arc<Message>>,
) -> Result<Option<Plan>, MemoryError> {
    let is_whole = matches!(history.as_slice(), [Span::Kept(range)] if *range == (0..log.len()))
        || (history.is_empty() && log.is_empty());
    if before.is_empty() && after.is_empty() && is_whole {
        return Ok(None);
    }
    let made = |messages: Vec<Arc<Message>>| (!messages.is_empty()).then(|| Span::Made(messages.into()));
    let open = |span: Span| match span {
        // What enters the transcript before the request is made is shown, too.
        Span::Kept(range) if range.end == log.len() => Span::Kept(range.start..usize::MAX),
        span @ (Span::Kept(_) | Span::Made(_)) => span,
    };
    let spans = made(before).into_iter().chain(history.into_iter().map(open)).chain(made(after));
    let plan = Plan { spans: spans.collect() };
    match plan.check(log) {
        Ok(()) => Ok(Some(plan)),
        Err(fault) => Err(MemoryError::failed(format!("the layers' view cannot be sent: {fault}"))),
    }
}

#[expect(clippy::cast_precision_loss, reason = "tokens of a view are far below 2^53")]
fn as_float(tokens: u64) -> f64 {
    tokens as f64
}

/// Whole tokens of a share.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the cast saturates; NaN is 0")]
fn as_tokens(share: f64) -> u64 {
    share as u64
}

impl LayerRun {
    /// The counts of the conversation.
    fn counts(&self) -> Arc<Mutex<Tally>> {
        Arc::clone(
            self.stack
                .counts
                .lock()
                .get_or_insert(self.lineage_key(), || Arc::new(Mutex::new(Tally::new(message_tokens)))),
        )
    }
}
