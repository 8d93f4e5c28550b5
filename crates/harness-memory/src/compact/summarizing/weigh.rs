//! Weighs messages, estimates requests and finds the place to cut.

use harness_core::message::{AssistantMessage, Block, FinishReason, Message, Usage};
use harness_core::port::CompactAsk;

use super::mark::behind_compaction;
use super::state::Projection;
use crate::compact::shown::Shown;

/// Bytes that an image counts as.
const IMAGE_BYTES: usize = 4_800;

/// A quarter of the bytes of a message, rounded up.
pub(super) fn weight(message: &Message) -> u64 {
    if matches!(message, Message::Custom(_)) {
        return 0;
    }
    let bytes = message.content().iter().map(|block| match block {
        Block::Text(block) => block.text.len(),
        Block::Image(_) => IMAGE_BYTES,
        Block::Thinking(block) => block.thinking.len(),
        Block::ToolCall(call) => call.name.as_str().len() + call.arguments.text().len(),
        Block::File(_)
        | Block::Audio(_)
        | Block::Refusal(_)
        | Block::Error(_)
        | Block::Approval(_)
        | Block::Extension(_)
        | Block::Unknown(_)
        | _ => 0,
    });
    (bytes.sum::<usize>() as u64).div_ceil(4)
}

pub(super) fn weights(items: &[Shown]) -> Vec<u64> {
    items.iter().map(|item| weight(&item.message)).collect()
}

/// The tokens of the request: the usage of the last answer that counts, and the weights of what came after
/// it; all weights when no usage counts.
pub(super) fn estimate(items: &[Shown], in_force: Option<&Projection>, ask: &CompactAsk) -> u64 {
    let weigh = |items: &[Shown]| items.iter().map(|item| weight(&item.message)).sum::<u64>();
    let is_whole = ask.plan.is_none() || in_force.is_some();
    let base = if is_whole { last_usage(items, in_force) } else { measured_usage(items, ask) };
    match base {
        Some((at, tokens)) => tokens + weigh(items.get(at + 1..).unwrap_or_default()),
        None => weigh(items),
    }
}

/// The last answer with usage that was asked with the view in force, and after the last compaction. Usage of a
/// longer or shorter view says nothing about this one.
fn last_usage(items: &[Shown], in_force: Option<&Projection>) -> Option<(usize, u64)> {
    let from = in_force.map_or(0, |projection| projection.made_at).max(behind_compaction(items));
    let answers = items.iter().enumerate().skip(from).rev();
    answers
        .filter_map(|(at, item)| Some((at, item.message.as_assistant()?)))
        .find_map(|(at, answer)| Some((at, usage_of(answer)?)))
}

/// The last request that a provider counted, when it was sent the view that is asked about.
fn measured_usage(items: &[Shown], ask: &CompactAsk) -> Option<(usize, u64)> {
    let measured = ask.measured.as_ref().filter(|measured| measured.plan == ask.plan)?;
    let answer = usize::try_from(measured.messages).ok()?;
    let at = items.iter().position(|item| item.at == Some(answer))?;
    Some((at, total(&measured.usage)?))
}

fn usage_of(answer: &AssistantMessage) -> Option<u64> {
    if matches!(answer.stop_reason, FinishReason::Error | FinishReason::Aborted) {
        return None;
    }
    answer.usage.as_deref().and_then(total)
}

/// The total, or the sum of the parts where no total is given; never 0.
fn total(usage: &Usage) -> Option<u64> {
    let parts = [usage.input, usage.output, usage.cache_read, usage.cache_write];
    let sum = parts.into_iter().flatten().fold(0, u64::saturating_add);
    usage.total_tokens.filter(|total| *total > 0).or(Some(sum)).filter(|tokens| *tokens > 0)
}

/// The first message to keep, so that at least `keep` tokens are: a user message, or, where one prompt has
/// all of the messages, the answer that begins an iteration. Never a tool result; `None` when nothing would
/// be left to summarize.
pub(super) fn find_cut(items: &[Shown], weights: &[u64], keep: u64) -> Option<usize> {
    let mut sum = 0_u64;
    let newest = weights.iter().rposition(|weight| {
        sum = sum.saturating_add(*weight);
        sum >= keep
    });
    let reached = newest.unwrap_or(0);
    let back = |is: fn(&Message) -> bool| {
        (1..=reached).rev().find(|at| items.get(*at).is_some_and(|item| is(&item.message)))
    };
    back(|message| matches!(message, Message::User(_)))
        .or_else(|| back(|message| matches!(message, Message::Assistant(_))))
}
