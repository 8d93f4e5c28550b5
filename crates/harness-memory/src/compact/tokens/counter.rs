//! The port of counting.

use harness_core::message::Message;

/// Counts the tokens of a text, exactly or as an estimate.
pub trait TokenCounter: Send + Sync {
    /// Tokens of `text`. Quick and without I/O; the same text has the same count.
    fn count(&self, text: &str) -> u64;

    /// Tokens of a whole message in a request, its form included. `None` counts its texts with
    /// [`TokenCounter::count`] and estimates the form.
    fn count_message(&self, message: &Message) -> Option<u64> {
        let _ = message;
        None
    }

    /// Name of the counter, for example `o200k_base` or `chars/4`. Counts of different names are never mixed.
    fn name(&self) -> &str;
}
