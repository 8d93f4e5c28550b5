//! Options for the content of spans.

/// Content of spans in addition to names, numbers and outcomes.
///
/// ```
/// use harness_telemetry::SpanOptions;
///
/// let options = SpanOptions::new().content(true).content_bytes(16 * 1024);
/// assert_eq!(options, SpanOptions::new().content(true).content_bytes(16 * 1024));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SpanOptions {
    /// Whether messages, arguments, results and the texts of tools' errors are written, too.
    pub(crate) content: bool,
    /// Bytes of one such text at most.
    pub(crate) content_bytes: usize,
}

impl Default for SpanOptions {
    fn default() -> Self {
        Self { content: false, content_bytes: 8 * 1024 }
    }
}

impl SpanOptions {
    /// Spans without content.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets whether spans include content: instructions, prompts, answers, arguments, results, and
    /// the texts of tool errors. Default: `false`. Everyone with access to the spans can read it.
    #[must_use]
    pub fn content(mut self, content: bool) -> Self {
        self.content = content;
        self
    }

    /// Bytes of one such text at most; what is longer is cut, and ends in `…`. Default 8 KiB, at least 16.
    #[must_use]
    pub fn content_bytes(mut self, bytes: usize) -> Self {
        self.content_bytes = bytes.max(16);
        self
    }
}
