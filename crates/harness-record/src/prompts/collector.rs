//! Collects what models receive, each part once.

use std::collections::HashMap;
use std::sync::Arc;

use harness_core::message::Message;
use harness_core::port::PreparedAgent;
use harness_core::transcript::{Plan, Span};
use harness_core::{Json, canonical};

use super::{Offer, OfferedTool, PromptRequest, Prompts, ViewPart};
use crate::request::{ToolForm, is_shown};

/// Approximate bytes of a reference.
const REFERENCE: u64 = 32;

/// Request to collect.
pub(crate) struct Request<'a> {
    pub(crate) turn: u32,
    pub(crate) prepared: &'a Arc<PreparedAgent>,
    pub(crate) closing: bool,
    pub(crate) plan: Option<&'a Plan>,
    /// Messages behind the view.
    pub(crate) ending: Option<&'a Arc<Message>>,
    /// Number of messages that the recorder has, and of those before them that it has not.
    pub(crate) items: usize,
    pub(crate) unknown: usize,
}

/// Collects the requests of a run within a limit.
#[derive(Clone, Debug, Default)]
pub(crate) struct PromptCollector {
    prompts: Prompts,
    limit: u64,
    bytes: u64,
    /// Agent of the last offer.
    last: Option<(Arc<PreparedAgent>, usize)>,
    /// Positions of parts by kind and canonical hash.
    known: HashMap<(Part, String), usize>,
    /// Positions of messages by address. The messages are kept, so that no other one gets their address.
    seen: HashMap<usize, (Arc<Message>, usize)>,
}

/// Kind of a part that is stored once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Part {
    Instructions,
    Tool,
    Message,
}

impl PromptCollector {
    /// Creates a collector for parts of at most `limit` bytes.
    pub(crate) fn new(limit: u64) -> Self {
        Self { limit, ..Self::default() }
    }

    /// Collected prompts; `None` without a request.
    pub(crate) fn prompts(&self) -> Option<Prompts> {
        let is_empty = self.prompts.requests.is_empty() && self.prompts.omitted == 0;
        (!is_empty).then(|| self.prompts.clone())
    }

    /// Adds a request, or counts it if it would pass the limit.
    pub(crate) fn add(&mut self, request: &Request<'_>) {
        let before = (self.bytes, self.lengths());
        let offer = self.offer(request.prepared);
        let mut view = self.view(request);
        if let Some(ending) = request.ending {
            view.push(ViewPart::Messages(vec![self.message(ending)]));
        }
        self.bytes = self.bytes.saturating_add(REFERENCE.saturating_mul(references(&view)));
        if self.bytes > self.limit {
            self.undo(before);
            return;
        }
        let (turn, closing) = (request.turn, request.closing);
        self.prompts.requests.push(PromptRequest { turn, offer, closing, view });
    }

    /// Adds guidance behind the request that was added last, if it has this number.
    pub(crate) fn guide(&mut self, turn: u32, guidance: &Arc<Message>) {
        let before = (self.bytes, self.lengths());
        if self.prompts.requests.last().is_none_or(|request| request.turn != turn) {
            return;
        }
        let at = self.message(guidance);
        let last = self.prompts.requests.pop();
        if self.bytes > self.limit {
            // A request without its guidance is not what the model received.
            return self.undo(before);
        }
        self.prompts.requests.extend(last.map(|mut request| {
            request.view.push(ViewPart::Messages(vec![at]));
            request
        }));
    }

    fn lengths(&self) -> [usize; 4] {
        let Prompts { instructions, tools, messages, offers, .. } = &self.prompts;
        [instructions.len(), tools.len(), messages.len(), offers.len()]
    }

    /// Removes the parts of a request that passed the limit, and counts it.
    fn undo(&mut self, (bytes, lengths): (u64, [usize; 4])) {
        let [instructions, tools, messages, offers] = lengths;
        self.bytes = bytes;
        self.prompts.instructions.truncate(instructions);
        self.prompts.tools.truncate(tools);
        self.prompts.messages.truncate(messages);
        self.prompts.offers.truncate(offers);
        self.last.take_if(|(_, at)| *at >= offers);
        self.seen.retain(|_, (_, at)| *at < messages);
        self.known.retain(|(part, _), at| match part {
            Part::Instructions => *at < instructions,
            Part::Tool => *at < tools,
            Part::Message => *at < messages,
        });
        self.prompts.omitted = self.prompts.omitted.saturating_add(1);
        self.prompts.limit = self.limit;
    }

