//! Turning texts into vectors.

use harness_core::Fault;

/// Turns texts into vectors, so that what is alike lies close together.
pub trait Embedder: Send + Sync {
    /// One vector per text, in order, each of [`Embedder::dimensions`] numbers.
    ///
    /// # Errors
    /// When they cannot be made; none is given then.
    fn embed(&self, texts: &[&str]) -> impl Future<Output = Result<Vec<Vec<f32>>, Fault>> + Send;

    /// Numbers per vector.
    fn dimensions(&self) -> usize;

    /// Name of the model. Vectors of different names are never compared.
    fn name(&self) -> &str;
}

harness_core::twin! {
    DynEmbedder of Embedder {
        async fn embed_boxed = embed(texts: &'a [&'a str]) -> Result<Vec<Vec<f32>>, Fault>;
        fn embedder_dimensions = dimensions() -> usize;
        fn embedder_name = name() -> &str;
    }
}
