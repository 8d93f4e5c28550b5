//! Words for completion: commands, templates, skills and paths.

use std::fs;
use std::path::{Path, PathBuf};

use harness::core::port::ThinkingLevel;
use harness::runtime::ThreadConfig;
use parking_lot::Mutex;

use super::command;
use super::composer::{Complete, Item, Word};
use super::files;
use crate::env;
use crate::render::one_line;

/// Maximum number of directory entries that are read.
const MOST: usize = 10_000;

/// Maximum number of files in a menu.
const MOST_FILES: usize = 50;

/// Known words.
pub(super) struct Words {
    commands: Vec<Item>,
    models: Vec<String>,
    /// Files below the current directory, as of the start of the last word that began with `@`.
    files: Mutex<Vec<String>>,
    home: Option<PathBuf>,
}

impl Words {
    /// Commands, the templates and skills of a thread, and these models.
    pub(super) fn of(config: &ThreadConfig, models: Vec<String>) -> Self {
        let mut commands: Vec<Item> = command::items().collect();
        let item = |text: String, note: &str| Item { text, note: one_line(note), is_sent: false };
        let templates = config.templates.templates().iter();
        commands.extend(templates.map(|template| item(format!("/{}", template.name), &template.description)));
        let skills = config.skills.skills().iter();
        commands.extend(skills.map(|skill| item(format!("/skill:{}", skill.name), &skill.description)));
        Self { commands, models, files: Mutex::default(), home: env::home() }
    }

    /// Files for a word that starts with `@`: any below the current directory, or those of a path.
    fn named_files(&self, word: &str) -> Vec<String> {
        let typed = word.strip_prefix('@').unwrap_or(word);
        if typed.starts_with(['/', '~', '.']) {
            return self.paths(word);
        }
        let mut files = self.files.lock();
        if typed.is_empty() || files.is_empty() {
            *files = files::list(Path::new("."));
        }
        let found = files::matching(&files, typed, MOST_FILES);
        found.into_iter().map(|file| format!("@{}", quoted(file))).collect()
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
                let commands = self.commands.iter().filter(|command| command.text.starts_with(begin));
                commands.map(|command| command.text.clone()).collect()
            }
            Word::Argument { command: "/model", word } => {
                self.models.iter().filter(|model| model.starts_with(word)).cloned().collect()
            }
            Word::Argument { command: "/save", word } | Word::Path(word) => self.paths(word),
            Word::Argument { command: "/thinking", word } => begin_with(word, &levels()),
            Word::Argument { command: "/tools", word } => begin_with(word, &["last"]),
            Word::Argument { command: "/queue", word } => begin_with(word, &["drop"]),
            Word::Argument { .. } => Vec::new(),
        }
    }

    fn menu(&self, word: Word<'_>) -> Vec<Item> {
        let plain = |text: String| Item { text, note: String::new(), is_sent: false };
        match word {
            Word::Command(typed) => {
                self.commands.iter().filter(|command| command.text.starts_with(typed)).cloned().collect()
            }
            Word::Argument { command: "/model", word } => {
                let models = self.models.iter().filter(|model| model.contains(word));
                models.map(|model| Item { is_sent: true, ..plain(model.clone()) }).collect()
            }
            Word::Argument { command: "/thinking", word } => {
                let levels = begin_with(word, &levels()).into_iter();
                levels.map(|level| Item { is_sent: true, ..plain(level) }).collect()
            }
            Word::Path(typed) if typed.starts_with('@') => {
                self.named_files(typed).into_iter().map(plain).collect()
            }
            Word::Argument { .. } | Word::Path(_) => Vec::new(),
        }
    }
}

/// Names of the thinking levels.
fn levels() -> Vec<&'static str> {
    let names = command::LEVELS.into_iter().map(ThinkingLevel::as_str);
    std::iter::once(command::DEFAULT_LEVEL).chain(names).collect()
}

/// A path as a word of a message.
fn quoted(path: &str) -> String {
    if path.contains(char::is_whitespace) { format!("\"{path}\"") } else { path.to_owned() }
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
            commands: ["/help", "/history"]
                .map(|text| Item { text: text.to_owned(), note: String::new(), is_sent: true })
                .into(),
            models: vec!["ollama/small".to_owned()],
            files: Mutex::new(vec!["docs/menu.md".to_owned()]),
            home: Some(folder.path().to_owned()),
        };
        assert_eq!(words.candidates(Word::Command("/he")), ["/help"]);
        assert_eq!(words.candidates(Word::Path("@~/pi")), ["@~/pic.png", "@~/pictures/"]);
        assert_eq!(words.candidates(Word::Argument { command: "/model", word: "oll" }), ["ollama/small"]);
        let menu = |word| words.menu(word).into_iter().map(|item| item.text).collect::<Vec<_>>();
        assert_eq!(menu(Word::Command("/he")), ["/help"]);
        assert_eq!(menu(Word::Argument { command: "/model", word: "small" }), ["ollama/small"]);
        assert_eq!(menu(Word::Path("@menu")), ["@docs/menu.md"]);
        assert_eq!(menu(Word::Path("menu")), Vec::<String>::new());
        let here = folder.path().to_str().unwrap();
        assert_eq!(words.candidates(Word::Path(&format!("{here}/.p"))), [format!("{here}/.pic")]);
        assert_eq!(menu(Word::Argument { command: "/thinking", word: "m" }), ["minimal", "medium"]);
        assert_eq!(words.candidates(Word::Argument { command: "/tools", word: "" }), ["last"]);
    }
}
