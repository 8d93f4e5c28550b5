//! Which models cannot reason, as far as their names say it.

/// Families of models without reasoning: start of the name, and starts of the names that are exceptions.
const FAMILIES: [(&str, &[&str]); 13] = [
    ("gpt-3.5", &[]),
    ("gpt-4", &[]),
    ("gpt-5-chat", &[]),
    ("chatgpt-", &[]),
    ("claude-2", &[]),
    ("claude-3", &["claude-3-7", "claude-3.7"]),
    ("claude-instant", &[]),
    ("gemini-1", &[]),
    ("gemini-2.0", &["gemini-2.0-flash-thinking"]),
    ("gemma", &["gemma4", "gemma-4"]),
    ("llama2", &[]),
    ("llama3", &[]),
    ("llama-3", &["llama-3.1-nemotron", "llama-3.3-nemotron"]),
];

/// Whether a model of this name is known to have no thinking levels. Other models may have them.
pub(crate) fn cannot_think(name: &str) -> bool {
    let own = name.rsplit('/').next().unwrap_or(name).to_ascii_lowercase();
    let starts = |starts: &&str| own.starts_with(starts);
    FAMILIES.iter().any(|(family, except)| starts(family) && !except.iter().any(starts))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_models_without_reasoning_are_known() {
        let without = [
            "openai/gpt-4.1-mini",
            "gpt-4o",
            "anthropic/claude-3-5-haiku-latest",
            "claude-3.5-sonnet",
            "openrouter/google/gemini-2.0-flash-001",
            "ollama/llama3.2",
        ];
        for name in without {
            assert!(cannot_think(name), "{name}");
        }
        let others = [
            "openai/gpt-5-mini",
            "o3",
            "claude-3-7-sonnet-latest",
            "anthropic/claude-sonnet-4.5",
            "gemini-2.5-flash",
            "qwen3",
            "my-own",
        ];
        for name in others {
            assert!(!cannot_think(name), "{name}");
        }
    }
}
