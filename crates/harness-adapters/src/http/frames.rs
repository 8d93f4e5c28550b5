//! An event stream within the bounds of a reply.

use harness_core::Json;
use harness_core::port::{DeltaPart, ProviderEvent};

use super::exchange::Reply;
use super::sse::{Decoder, Item, Overflow};
use super::{ReplyLimits, Sink, bound};
use crate::AdapterError;

/// Reads the bytes of one stream.
#[derive(Debug)]
pub(crate) struct Frames {
    decoder: Decoder,
    read: usize,
    /// Whether events are passed on as they are, too.
    passes_events: bool,
}

impl Frames {
    pub(crate) fn new(limits: &ReplyLimits) -> Self {
        Self { decoder: Decoder::new(limits.line, limits.event), read: 0, passes_events: false }
    }

    /// Passes on events as they are, too.
    pub(crate) fn passing_events(mut self, passes: bool) -> Self {
        self.passes_events = passes;
        self
    }

    /// Passes every event that `bytes` complete to `reply`, and stops at its first error.
    pub(crate) fn read<R: Reply>(
        &mut self,
        bytes: &[u8],
        reply: &mut R,
        limits: &ReplyLimits,
        parts: Sink<'_>,
    ) -> Result<(), AdapterError> {
        self.read = self.read.saturating_add(bytes.len());
        bound(self.read, limits.body, "reply", "bytes")?;
        let (mut read, passes_events) = (Ok(()), self.passes_events);
        let framing = self.decoder.feed(bytes, &mut |item| match item {
            _ if read.is_err() => {}
            Item::Comment => reply.comment(),
            // An event without data keeps the connection alive.
            Item::Data(data) if data.trim_ascii().is_empty() => {}
            Item::Data(data) => {
                if passes_events {
                    parts(provider_event(data));
                }
                read = reply.event(data, limits, parts);
            }
        });
        read?;
        framing.map_err(|Overflow { what, limit }| {
            let what = if what == "line" { "line of the reply" } else { "event of the reply" };
            AdapterError::TooLarge { what, limit, unit: "bytes" }
        })
    }
}

/// An event, or a document, as it is. One that is not JSON is passed on as a text.
pub(crate) fn provider_event(data: &str) -> DeltaPart {
    let data = Json::parse(data).unwrap_or_else(|_| Json::string(data));
    DeltaPart::Provider(ProviderEvent::new(data))
}
