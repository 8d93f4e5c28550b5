//! The whole of a session: every entry of every branch.

mod context;
mod fork;
mod markdown;
mod pi;
mod read;

use std::collections::HashMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use harness_core::message::Message;
use harness_core::port::{Loaded, TornTail};
use harness_core::{CallId, EntryId, Json, RunId};

use crate::chain::Chain;
use crate::fold::{Fold, Folded, Record};
use crate::jsonl::Header;
use crate::note::Note;
use crate::spine::Path as Way;

pub use context::{Context, Shown};
pub use fork::ForkOptions;
pub(crate) use fork::named;
pub(crate) use pi::Pi;
pub(crate) use read::wrapped;

/// All entries of a session, in the order in which they were written, and how they follow each other.
///
/// A snapshot: what is appended later does not show. It is what a stored session is looked at, exported and
/// forked by; a running one is a [`crate::FileSession`] or a [`crate::MemorySession`].
///
/// It reads sessions of this crate, bare messages without a header, and session trees of pi, versions 1 to 3.
///
/// ```
/// use std::sync::Arc;
///
/// use harness_core::message::Message;
/// use harness_core::port::{Durability, Entry, EntryHead};
/// use harness_core::{EntryId, Time};
/// use harness_session::{FileSession, ForkOptions, Leaf, Note, OpenOptions, Tree};
///
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("support.jsonl");
/// let session = FileSession::open(&path, OpenOptions::new())?;
/// let head = EntryHead::new(Time(1_767_225_600_000), None, 0, None);
/// let say = |text: &str| {
///     let message = Arc::new(Message::user(text));
///     session.append_blocking(&head, &[Entry::Message(&message)], Durability::Flush)
/// };
/// say("question")?;
/// say("first try")?;
/// let first = EntryId::from("e1");
/// session.note(&head, &Note::label(first.clone(), "start"))?;
///
/// // Go back to the question and try something else: both tries stay.
/// session.branch(Some(&first))?;
/// say("second try")?;
/// let tree = Tree::read(&path, &OpenOptions::new())?;
/// assert_eq!(tree.context(Leaf::Last).shown.len(), 2);
/// assert_eq!(tree.leaves().count(), 2);
///
/// // Only the question becomes a session of its own.
/// let fork = tree.fork(Leaf::At(&first), ForkOptions::new("support-18", Time(1_767_225_600_000)))?;
/// # let other = folder.path().join("other.jsonl");
/// fork.save(&other, &OpenOptions::new())?;
/// assert_eq!(FileSession::read(&other, &OpenOptions::new())?.loaded.messages.len(), 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Tree {
    path: PathBuf,
    source: Source,
    header: Option<Header>,
    /// Header as written, if it is of this format.
    first_line: Option<Box<str>>,
    torn_tail: Option<TornTail>,
    nodes: Vec<Node>,
    index: HashMap<EntryId, u32>,
    chain: Chain,
    records: Vec<Record>,
    /// The lines in their order, those outside the chain, too.
    lines: Vec<Text>,
}

/// A line as it was written, brought to our form.
#[derive(Clone, Debug)]
struct Text {
    /// The place of its entry; absent when nothing can name it.
    place: Option<u32>,
    text: Box<str>,
}

/// Program that wrote a session file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Source {
    /// This crate.
    Harness,
    /// Bare messages without a header.
    Bare,
    /// pi, in this version of its format.
    Pi(u64),
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Harness => f.write_str("harness"),
            Self::Bare => f.write_str("bare messages"),
            Self::Pi(version) => write!(f, "pi, version {version}"),
        }
    }
}

/// An entry up to which a session is looked at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Leaf<'a> {
    /// The last one of the file.
    #[default]
    Last,
    /// None: before the first one.
    Start,
    /// This one; the last one when there is no such entry.
    At(&'a EntryId),
}

/// One entry of a session.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Node {
    /// Its name, unique in the session.
    pub id: EntryId,
    /// The entry that it follows; `None` for a first one.
    pub parent: Option<EntryId>,
    /// When it was written, as the line says it (RFC 3339); empty when the line does not.
    pub at: String,
    /// The run that it belongs to.
    pub run: Option<RunId>,
    /// Content of the entry.
    pub body: Body,
}

