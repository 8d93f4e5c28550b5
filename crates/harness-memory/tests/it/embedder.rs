//! An embedder without a model.

use harness_core::Fault;
use harness_host::Embedder;

/// Counts the words of a text by a hash of each, in so many dimensions.
pub(crate) struct WordCounts(pub(crate) usize);

impl WordCounts {
    fn vector(&self, text: &str) -> Vec<f32> {
        let mut vector = vec![0.0; self.0];
        let words = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
        for word in words {
            let hash =
                word.to_lowercase().bytes().fold(7, |hash, byte| hash * 31 % 65_521 + usize::from(byte));
            vector[hash % self.0] += 1.0;
        }
        vector
    }
}

impl Embedder for WordCounts {
    async fn embed(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>, Fault> {
        Ok(texts.iter().map(|text| self.vector(text)).collect())
    }

    fn dimensions(&self) -> usize {
        self.0
    }

    fn name(&self) -> &str {
        if self.0 == 256 { "words-256" } else { "words" }
    }
}
