//! Counting tokens, and turning texts into vectors.

use super::BoxFuture;
use crate::message::Message;
use crate::outcome::Fault;

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

    /// What counts, for example `o200k_base` or `chars/4`. Counts of different names are never mixed.
    fn name(&self) -> &str;

    /// Whether the count is that of the model's own encoding.
    fn is_exact(&self) -> bool {
        false
    }
}

/// Turns texts into vectors, so that what is alike lies close together.
pub trait Embedder: Send + Sync {
    /// One vector per text, in order, each of [`Embedder::dimensions`] numbers.
    ///
    /// # Errors
    /// When they cannot be made; none is given then.
    fn embed(&self, texts: &[&str]) -> impl Future<Output = Result<Vec<Vec<f32>>, Fault>> + Send;

    /// Numbers per vector.
    fn dimensions(&self) -> usize;

    /// What makes the vectors. Vectors of different names are never compared.
    fn name(&self) -> &str;
}

/// The object-safe twin of [`Embedder`].
pub trait DynEmbedder: Send + Sync {
    /// [`Embedder::embed`], boxed.
    fn embed_boxed<'a>(&'a self, texts: &'a [&'a str]) -> BoxFuture<'a, Result<Vec<Vec<f32>>, Fault>>;

    /// [`Embedder::dimensions`].
    fn embedder_dimensions(&self) -> usize;

    /// [`Embedder::name`].
    fn embedder_name(&self) -> &str;
}

impl<E: Embedder> DynEmbedder for E {
    fn embed_boxed<'a>(&'a self, texts: &'a [&'a str]) -> BoxFuture<'a, Result<Vec<Vec<f32>>, Fault>> {
        Box::pin(self.embed(texts))
    }

    fn embedder_dimensions(&self) -> usize {
        self.dimensions()
    }

    fn embedder_name(&self) -> &str {
        self.name()
    }
}
