//! Search over sessions.

use std::path::{Path, PathBuf};

use harness_core::EntryId;
use harness_core::message::{Block, Message};
use serde::Serialize;

use crate::error::Error;
use crate::jsonl::OpenOptions;
use crate::location::Location;
use crate::rows::Rows;
use crate::tree::{Body, Tree};

/// Characters of a snippet before the word that was found, and from there on.
const BEFORE: usize = 40;
const AFTER: usize = 120;

/// How the line of a message begins.
#[cfg(any(feature = "postgres", feature = "sqlite"))]
pub(crate) const MESSAGE: &str = r#"{"type":"message""#;

/// Words to search for.
///
/// A message matches if its text, or the name and arguments of its tool calls, contains every word. Upper and lower
/// case are alike.
#[derive(Clone, Debug)]
pub struct Query {
    words: Vec<String>,
}

/// Messages that a search found.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct Found {
    /// The latest messages, the last one first.
    pub hits: Vec<Hit>,
    /// Whether there are more than were asked for.
    pub more: bool,
    /// Sessions that could not be searched.
    pub problems: Vec<(PathBuf, Error)>,
}

/// A message that a search found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Hit {
    /// Path of the session.
    pub session: PathBuf,
    /// Id of the message's entry.
    pub entry: EntryId,
    /// When it was stored (RFC 3339); empty if the session does not say.
    pub at: String,
    /// Role of its author, for example `user`.
    pub role: String,
    /// Part of its text around the first word, white space made narrow.
    pub snippet: String,
}

/// Searches the sessions at a path: a directory of session files, a database, or one session. Returns at most
/// `most` messages.
///
/// A SQLite database has an index of words, which each search brings up to date; encrypted threads, files, PostgreSQL
/// databases, and queries whose words all have fewer than three characters are read instead. Of the options, the limits and the key
/// count. Blocks.
///
/// # Errors
/// The directory or the database cannot be read. A session that cannot is a problem in [`Found`].
///
/// ```
/// use harness_session::search::{Query, search};
/// use harness_session::OpenOptions;
///
/// # let folder = tempfile::tempdir()?;
/// let found = search(folder.path(), &Query::new("order 1042"), 20, &OpenOptions::new())?;
/// for hit in &found.hits {
///     println!("{} {}: {}", hit.session.display(), hit.role, hit.snippet);
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn search(
    path: impl AsRef<Path>,
    query: &Query,
    most: usize,
    options: &OpenOptions,
) -> Result<Found, Error> {
    let mut found = Found::default();
    let sessions = Location::of(&path).sessions()?;
    let sessions = if let Location::Database(path) = Location::of(&path) {
        // The database has searched the others; encrypted sessions remain.
        Rows::search(&path, query, most.saturating_add(1), &mut found.hits)?
    } else {
        sessions
    };
    for session in sessions {
        match Tree::read(&session, options) {
            Ok(tree) => found.hits.extend(tree.search(&session, query, most.saturating_add(1))),
            Err(error) => found.problems.push((session, error)),
        }
    }
    found.hits.sort_by(|a, b| b.at.cmp(&a.at));
    found.more = found.hits.len() > most;
    found.hits.truncate(most);
    Ok(found)
}

/// The line of a message in a database.
#[cfg(any(feature = "postgres", feature = "sqlite"))]
#[derive(serde::Deserialize)]
pub(crate) struct Line {
    pub(crate) id: EntryId,
    #[serde(default)]
    pub(crate) at: String,
    pub(crate) message: Message,
}

#[cfg(any(feature = "postgres", feature = "sqlite"))]
impl Line {
    /// The message that a line holds, if it is one.
    pub(crate) fn of(line: &[u8]) -> Option<Self> {
        // Cheaper than reading what is none.
        let is_message = line.starts_with(MESSAGE.as_bytes());
        if is_message { serde_json::from_slice(line).ok() } else { None }
    }
}

impl Query {
    /// The words of a text, which white space separates. A query without words finds nothing.
    pub fn new(text: &str) -> Self {
        Self { words: text.to_lowercase().split_whitespace().map(str::to_owned).collect() }
    }

    /// Words in lower case.
    #[cfg(any(feature = "postgres", feature = "sqlite"))]
    pub(crate) fn words(&self) -> &[String] {
        &self.words
    }

    /// The hit that an entry is.
    pub(crate) fn hit(&self, session: &Path, entry: EntryId, at: &str, message: &Message) -> Option<Hit> {
        let snippet = self.snippet(&text_of(message))?;
        let (session, at, role) = (session.into(), at.to_owned(), message.role().to_owned());
        Some(Hit { session, entry, at, role, snippet })
    }

    /// The part of a matching text around the first word.
    fn snippet(&self, text: &str) -> Option<String> {
        let lower = text.to_lowercase();
        let places = self.words.iter().map(|word| lower.find(word.as_str())).collect::<Option<Vec<_>>>()?;
        let before = lower.get(..*places.first()?)?.chars().count();
        let start = before.saturating_sub(BEFORE);
        let shown: String = text.chars().skip(start).take(BEFORE + AFTER).collect();
        let mut snippet = shown.split_whitespace().collect::<Vec<_>>().join(" ");
        if start > 0 {
            snippet.insert(0, '…');
        }
        if text.chars().nth(start + BEFORE + AFTER).is_some() {
            snippet.push('…');
        }
        Some(snippet)
    }
}

impl Tree {
    /// The messages that match, the latest first, at most `most`.
    fn search(&self, session: &Path, query: &Query, most: usize) -> Vec<Hit> {
        let hits = self.nodes().iter().rev().filter_map(|node| match &node.body {
            Body::Message(message) => query.hit(session, node.id.clone(), &node.at, message),
            Body::Call { .. }
            | Body::Compaction { .. }
            | Body::Note(_)
            | Body::RunEnd { .. }
            | Body::State { .. }
            | Body::Other { .. } => None,
        });
        hits.take(most).collect()
    }
}

/// Searchable text of a message: its texts, and the names and arguments of its calls, each on a line.
pub(crate) fn text_of(message: &Message) -> String {
    let mut text = String::new();
    for block in message.content() {
        if let Block::Text(block) = block {
            text.extend([&*block.text, "\n"]);
        } else if let Block::Refusal(block) = block {
            text.extend([&*block.text, "\n"]);
        } else if let Block::ToolCall(call) = block {
            text.extend([call.name.as_str(), " ", call.arguments.text(), "\n"]);
        }
    }
    text
}