/// Content of an entry.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Body {
    /// Message of the transcript.
    Message(Arc<Message>),
    /// A call started or finished.
    Call {
        /// Id of the call.
        call: CallId,
        /// Whether it finished.
        finished: bool,
    },
    /// The view or the transcript became shorter.
    Compaction {
        /// Text that replaces the hidden messages.
        summary: Option<String>,
        /// The first entry that stayed.
        first_kept: Option<EntryId>,
        /// Tokens before.
        tokens_before: u64,
        /// Tokens after, where they are known.
        tokens_after: Option<u64>,
        /// Whether the transcript itself became shorter, not the view alone.
        permanent: bool,
    },
    /// Data outside the transcript.
    Note(Note),
    /// A run ended.
    RunEnd {
        /// The code of the reason.
        reason: String,
    },
    /// State of a tool that belongs to the thread, from here on.
    State {
        /// Name of the state.
        name: String,
    },
    /// A line of a type that this version does not know.
    Other {
        /// Type of the line.
        kind: String,
    },
}

impl Tree {
    /// Program that wrote the file.
    pub fn source(&self) -> Source {
        self.source
    }

    /// The first line, brought to our form; absent in bare messages and in an empty session.
    pub fn header(&self) -> Option<&Header> {
        self.header.as_ref()
    }

    /// A last line that was not written to its end, and was left out.
    pub fn torn_tail(&self) -> Option<TornTail> {
        self.torn_tail
    }

    /// All entries in the order of the file.
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// The entry named `id`.
    pub fn get(&self, id: &EntryId) -> Option<&Node> {
        self.nodes.get(*self.index.get(id)? as usize)
    }

    /// The last entry of each branch, in the order of the file.
    pub fn leaves(&self) -> impl Iterator<Item = &Node> {
        let mut followed = vec![false; self.nodes.len()];
        for place in 0..self.chain.len() {
            let parent = self.chain.parent(place).and_then(|parent| followed.get_mut(parent as usize));
            if let Some(parent) = parent {
                *parent = true;
            }
        }
        self.nodes.iter().zip(followed).filter(|(_, followed)| !followed).map(|(node, _)| node)
    }

    /// The entries that lead to a leaf, itself included.
    pub fn path(&self, leaf: Leaf<'_>) -> impl Iterator<Item = &Node> {
        self.places(leaf).into_iter().filter_map(|place| self.nodes.get(place as usize))
    }

    /// The labels that are in force, in the order of their entries.
    pub fn labels(&self) -> Vec<(&EntryId, &str)> {
        let mut labels: HashMap<&EntryId, &str> = HashMap::new();
        for node in &self.nodes {
            match &node.body {
                Body::Note(Note::Label { target, label: Some(label) }) => {
                    labels.insert(target, label);
                }
                Body::Note(Note::Label { target, label: None }) => {
                    labels.remove(target);
                }
                Body::Message(_)
                | Body::Call { .. }
                | Body::Compaction { .. }
                | Body::Note(_)
                | Body::RunEnd { .. }
                | Body::State { .. }
                | Body::Other { .. } => {}
            }
        }
        let mut labels: Vec<_> = labels.into_iter().collect();
        labels.sort_by_key(|(target, _)| (self.index.get(*target).copied().unwrap_or(u32::MAX), *target));
        labels
    }

    /// Human-readable name of the session: the last one set.
    pub fn name(&self) -> Option<&str> {
        self.nodes.iter().rev().find_map(|node| match &node.body {
            Body::Note(Note::SessionInfo { name, .. }) => name.as_deref(),
            Body::Message(_)
            | Body::Call { .. }
            | Body::Compaction { .. }
            | Body::Note(_)
            | Body::RunEnd { .. }
            | Body::State { .. }
            | Body::Other { .. } => None,
        })
    }

    /// The caller's data of the session: the last that was set, in a note or in the header.
    pub fn meta(&self) -> Option<&Json> {
        let noted = self.nodes.iter().rev().find_map(|node| match &node.body {
            Body::Note(Note::SessionInfo { meta, .. }) => meta.as_ref(),
            Body::Message(_)
            | Body::Call { .. }
            | Body::Compaction { .. }
            | Body::Note(_)
            | Body::RunEnd { .. }
            | Body::State { .. }
            | Body::Other { .. } => None,
        });
        noted.or_else(|| self.header()?.meta.as_ref())
    }

    /// State with which a run continues from a leaf.
    pub fn loaded(&self, leaf: Leaf<'_>) -> Loaded {
        let mut loaded = self.fold(leaf).loaded;
        loaded.torn_tail = self.torn_tail;
        loaded
    }

    fn fold(&self, leaf: Leaf<'_>) -> Folded {
        let way = Way::Of(self.places(leaf));
        let mut fold = Fold::along(&way);
        fold.add_all(&self.records);
        fold.finish()
    }

    fn places(&self, leaf: Leaf<'_>) -> Vec<u32> {
        let last = self.chain.len().checked_sub(1);
        let leaf = match leaf {
            Leaf::Last => last,
            Leaf::Start => None,
            Leaf::At(id) => self.index.get(id).copied().or(last),
        };
        self.chain.places_to(leaf)
    }
}
