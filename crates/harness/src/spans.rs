//! Spans of a harness's runs.

use harness_telemetry::{SpanOptions, Spans};

use crate::builder::Builder;

impl Builder {
    /// Opens and closes `tracing` spans for every run, including those of threads and sub-agents, below the calls that
    /// started them; see [`Spans`]. A subscriber of `tracing` shows them. Default no spans.
    ///
    /// ```
    /// # use harness::prelude::*;
    /// # struct Hosted;
    /// # impl Model for Hosted {
    /// #     async fn step(&self, _: ModelRequest, _: &dyn Deltas) -> Result<AssistantMessage, ModelFault> {
    /// #         Ok(AssistantMessage::text("hi"))
    /// #     }
    /// # }
    /// use harness::telemetry::SpanOptions;
    ///
    /// let harness = Harness::new(Hosted).spans(SpanOptions::new()).build()?;
    /// # Ok::<(), harness::HarnessError>(())
    /// ```
    pub fn spans(mut self, options: SpanOptions) -> Self {
        let spans = Spans::new(options);
        self.threads.spans = Some(spans.clone());
        self.watch_subagents(spans)
    }
}
