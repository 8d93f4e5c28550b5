//! The rung that summarizes.

use std::sync::Arc;

use harness_core::message::{Message, UserMessage};
use harness_core::outcome::TotalUsage;
use harness_core::port::ViewCx;
use parking_lot::Mutex;

use super::draft::Draft;
use super::mark::{Form, Mark};
use super::rungs::Means;
use crate::compact::group::GroupKind;
use crate::compact::summarize::{DynSummarizer, Summary, SummaryAsk, SummaryCache, SummaryFault, summarize};
use crate::compact::tokens::message_tokens;

/// Result of a summary.
#[derive(Debug, Default)]
pub(super) struct Summarized {
    pub(super) groups: u32,
    pub(super) text: Option<String>,
    pub(super) usage: TotalUsage,
    pub(super) failed: Option<SummaryFault>,
}

/// Input of a summary.
struct Material {
    places: Vec<usize>,
    previous: Option<(Summary, usize)>,
    fresh: Vec<Arc<Message>>,
    /// Tokens of everything that it replaces.
    tokens: u64,
}

/// Makes one summary of everything that is old and not protected, updating the existing one. It takes
/// its place only when it is shorter than what it stands for.
pub(super) async fn summarize_old(
    draft: &mut Draft,
    means: &Means<'_>,
    summarizer: &dyn DynSummarizer,
    cache: &Mutex<SummaryCache>,
    instructions: Option<String>,
    cx: &ViewCx,
) -> Summarized {
    let material = material(draft);
    if material.fresh.is_empty() {
        return Summarized::default();
    }
    let fresh = material.fresh.len();
    let covers = fresh + material.previous.as_ref().map_or(0, |(_, covers)| *covers);
    let made = summary_of(&material, means.policy.summary_tokens, summarizer, cache, instructions, cx).await;
    let summary = match made {
        Ok(summary) => summary,
        Err(fault) => {
            return Summarized { usage: fault.usage.clone(), failed: Some(fault), ..Summarized::default() };
        }
    };
    let message = message_of(&summary, covers);
    let tokens = message_tokens(means.counter, &message);
    if tokens >= material.tokens {
        let replaced = material.tokens;
        let text =
            format!("a summary of {tokens} tokens is not shorter than the {replaced} that it replaces");
        let failed = Some(SummaryFault::new(text));
        return Summarized { usage: summary.usage, failed, ..Summarized::default() };
    }
    draft.replace_all(&material.places, message, tokens);
    let groups = u32::try_from(material.places.len()).unwrap_or(u32::MAX);
    Summarized { groups, text: Some(summary.text), usage: summary.usage, failed: None }
}

fn material(draft: &Draft) -> Material {
    let mut material = Material { places: Vec::new(), previous: None, fresh: Vec::new(), tokens: 0 };
    for at in draft.candidates() {
        let Some(slot) = draft.slots.get(at) else { continue };
        // A slot without messages was dropped, and its originals may be summarized, or is part of a summary.
        let is_done = slot.originals.is_none() || slot.form == Form::Summary;
        if slot.kind == GroupKind::Unsent || slot.messages.is_empty() && is_done {
            continue;
        }
        material.places.push(at);
        material.tokens += slot.tokens;
        let earlier = slot.messages.first().filter(|_| slot.form == Form::Summary).and_then(|m| Mark::of(m));
        match earlier {
            Some(mark) if material.previous.is_none() && material.fresh.is_empty() => {
                let text = mark.text.unwrap_or_default();
                let summary = Summary::new(text);
                let summary = mark.data.into_iter().fold(summary, Summary::with_data);
                material.previous = Some((summary, mark.covers));
            }
            Some(_) | None => material.fresh.extend(slot.sources().iter().cloned()),
        }
    }
    material
}

async fn summary_of(
    material: &Material,
    max_tokens: u64,
    summarizer: &dyn DynSummarizer,
    cache: &Mutex<SummaryCache>,
    instructions: Option<String>,
    cx: &ViewCx,
) -> Result<Summary, SummaryFault> {
    // What was asked for by a person, and what an earlier summary said, are part of what a summary covers.
    let asked_for = instructions.as_deref().unwrap_or_default();
    let before = material.previous.as_ref().map_or("", |(summary, _)| &summary.text);
    let known = cache.lock().look_up(&format!("{asked_for}\n{before}"), &material.fresh);
    let fresh = material.fresh.clone();
    let ask = match known.known {
        Some((summary, count)) if count == fresh.len() => return Ok(summary),
        Some((summary, count)) => {
            let before = material.previous.as_ref().map_or(0, |(_, covers)| *covers);
            SummaryAsk::new(fresh.into_iter().skip(count).collect(), max_tokens, cx.clone())
                .after(summary, before + count)
        }
        None => {
            let ask = SummaryAsk::new(fresh, max_tokens, cx.clone());
            match material.previous.clone() {
                Some((summary, covers)) => ask.after(summary, covers),
                None => ask,
            }
        }
    };
    let summary = summarize(summarizer, SummaryAsk { instructions, ..ask }).await?;
    cache.lock().put(known.key, &summary);
    Ok(summary)
}

fn message_of(summary: &Summary, covers: usize) -> Message {
    let text = format!(
        "The earlier part of this conversation is no longer included. This is a summary of what happened in \
         it; it is over, and nothing in it is a new request:\n\n{}",
        summary.text
    );
    let mut message = UserMessage::text(text).from_origin("summary");
    let mark =
        Mark { form: Form::Summary, covers, text: Some(summary.text.clone()), data: summary.data.clone() };
    message.content.push(mark.block());
    message.into()
}
