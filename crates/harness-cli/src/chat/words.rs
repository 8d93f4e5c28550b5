//! Words for completion: commands, templates, skills and paths.

use std::fs;
use std::path::{Path, PathBuf};

use harness::runtime::ThreadConfig;

use super::command;
use super::composer::{Complete, Word};
use crate::env;

/// Maximum number of directory entries that are read.
const MOST: usize = 10_000;

/// Known words.
pub(super) struct Words {
    commands: Vec<String>,
    home: Option<PathBuf>,
}

impl Words {
    /// Commands, and the templates and skills of a thread.
    pub(super) fn of(config: &ThreadConfig) -> Self {
        let mut commands: Vec<String> = command::names().collect();
        commands.extend(config.templates.templates().iter().map(|template| format!("/{}", template.name)));
        commands.extend(config.skills.skills().iter().map(|skill| format!("/skill:{}", skill.name)));
        Self { commands, home: env::home() }
    }

    /// Paths that start with a word; those of directories end with a slash.
    fn paths(&self, word: &str) -> Vec<String> {
        let (mark, path) = word.strip_prefix('@').map_or(("", word), |path| ("@", path));
        let (folder, begin) = path.rsplit_once('/').map_or(("", path), |(folder, begin)| (folder, begin));
        let shown = path.strip_suffix(begin).unwrap_or_default();
        let mut found: Vec<String> = fs::read_dir(self.real(folder, shown))
            .into_iter()
            .flatten()
            .flatten()
            .take(MOST)
            .filter_map(|entry| {
                let name = entry.file_name().into_string().ok()?;
                let hidden = name.starts_with('.') && !begin.starts_with('.');
                let slash = if entry.path().is_dir() { "/" } else { "" };
                (name.starts_with(begin) && !hidden).then(|| format!("{mark}{shown}{name}{slash}"))
            })
            .collect();
        found.sort_unstable();
        found
    }

    fn real(&self, folder: &str, shown: &str) -> PathBuf {
        match (folder.strip_prefix('~'), &self.home) {
            (Some(rest), Some(home)) => home.join(rest.trim_start_matches('/')),
            _ if shown.is_empty() => PathBuf::from("."),
            _ if folder.is_empty() => PathBuf::from("/"),
            _ => Path::new(folder).to_owned(),
        }
    }
}

impl Complete for Words {
    fn candidates(&self, word: Word<'_>) -> Vec<String> {
        match word {
            Word::Command(begin) => {
                self.commands.iter().filter(|command| command.starts_with(begin)).cloned().collect()
            }
            Word::Argument { command: "/save", word } | Word::Path(word) => self.paths(word),
            Word::Argument { command: "/tools", word } => begin_with(word, &["last"]),
            Word::Argument { command: "/queue", word } => begin_with(word, &["drop"]),
            Word::Argument { .. } => Vec::new(),
        }
    }
}

fn begin_with(word: &str, known: &[&str]) -> Vec<String> {
    known.iter().filter(|known| known.starts_with(word)).map(|&known| known.to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_and_paths_are_completed() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("pictures")).unwrap();
        fs::write(folder.path().join("pic.png"), "").unwrap();
        fs::write(folder.path().join(".pic"), "").unwrap();
        let words = Words {
            commands: vec!["/help".to_owned(), "/history".to_owned()],
            home: Some(folder.path().to_owned()),
        };
        assert_eq!(words.candidates(Word::Command("/he")), ["/help"]);
        assert_eq!(words.candidates(Word::Path("@~/pi")), ["@~/pic.png", "@~/pictures/"]);
        let here = folder.path().to_str().unwrap();
        assert_eq!(words.candidates(Word::Path(&format!("{here}/.p"))), [format!("{here}/.pic")]);
        assert_eq!(words.candidates(Word::Argument { command: "/tools", word: "" }), ["last"]);
    }
}
