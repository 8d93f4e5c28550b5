//! A compactor without a model.

use std::sync::Arc;

use harness::core::message::Message;
use harness::core::port::{CompactAsk, CompactReason, Compaction, CompactionNote, Compactor};
use harness::core::transcript::{Plan, Span};
use harness::core::{Fault, FaultSource};

/// Shows the instructions in place of what was said before the last message of the user, when it is asked to. `wait` is never
/// answered, `stop` when it is cancelled, and `fail` fails.
pub(crate) struct OneLine;

impl Compactor for OneLine {
    async fn compact(&self, ask: CompactAsk) -> Result<Compaction, Fault> {
        let CompactReason::Requested { instructions } = &ask.reason else {
            return Ok(Compaction::unchanged());
        };
        match instructions.as_deref() {
            Some("wait") => return std::future::pending().await,
            Some("stop") => {
                ask.cx.cancel.cancelled().await;
                return Ok(Compaction::unchanged());
            }
            Some("fail") => return Err(Fault::new(FaultSource::Compactor, "no_summary", "no summary")),
            _ => {}
        }
        let log: Vec<_> = ask.cx.log.iter().collect();
        let last = log.iter().rposition(|message| matches!(***message, Message::User(_)));
        let Some(last) = last.filter(|last| *last > 0) else { return Ok(Compaction::unchanged()) };
        let line = Message::user(format!("[{}]", instructions.as_deref().unwrap_or_default()));
        let spans = [Span::Made([Arc::new(line)].into()), Span::Kept(last..usize::MAX)];
        let mut done = Compaction::planned(Plan { spans: spans.into() });
        done.note = Some(CompactionNote::default());
        Ok(done)
    }
}