    fn offer(&mut self, prepared: &Arc<PreparedAgent>) -> usize {
        if let Some((last, at)) = &self.last
            && Arc::ptr_eq(last, prepared)
        {
            return *at;
        }
        let offer = Offer {
            instructions: self.instructions(&prepared.instructions),
            tools: prepared.tools.iter().map(|def| self.tool(ToolForm::of(def))).collect(),
            settings: prepared.settings.clone(),
            output: prepared.output.clone(),
        };
        let found = self.prompts.offers.iter().position(|known| *known == offer);
        let at = found.unwrap_or_else(|| {
            let sizes = [&offer.settings, &offer.output].map(|part| part.as_ref().map_or(0, size));
            self.charge(sizes.iter().sum::<u64>().saturating_add(REFERENCE * (offer.tools.len() as u64 + 1)));
            self.prompts.offers.push(offer);
            self.prompts.offers.len() - 1
        });
        self.last = Some((Arc::clone(prepared), at));
        at
    }

    fn charge(&mut self, bytes: u64) {
        self.bytes = self.bytes.saturating_add(bytes);
    }

    fn instructions(&mut self, text: &str) -> usize {
        let at = self.prompts.instructions.len();
        let known = *self.known.entry((Part::Instructions, canonical::sha256_hex(text))).or_insert(at);
        if known == at {
            self.charge(text.len() as u64);
            self.prompts.instructions.push(text.to_owned());
        }
        known
    }

    fn tool(&mut self, form: ToolForm<'_>) -> usize {
        let at = self.prompts.tools.len();
        let json = Json::of(&form).unwrap_or_default();
        let known = *self.known.entry((Part::Tool, canonical::hash(&json))).or_insert(at);
        if known == at {
            self.charge(size(&json));
            self.prompts.tools.push(OfferedTool {
                name: form.name.into(),
                description: form.description.to_owned(),
                parameters: form.parameters,
            });
        }
        known
    }

    fn message(&mut self, message: &Arc<Message>) -> usize {
        let address = Arc::as_ptr(message).addr();
        if let Some((_, at)) = self.seen.get(&address) {
            return *at;
        }
        let at = self.prompts.messages.len();
        let json = Json::of(&**message).unwrap_or_default();
        let known = *self.known.entry((Part::Message, canonical::hash(&json))).or_insert(at);
        if known == at {
            self.charge(size(&json));
            self.prompts.messages.push(Arc::clone(message));
        }
        self.seen.insert(address, (Arc::clone(message), known));
        known
    }

    /// The view of a request: the messages that its plan selects, or all.
    fn view(&mut self, request: &Request<'_>) -> Vec<ViewPart> {
        let whole = [Span::Kept(0..usize::MAX)];
        let spans = request.plan.map_or(whole.as_slice(), |plan| &plan.spans);
        let mut view = Vec::with_capacity(spans.len());
        for span in spans {
            match span {
                Span::Kept(range) => {
                    let (unknown, all) = (request.unknown, request.unknown.saturating_add(request.items));
                    let end = range.end.min(all);
                    let lost = end.min(unknown).saturating_sub(range.start);
                    if lost > 0 {
                        view.push(ViewPart::Unknown(lost as u64));
                    }
                    let (from, to) = (range.start.max(unknown) - unknown, end.saturating_sub(unknown));
                    if from < to {
                        view.push(ViewPart::Items { from, to });
                    }
                }
                Span::Made(messages) => {
                    let shown = messages.iter().filter(|message| is_shown(message));
                    view.push(ViewPart::Messages(shown.map(|message| self.message(message)).collect()));
                }
            }
        }
        view
    }
}

fn references(view: &[ViewPart]) -> u64 {
    let count = |part: &ViewPart| match part {
        ViewPart::Items { .. } | ViewPart::Unknown(_) => 1,
        ViewPart::Messages(at) => at.len() as u64,
    };
    view.iter().map(count).sum::<u64>().saturating_add(1)
}

fn size(json: &Json) -> u64 {
    json.text().len() as u64
}
