//! Reports once that a cost limit cannot take effect.

use std::io::{self, Write};

use harness::core::End;
use harness::core::event::{EventKind, Seen};

use super::Render;

/// A renderer that also reports the first model call without a known cost.
pub(crate) struct CostNotice<W> {
    inner: Box<dyn Render>,
    notes: W,
    is_reported: bool,
}

impl<W: Write + Send> CostNotice<W> {
    pub(crate) fn new(inner: Box<dyn Render>, notes: W) -> Self {
        Self { inner, notes, is_reported: false }
    }
}

impl<W: Write + Send> Render for CostNotice<W> {
    fn see(&mut self, seen: &Seen) -> io::Result<()> {
        self.inner.see(seen)?;
        if !self.is_reported
            && let Seen::Event(event) = seen
            && let EventKind::ModelStepFinished { usage, .. } = &event.kind
            && usage.as_ref().is_none_or(|usage| usage.total_cost().is_none())
        {
            self.is_reported = true;
            let text = "warning: --max-cost has no effect: the provider reports no cost for this model and its price \
                        is unknown; limit the run with --max-tokens";
            // What cannot be shown there is not worth ending a run for.
            let _ = writeln!(self.notes, "{text}");
        }
        Ok(())
    }

    fn end(&mut self, end: &End) -> io::Result<()> {
        self.inner.end(end)
    }
}
