//! An embedder without a model.

use harness_core::Fault;
use harness_host::Embedder;

use super::notes::words;

/// Turns texts into vectors by hashing their words: the same words, the same vector, on every machine.
///
/// Each word, and each pair of neighbouring words with half its weight, is hashed to one dimension and one
/// sign; the sums are scaled to length 1. It knows nothing of meaning: it finds texts that share words, in
/// any order. For tests, and for use where no model of vectors can be reached.
///
/// ```
/// use harness_host::Embedder as _;
/// use harness_memory::builtin::embed::HashingEmbedder;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), harness_core::Fault> {
/// let vectors = HashingEmbedder::default().embed(&["tea with milk", "Tea, with milk!"]).await?;
/// assert_eq!(vectors[0], vectors[1]);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct HashingEmbedder {
    dimensions: usize,
    name: String,
}

impl HashingEmbedder {
    /// Vectors of `dimensions` numbers, at least 8.
    pub fn new(dimensions: usize) -> Self {
        let dimensions = dimensions.max(8);
        Self { dimensions, name: format!("hashing-v1-{dimensions}") }
    }

    fn vector(&self, text: &str) -> Vec<f32> {
        let mut vector = vec![0.0_f32; self.dimensions];
        let mut before: Option<String> = None;
        for word in words::of(text) {
            self.add(&mut vector, &[&word], 1.0);
            if let Some(before) = &before {
                self.add(&mut vector, &[before, &word], 0.5);
            }
            before = Some(word);
        }
        let length = vector.iter().map(|x| x * x).sum::<f32>().sqrt();
        if length > 0.0 {
            for x in &mut vector {
                *x /= length;
            }
        }
        vector
    }

    fn add(&self, vector: &mut [f32], parts: &[&str], weight: f32) {
        let hash = fnv1a(parts);
        let at = usize::try_from(hash >> 1).unwrap_or(usize::MAX) % self.dimensions;
        if let Some(slot) = vector.get_mut(at) {
            *slot += if hash & 1 == 0 { weight } else { -weight };
        }
    }
}

impl Default for HashingEmbedder {
    /// 256 dimensions.
    fn default() -> Self {
        Self::new(256)
    }
}

impl Embedder for HashingEmbedder {
    async fn embed(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>, Fault> {
        Ok(texts.iter().map(|text| self.vector(text)).collect())
    }

    fn dimensions(&self) -> usize {
        self.dimensions
    }

    fn name(&self) -> &str {
        &self.name
    }
}

/// The 64-bit FNV-1a hash of `parts`, each closed by a byte that no text has. Chosen for being the same
/// everywhere and for ever; it guards nothing.
fn fnv1a(parts: &[&str]) -> u64 {
    const PRIME: u64 = 0x0000_0100_0000_01b3;
    let bytes = parts.iter().flat_map(|part| part.bytes().chain([0xff]));
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(PRIME))
}
