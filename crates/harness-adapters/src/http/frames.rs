//! An event stream as its items, within the bounds of a reply.

use super::sse::{Decoder, Item, Overflow};
use super::{ReplyLimits, bound};
use crate::AdapterError;

/// Takes one item.
type TakeItem<'a> = &'a mut dyn FnMut(Item<'_>) -> Result<(), AdapterError>;

/// Reads the bytes of one stream.
#[derive(Debug)]
pub(crate) struct Frames {
    decoder: Decoder,
    read: usize,
    limit: usize,
}

impl Frames {
    pub(crate) fn new(limits: &ReplyLimits) -> Self {
        Self { decoder: Decoder::new(limits.line, limits.event), read: 0, limit: limits.body }
    }

    /// Passes every item that `bytes` complete to `take`, and stops at its first error.
    pub(crate) fn feed(&mut self, bytes: &[u8], take: TakeItem<'_>) -> Result<(), AdapterError> {
        self.read = self.read.saturating_add(bytes.len());
        bound(self.read, self.limit, "reply", "bytes")?;
        let mut fault = None;
        let framing = self.decoder.feed(bytes, &mut |item| {
            if fault.is_none() {
                fault = take(item).err();
            }
        });
        if let Some(fault) = fault {
            return Err(fault);
        }
        framing.map_err(|Overflow { what, limit }| {
            let what = if what == "line" { "line of the reply" } else { "event of the reply" };
            AdapterError::TooLarge { what, limit, unit: "bytes" }
        })
    }
}
