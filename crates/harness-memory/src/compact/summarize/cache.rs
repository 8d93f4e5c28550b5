//! Summaries under the content of what they cover.

use std::sync::Arc;

use harness_core::Json;
use harness_core::canonical::sha256_hex;
use harness_core::message::Message;
use harness_core::outcome::TotalUsage;
use lru::LruCache;

use super::Summary;
use crate::shared::recent;

/// Summaries that are remembered.
const KEPT: usize = 64;

/// The newest summaries, each under a hash of every message that it covers: a summary never stands for
/// messages that it was not made from.
#[derive(Clone, Debug)]
pub(crate) struct SummaryCache(LruCache<String, Summary>);

impl Default for SummaryCache {
    fn default() -> Self {
        Self(recent(KEPT))
    }
}

/// Cached facts about some messages.
#[derive(Debug)]
pub(crate) struct Covered {
    /// The name of all messages.
    pub(crate) key: String,
    /// The summary of the longest part from the beginning, and how many messages that are.
    pub(crate) known: Option<(Summary, usize)>,
}

impl SummaryCache {
    /// Looks for a summary of `messages`, or of as many of them as possible from the beginning. The
    /// summarizer's name is part of every key.
    pub(crate) fn look_up(&mut self, name: &str, messages: &[Arc<Message>]) -> Covered {
        let mut key = sha256_hex(name);
        let mut known = None;
        for (count, message) in (1..).zip(messages) {
            let text = Json::of(&**message).unwrap_or_default();
            key = sha256_hex([key.as_bytes(), text.text().as_bytes()].concat());
            if let Some(summary) = self.0.get(&key) {
                known = Some((summary.clone(), count));
            }
        }
        Covered { key, known }
    }

    /// Remembers a summary; what it used was paid once.
    pub(crate) fn put(&mut self, key: String, summary: &Summary) {
        let summary = Summary { usage: TotalUsage::default(), ..summary.clone() };
        self.0.put(key, summary);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn messages(texts: &[&str]) -> Vec<Arc<Message>> {
        texts.iter().map(|text| Arc::new(Message::user(*text))).collect()
    }

    #[track_caller]
    fn check(stored: &[&[&str]], asked: &[&str], known: Option<(&str, usize)>) {
        let mut cache = SummaryCache::default();
        for texts in stored {
            let key = cache.look_up("s", &messages(texts)).key;
            cache.put(key, &Summary::new(texts.concat()));
        }
        let found = cache.look_up("s", &messages(asked)).known;
        assert_eq!(found.as_ref().map(|(summary, count)| (summary.text.as_str(), *count)), known);
        assert!(cache.look_up("other", &messages(asked)).known.is_none());
    }

    #[test]
    fn a_summary_is_found_by_what_it_covers() {
        check(&[&["a", "b"]], &["a", "b"], Some(("ab", 2)));
        check(&[&["a", "b"]], &["x", "y"], None);
        check(&[&["a", "b"]], &["ab"], None);
        check(&[&["a"], &["a", "b"]], &["a", "b", "c"], Some(("ab", 2)));
    }
}
