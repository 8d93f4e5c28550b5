//! `harness new`: a directory with a descriptor, a tool that works, and a README.

use std::fmt::Write as _;
use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use crate::args::NewArgs;
use crate::descriptor;
use crate::error::CliError;
use crate::exit::Exit;
use crate::model::keys::{Keys, Origin};
use crate::model::providers::PROVIDERS;
use crate::output;
use crate::render::harmless;

/// The files of the new directory.
const FILES: [(&str, &str); 5] = [
    (descriptor::NAME, include_str!("files/harness.yaml")),
    ("registry.yaml", include_str!("files/registry.yaml")),
    ("README.md", include_str!("files/README.md")),
    ("tools/find_product.sh", include_str!("files/tools/find_product.sh")),
    ("data/products.txt", include_str!("files/data/products.txt")),
];

/// The model of the descriptor for each provider with an API key, the first one first.
const MODELS: [(&str, &str); 3] =
    [("openrouter", DEFAULT_MODEL), ("anthropic", "anthropic/claude-haiku-4.5"), ("openai", DEFAULT_MODEL)];

/// The model without an API key.
const DEFAULT_MODEL: &str = "openai/gpt-4.1-mini";

/// Writes the files and prints a command that works.
pub(crate) fn new(args: &NewArgs) -> Result<Exit, CliError> {
    let (model, origin) = model(&Keys::load(None)?);
    let files = FILES.map(|(name, text)| (args.directory.join(name), text.replace("{model}", model)));
    if !args.force {
        // Nothing is written when one of them exists.
        if let Some((path, _)) = files.iter().find(|(path, _)| path.symlink_metadata().is_ok()) {
            return Err(CliError::Exists { path: shown(path) });
        }
    }
    for (path, text) in &files {
        write(path, text, args.force)?;
    }
    output::print(&report(&args.directory, model, origin.as_ref()), Exit::Completed)
}

/// The model that fits the API keys at hand, and where its key was found.
fn model(keys: &Keys) -> (&'static str, Option<Origin>) {
    let with_key = |(name, model): (&str, &'static str)| {
        let provider = PROVIDERS.iter().find(|provider| provider.name == name)?;
        Some((model, Some(keys.of(provider)?.origin)))
    };
    MODELS.into_iter().find_map(with_key).unwrap_or((DEFAULT_MODEL, None))
}

fn report(directory: &Path, model: &str, origin: Option<&Origin>) -> String {
    let mut text = String::new();
    for (name, _) in FILES {
        let _ = writeln!(text, "created {}", harmless(&shown(&directory.join(name)).to_string_lossy()));
    }
    let _ = match origin {
        Some(Origin::Environment(name)) => writeln!(text, "model: {model} (API key from {name})"),
        Some(Origin::File(path)) => {
            writeln!(text, "model: {model} (API key from {})", harmless(&path.to_string_lossy()))
        }
        None => writeln!(text, "model: {model} (no API key found: the demo model answers)"),
    };
    text.push_str("\ntry it:\n");
    if directory != Path::new(".") {
        let _ = writeln!(text, "  cd {}", quoted(&harmless(&directory.to_string_lossy())));
    }
    text.push_str("  harness run \"What does the tent cost?\"\n");
    text
}

/// The path without a leading `./`.
fn shown(path: &Path) -> PathBuf {
    path.strip_prefix(".").unwrap_or(path).to_owned()
}

/// A word of a shell's command line.
fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || matches!(c, '.' | '_' | '-' | '/');
    if !word.starts_with('-') && word.chars().all(is_plain) {
        return word.to_owned();
    }
    let dashed = if word.starts_with('-') { "./" } else { "" };
    format!("'{dashed}{}'", word.replace('\'', r"'\''"))
}

fn write(path: &Path, text: &str, replace: bool) -> Result<(), CliError> {
    if let Some(directory) = path.parent() {
        fs::create_dir_all(directory)
            .map_err(|source| CliError::NotWritten { path: shown(directory), source })?;
    }
    let mut options = OpenOptions::new();
    options.write(true);
    if replace {
        options.create(true).truncate(true);
    } else {
        // A file that has appeared in the meantime stays as it is.
        options.create_new(true);
    }
    let written = options.open(path).and_then(|mut file| file.write_all(text.as_bytes()));
    written.map_err(|source| {
        let path = shown(path);
        if source.kind() == io::ErrorKind::AlreadyExists {
            CliError::Exists { path }
        } else {
            CliError::NotWritten { path, source }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(word: &str, expected: &str) {
        assert_eq!(quoted(word), expected);
    }

    #[test]
    fn directories_are_printed_as_one_word_of_a_shell() {
        check("my-desk", "my-desk");
        check("my desk", "'my desk'");
        check("it's", r"'it'\''s'");
        check("-desk", "'./-desk'");
    }
}
