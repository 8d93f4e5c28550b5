//! Exact counts, with vocabularies that come with the program.

use tiktoken_rs::tokenizer::{Tokenizer, get_tokenizer};
use tiktoken_rs::{CoreBPE, cl100k_base_singleton, o200k_base_singleton, o200k_harmony_singleton};

use crate::compact::tokens::TokenCounter;

/// Bytes of one text that are counted exactly; the rest is assumed to be similar.
const COUNTED: usize = 1 << 20;

/// A published vocabulary.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Vocabulary {
    /// `o200k_base`: GPT-4o, GPT-4.1, GPT-5 and the o models.
    O200k,
    /// `o200k_harmony`: the open-weight models of the same vendor.
    O200kHarmony,
    /// `cl100k_base`: GPT-4 and GPT-3.5.
    Cl100k,
}

impl Vocabulary {
    /// The vocabulary of a model by its name, with or without its vendor (`openai/gpt-4o`). `None` when it is
    /// not known: other vendors do not publish theirs.
    pub fn of_model(model: &str) -> Option<Self> {
        let name = match model.rsplit_once('/') {
            Some(("openai" | "azure", name)) => name,
            Some(_) => return None,
            None => model,
        };
        match get_tokenizer(name)? {
            Tokenizer::O200kBase => Some(Self::O200k),
            Tokenizer::O200kHarmony => Some(Self::O200kHarmony),
            Tokenizer::Cl100kBase => Some(Self::Cl100k),
            Tokenizer::P50kBase | Tokenizer::R50kBase | Tokenizer::P50kEdit | Tokenizer::Gpt2 => None,
        }
    }

    /// Its published name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::O200k => "o200k_base",
            Self::O200kHarmony => "o200k_harmony",
            Self::Cl100k => "cl100k_base",
        }
    }

    fn encoding(self) -> &'static CoreBPE {
        match self {
            Self::O200k => o200k_base_singleton(),
            Self::O200kHarmony => o200k_harmony_singleton(),
            Self::Cl100k => cl100k_base_singleton(),
        }
    }
}

/// Counts with the model's own vocabulary.
///
/// The first count of a program builds the vocabulary's tables, which takes a fraction of a second. Of a
/// text longer than 1 MiB the first MiB is counted and the rest estimated from it, so that a count has a
/// bound.
///
/// ```
/// use harness_memory::compact::tokens::{ExactCounter, TokenCounter, Vocabulary};
///
/// let counter = ExactCounter::of_model("openai/gpt-4o").ok_or("an unknown model")?;
/// assert_eq!(counter.name(), "o200k_base");
/// assert_eq!(counter.count("hello world"), 2);
/// # Ok::<(), &str>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct ExactCounter(Vocabulary);

impl ExactCounter {
    /// A counter with this vocabulary.
    pub fn new(vocabulary: Vocabulary) -> Self {
        Self(vocabulary)
    }

    /// A counter for a model, when its vocabulary is known.
    pub fn of_model(model: &str) -> Option<Self> {
        Vocabulary::of_model(model).map(Self)
    }
}

impl TokenCounter for ExactCounter {
    fn count(&self, text: &str) -> u64 {
        let encoding = self.0.encoding();
        if text.len() <= COUNTED {
            return encoding.count_ordinary(text) as u64;
        }
        let head = text.get(..text.floor_char_boundary(COUNTED)).unwrap_or_default();
        let counted = encoding.count_ordinary(head) as u64;
        counted.saturating_mul(text.len() as u64).div_ceil(head.len().max(1) as u64)
    }

    fn name(&self) -> &str {
        self.0.as_str()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(model: &str, vocabulary: Option<&str>) {
        assert_eq!(Vocabulary::of_model(model).map(Vocabulary::as_str), vocabulary, "{model}");
    }

    #[test]
    fn models_are_known_by_name() {
        check("gpt-4o-mini", Some("o200k_base"));
        check("openai/gpt-5", Some("o200k_base"));
        check("gpt-4", Some("cl100k_base"));
        check("openai/gpt-oss-120b", Some("o200k_harmony"));
        check("anthropic/claude-sonnet-4", None);
        check("gpt-2000", None);
    }

    #[test]
    fn texts_beyond_the_bound_are_estimated_from_their_beginning() {
        let counter = ExactCounter::new(Vocabulary::O200k);
        let unit = "one two three four ";
        let long = unit.repeat(COUNTED / unit.len() * 2);
        let whole = counter.0.encoding().count_ordinary(&long) as u64;
        assert!(counter.count(&long).abs_diff(whole) < whole / 1_000);
    }
}
