//! The turn's trace events of source 001, as a fold.

use super::{Event, Fold};

/// placeholder
#[derive(Debug)]
pub struct TraceEvent;
/// placeholder
#[derive(Debug)]
pub struct TraceFold;
impl Fold for TraceFold {
    fn apply(&mut self, _: &Event) {}
}
