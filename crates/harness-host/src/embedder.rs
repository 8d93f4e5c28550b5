//! Turning texts into vectors.

use harness_core::Fault;
use harness_core::port::BoxFuture;

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
